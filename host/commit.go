package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/trail"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A recorder (Config.commit) may answer later. Meanwhile the actor is held: it does nothing else, neither for
// messages nor for system messages, and its worker goes on. What the turn needs to be carried out moves from the
// worker to the actor, and back when there is an answer. Only decisions about children and the end of an
// incarnation wait on the worker, which lets others run: what follows them cannot be put off.

// commitOne commits an entry of one turn, about a message that was recorded, which has ended well, as nearly all have. false: nothing
// has happened, as the recorder does not answer at once, or there is more that it has to know.
func commitOne(g *guest, scr *scratch, x *sandbox.Instance, now int64) bool {
	a, h := g.actor, &scr.handled
	c := &a.sys.cfg
	if h.Position = scr.batch[0].Position; h.Position == 0 || c.Direct == nil || c.Allowance != nil || scr.waits || a.sys.repeats.Load() != nil {
		return false
	}
	h.Actor, h.Incarnation, h.First, h.Time, h.Worth = a.uid, a.Incarnation(), a.turns, now, scr.res.Worth
	h.Outbox, h.Alone = x.Written(), len(scr.cmds) == 1 && x.Plain() && sandbox.Batching(g.inst.Image)
	after, ok := c.Direct.Handled(h)
	if ok {
		scr.after, scr.afterAt = after, now
	}
	return ok
}

// ask commits a turn. held says that the recorder will answer later.
func (a recorded) ask(scr *scratch, t *turn.Turn, o sealedEntry) (done int, f *abi.Failure, held bool) {
	s := a.sealed
	if p := a.sys.repeats.Load().of(a.actor); p != nil {
		if done, f, recorded := p.committed(a.actor, scr, t, o); recorded {
			return done, f, false
		}
	} else if scr.waits {
		answer := make(chan struct{})
		err, there := t.Ask(a.sys.cfg.Commit, func() { close(answer) })
		if !there {
			scr.w.Block()
			<-answer
			err, _ = t.Answered()
		}
		scr.after, scr.afterAt = t.After, t.Time
		done, f = a.ruled(o, err)
		return done, f, false
	} else if err, there := t.Ask(a.sys.cfg.Commit, s.wake); there {
		scr.after, scr.afterAt = t.After, t.Time
		done, f = a.ruled(o, err)
		return done, f, false
	}
	s.sealedEntry, s.held, s.start = o, true, nil
	if r := restOf(a.actor); r != nil {
		r.Hold(1)
	}
	a.life.Hold(life.Commit)
	s.batch, scr.batch = scr.batch, s.batch[:0]
	s.cmds, scr.cmds = scr.cmds, s.cmds[:0]
	s.ends, scr.ends = scr.ends, s.ends[:0]
	s.effects, scr.effects = scr.effects, s.effects[:0]
	s.changes, scr.changes = scr.changes, s.changes[:0]
	s.res, s.trace, scr.trace = scr.res, scr.trace, trail.Trail{}
	if ctx := &a.ctx; ctx.env != nil {
		s.env, s.passed, s.passTo = ctx.env, ctx.passed, ctx.passTo
		ctx.env = nil
	}
	a.ctx.taken = a.ctx.most // there is no next message
	return 0, nil, true
}

// ruled is what counts after the recorder has answered.
func (a recorded) ruled(o sealedEntry, err error) (done int, f *abi.Failure) {
	if err == nil || o.done == 0 && o.f != nil {
		return o.done, o.f
	}
	return 0, record.FailureOf(err, a.turns)
}

// settle carries out the turn that was held; false if the recorder has not answered yet.
func (a recorded) settle(scr *scratch) bool {
	s := a.sealed
	err, there := s.turn.Answered()
	if !there {
		return false
	}
	s.held, scr.after, scr.afterAt = false, s.turn.After, s.turn.Time
	if r := restOf(a.actor); r != nil {
		r.Hold(-1)
	}
	a.life.LetGo(life.Commit)
	s.batch, scr.batch = scr.batch[:0], s.batch
	s.cmds, scr.cmds = scr.cmds[:0], s.cmds
	s.ends, scr.ends = scr.ends[:0], s.ends
	s.effects, scr.effects = scr.effects[:0], s.effects
	s.changes, scr.changes = scr.changes[:0], s.changes
	scr.res, scr.trace = s.res, s.trace
	s.trace = trail.Trail{}
	start := s.start
	done, f := a.ruled(s.sealedEntry, err)
	fuel := uint64(0)
	if g, ok := a.behaviour.(*guest); ok {
		if g.box.Keeps() {
			g.box.Entry(g.entry(scr, s.now, done, f, f == s.f))
		}
		if a.looks&uint8(lookTrial) != 0 {
			g.trial.Entry(g.entry(scr, s.now, done, f, f == s.f))
		}
		_, f = g.carryOut(scr, g.inst.Load(), s.now, done, s.parts, f)
		if fuel = scr.res.Fuel; start != nil && f == nil {
			g.inst.KeepIf(resumable(a.actor), scr.w)
		}
	} else {
		ctx := a.enter(scr, s.env)
		ctx.passed, ctx.passTo, s.env = s.passed, s.passTo, nil
		a.leaveTurn(scr, f != nil)
		if ctx.env != nil {
			a.finish(scr, ctx.env, f)
		}
		a.leave()
	}
	if a.sys.cfg.Tracer != nil {
		a.sys.tracing.EndCall(&scr.trace, a, f, fuel)
	}
	switch {
	case start != nil:
		a.started(scr, f, *start)
	case f != nil:
		a.fail(scr, f, life.ByItself)
	}
	return true
}

