package persist

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// behind is the actor behind one that keeps something: what is asked of that besides messages goes to it.
type behind[A actor.Actor] struct{ inner A }

// Unwrap is the actor itself, for tests.
func (x *behind[A]) Unwrap() actor.Actor { return x.inner }

// Stopped implements actor.Stopper.
func (x *behind[A]) Stopped(ctx *actor.Context) {
	if s, ok := x.Unwrap().(actor.Stopper); ok {
		s.Stopped(ctx)
	}
}

// PreRestart implements actor.PreRestarter.
func (x *behind[A]) PreRestart(ctx *actor.Context, reason string) {
	if s, ok := x.Unwrap().(actor.PreRestarter); ok {
		s.PreRestart(ctx, reason)
	}
}

// Decide implements actor.Supervisor.
func (x *behind[A]) Decide(ctx *actor.Context, child actor.Ref, f *abi.Failure) actor.Directive {
	if s, ok := x.Unwrap().(actor.Supervisor); ok {
		return s.Decide(ctx, child, f)
	}
	return actor.DefaultDirective
}
