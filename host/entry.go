package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// An entry of a guest is carried out in steps: its turns run; their commands are read
// and checked; whatever records the entry is told; only then do the commands take effect.

// heldCommands is about how many commands are read before they are carried out. An entry
// with more of them is carried out in parts, each of whole turns.
const heldCommands = 4096

// usualCommands is about how many commands a turn has, and its end.
const usualCommands = 4

// execute carries out these steps for the messages that were pushed, and puts unread messages back. It
// returns the number of messages that are done with, a failing one included.
func (g *guest) execute(scr *scratch, x *sandbox.Instance, now int64) (done int, f *abi.Failure) {
	a, res := g.actor, &scr.res
	first := a.turns
	g.run(scr, x, now)
	failed := -1 // the failed turn, as an index of the batch
	for more := true; more && f == nil; {
		var n int
		base := done
		if n, more, f = g.read(scr, x, base); f == nil {
			if a.sys.looks.Load() != 0 {
				n, f = g.endTurns(scr, base, n, now)
			}
		}
		done += n
		switch {
		case f != nil:
			failed, f.Turn = done, first+uint64(done)
			if res.Turns == 1 {
				f.Fuel = res.Fuel // how several turns have shared it is not known
			}
		case !more && res.Failure != nil:
			failed, f = done, res.Failure
		}
		if done < len(scr.batch) && (!more || f != nil) { // before anything takes effect: an unstash puts messages before them
			g.giveBack(scr, done, failed)
		}
		for i := range n {
			a.begins(scr, scr.batch[base+i])
			g.forwards = 0
			cmds, e := scr.turn(i), scr.batch[base+i]
			if a.sys.cfg.tracer != nil {
				scr.trace.enterTurn(e.Headers)
				scr.trace.markCommands(cmds)
			}
			g.apply(scr, cmds, e)
		}
	}
	a.turns = first + uint64(done)
	g.account(res, x.WorkFuel())
	g.conclude(scr, done, failed, f, now)
	if failed >= 0 {
		done++
		a.turns++
	}
	return done, f
}

// run enters the guest.
func (g *guest) run(scr *scratch, x *sandbox.Instance, now int64) {
	x.Run(g.limits(scr, now), &scr.res)
	scr.w.Spend(scr.res.Worth)
}

// limits is what the actor's turns get to see and may spend.
func (g *guest) limits(scr *scratch, now int64) *sandbox.Entry {
	a, in := g.actor, &scr.entry
	in.Now, in.Began, in.FirstTurn, in.Seed = now, scr.read, a.turns, g.seed
	in.TurnFuel, in.Deadline, in.MemoryLimit, in.OutboxLimit = a.props.limits.Fuel, a.props.limits.Deadline, a.props.limits.Memory, a.props.limits.Outbox
	in.Yield, in.Log, in.Account = scr.w, g, g
	return in
}

// read takes the commands of the next turns into the scratch, checks them and makes them
// pay. base is the number of turns that were read before; more says that there are further
// ones. f is the failure of the turn after those n; nothing follows it.
func (g *guest) read(scr *scratch, x *sandbox.Instance, base int) (n int, more bool, f *abi.Failure) {
	scr.cmds, scr.ends = scr.cmds[:0], scr.ends[:0]
	spawned := g.spawned
	for len(scr.cmds) < heldCommands {
		from := len(scr.cmds)
		if cap(scr.cmds)-from < usualCommands {
			scr.cmds = slices.Grow(scr.cmds, usualCommands)
		}
		turn, cmds, ok, err := x.NextTurn(scr.cmds[from:])
		switch {
		case err != nil:
			return n, false, asFailure(abi.FailureABIViolation, err)
		case !ok:
			return n, false, nil
		}
		if spawned, f = g.examine(cmds, turn, spawned, &scr.res); f != nil {
			return n, false, f
		}
		if g.costly {
			if f = g.charge(x, cmds, scr.batch[base+n]); f != nil {
				return n, false, f
			}
		}
		if len(cmds) < cap(scr.cmds)-from { // there was room, so they are there already
			scr.cmds = scr.cmds[:from+len(cmds)]
		} else {
			scr.cmds = append(scr.cmds[:from], cmds...)
		}
		scr.ends = append(scr.ends, len(scr.cmds))
		n++
		if turn+1 == scr.res.Turns {
			return n, false, nil
		}
	}
	return n, true, nil
}

