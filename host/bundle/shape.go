package bundle

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"github.com/wasmactors/wasmactors/host/service"
	"go.yaml.in/yaml/v3"
)

// shape says what a value of the manifest must look like. Manifests are checked
// against shapes, and the JSON Schema is made from them.
type shape struct {
	kind   kind
	doc    string
	fields []field                      // object
	of     *shape                       // list, mapping
	enum   []string                     // text; bool: what else it can be
	words  func(*Words) []string        // text with an enum: what an embedder adds to it
	key    *rule                        // mapping: its keys
	match  *rule                        // text
	what   string                       // text, mapping: what match and key stand for
	reach  service.Reach                // text, and a list that is a command: what it names outside of the bundle; a text needs it unless it has an enum
	keys   service.Reach                // mapping: reach of its keys
	writes func(object *yaml.Node) bool // path: whether the object that it is in lets it be written to; nil: it does not
	as     string                       // path: the key beside it that says what it is called in the guest
	flag   bool                         // whole number: or true or false
	not    []string                     // text, mapping: texts that match or key allows, but that are refused
	min    float64
	max    float64 // 0: no limit
	self   func() *shape
}

type field struct {
	name     string
	required bool
	shape    *shape
}

type kind uint8

const (
	kindAny kind = iota
	kindText
	kindBool
	kindInt
	kindNumber
	kindSize
	kindCount
	kindDuration
	kindList
	kindMapping
	kindObject
	kindRef // self() is the shape: for recursion
)

var kindNames = [...]string{"anything", "a text", "true or false", "a whole number", "a number", "a size", "a count", "a duration", "a list", "a mapping", "a mapping"}

func boolean(doc string) *shape { return &shape{kind: kindBool, doc: doc} }

// or allows texts beside true and false.
func (s *shape) or(texts ...string) *shape { s.enum = texts; return s }

// orFlag allows true and false beside a whole number.
func (s *shape) orFlag() *shape { s.flag = true; return s }

func size(doc string) *shape     { return &shape{kind: kindSize, doc: doc, min: 1} }
func duration(doc string) *shape { return &shape{kind: kindDuration, doc: doc} }
func anything(doc string) *shape { return &shape{kind: kindAny, doc: doc} }

// sizeIn is a size between two bounds, in bytes.
func sizeIn(doc string, least, most float64) *shape {
	return &shape{kind: kindSize, doc: doc, min: least, max: most}
}

func count(doc string, most float64) *shape {
	return &shape{kind: kindCount, doc: doc, min: 1, max: most}
}

// none is the reach of texts that name nothing outside of the bundle.
const none = service.ReachNone

func text(reach service.Reach, doc string) *shape {
	return &shape{kind: kindText, doc: doc, reach: reach}
}

// enumWith is an enum to which an embedder's words are added.
func enumWith(words func(*Words) []string, doc string, values ...string) *shape {
	s := enum(doc, values...)
	s.words = words
	return s
}

// texts are the values of an enum, with those of an embedder.
func (s *shape) texts(w *Words) []string {
	if s.words == nil {
		return s.enum
	}
	return append(slices.Clip(s.enum), s.words(w)...)
}

func enum(doc string, values ...string) *shape {
	return &shape{kind: kindText, doc: doc, enum: values}
}

func pattern(reach service.Reach, doc, what, re string) *shape {
	return &shape{kind: kindText, doc: doc, match: newRule(re), what: what, reach: reach}
}

func integer(doc string, least, most float64) *shape {
	return &shape{kind: kindInt, doc: doc, min: least, max: most}
}

func number(doc string, least, most float64) *shape {
	return &shape{kind: kindNumber, doc: doc, min: least, max: most}
}

// command is a program with its arguments.
func command(doc string) *shape {
	s := list(doc, text(none, "a word"))
	s.reach = service.ReachRun
	return s
}

func list(doc string, of *shape) *shape { return &shape{kind: kindList, doc: doc, of: of} }

func mapping(doc, what, key string, of *shape) *shape {
	s := &shape{kind: kindMapping, doc: doc, of: of, what: what, keys: none}
	if key != "" {
		s.key = newRule(key)
	}
	return s
}

