package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/onlook"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// beginBox begins to keep the turns of an incarnation, whose instance is in its image's state.
func beginBox(g *guest, scr *scratch) {
	a := g.actor
	a.looks &^= uint8(lookBox)
	if a.sys.cfg.Box == nil {
		return
	}
	l := blackbox.Life{
		Path: a.ref().String(), Type: a.props.typ, Ref: a.uid, Incarnation: a.Incarnation(), Turns: a.turns, Seed: g.keys.Seed,
		Prepare: secretFor(a).Seed(secret.ForUnfrozen, a.uid, a.Incarnation()), Image: g.inst.Image, Limits: g.limits(scr, 0),
	}
	if g.box.Open(a.sys.cfg.Box, &l, crashShows{&a.sys.audience.Secrets, a.sys}) {
		a.looks |= uint8(lookBox)
	}
}

// dropBox ends that.
func dropBox(g *guest) {
	g.box.Drop()
	g.actor.looks &^= uint8(lookBox)
}

// keepOne is for an entry of one turn that has ended well, which nearly all are.
func keepOne(g *guest, scr *scratch, x *sandbox.Instance, now int64) {
	if g.told {
		g.box.Entry(g.entry(scr, now, 1, nil, true))
	} else if g.box.Turn(now, scr.res.Fuel, x.Written(), scr.batch[0]) {
		g.box.Snapshot(x, g.ahead)
	}
}

// entry is the entry that was run, for its onlookers; it is valid until the worker's next one. own says that it has come to
// what its turns have led to.
func (g *guest) entry(scr *scratch, now int64, done int, f *abi.Failure, own bool) *onlook.Entry {
	e := &scr.onlook
	*e = onlook.Entry{
		Instance: g.inst.Load(), Now: now, First: g.actor.turns, Mail: scr.batch, Done: done, Failure: f, Own: own, Judged: g.judged,
		Fuel: scr.res.Fuel, Spawned: g.ahead,
	}
	if g.told {
		e.Stated = scr.stated
	}
	return e
}

// crashShows is what crash files of a system do not show, and its last events, which they do.
type crashShows struct {
	*look.Secrets
	s *System
}

// Events implements blackbox.Hidden.
func (h crashShows) Events() []byte { return recentEvents(h.s) }

// recentEvents are the last events of the system, as a crash file has them. What is too long for it is left out.
func recentEvents(s *System) (lines []byte) {
	for _, e := range s.audience.Recent.Events() {
		if line, err := e.MarshalJSON(); err == nil && len(line) <= blackbox.MostEventBytes {
			lines = append(append(lines, line...), '\n')
		}
	}
	return lines
}

// dropTrial ends the trial of a guest.
func dropTrial(g *guest, why string) {
	if g.trial != nil {
		g.trial.End(why)
		g.trial = nil
		g.actor.looks &^= uint8(lookTrial)
	}
}

// undone is a failure, or nil if it may be one of the new code and is undone: the actor is held, and its mailbox has the message again.
func undone(g *guest, scr *scratch, done int, f *abi.Failure) *abi.Failure {
	a := g.actor
	if f == nil || scr.waits || done >= len(scr.batch) || scr.batch[done].Kind == abi.KindStart || sandbox.IsCrowded(f) ||
		f.Kind == abi.FailureGuestError || f.Kind == abi.FailureKilled || f.Kind == abi.FailureHost {
		return f
	}
	if a.life.Hold(life.Swapping); g.trial.Fail(f) {
		return nil
	}
	a.life.LetGo(life.Swapping)
	return f
}