// turn returns the commands of one of the turns that were read.
func (s *scratch) turn(i int) []abi.Command {
	from := 0
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.cmds[from:s.ends[i]]
}

// examine checks what the decoder cannot: a turn's commands as a whole. It returns
// the number of children that were spawned so far.
func (g *guest) examine(cmds []abi.Command, turn int, spawned uint64, res *sandbox.Result) (uint64, *abi.Failure) {
	stashed := false
	g.costly = false
	for i := range cmds {
		if cmds[i].ToPath != nil {
			g.costly = true
		}
		switch cmd := &cmds[i]; cmd.Op {
		case abi.OpSend: // nearly all are
		case abi.OpForward:
			g.costly = true
		case abi.OpFail:
			return spawned, &abi.Failure{Kind: abi.FailureGuestError, Reason: string(cmd.Reason)}
		case abi.OpSpawn:
			if cmd.Ref != abi.ChildRef(g.childKey(), g.actor.uid.Node(), spawned) {
				return spawned, violation("spawn: the child's ref is not the next one")
			}
			spawned++
			g.costly = true
		case abi.OpStash, abi.OpUnstash:
			if cmd.Op == abi.OpStash {
				if stashed {
					return spawned, violation("stash: the message is stashed already")
				}
				stashed = true
			}
			if !res.LastTurn(turn) {
				return spawned, violation("the batch went on after " + cmd.Op.String())
			}
		case abi.OpStop:
			if cmd.ToRef == g.actor.uid && !res.LastTurn(turn) {
				return spawned, violation("the batch went on after stop")
			}
		}
	}
	return spawned, nil
}

func violation(reason string) *abi.Failure {
	return &abi.Failure{Kind: abi.FailureABIViolation, Reason: reason}
}

// giveBack puts the messages that no turn has begun with, or whose turn came after a
// failing one, back to the front of the mailbox.
func (g *guest) giveBack(scr *scratch, done, failed int) {
	if failed >= 0 {
		done++
	}
	if done < len(scr.batch) {
		g.actor.box.PushFront(scr.batch[done:]...)
		scr.batch = scr.batch[:done]
	}
}

// account adds up what was spent: by the turns, and by the host for their commands.
func (g *guest) account(res *sandbox.Result, work uint64) {
	if res.Fuel+work > 0 {
		g.fuelSpent += res.Fuel + work
		g.actor.counts.fuel.Store(g.fuelSpent)
	}
}

// conclude ends the turns of the batch: the messages of those that ended well are remembered for resume
// or freed, and it is decided what happens to the message of a failed one.
func (g *guest) conclude(scr *scratch, done, failed int, f *abi.Failure, now int64) {
	a := g.actor
	if scr.res.Fuel > longTurn || f != nil {
		scr.same = 0
	}
	for i, e := range scr.batch[:min(done, len(scr.batch))] {
		if e.Value != nil {
			a.noteTaken(e)
		}
		if g.states == nil || !g.states.remember(e, now, a.turns-uint64(done-i)) {
			scr.cache.Free(e)
		}
	}
	if failed >= 0 && failed < len(scr.batch) {
		e := scr.batch[failed]
		a.begins(scr, e)
		a.finish(scr, e, f)
	}
	scr.freeBatch()
	if cap(scr.cmds) > 2*heldCommands {
		scr.cmds = nil
	}
	if g.states != nil && f == nil {
		g.checkpointIfDue(scr)
	}
}