// grantedAs is a path that guests use under the name that another key gives, and write to if a third one has a value.
func (s *shape) grantedAs(guest, key, value string) *shape {
	s.as, s.writes = guest, func(object *yaml.Node) bool { n := valueAt(object, key); return n != nil && n.Value == value }
	return s
}

// names is a mapping from actors' names.
func names(doc string, of *shape) *shape { return mapping(doc, nameWhat, nameRule, of).but(".", "..") }

// but forbids texts that the rule of a text or of a mapping's keys would allow.
func (s *shape) but(texts ...string) *shape { s.not = texts; return s }

func object(doc string, fields ...field) *shape {
	return &shape{kind: kindObject, doc: doc, fields: fields}
}

func optional(name string, s *shape) field { return field{name, false, s} }
func required(name string, s *shape) field { return field{name, true, s} }

// maxDepth bounds the nesting of a manifest, maxNodes its size.
const (
	maxDepth = 64
	maxNodes = 200_000
)

// checker checks a manifest and collects its mistakes.
type checker struct {
	file    string
	found   Diagnostics
	nodes   int
	vars    Variables
	kinds   []service.Kind // that may be granted
	words   Words          // an embedder's
	grammar *shape
	root    *yaml.Node               // once it was parsed
	grown   int                      // bytes that the values of variables have added
	granted []guests.Metric          // metrics of all actors, each name once
	spread  []named                  // actors whose events a cluster keeps, by the bundle's name
	read    func(s *shape, k string) // called with every key that is read; for tests
}

func (c *checker) at(n *yaml.Node, format string, args ...any) {
	c.found = append(c.found, Diagnostic{c.file, max(n.Line, 1), max(n.Column, 1), fmt.Sprintf(format, args...)})
}

// structure refuses aliases, merge keys, deep nesting and duplicate keys.
func (c *checker) structure(n *yaml.Node, depth int) bool {
	c.nodes++
	switch {
	case c.nodes > maxNodes:
		if c.nodes == maxNodes+1 {
			c.at(n, "too large: more than %d values", maxNodes)
		}
		return false
	case depth > maxDepth:
		c.at(n, "nested too deeply")
		return false
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		c.at(n, "anchors and aliases are not supported; write the value out")
		return false
	}
	ok := true
	if n.Kind == yaml.MappingNode {
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				c.at(k, "a key must be a text")
				ok = false
				continue
			}
			if k.ShortTag() != "!!str" {
				c.at(k, "the key %s is %s and no text: quote it", k.Value, tagName(k))
			}
			if line, twice := seen[k.Value]; twice {
				c.at(k, "the key %q comes twice, first in line %d", k.Value, line)
			}
			seen[k.Value] = k.Line
		}
	}
	for _, child := range n.Content {
		ok = c.structure(child, depth+1) && ok
	}
	return ok
}

// any reports tags that values of args cannot have.
func (c *checker) any(n *yaml.Node) {
	switch {
	case n.Kind != yaml.ScalarNode:
		if t := n.ShortTag(); t != "!!map" && t != "!!seq" {
			c.at(n, "the tag %s has no meaning here", t)
		}
		for i, x := range n.Content {
			if n.Kind == yaml.SequenceNode || i%2 == 1 {
				c.any(x)
			}
		}
	case !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!duration", "!size", "!count"}, n.Tag):
		c.at(n, "the tag %s has no meaning here; there are !duration, !size and !count", n.Tag)
	}
}

// check reports how n differs from s.
func (c *checker) check(n *yaml.Node, s *shape, where string) {
	switch s.kind {
	case kindAny:
		c.any(n)
		return
	case kindRef:
		c.check(n, s.self(), where)
	case kindObject:
		c.object(n, s, where)
	case kindMapping:
		if n.Kind != yaml.MappingNode {
			c.mismatch(n, s, where)
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if s.key != nil && !s.key.MatchString(k.Value) || slices.Contains(s.not, k.Value) {
				c.at(k, "%q is not %s", k.Value, s.what)
			}
			c.check(n.Content[i+1], s.of, where+"."+k.Value)
		}
	case kindList:
		if n.Kind != yaml.SequenceNode {
			c.mismatch(n, s, where)
			return
		}
		for i, item := range n.Content {
			c.check(item, s.of, where+"["+strconv.Itoa(i)+"]")
		}
	default:
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			c.mismatch(n, s, where)
			return
		}
		c.scalar(n, s, where)
	}
}

