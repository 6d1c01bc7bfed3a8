package host

import (
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/turn"
)

// Observers of turns: those that record them, tap an actor, or sample the flow
// of messages or the fuel. One word says whether there are any; if there are none, it is all that a turn
// looks at.
const (
	lookCommit = look.ForRecorder // Config.commit
	lookTap    = look.ForTaps
	lookFlow   = look.ForFlow
	lookFuel   = look.ForFuel
	lookFault  = look.ForFaults // Config.faults
	lookBox    = look.ForBox    // Config.WithBlackBox
	lookTrial  = look.ForTrial
	lookTape   = look.ForTape // Config.WithRecording
)

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
