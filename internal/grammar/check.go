package grammar

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Checker checks a file and collects its mistakes. It is for one goroutine.
type Checker struct {
	File  string
	Found Diagnostics
	Words map[string][]string // further values of enums, by Shape.Words
	Call  Naming              // how errors call values; the zero value: by their paths, such as a.b[2]
	whole string              // how errors call the whole file
	nodes int
}

// Naming is how errors call what is within a value.
type Naming struct {
	Key  func(where, key string) string // of an object
	Item func(where string, i int) string
}

// At reports a mistake.
func (c *Checker) At(n *yaml.Node, format string, args ...any) {
	c.Found = append(c.Found, Diagnostic{c.File, max(n.Line, 1), max(n.Column, 1), fmt.Sprintf(format, args...)})
}

// Check reports how a value differs from a shape. where is how errors call it.
func (c *Checker) Check(n *yaml.Node, s *Shape, where string) {
	switch s.Kind {
	case Any:
		c.any(n)
	case Ref:
		c.Check(n, s.Self(), where)
	case OwnKind:
		s.Own.Check(c, n, s, where)
	case Object:
		c.Object(n, s, where)
	case Mapping:
		if n.Kind != yaml.MappingNode {
			c.Mismatch(n, s, where)
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if s.Key != nil && !s.Key.MatchString(k.Value) || slices.Contains(s.Not, k.Value) {
				c.At(k, "%q is not %s", k.Value, s.What)
			}
			c.Check(n.Content[i+1], s.Of, where+"."+k.Value)
		}
	case List:
		if n.Kind != yaml.SequenceNode {
			c.Mismatch(n, s, where)
			return
		}
		for i, item := range n.Content {
			c.Check(item, s.Of, c.item(where, i))
		}
	default:
		if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
			c.Mismatch(n, s, where)
			return
		}
		c.scalar(n, s, where)
	}
}

func (c *Checker) item(where string, i int) string {
	if c.Call.Item != nil {
		return c.Call.Item(where, i)
	}
	return where + "[" + strconv.Itoa(i) + "]"
}

func (c *Checker) key(where, key string) string {
	switch {
	case c.Call.Key != nil:
		return c.Call.Key(where, key)
	case where == c.whole:
		return key
	}
	return where + "." + key
}

// Object is Check of an object.
func (c *Checker) Object(n *yaml.Node, s *Shape, where string) {
	if n.Kind != yaml.MappingNode {
		c.Mismatch(n, s, where)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		of := s.Field(k.Value)
		if of == nil {
			c.At(k, "unknown key %q in %s%s", k.Value, where, Suggest(k.Value, s.names()))
			continue
		}
		c.Check(n.Content[i+1], of, c.key(where, k.Value))
	}
	for _, f := range s.Fields {
		if f.Required && At(n, f.Name) == nil {
			c.At(n, "%s lacks the key %q (%s)", where, f.Name, f.Shape.Doc)
		}
	}
}

// Mismatch reports a value of another kind.
func (c *Checker) Mismatch(n *yaml.Node, s *Shape, where string) {
	hint := ""
	if s.Kind == Text && n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
		hint = ": quote it"
	}
	c.At(n, "%s must be %s (%s), not %s%s", where, s.KindName(), s.Doc, NameOf(n), hint)
}

// NameOf says what a value is.
func NameOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return TagName(n)
	}
	return "a text"
}

// TagName names the type of a scalar.
func TagName(n *yaml.Node) string {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a truth value"
	case "!!timestamp":
		return "a date"
	case "!!str":
		return "a text"
	default:
		return "a value with the tag " + tag
	}
}

// any reports tags that values of args cannot have.
func (c *Checker) any(n *yaml.Node) {
	switch {
	case n.Kind != yaml.ScalarNode:
		if t := n.ShortTag(); t != "!!map" && t != "!!seq" {
			c.At(n, "the tag %s has no meaning here", t)
		}
		for i, x := range n.Content {
			if n.Kind == yaml.SequenceNode || i%2 == 1 {
				c.any(x)
			}
		}
	case !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!duration", "!size", "!count"}, n.Tag):
		c.At(n, "the tag %s has no meaning here; there are !duration, !size and !count", n.Tag)
	}
}

func (c *Checker) scalar(n *yaml.Node, s *Shape, where string) {
	value := 0.0
	var err error
	tag := n.ShortTag()
	switch s.Kind {
	case Text:
		c.text(n, s, where)
		return
	case Bool:
		switch {
		case tag == "!!str" && s.Enum != nil:
			if !slices.Contains(s.Enum, n.Value) {
				c.At(n, "%s cannot be %q%s", where, n.Value, Suggest(n.Value, append([]string{"true", "false"}, s.Enum...)))
			}
		case tag != "!!bool":
			c.Mismatch(n, s, where)
		}
		return
	case Int:
		if s.Flag && tag == "!!bool" {
			return
		}
		i, bad := WholeOf(n)
		if tag != "!!int" || bad != nil {
			c.Mismatch(n, s, where)
			return
		}
		value = float64(i)
	case Number:
		if value, err = strconv.ParseFloat(n.Value, 64); tag != "!!int" && tag != "!!float" || err != nil || value != value {
			c.Mismatch(n, s, where)
			return
		}
	case Size, Count:
		var u uint64
		if s.Kind == Size {
			u, err = ParseSize(n.Value)
		} else {
			u, err = ParseCount(n.Value)
		}
		value = float64(u)
	case Duration:
		var d time.Duration
		d, err = ParseDuration(n.Value)
		value = float64(d)
	}
	switch {
	case err != nil:
		c.At(n, "%s: %v", where, err)
	case value < s.Min:
		c.At(n, "%s must be at least %s, not %s", where, s.bound(s.Min), n.Value)
	case s.Max > 0 && value > s.Max:
		c.At(n, "%s must be at most %s, not %s", where, s.bound(s.Max), n.Value)
	}
}

func (c *Checker) text(n *yaml.Node, s *Shape, where string) {
	switch {
	case n.ShortTag() != "!!str" && s.Match == nil && s.Enum == nil:
		c.Mismatch(n, s, where)
	case s.Enum != nil && !slices.Contains(s.texts(c.Words), n.Value):
		c.At(n, "%s cannot be %q%s", where, n.Value, Suggest(n.Value, s.texts(c.Words)))
	case s.Match != nil && !s.Match.MatchString(n.Value), slices.Contains(s.Not, n.Value):
		c.At(n, "%s: %q is not %s", where, n.Value, s.What)
	case s.Filled && n.Value == "":
		c.At(n, "%s is empty", where)
	}
}

// bound writes a bound in the notation of files.
func (s *Shape) bound(v float64) string {
	switch s.Kind {
	case Size:
		for _, u := range sizeUnits[:3] { // KiB, MiB, GiB
			if n := v / u.factor; n >= 1 && n < 1024 && n == math.Trunc(n) {
				return strconv.FormatFloat(n, 'f', -1, 64) + u.name
			}
		}
	case Duration:
		return strings.TrimSuffix(strings.TrimSuffix(time.Duration(v).String(), "0s"), "0m")
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