func (c *checker) object(n *yaml.Node, s *shape, where string) {
	if n.Kind != yaml.MappingNode {
		c.mismatch(n, s, where)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		seen[k.Value] = true
		j := slices.IndexFunc(s.fields, func(f field) bool { return f.name == k.Value })
		if j < 0 {
			c.at(k, "unknown key %q in %s%s", k.Value, where, suggestion(k.Value, s.names()))
			continue
		}
		c.check(n.Content[i+1], s.fields[j].shape, trimRoot(where)+k.Value)
	}
	for _, f := range s.fields {
		if f.required && !seen[f.name] {
			c.at(n, "%s lacks the key %q (%s)", where, f.name, f.shape.doc)
		}
	}
}

func trimRoot(where string) string {
	if where == "the manifest" {
		return ""
	}
	return where + "."
}

func (s *shape) names() []string {
	var names []string
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	return names
}

func (c *checker) mismatch(n *yaml.Node, s *shape, where string) {
	got := "a text"
	switch n.Kind {
	case yaml.MappingNode:
		got = "a mapping"
	case yaml.SequenceNode:
		got = "a list"
	case yaml.ScalarNode:
		got = tagName(n)
	}
	c.at(n, "%s must be %s (%s), not %s", where, kindNames[s.kind], s.doc, got)
}

// tagName names the type of a scalar.
func tagName(n *yaml.Node) string {
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

func (c *checker) scalar(n *yaml.Node, s *shape, where string) {
	v := n.Value
	var err error
	value := 0.0
	switch s.kind {
	case kindText:
		if n.Tag != "!!str" && s.match == nil && s.enum == nil {
			c.mismatch(n, s, where)
			return
		}
		switch {
		case s.enum != nil && !slices.Contains(s.texts(&c.words), v):
			c.at(n, "%s cannot be %q%s", where, v, suggestion(v, s.texts(&c.words)))
		case s.match != nil && !s.match.MatchString(v), slices.Contains(s.not, v):
			c.at(n, "%s: %q is not %s", where, v, s.what)
		}
		return
	case kindBool:
		switch {
		case n.Tag == "!!str" && s.enum != nil:
			if !slices.Contains(s.enum, v) {
				c.at(n, "%s cannot be %q%s", where, v, suggestion(v, s.enum))
			}
		case n.Tag != "!!bool":
			c.mismatch(n, s, where)
		}
		return
	case kindInt:
		var i int64
		if s.flag && n.Tag == "!!bool" {
			return
		}
		if n.Tag != "!!int" {
			c.mismatch(n, s, where)
			return
		}
		if i, err = strconv.ParseInt(v, 10, 64); err != nil {
			c.mismatch(n, s, where)
			return
		}
		value = float64(i)
	case kindNumber:
		if n.Tag != "!!int" && n.Tag != "!!float" {
			c.mismatch(n, s, where)
			return
		}
		if value, err = strconv.ParseFloat(v, 64); err != nil || value != value {
			c.mismatch(n, s, where)
			return
		}
	case kindSize, kindCount:
		var u uint64
		if s.kind == kindSize {
			u, err = parseSize(v)
		} else {
			u, err = parseCount(v)
		}
		value = float64(u)
	case kindDuration:
		_, err = parseDuration(v)
		value = s.min
	}
	switch {
	case err != nil:
		c.at(n, "%s: %v", where, err)
	case value < s.min:
		c.at(n, "%s must be at least %s, not %s", where, s.bound(s.min), v)
	case s.max > 0 && value > s.max:
		c.at(n, "%s must be at most %s, not %s", where, s.bound(s.max), v)
	}
}

// bound writes a bound in the notation of manifests.
func (s *shape) bound(v float64) string {
	if s.kind == kindSize {
		for _, u := range sizeUnits[:3] { // KiB, MiB, GiB
			if n := v / u.factor; n >= 1 && n < 1024 && n == math.Trunc(n) {
				return strconv.FormatFloat(n, 'f', -1, 64) + u.name
			}
		}
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
