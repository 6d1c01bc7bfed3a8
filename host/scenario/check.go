package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/internal/grammar"
)

// checker collects what is wrong with a file.
type checker struct{ *grammar.Checker }

// byKeys is how errors call values: by their keys alone, since they say where the values are.
var byKeys = grammar.Naming{
	Key:  func(_, key string) string { return key },
	Item: func(where string, _ int) string { return strings.TrimSuffix(where, "s") },
}

// checkerOf is one for a file.
func checkerOf(file string) *checker {
	return &checker{&grammar.Checker{File: file, Call: byKeys}}
}

// checkValue checks a message, or what one is to be.
func (c *checker) checkValue(n *yaml.Node, _ *shape, where string) {
	c.value(n, false)
	if where != "message" && drawsAny(n) {
		c.At(n, "%s are for messages: the value here must be exact", strings.Join(drawTags, ", "))
	}
}

func (c *checker) checkShare(n *yaml.Node, s *shape, where string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		c.Mismatch(n, s, where)
	} else if _, ok := percentage(n.Value); !ok {
		c.Check(n, span(s.Doc), where)
	}
}

func (c *checker) checkTime(n *yaml.Node, s *shape, where string) {
	if _, err := time.Parse(time.RFC3339Nano, n.Value); n.Kind != yaml.ScalarNode || err != nil {
		c.Mismatch(n, s, where)
	}
}

// verbOf is what a step does; nil if that cannot be told, which was reported.
func (c *checker) verbOf(n *yaml.Node) *verb {
	if n.Kind != yaml.MappingNode {
		c.At(n, "a step must be a mapping with one of these keys: %s; not %s", strings.Join(verbNames(), ", "), grammar.NameOf(n))
		return nil
	}
	var found *verb
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		j := slices.IndexFunc(verbs, func(v verb) bool { return v.name == k.Value })
		if k.Value == "pause" && grammar.At(n, "for") != nil { // of a node
			j = slices.IndexFunc(verbs, func(v verb) bool { return v.name == k.Value && v.node() })
		}
		if kind := n.Content[i+1].Kind; j >= 0 && k.Value == "http" && (verbs[j].of.Kind == grammar.List) != (kind == yaml.SequenceNode) { // http has two meanings
			if other := slices.IndexFunc(verbs[j+1:], func(v verb) bool { return v.name == k.Value }); other >= 0 {
				j += 1 + other
			}
		}
		switch {
		case j < 0:
		case found != nil:
			c.At(k, "a step does one thing: %q cannot be combined with %q; begin another with - before it", k.Value, found.name)
			return nil
		default:
			found = &verbs[j]
		}
	}
	if found == nil {
		first, hint := n, ""
		if len(n.Content) > 0 {
			first = n.Content[0]
			if near := grammar.Nearest(first.Value, verbNames()); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
		}
		c.At(first, "a step needs a key that says what it does: one of %s%s", strings.Join(verbNames(), ", "), hint)
	}
	return found
}

func (c *checker) step(n *yaml.Node) {
	v := c.verbOf(n)
	if v == nil {
		return
	}
	c.Object(n, v.shapeOf(), v.name)
	var given []string
	for _, name := range []string{"message", "answer", "match", "error"} {
		if name == "message" && (v.name == "ask" || v.name == "send") || name == "error" && v.name == "http" {
			continue
		}
		if grammar.At(n, name) != nil {
			given = append(given, name)
		}
	}
	switch {
	case len(given) > 1:
		c.At(grammar.At(n, given[1]), "%s and %s cannot be combined", given[0], given[1])
	case v.name == "reply" && len(given) == 0:
		c.At(n, "reply needs message, or error")
	case v.name == "expect-state" && (len(n.Content) == 2 || len(n.Content) == 4 && grammar.At(n, "on") != nil):
		c.At(n, "expect-state needs at least one of alive, state, restarts, crashes, incarnation, mailbox, children")
	}
	c.outside(n, v)
	if alive := grammar.At(n, "alive"); alive != nil && alive.Value == "false" && (len(n.Content) > 6 || len(n.Content) > 4 && grammar.At(n, "on") == nil) {
		c.At(alive, "of an actor that is not alive there is nothing else to say")
	}
	if t := grammar.At(n, "tolerance"); t != nil && grammar.At(n, "after") == nil {
		c.At(t, "tolerance needs after: how much more or less than that")
	}
}

// percentage reads a text such as 20% as a fraction.
func percentage(text string) (float64, bool) {
	digits, ok := strings.CutSuffix(text, "%")
	if !ok || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(digits, 64)
	return f / 100, err == nil && f <= 1000
}
