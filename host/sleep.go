package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// tenant is an actor as its parts see it that send it system messages: an instance.Owner and a gate.Owner.
type tenant struct{ *actor }

// State implements instance.Owner.
func (t tenant) State() instance.State {
	state := t.life.State()
	return instance.State{
		Waits: t.isHeld(), Running: state == life.Running, Failed: state == life.Failed, Begun: t.life.Begun.Load(),
		Busy: t.life.Open() && !t.box.Empty(), Repeats: t.sys.repeats.Load() != nil, Turns: t.turns,
	}
}

// Post implements instance.Owner and gate.Owner.
func (t tenant) Post(m sysmail.Msg) { t.post(nil, m) }

// Visit implements instance.Owner.
func (t tenant) Visit(f func()) { t.place.Visit(f) }

// SleepNext implements instance.Owner.
func (t tenant) SleepNext() { t.surplus, t.endings = true, true }

// Starved implements instance.Owner.
func (t tenant) Starved(is bool) {
	if is {
		t.life.Hold(life.Starved)
	} else {
		t.life.LetGo(life.Starved)
	}
}

// Asleep implements instance.Owner.
func (t tenant) Asleep(is bool) {
	t.actor.asleep.Store(is)
	if is {
		t.actor.sysq.Trim() // which does nothing where the actor has been told to sleep: handleSystem does it then
	}
}

// Refused implements instance.Owner.
func (t tenant) Refused(what string, err error) { memoryRefused(t.actor, what, err) }

// putAwayIfOver is called at the end of a run of a guest whose instance exceeds the bound.
func (a *actor) putAwayIfOver(w *dispatch.Worker) {
	a.surplus = false
	if g, ok := a.behaviour.(*guest); ok {
		g.inst.PutAwayIfOver(w)
	}
}

// noInstance deals with an actor that cannot be woken: if no instance is available it
// waits, anything else is a failure.
func (g *guest) noInstance(err error) *abi.Failure {
	if !instance.NoRoom(err) {
		return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
	}
	g.actor.life.Hold(life.Starved)
	g.inst.TryAgain("instance", err, sysmail.Msg{Kind: sysmail.Instance})
	return nil
}
