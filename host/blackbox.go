package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// WithBlackBox keeps the last turns of each guest, so that a failure can be repeated: r writes it to a crash file, see
// package blackbox. r may be closed when the system is. Without it nothing is paid for. What is kept is within r's bounds,
// and on no actor's account.
func (c Config) WithBlackBox(r *blackbox.Recorder) Config { c.box = r; return c }

// openBox begins to keep the turns of an incarnation, whose instance is in its image's state.
func (g *guest) openBox(scr *scratch) {
	a := g.actor
	g.dropBox()
	g.judged, g.crashFile = false, ""
	if a.sys.cfg.box == nil {
		return
	}
	l := blackbox.Life{
		Path: a.ref().String(), Type: a.props.typ, Ref: a.uid, Incarnation: a.Incarnation(), Turns: a.turns, Seed: g.seed,
		Prepare: secretFor(a).Seed(secret.ForUnfrozen, a.uid, a.Incarnation()), Image: g.inst.Image, Limits: g.limits(scr, 0),
	}
	box, ok := a.sys.cfg.box.NewBox(&l)
	if ok {
		g.box = box
		a.looks |= uint8(lookBox)
	}
}

func (g *guest) dropBox() {
	if g.box != nil {
		g.box.Drop()
		g.box = nil
		g.actor.looks &^= uint8(lookBox)
	}
}

// keepOne is keepTurns for an entry of one turn that has ended well, which nearly all are.
func keepOne(g *guest, scr *scratch, x *sandbox.Instance, now int64) {
	if g.told {
		g.keepTurns(scr, x, now, 1, nil, true)
	} else if g.box.Turn(now, scr.res.Fuel, x.Written(), scr.batch[0]) {
		g.box.Snapshot(x, g.ahead)
	}
}

// keepTurns puts an entry into the box. own says that it has come to what its turns have led to.
func (g *guest) keepTurns(scr *scratch, x *sandbox.Instance, now int64, done int, f *abi.Failure, own bool) {
	b := g.box
	if !own {
		g.crashFile, g.judged = "", false
		b.Forget("a turn was failed or taken back for a reason that is not its own")
		return
	}
	if done == 1 && len(scr.batch) == 1 && f == nil && !g.told {
		if b.Turn(now, scr.res.Fuel, x.Outbox(1), scr.batch[0]) {
			b.Snapshot(x, g.ahead)
		}
		return
	}
	run := blackbox.Run{Now: now, Pushed: len(scr.batch), Done: done, Fuel: scr.res.Fuel, Failed: f != nil, Outbox: x.Outbox(done)}
	if f != nil {
		run.Ended, run.Cut = x.Ended(), x.Cut()
		if g.judged {
			run.Outbox = x.Outbox(done + 1)
		}
	}
	b.Begin(&run)
	for _, e := range scr.batch {
		headers := e.Headers
		if g.told && (len(headers) > 0 || e.Flags&mark.Due != 0) {
			headers = scr.stated(e)
		}
		b.Mail(e.Kind, e.Sender, e.Correlation, headers, e.Payload)
	}
	if f != nil {
		g.crashes(now, done, f)
	} else if b.Done() {
		b.Snapshot(x, g.ahead)
	}
}

// crashes writes the crash file of a failure.
func (g *guest) crashes(now int64, done int, f *abi.Failure) {
	secrets := &g.actor.sys.bus.Secrets
	g.crashFile = g.box.Crash(&blackbox.Failure{
		Failure: secrets.Failure(f), Time: now, Judged: g.judged, Keep: done > 0, Mask: secrets.Bytes, Events: func() []byte { return recentEvents(g.actor.sys) },
	})
	g.judged = false
}

// recentEvents are the last events of the system, as a crash file has them. What is too long for it is left out.
func recentEvents(s *System) (lines []byte) {
	for _, e := range s.bus.Recent.Events() {
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

// keepTrial keeps an entry for going back.
func keepTrial(g *guest, scr *scratch, x *sandbox.Instance, now int64, done int) {
	e := swap.Entry{Now: now, First: g.actor.turns, Outbox: x.Outbox(done)}
	for _, m := range scr.batch[:done] {
		headers := m.Headers
		if g.told && (len(headers) > 0 || m.Flags&mark.Due != 0) {
			headers = slices.Clone(scr.stated(m)) // it is the worker's, and Add copies only afterwards
		}
		e.Mail = append(e.Mail, abi.Envelope{Kind: m.Kind, Time: now, Sender: m.Sender, Correlation: m.Correlation, Headers: headers, Payload: m.Payload})
	}
	g.trial.Add(e)
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
