package testkit

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Matcher says which messages a test means, and how reports call them. Any other value may be given
// in place of a matcher, and stands for [Equal].
type Matcher interface {
	Match(m host.Message) bool
	String() string
}

type matcher struct {
	what  string
	match func(host.Message) bool
}

func (m matcher) Match(x host.Message) bool { return m.match(x) }
func (m matcher) String() string            { return m.what }

// Matching is a matcher that reports call what.
func Matching(what string, match func(host.Message) bool) Matcher { return matcher{what, match} }

// Equal matches a payload that means the same as v: the order of keys and the width of
// numbers do not count, an integer and a float are different.
func Equal(v any) Matcher {
	want, err := host.Encode(v)
	if err != nil {
		return Matching(fmt.Sprintf("%#v (which cannot be a message: %v)", v, err), func(host.Message) bool { return false })
	}
	return Matching(value(want), func(m host.Message) bool { return same(m.Payload, want) })
}

// OfType matches a payload that conforms to T: it decodes, and has whatever T would have. A map may have
// further keys.
func OfType[T any]() Matcher {
	return Matching("a "+reflect.TypeFor[T]().String(), func(m host.Message) bool {
		_, err := conform[T](m.Payload)
		return err == nil
	})
}

// OfKind matches all messages of a kind: abi.KindReplyError, abi.KindTimer and so on.
func OfKind(k abi.Kind) Matcher {
	return Matching("a "+k.String(), func(m host.Message) bool { return m.Kind == k })
}

// Text matches a text of which a part matches a regular expression.
func Text(pattern string) Matcher {
	re := regexp.MustCompile(pattern)
	return Matching("a text like "+pattern, func(m host.Message) bool {
		var s string
		return m.Decode(&s) == nil && re.MatchString(s)
	})
}

// Any matches everything.
func Any() Matcher { return Matching("anything", func(host.Message) bool { return true }) }

// matcherOf is v as a matcher.
func matcherOf(v any) Matcher {
	if m, ok := v.(Matcher); ok {
		return m
	}
	return Equal(v)
}

// same reports whether two payloads mean the same.
func same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return cbor.Unmarshal(a, &x) == nil && cbor.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// conform decodes a payload that must have everything that T would have.
func conform[T any](payload []byte) (v T, err error) {
	if err = (host.Message{Payload: payload}).Decode(&v); err != nil {
		return v, err
	}
	again, err := host.Encode(v)
	if err != nil {
		return v, err
	}
	var got, want any
	if err = cbor.Unmarshal(payload, &got); err == nil {
		err = cbor.Unmarshal(again, &want)
	}
	if err == nil && !covers(got, want) {
		err = fmt.Errorf("%s has not all of %s", value(payload), value(again))
	}
	return v, err
}

// covers reports whether got has all that want has.
func covers(got, want any) bool {
	switch w := want.(type) {
	case map[any]any:
		g, ok := got.(map[any]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if x, ok := g[k]; !ok || !covers(x, v) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !covers(g[i], w[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(got, want)
}

// names are matchers in a report.
func names(ms []Matcher) string {
	var parts []string
	for _, m := range ms {
		parts = append(parts, m.String())
	}
	return strings.Join(parts, ", ")
}
