package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A turn has four steps: it is run; it is sealed, so that all that it has led to is known; it is
// committed, which is when a recorder hears of it; and it is carried out. Nothing of it takes effect before
// the last step. For guests these are the steps of an entry, which may have several turns.

// execute takes these steps for the messages that were pushed. It returns the number of messages that are done
// with, a failing one included. If the recorder answers later, the actor is held: then the
// numbers mean nothing, and settled goes on.
func (g *guest) execute(scr *scratch, x *sandbox.Instance, now int64) (done int, f *abi.Failure) {
	x.Run(g.limits(scr, now), &scr.res)
	scr.w.Spend(scr.res.Worth)
	g.ahead = g.spawned
	done, parts, f := g.read(scr, x, 0)
	if parts || f != nil || scr.res.Failure != nil {
		done, f = g.seal(scr, x, done, parts, f)
	}
	if looks := g.actor.sys.looks.Load() | uint32(g.actor.looks); looks == 0 {
	} else if looks&^(lookTape|lookBox|lookCommit) == 0 && done == 1 && len(scr.batch) == 1 && f == nil && !parts && (looks&lookCommit == 0 || commitOne(g, scr, x, now)) {
		if looks&lookTape != 0 {
			tapeOne(g, scr, x, now)
		}
		if looks&lookBox != 0 {
			keepOne(g, scr, x, now)
		}
	} else {
		var held bool
		if done, f, held = g.commit(scr, x, now, done, parts, f); held {
			return len(scr.batch), nil
		}
	}
	return g.carryOut(scr, x, now, done, parts, f)
}

// limits is what the actor's turns get to see and may spend.
func (g *guest) limits(scr *scratch, now int64) *sandbox.Entry {
	a, in := g.actor, &scr.entry
	in.Now, in.Began, in.FirstTurn, in.Seed = now, scr.read, a.turns, g.keys.Seed
	l := &a.rules.Load().limits
	in.TurnFuel, in.Deadline, in.MemoryLimit, in.OutboxLimit = l.Fuel, l.Deadline, l.Memory, l.Outbox
	if scr.patient {
		in.Deadline = 0
	}
	in.Yield, in.Log, in.Account = scr.w, g, &g.inst
	f := a.sys.cfg.Allowance
	if f == nil {
		return in
	}
	in.Deadline = 0
	if p := a.sys.repeats.Load(); p != nil {
		p.allow(in)
	} else {
		f(a.ref(), &in.TurnFuel, &in.MemoryLimit)
	}
	return in
}

// allow has a turn that is repeated spend what it could spend.
func (p *repeats) allow(in *sandbox.Entry) {
	if p.fuel != 0 {
		in.TurnFuel, in.MemoryLimit = p.fuel, p.memory
	}
}

// failed reports whether a turn that is repeated failed when it was recorded. Then it was not undone, and is not now.
func (p *repeats) failed(a *actor) bool {
	return p != nil && p.actor.Load() == a && len(p.expect) > 0 && p.expect[0].Entry.Failure != nil
}

// seal is what is left of the second step where reading the first commands was not all of it. done is the number of turns that
// count; the failure is that of the one behind them. With parts there are so many commands that they are read again, in parts.
func (g *guest) seal(scr *scratch, x *sandbox.Instance, done int, parts bool, f *abi.Failure) (int, *abi.Failure) {
	for more := parts; more; {
		var n int
		n, more, f = g.read(scr, x, done)
		done += n
	}
	if f == nil {
		return done, scr.res.Failure
	}
	if f.Turn = g.actor.turns + uint64(done); scr.res.Turns == 1 {
		f.Fuel = scr.res.Fuel // how several turns have shared it is not known
	}
	return done, f
}

// commit tells the observers of an entry, and waits for the recorder if there is one. held says that it
// answers later.
func (g *guest) commit(scr *scratch, x *sandbox.Instance, now int64, done int, parts bool, f *abi.Failure) (_ int, _ *abi.Failure, held bool) {
	sealed, looks := f, g.actor.sys.looks.Load()|uint32(g.actor.looks)
	if looks&lookTrial != 0 && looks&lookCommit != 0 && f != nil && !g.actor.sys.repeats.Load().failed(g.actor) {
		if was := f; undone(g, scr, done, f) == nil {
			if f, sealed = nil, nil; looks&lookBox != 0 {
				g.box.Entry(g.entry(scr, now, done, was, true))
				dropBox(g)
				looks &^= lookBox
			}
			if done == 0 {
				return 0, nil, false // nothing has happened that a recorder could be told of
			}
		}
	}
	if looks&(lookFuel|lookFault|lookCommit) != 0 {
		if done, f, held = g.report(scr, x, looks, now, done, parts, f); held {
			return 0, nil, true
		}
	}
	if looks&lookTape != 0 {
		tapeTurns(g, scr, x, now, done, parts, f, f == sealed)
	}
	if looks&lookBox != 0 {
		g.box.Entry(g.entry(scr, now, done, f, f == sealed))
	}
	if looks&lookTrial != 0 {
		g.trial.Entry(g.entry(scr, now, done, f, f == sealed))
		if looks&lookCommit == 0 {
			f = undone(g, scr, done, f)
		}
	}
	return done, f, false
}

