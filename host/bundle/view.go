package bundle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/internal/grammar"
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
func (v view) field(key string, kinds ...grammar.Kind) *shape {
	s := v.s.Resolved()
	f := s.Field(key)
	if s.Kind != grammar.Object || f == nil {
		panic(fmt.Sprintf("bundle: the key %q is read and not declared", key))
	}
	if len(kinds) > 0 && !slices.Contains(kinds, f.Resolved().Kind) {
		panic(fmt.Sprintf("bundle: the key %q is declared as %s and read as something else", key, f.KindName()))
	}
	if v.c != nil && v.c.read != nil {
		v.c.read(s, key)
	}
	return f
}

// get is the value of a key.
func (v view) get(key string, kinds ...grammar.Kind) view {
	f := v.field(key, kinds...)
	return view{grammar.At(v.n, key), f, v.c}
}

// given reports whether the value is there.
func (v view) given() bool { return v.n != nil }

// has reports whether the key is there.
func (v view) has(key string) bool { return v.get(key).given() }

func (v view) object(key string) view  { return v.get(key, grammar.Object) }
func (v view) mapping(key string) view { return v.get(key, grammar.Mapping) }

func (v view) text(key string) string {
	if x := v.get(key, grammar.Text); x.given() {
		return x.n.Value
	}
	return ""
}

func (v view) flag(key string, def bool) bool {
	if x := v.get(key, grammar.Bool); x.given() {
		return x.n.Value == "true" || x.n.Value == "True" || x.n.Value == "TRUE"
	}
	return def
}

func (v view) whole(key string, def int) int {
	if x := v.get(key, grammar.Int); x.given() && x.n.Tag != "!!bool" {
		i, _ := grammar.WholeOf(x.n)
		return int(i)
	}
	return def
}

// flagged reports whether the value of a key that is a whole number or a flag is true.
func (v view) flagged(key string) bool {
	x := v.get(key, grammar.Int)
	return x.given() && x.n.Tag == "!!bool" && strings.EqualFold(x.n.Value, "true")
}

func (v view) number(key string, def float64) float64 {
	if x := v.get(key, grammar.Number); x.given() {
		f, _ := strconv.ParseFloat(x.n.Value, 64)
		return f
	}
	return def
}

func (v view) size(key string, def uint64) uint64 {
	if x := v.get(key, grammar.Size); x.given() {
		u, _ := grammar.ParseSize(x.n.Value)
		return u
	}
	return def
}

func (v view) count(key string, def uint64) uint64 {
	if x := v.get(key, grammar.Count); x.given() {
		u, _ := grammar.ParseCount(x.n.Value)
		return u
	}
	return def
}

func (v view) duration(key string, def time.Duration) time.Duration {
	if x := v.get(key, grammar.Duration); x.given() {
		d, _ := grammar.ParseDuration(x.n.Value)
		return d
	}
	return def
}

// items are the elements of a list.
func (v view) items(key string) []view {
	x := v.get(key, grammar.List)
	var out []view
	if x.given() {
		for _, n := range x.n.Content {
			out = append(out, view{n, x.s.Of, v.c})
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
	if v.s.Resolved().Kind != grammar.Mapping {
		panic("bundle: entries of something that is declared as no mapping are read")
	}
	if v.n == nil {
		return
	}
	for i := 0; i+1 < len(v.n.Content); i += 2 {
		f(v.n.Content[i], view{v.n.Content[i+1], v.s.Of, v.c})
	}
}
