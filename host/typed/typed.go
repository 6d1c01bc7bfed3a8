// Package typed makes an actor in Go handle messages by the type that they state: the name and the version in the header
// abi.HeaderType, as guests send them and as [host.RefOf] and [host.Typed] do.
//
//	var b typed.Bindings
//	typed.Handle(&b, func(ctx *host.Context, p *bank.Payment) error { ... })
//	typed.Handle(&b, func(ctx *host.Context, p *bank.PaymentV2) error { ... })
//	b.Match("audit.*", func(ctx *host.Context, m host.Message) error { ... })
//	err := b.Err()
//
// docs/guide/messages.md has the whole of it.
package typed

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Message is what guest-sdk/gen makes of a struct T with //wasmactors:message above it: a pointer to it.
type Message[T any] interface {
	*T
	MessageType() string
	UnmarshalVersion(r *abi.Reader, version uint16)
}

// Bindings say which function handles which messages. The most specific one does: a function for a message in its
// version; else the function for the next higher version, to which the message is converted; else
// the longest pattern that matches. Two functions for the same are an error, see Err. The zero value has none. Bindings
// must be complete before the actor starts, and may be shared by actors from then on.
type Bindings struct {
	types    map[string][]binding // by name, in the order of versions
	patterns []pattern            // the most specific first
	bad      []error
}

type binding struct {
	version uint16
	handle  func(ctx *host.Context, m host.Message) error
}

type pattern struct {
	text   string // without the * at the end
	exact  bool
	handle func(ctx *host.Context, m host.Message) error
}

// Handle binds a function to a type of message. A message that cannot be read as that type fails the turn.
func Handle[T any, P Message[T]](b *Bindings, f func(ctx *host.Context, v P) error) {
	name, version, ok := abi.CutMessageType(P(new(T)).MessageType())
	if !ok {
		b.bad = append(b.bad, fmt.Errorf("typed: %T has the type %q, which is not a valid type", *new(T), P(new(T)).MessageType()))
		return
	}
	at, had := slices.BinarySearchFunc(b.types[name], version, func(x binding, v uint16) int { return int(x.version) - int(v) })
	if had {
		b.bad = append(b.bad, fmt.Errorf("typed: two functions for %s@%d: leave one out", name, version))
		return
	}
	if b.types == nil {
		b.types = map[string][]binding{}
	}
	b.types[name] = slices.Insert(b.types[name], at, binding{version, func(ctx *host.Context, m host.Message) error {
		v := P(new(T))
		switch err := m.DecodeTyped(v); {
		case errors.Is(err, abi.ErrMessageType): // that version cannot be converted
			return host.ErrUnhandled
		case err != nil:
			return err
		}
		return f(ctx, v)
	}})
}

// Match binds a function to the messages whose name matches a pattern: a whole name, or its beginning followed by a *.
func (b *Bindings) Match(text string, f func(ctx *host.Context, m host.Message) error) {
	begin, wild := strings.CutSuffix(text, "*")
	p := pattern{begin, !wild, f}
	switch {
	case strings.Contains(begin, "*") || begin == "" && !wild:
		b.bad = append(b.bad, fmt.Errorf("typed: the pattern %q is neither a name nor a prefix followed by *", text))
	case slices.ContainsFunc(b.patterns, func(o pattern) bool { return o.text == p.text && o.exact == p.exact }):
		b.bad = append(b.bad, fmt.Errorf("typed: two functions for %q: leave one out", text))
	default:
		b.patterns = append(b.patterns, p)
		slices.SortStableFunc(b.patterns, func(x, y pattern) int {
			if x.exact != y.exact {
				if x.exact {
					return -1
				}
				return 1
			}
			return len(y.text) - len(x.text)
		})
	}
}

// Err is everything that was wrong with the bindings: two functions for the same messages, invalid names and
// patterns.
func (b *Bindings) Err() error { return errors.Join(b.bad...) }

// Receive calls the function that is bound to a message. It returns [host.ErrUnhandled] if there is none, if the
// message states no type, if it states a version later than any, and for messages of the host.
func (b *Bindings) Receive(ctx *host.Context, m host.Message) error {
	if m.Kind != abi.KindMessage {
		return host.ErrUnhandled
	}
	name, version, ok := m.Type()
	if !ok {
		return host.ErrUnhandled
	}
	list := b.types[name]
	at, _ := slices.BinarySearchFunc(list, version, func(x binding, v uint16) int { return int(x.version) - int(v) })
	if at < len(list) {
		return list[at].handle(ctx, m)
	}
	for _, p := range b.patterns {
		if p.text == name || !p.exact && strings.HasPrefix(name, p.text) {
			return p.handle(ctx, m)
		}
	}
	return host.ErrUnhandled
}
