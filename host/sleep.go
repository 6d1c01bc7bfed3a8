package host

import (
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
)

// tenant is an actor as its parts see it that send it system messages: an instance.Owner and a gate.Owner.
type tenant struct{ *actor }

// State implements instance.Owner.
func (t tenant) State() instance.State {
	state, p := t.life.State(), t.sys.repeats.Load()
	return instance.State{
		Waits: t.sealed.isHeld(), Running: state == life.Running, Failed: state == life.Failed, Begun: t.life.Begun.Load(),
		Busy: t.life.Open() && !t.box.Empty(), Repeats: p != nil, Turns: t.turns,
		Had: p.of(t.actor) != nil && (len(p.expect) > 0 || t.life.Begun.Load()),
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
func (t tenant) Refused(what string, err error) {
	t.crowded = true // used only if this happens within the start
	memoryRefused(t.actor, what, err)
}

// Running implements instance.Owner.
func (t tenant) Running() bool { return t.place.Running() }

// Hurry implements instance.Owner.
func (t tenant) Hurry() { t.place.Hurry() }
