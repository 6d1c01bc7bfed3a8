package host

import (
	"context"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
)

// RefOf is the ref for a number that an actor has sent in a payload: of an actor, living or not, or of another receiver. by
// is the actor that the number is from. If no receiver has the ref it counts as a guess of that actor, as if it had sent a
// message there itself; a zero by is trusted. The error is ErrNobody for 0, and wraps ErrDenied if the actor may not guess
// any more. Otherwise RefOf says nothing about whether there is such an actor; sending to one that is not there fails as
// always.
func (s *System) RefOf(uid abi.Ref, by Ref) (Ref, error) {
	if uid == 0 {
		return Ref{}, ErrNobody
	}
	if a := s.here(by.UID()); a != nil {
		if a.tree.guesses.None() && !a.vouched(uid) && a.outOfGuesses(nil) {
			return Ref{}, errGuessed
		}
		if s.here(uid) == nil && !s.outside.Has(uid) && s.far.To(uid) == nil {
			a.strayed(nil, uid)
		}
	}
	return s.refOf(uid), nil
}

// RefOf is a ref of an actor that takes messages of the type T: a struct or a pointer to one, or an interface that
// several types implement. The zero value names no actor. See [Ref] for when refs are equal.
type RefOf[T any] struct{ ref Ref }

// To makes a typed ref. It trusts that the actor takes messages of the type T.
func To[T any](ref Ref) RefOf[T] { return RefOf[T]{ref} }

// Ref is the plain ref, for everything that needs no type.
func (r RefOf[T]) Ref() Ref { return r.ref }

// Tell is [System.Tell] for messages of the right type. They carry it in the header if they have one, see [Typed].
func (r RefOf[T]) Tell(s *System, v T) error { return s.Tell(r.ref, Typed(v)) }

// TellFrom is [Context.Tell] for messages of the right type.
func (r RefOf[T]) TellFrom(ctx *Context, v T) error { return ctx.Tell(r.ref, Typed(v)) }

// Question is a message that is answered with an R, which is a pointer: //wasmactors:message answer=... above a
// struct generates the method.
type Question[R any] interface {
	Answer() R // makes room for one
}

// AskRef is [System.Ask] for a question of the right type, whose answer has the right type.
func AskRef[T Question[R], R any](ctx context.Context, s *System, to RefOf[T], v T) (R, error) {
	var none R
	m, err := s.Ask(ctx, to.ref, Typed(v))
	if err != nil {
		return none, err
	}
	answer := v.Answer()
	if err := m.DecodeTyped(answer); err != nil {
		return none, fmt.Errorf("host: the answer of %s: %w", to.ref, err)
	}
	return answer, nil
}