// settleNow waits for the recorder on the worker. It is for a behaviour that goes on after the last message that it
// can have.
func (a recorded) settleNow(scr *scratch) {
	answer := make(chan struct{})
	a.sealed.turn.Await(func() { close(answer) })
	scr.w.Block()
	<-answer
	ctx, effects, changes := a.ctx, scr.effects, scr.changes
	scr.effects, scr.changes = nil, nil
	a.settle(scr)
	a.ctx, scr.effects, scr.changes = ctx, effects, changes
}

// Run implements dispatch.Runnable.
func (a recorded) Run(w *dispatch.Worker) (more bool) {
	if p := a.sys.repeats.Load(); p != nil {
		return p.run(a.actor, w)
	}
	r := restOf(a.actor)
	if r == nil {
		return a.spell(w)
	}
	if !r.Begin(a.actor, uint64(a.uid), a.parent == nil || a.sysq.Waiting() || a.sealed.isHeld()) {
		return false
	}
	if a.parent != nil {
		keepStill(a.actor, r)
	}
	more = a.spell(w)
	r.End(uint64(a.uid))
	return more
}

// spell is a run that may handle something.
func (a recorded) spell(w *dispatch.Worker) (more bool) {
	scr := scratchOf(w)
	if a.sealed.isHeld() {
		more = a.settle(scr)
	} else {
		more = a.actor.Run(w)
	}
	scr.after = 0
	return more && !a.sealed.isHeld()
}

// commitGo is commit for the turn of an actor in Go, which has failed if failure is not nil.
func (a *actor) commitGo(ctx *Context, failure *abi.Failure) (f *abi.Failure, held bool) {
	scr := ctx.scr
	looks := a.sys.looks.Load() | uint32(a.looks)
	if looks == 0 || a.parent == nil {
		return failure, false
	}
	if a.sealed.isHeld() {
		recorded{a}.settleNow(scr)
	}
	t, one := a.newTurn(scr), &scr.one
	if a.sealed != nil {
		one = &a.sealed.one
	}
	t.Time, t.Failure, t.Done = a.sys.time.Now(), failure, 1
	if ctx.env != nil {
		one[0] = ctx.env
		t.Mail = one[:]
	}
	if looks&lookFault != 0 && failure == nil {
		_, t.Failure = a.sys.cfg.Faults.Among(t, a.sys.sender)
	}
	if t.Failure == nil {
		t.Effects = scr.effects
	} else {
		t.Done, t.Ended = 0, turn.ByFailure
	}
	f = t.Failure
	if looks&lookCommit != 0 {
		if _, f, held = (recorded{a}).ask(scr, t, sealedEntry{now: t.Time, done: t.Done, f: f}); held {
			return nil, true
		}
	}
	return f, false
}

// endTurn seals and commits the turn of an actor in Go, which has failed if failure is not nil. If the actor is
// held then, its failure is not known yet.
func (a *actor) endTurn(ctx *Context, failure *abi.Failure) *abi.Failure {
	f, held := a.commitGo(ctx, failure)
	if held || f != nil || a.sys.looks.Load()&(lookTap|lookFlow) == 0 {
		return f
	}
	c := look.Turns{Actor: a.ref(), Incarnation: a.Incarnation(), First: a.turns, Now: a.sys.time.Now(), Effects: ctx.scr.effects}
	if ctx.env != nil {
		c.Mail = []*mailbox.Envelope{ctx.env}
	}
	a.sys.seen.Turns(&a.tapped, &ctx.scr.skip, &c)
	return nil
}
