package host

import (
	"context"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
)

// RefOf is the ref for a number that a guest has sent in a payload: of an actor, living or
// not, or of another receiver. The error is ErrNobody for 0. It says nothing about whether there is
// such an actor; sending to one that is not there fails as always.
func (s *System) RefOf(uid abi.Ref) (Ref, error) {
	if uid == 0 {
		return Ref{}, ErrNobody
	}
	return s.refOf(uid), nil
}

// RefOf is a ref of an actor that takes messages of the type T: a struct or a pointer to one, or an interface that
// several types implement. The zero value is nobody. Refs compare with ==.
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
