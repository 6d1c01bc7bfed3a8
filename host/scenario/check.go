package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/bundle"
)

// checker collects what is wrong with a file.
type checker struct {
	file  string
	found bundle.Diagnostics
}

func (c *checker) at(n *yaml.Node, format string, args ...any) {
	c.found = append(c.found, bundle.Diagnostic{File: c.file, Line: max(n.Line, 1), Column: max(n.Column, 1), Message: fmt.Sprintf(format, args...)})
}

// check reports how n differs from s; where is how the value is called.
func (c *checker) check(n *yaml.Node, s *shape, where string) {
	switch s.kind {
	case kindValue:
		c.value(n, false)
		if where != "message" && drawsAny(n) {
			c.at(n, "%s are for messages: the value here must be exact", strings.Join(drawTags, ", "))
		}
	case kindMatch:
		c.value(n, true)
	case kindNodes:
		c.checkNodes(n, s)
	case kindPart:
		c.checkPart(n, s)
	case kindList:
		if n.Kind != yaml.SequenceNode {
			c.mismatch(n, s, where)
			return
		}
		for _, item := range n.Content {
			c.check(item, s.of, strings.TrimSuffix(where, "s"))
		}
	case kindMapping:
		if n.Kind != yaml.MappingNode {
			c.mismatch(n, s, where)
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			c.check(n.Content[i+1], s.of, where+"."+n.Content[i].Value)
		}
	case kindObject:
		if c.isStep(s) {
			c.step(n)
			return
		}
		c.object(n, s.fields, where)
	default:
		if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
			c.mismatch(n, s, where)
			return
		}
		c.scalar(n, s, where)
	}
}

// isStep reports whether a shape is that of steps, whose keys depend on each other.
func (*checker) isStep(s *shape) bool { return s.doc == "a step" }

func (c *checker) object(n *yaml.Node, fields []field, where string) {
	if n.Kind != yaml.MappingNode {
		c.at(n, "%s must be a mapping, not %s", where, kindOf(n))
		return
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		j := slices.Index(names, k.Value)
		if j < 0 {
			c.at(k, "unknown key %q in %s%s", k.Value, where, bundle.Suggest(k.Value, names))
			continue
		}
		c.check(n.Content[i+1], fields[j].shape, k.Value)
	}
	for _, f := range fields {
		if f.need && at(n, f.name) == nil {
			c.at(n, "%s lacks the key %q (%s)", where, f.name, f.shape.doc)
		}
	}
}

// verbOf is what a step does; nil if that cannot be told, which was reported.
func (c *checker) verbOf(n *yaml.Node) *verb {
	if n.Kind != yaml.MappingNode {
		c.at(n, "a step must be a mapping with one of these keys: %s; not %s", strings.Join(verbNames(), ", "), kindOf(n))
		return nil
	}
	var found *verb
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		j := slices.IndexFunc(verbs, func(v verb) bool { return v.name == k.Value })
		if k.Value == "pause" && at(n, "for") != nil { // of a node
			j = slices.IndexFunc(verbs, func(v verb) bool { return v.name == k.Value && v.node() })
		}
		if kind := n.Content[i+1].Kind; j >= 0 && k.Value == "http" && (verbs[j].of.kind == kindList) != (kind == yaml.SequenceNode) { // http has two meanings
			if other := slices.IndexFunc(verbs[j+1:], func(v verb) bool { return v.name == k.Value }); other >= 0 {
				j += 1 + other
			}
		}
		switch {
		case j < 0:
		case found != nil:
			c.at(k, "a step does one thing: %q cannot be combined with %q; begin another with - before it", k.Value, found.name)
			return nil
		default:
			found = &verbs[j]
		}
	}
	if found == nil {
		first, hint := n, ""
		if len(n.Content) > 0 {
			first = n.Content[0]
			if near := bundle.Nearest(first.Value, verbNames()); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
		}
		c.at(first, "a step needs a key that says what it does: one of %s%s", strings.Join(verbNames(), ", "), hint)
	}
	return found
}

func (c *checker) step(n *yaml.Node) {
	v := c.verbOf(n)
	if v == nil {
		return
	}
	c.object(n, append([]field{must(v.name, v.of)}, v.keys...), v.name)
	var given []string
	for _, name := range []string{"message", "answer", "match", "error"} {
		if name == "message" && (v.name == "ask" || v.name == "send") || name == "error" && v.name == "http" {
			continue
		}
		if at(n, name) != nil {
			given = append(given, name)
		}
	}
	switch {
	case len(given) > 1:
		c.at(at(n, given[1]), "%s and %s cannot be combined", given[0], given[1])
	case v.name == "reply" && len(given) == 0:
		c.at(n, "reply needs message, or error")
	case v.name == "expect-state" && (len(n.Content) == 2 || len(n.Content) == 4 && at(n, "on") != nil):
		c.at(n, "expect-state needs at least one of alive, state, restarts, crashes, incarnation, mailbox, children")
	}
	c.outside(n, v)
	if alive := at(n, "alive"); alive != nil && alive.Value == "false" && (len(n.Content) > 6 || len(n.Content) > 4 && at(n, "on") == nil) {
		c.at(alive, "of an actor that is not alive there is nothing else to say")
	}
	if t := at(n, "tolerance"); t != nil && at(n, "after") == nil {
		c.at(t, "tolerance needs after: how much more or less than that")
	}
}

func (c *checker) mismatch(n *yaml.Node, s *shape, where string) {
	c.at(n, "%s must be %s (%s), not %s", where, kindNames[s.kind], s.doc, kindOf(n))
}

// kindOf says what a node is.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return bundle.TagName(n)
}

func (c *checker) scalar(n *yaml.Node, s *shape, where string) {
	var err error
	switch s.kind {
	case kindText:
		switch {
		case n.ShortTag() != "!!str":
			c.at(n, "%s must be a text (%s), not %s: quote it", where, s.doc, kindOf(n))
		case s.enum != nil && !slices.Contains(s.enum, n.Value):
			c.at(n, "%s cannot be %q%s", where, n.Value, bundle.Suggest(n.Value, s.enum))
		case n.Value == "" && s.enum == nil && where != "body" && !strings.Contains(where, "."):
			c.at(n, "%s is empty", where)
		}
	case kindBool:
		if n.ShortTag() != "!!bool" {
			c.mismatch(n, s, where)
		}
	case kindWhole:
		var i int64
		if n.ShortTag() != "!!int" || n.Decode(&i) != nil {
			c.mismatch(n, s, where)
		} else if i < s.min || i > s.max {
			c.at(n, "%s must be from %d to %d, not %d", where, s.min, s.max, i)
		}
	case kindDuration:
		_, err = durationOf(n.Value)
	case kindShare:
		if _, ok := percentage(n.Value); !ok {
			_, err = durationOf(n.Value)
		}
	case kindTime:
		if _, bad := time.Parse(time.RFC3339Nano, n.Value); bad != nil {
			c.mismatch(n, s, where)
		}
	}
	if err != nil {
		c.at(n, "%s: %v", where, err)
	}
}

// durationOf reads a duration of a file.
func durationOf(text string) (time.Duration, error) {
	d, err := bundle.ParseDuration(text)
	if err == nil && d > MaxAdvance {
		err = fmt.Errorf("%s is more than a hundred years", text)
	}
	return d, err
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

// at is the value of a key, nil if it is absent.
func at(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
