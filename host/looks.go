package host

import (
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/turn"
)

// Observers of turns: those that record them, tap an actor, or sample the flow
// of messages or the fuel. One word says whether there are any; if there are none, it is all that a turn
// looks at.
const (
	lookCommit uint32 = 1 << iota // Config.commit
	lookTap
	lookFlow
	lookFuel
	lookFault // Config.faults
	lookBox   // the actor's own: Config.WithBlackBox
	lookTrial // the actor's own: its code was exchanged
	lookTape  // the actor's own: Config.WithRecording
)

// tell tells taps and samples.
func (a *actor) tell(scr *scratch, c *look.Turns) {
	looks := a.sys.looks.Load()
	if looks&lookTap != 0 {
		a.tapped.Report(directoryOf{a.sys}, &a.sys.bus.Secrets, c)
	}
	if x := a.sys.sampler.Load(); looks&lookFlow != 0 && x != nil {
		x.Take(directoryOf{a.sys}, &scr.skip, c)
	}
}

// newTurn is the value of the turn that was run, for its observers. It is the actor's own if a
// recorder may keep it, and the worker's otherwise.
func (a *actor) newTurn(scr *scratch) *turn.Turn {
	t := &scr.seen
	if (a.sys.looks.Load()|uint32(a.looks))&lookCommit != 0 {
		if a.sealed == nil {
			a.sealed = newSealed(a)
		}
		t = &a.sealed.turn
	}
	t.Actor, t.Path, t.Incarnation, t.First, t.Waits = a.uid, a.path, a.Incarnation(), a.turns, scr.waits
	t.Time, t.Mail, t.Done, t.Ended, t.Outbox, t.Marked, t.Effects, t.Failure, t.Cut = 0, nil, 0, turn.All, nil, false, nil, nil, nil
	t.Fuel, t.Memory, t.After = 0, 0, 0
	return t
}

func newSealed(a *actor) *sealed {
	return &sealed{wake: func() {
		if a.place.Wake(nil); a.sys.durable != nil {
			a.sys.durable.rest.Over()
		}
	}}
}
