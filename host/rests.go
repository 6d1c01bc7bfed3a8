package host

import (
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/rest"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
)

// What durable actors, and guardians, tell the rest that they come to for checkpoints.

// restOf is the rest that an actor comes to for checkpoints; nil: it does not.
func restOf(a *actor) *rest.Rest[*actor] {
	if d := a.sys.durable; d != nil && a.durable {
		return d.rest
	}
	return nil
}

// keepStill has an actor, within a run, handle messages or not: what it was to be told is told.
func keepStill(a *actor, r *rest.Rest[*actor]) {
	if held := a.life.Held(life.Still); r.Still(a) {
		a.life.Hold(life.Still)
	} else if held {
		a.life.LetGo(life.Still)
		if g, ok := a.behaviour.(*guest); ok && g.start != nil {
			a.post(nil, sysmail.Msg{Kind: sysmail.Instance})
		}
	}
}

// restsFirst reports whether an incarnation after the first begins only when the rest is over. Otherwise an actor that fails at each start
// would keep all others from it.
func restsFirst(a *actor) bool {
	r := restOf(a)
	if r == nil || a.Incarnation() == 0 || a.sys.repeats.Load() != nil || !r.Still(a) {
		return false
	}
	a.life.Hold(life.Still)
	return true
}

// owe counts actors with system messages, see [rest.Rest.Owe].
func owe(a *actor, n int) {
	if r := restOf(a); r != nil {
		r.Owe(n)
	}
}

// live counts durable actors, see [rest.Rest.Live].
func live(a *actor, n int) {
	if r := restOf(a); r != nil && a.parent != nil {
		r.Live(n)
	}
}
