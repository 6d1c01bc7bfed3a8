package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// handleMessages handles a message that is for the host, or lets the behaviour handle up
// to budget messages of its own, and returns how many were taken; 0 means that none is waiting.
func (a *actor) handleMessages(scr *scratch, budget int) int {
	e := a.box.Front()
	if e == nil {
		if e = a.peek(scr); e == nil {
			return 0
		}
	}
	if a.sysq.Waiting() {
		return 0 // e may have been sent after what waits there
	}
	if e.Flags&mark.Special != 0 && a.special(scr, e) {
		return 1
	}
	ctx := &a.ctx
	ctx.scr, ctx.ahead, ctx.taken, ctx.most = scr, e, 0, budget
	f := a.behaviour.Handle(ctx, budget)
	if ctx.env != nil {
		a.finish(scr, ctx.env, f)
		ctx.env = nil
	}
	if scr.trace.Fixed {
		a.sys.tracing.EndCall(&scr.trace, a, f, 0)
	}
	a.leave()
	if f != nil {
		a.fail(scr, f, life.ByItself)
	}
	return ctx.taken
}

// finish is the end of the turn of a message that was taken with Next.
func (a *actor) finish(scr *scratch, e *mailbox.Envelope, f *abi.Failure) {
	if f == nil {
		if e.Value != nil {
			a.taken = a.sys.bound.Take(a.taken, e)
		}
		scr.cache.Free(e)
		return
	}
	a.noteCrash(e)
	if a.sys.looks.Load()&lookTap != 0 {
		a.sys.seen.TurnFailed(&a.tapped, a, e, f)
	}
	if a.box.Hosted != nil {
		a.box.Hosted.Failed(e)
	}
	if a.dispose(scr, e, f) {
		scr.cache.Free(e)
	} else {
		a.box.PushFront(e)
	}
}

// control handles an envelope for the host: a poison pill, a kill, an Identify.
func (a *actor) control(scr *scratch, e *mailbox.Envelope) {
	flags := e.Flags
	if flags&mark.IfIdle != 0 {
		a.passivate(scr, e)
		scr.cache.Free(e)
		return
	}
	if flags&mark.Identify != 0 {
		a.sys.identified(scr, a, e)
	}
	reason := "stopped"
	if e.Kind == abi.KindRecover { // what it keeps is not for the code that it has: whoever starts another one of its name is to wait
		reason = "failed: what it keeps could not be handled"
	}
	scr.cache.Free(e)
	switch {
	case flags&mark.ForGood != 0:
		a.stopNow(scr, reason, life.Ordered)
	case flags&mark.Poison != 0:
		a.quit(scr, "stopped")
	case flags&mark.Kill != 0:
		a.fail(scr, &abi.Failure{Kind: abi.FailureKilled, Reason: "killed", Turn: a.turns}, life.ByItself)
	}
}

// peek is the next message that still counts; it drops those that have become invalid meanwhile
// (unwatched, cancelled, answered too late, or answered by an actor that was not asked).
func (a *actor) peek(scr *scratch) *mailbox.Envelope {
	for {
		e := a.box.Peek()
		if e == nil || e.Kind == abi.KindMessage {
			return e
		}
		switch a.sys.repeats.Load().of(a).counts(e, a.work.StillCounts(a, e, a.sysq.Waiting())) {
		case work.Counts:
			return e
		case work.CountsLater:
			return nil
		case work.Late:
			a.sys.refuse(scr, DeadLate, nil, a.uid, a.path, e)
		case work.Forged:
			a.sys.refuse(scr, DeadForged, nil, a.uid, a.path, e)
		}
		a.box.Pop()
		scr.cache.Free(e)
	}
}

// counts is whether a message counts in a turn that is repeated: those that the record has, whatever has become of those whom they are from.
// Another turn has what now is.
func (p *repeats) counts(e *mailbox.Envelope, now work.Validity) work.Validity {
	switch {
	case p == nil || len(p.expect) == 0 || len(p.expect[0].Entry.Mail) == 0:
		return now
	case slices.Contains(p.expect[0].Entry.Mail, e.Position):
		return work.Counts
	}
	return work.Over
}

// noteCrash keeps the message of the failing turn for the crash report.
func (a *actor) noteCrash(e *mailbox.Envelope) {
	if a.sys.seen.Quiet() {
		return
	}
	m := &CrashedMail{
		Kind: e.Kind, Sender: e.Sender, Correlation: e.Correlation, Payload: a.sys.seen.Excerpt(mark.Shown(e)),
		Size: len(e.Payload), Waiting: a.box.Len(), Redelivered: message.AttemptsOf(e).N, Trace: a.ctx.scr.placed(),
	}
	if g, ok := a.behaviour.(*guest); ok {
		m.File = g.box.File()
		if x := g.inst.Load(); x != nil {
			m.Memory = x.MemoryBytes()
		}
	}
	a.crash = m
}

// deathPact is the failure of an actor that did not handle the end of one that it watches, in the turn of a number.
func deathPact(turn uint64) *abi.Failure {
	return &abi.Failure{Kind: abi.FailureDeathPact, Reason: "the end of a watched actor was not handled", Turn: turn}
}

// special handles the host's own envelopes, and questions whose asker has given up; false if the actor must handle the
// message.
func (a *actor) special(scr *scratch, e *mailbox.Envelope) bool {
	if e.Flags&mark.Control != 0 {
		popControl(a, e)
		a.control(scr, e)
		return true
	}
	if !a.sys.outside.GaveUp(e, a.Incarnation()) {
		return false
	}
	popControl(a, e)
	a.expire(scr, e)
	return true
}