// report is commit for the observers that may change what the entry comes to.
func (g *guest) report(scr *scratch, x *sandbox.Instance, looks uint32, now int64, done int, parts bool, f *abi.Failure) (_ int, _ *abi.Failure, held bool) {
	a := g.actor
	if looks&lookFuel != 0 && g.inst.Load() != nil {
		x.Profiled()
	}
	t := a.newTurn(scr)
	t.Time, t.Seed, t.Mail, t.Done, t.Failure, t.Worth = now, g.keys.Seed, scr.batch, done, f, scr.res.Worth
	if f == nil && looks&lookTrial != 0 && g.actor.life.Held(life.Swapping) { // the turn that has failed is undone
		t.Mail = scr.batch[:done]
	}
	if l := &a.rules.Load().limits; scr.entry.TurnFuel != l.Fuel || scr.entry.MemoryLimit != l.Memory {
		t.Fuel, t.Memory = scr.entry.TurnFuel, scr.entry.MemoryLimit
	}
	fault := false
	if looks&lookFault != 0 && done > 0 {
		if n, injected := a.sys.cfg.Faults.Among(t, a.sys.sender); injected != nil {
			done, f, fault = n, injected, true
			t.Done, t.Failure = n, f
		}
	}
	if looks&lookCommit == 0 {
		return done, f, false
	}
	t.Marked, t.Outbox = sandbox.Batching(g.inst.Image), x.Outbox(done)
	switch t.Ended = turn.All; {
	case f != nil:
		if t.Ended = turn.ByFailure; !fault {
			t.Cut = x.Cut()
		}
	case done < len(t.Mail) && x.Ended():
		t.Ended = turn.ByHost
	case done < len(t.Mail):
		t.Ended = turn.ByGuest
	}
	return recorded{a}.ask(scr, t, sealedEntry{now: now, done: done, parts: parts, f: f})
}

// carryOut lets the turns that count take effect, and puts unread messages back.
func (g *guest) carryOut(scr *scratch, x *sandbox.Instance, now int64, done int, parts bool, f *abi.Failure) (int, *abi.Failure) {
	a := g.actor
	first, work := a.turns, x.WorkFuel()
	failed := -1 // the failed turn, as an index of the batch
	if f != nil {
		failed = done
	}
	if done < len(scr.batch) { // before anything takes effect: an unstash puts messages before them
		g.giveBack(scr, done, failed)
	}
	if parts {
		x.Reread()
	}
	for base := 0; base < done; {
		n := done - base
		if parts {
			n = min(n, scr.readAgain(x)) // at least 1: these turns were read before
		}
		if a.sys.looks.Load()&(lookTap|lookFlow) != 0 {
			a.sys.seen.Turns(&a.tapped, &scr.skip, &look.Turns{
				Actor: a.ref(), Incarnation: a.Incarnation(), First: a.turns + uint64(base), Now: now,
				Mail: scr.batch[base : base+n], Commands: scr.turn,
			})
		}
		from := 0
		for i := range n {
			e := scr.batch[base+i]
			if a.work.Minds(e) {
				a.sys.abandoned(scr, a.work.Begun(a, e)...)
			}
			g.forwards = 0
			cmds := scr.cmds[from:scr.ends[i]]
			from = scr.ends[i]
			if a.sys.cfg.Tracer != nil {
				scr.trace.EnterTurn(e.Headers)
				scr.trace.MarkCommands(cmds)
			}
			if scr.origin == 0 || done == 1 && len(cmds) == 1 {
				g.apply(scr, cmds, e)
			} else {
				applyTaped(g, scr, cmds, e)
			}
		}
		base += n
	}
	x.Discard()
	scr.origin = 0
	a.turns = first + uint64(done)
	if spent := scr.res.Fuel + work; spent > 0 { // by the turns, and by the host for their commands
		g.fuelSpent += spent
		a.tally.Fuel.Store(g.fuelSpent)
	}
	g.conclude(scr, done, failed, f, now)
	if failed >= 0 {
		done++
		a.turns++
	}
	return done, f
}

// giveBack puts the messages that no turn has begun with, or whose turn came after a
// failing one, back to the front of the mailbox.
func (g *guest) giveBack(scr *scratch, done, failed int) {
	if g.inst.States != nil && done > 0 {
		g.inst.States.Leave(scr.batch[done:])
	}
	if failed >= 0 {
		done++
	}
	if done < len(scr.batch) {
		g.actor.box.PushFront(scr.batch[done:]...)
		scr.batch = scr.batch[:done]
	}
}

// conclude ends the turns of the batch: the messages of those that ended well are remembered for resume
// or freed, and it is decided what happens to the message of a failed one.
func (g *guest) conclude(scr *scratch, done, failed int, f *abi.Failure, now int64) {
	a := g.actor
	if scr.res.Fuel > longTurn || f != nil {
		scr.same = 0
	}
	for i := 0; i < done && i < len(scr.batch); i++ {
		e := scr.batch[i]
		if e.Value != nil {
			a.taken = a.sys.bound.Take(a.taken, e)
		}
		if g.inst.States == nil || !g.inst.States.Remember(instance.Logged{Mail: e, Now: now, Turn: a.turns - uint64(done-i), Behind: i > 0}) {
			scr.cache.Free(e)
		}
	}
	if g.inst.States != nil {
		g.inst.States.RememberLeft(now)
	}
	if failed >= 0 && failed < len(scr.batch) {
		e := scr.batch[failed]
		if a.work.Minds(e) {
			a.sys.abandoned(scr, a.work.Begun(a, e)...)
		}
		a.finish(scr, e, f)
	}
	scr.freeBatch()
	if cap(scr.cmds) > 2*heldCommands {
		scr.cmds = nil
	}
	if g.inst.States != nil && f == nil {
		g.inst.CheckpointIfDue(scr.w)
	}
}
