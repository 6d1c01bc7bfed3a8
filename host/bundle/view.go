package bundle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// view is a node together with the shape that it was checked against. Keys are read only
// through it. Reading a key that the grammar does not declare, or declares with another type,
// panics; so the first test that reads any manifest finds the mistake, where otherwise the key
// would silently have its default.
type view struct {
	n *yaml.Node // nil: absent
	s *shape
	c *checker
}

// field is the shape of a key, which must be one of kinds.
func (v view) field(key string, kinds ...kind) *shape {
	s := v.s.resolved()
	i := slices.IndexFunc(s.fields, func(f field) bool { return f.name == key })
	if s.kind != kindObject || i < 0 {
		panic(fmt.Sprintf("bundle: the key %q is read and not declared", key))
	}
	f := s.fields[i].shape
	if len(kinds) > 0 && !slices.Contains(kinds, f.resolved().kind) {
		panic(fmt.Sprintf("bundle: the key %q is declared as %s and read as something else", key, kindNames[f.kind]))
	}
	if v.c != nil && v.c.read != nil {
		v.c.read(s, key)
	}
	return f
}

// resolved is the shape that a reference stands for.
func (s *shape) resolved() *shape {
	if s.kind == kindRef {
		return s.self()
	}
	return s
}

// get is the value of a key.
func (v view) get(key string, kinds ...kind) view {
	f := v.field(key, kinds...)
	return view{valueAt(v.n, key), f, v.c}
}

// valueAt finds the value of a key, nil if it is absent.
func valueAt(n *yaml.Node, key string) *yaml.Node {
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

// given reports whether the value is there.
func (v view) given() bool { return v.n != nil }

// has reports whether the key is there.
func (v view) has(key string) bool { return v.get(key).given() }

func (v view) object(key string) view  { return v.get(key, kindObject) }
func (v view) mapping(key string) view { return v.get(key, kindMapping) }

func (v view) text(key string) string {
	if x := v.get(key, kindText); x.given() {
		return x.n.Value
	}
	return ""
}

func (v view) flag(key string, def bool) bool {
	if x := v.get(key, kindBool); x.given() {
		return x.n.Value == "true" || x.n.Value == "True" || x.n.Value == "TRUE"
	}
	return def
}

func (v view) whole(key string, def int) int {
	if x := v.get(key, kindInt); x.given() && x.n.Tag != "!!bool" {
		i, _ := strconv.Atoi(x.n.Value)
		return i
	}
	return def
}

// flagged reports whether the value of a key that is a whole number or a flag is true.
func (v view) flagged(key string) bool {
	x := v.get(key, kindInt)
	return x.given() && x.n.Tag == "!!bool" && strings.EqualFold(x.n.Value, "true")
}

func (v view) number(key string, def float64) float64 {
	if x := v.get(key, kindNumber); x.given() {
		f, _ := strconv.ParseFloat(x.n.Value, 64)
		return f
	}
	return def
}

func (v view) size(key string, def uint64) uint64 {
	if x := v.get(key, kindSize); x.given() {
		u, _ := parseSize(x.n.Value)
		return u
	}
	return def
}

func (v view) count(key string, def uint64) uint64 {
	if x := v.get(key, kindCount); x.given() {
		u, _ := parseCount(x.n.Value)
		return u
	}
	return def
}

func (v view) duration(key string, def time.Duration) time.Duration {
	if x := v.get(key, kindDuration); x.given() {
		d, _ := parseDuration(x.n.Value)
		return d
	}
	return def
}

// items are the elements of a list.
func (v view) items(key string) []view {
	x := v.get(key, kindList)
	var out []view
	if x.given() {
		for _, n := range x.n.Content {
			out = append(out, view{n, x.s.of, v.c})
		}
	}
	return out
}

// texts are the elements of a list of texts.
func (v view) texts(key string) []string {
	var out []string
	for _, x := range v.items(key) {
		out = append(out, x.n.Value)
	}
	return out
}

// pairs calls f for each entry of a mapping, in the order of the file.
func (v view) pairs(f func(key *yaml.Node, value view)) {
	if v.s.resolved().kind != kindMapping {
		panic("bundle: entries of something that is declared as no mapping are read")
	}
	if v.n == nil {
		return
	}
	for i := 0; i+1 < len(v.n.Content); i += 2 {
		f(v.n.Content[i], view{v.n.Content[i+1], v.s.of, v.c})
	}
}
