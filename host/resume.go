package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// How a guest gets back to the state from before a failing turn: a snapshot every
// few turns, and the messages since, which are handled again without effect. A turn is
// a function of the state, the message and the turn's header, so it comes out the same.
// Which messages were pushed together counts, too: the guest's memory depends on it.
// Only an actor whose supervisor can answer resume pays for it.
const (
	// checkpointTurns and checkpointBytes bound what is handled again.
	checkpointTurns = 16
	checkpointBytes = 64 << 10
	// A large snapshot is taken less often: after one turn for each checkpointGrain
	// bytes of it, up to mostTurns. So it costs about as much as those turns.
	checkpointGrain = 1 << 10
	mostTurns       = 1024
)

// keepStates begins to remember, at the start of an incarnation.
func (g *guest) keepStates(scr *scratch) {
	g.forgetStates()
	if p := g.actor.parent; p == nil || !p.props.strategy.CanResume() {
		return
	}
	g.states = &states{}
	g.checkpoint(scr)
}

// checkpoint takes a snapshot; what led to it is forgotten. It takes as long as the copies that it makes.
func (g *guest) checkpoint(scr *scratch) {
	s := g.states
	if s.snap.Bytes() >= largeCopy {
		scr.w.Yield()
	}
	defer g.pause(scr, g.actor.Now())
	s.forget()
	err := g.inst.Load().Save(&s.snap)
	if err == nil && g.actor.sys.repeats.Load() != nil {
		g.noteStates() // there was room for it, or the supervisor was told that there was none: the records say so
	} else if err == nil {
		err = work.Hold(&g.actor.account, account.Snapshot, s.held())
	}
	if err != nil {
		s.why, s.snap = err.Error(), sandbox.Snapshot{}
		g.noteStates()
	}
}

// held is about the most, in bytes, that the snapshot and the turns since may take until the next
// snapshot is due.
func (s *states) held() int64 { return int64(2*s.snap.Bytes()) + checkpointBytes }

// noteStates brings the account up to date.
func (g *guest) noteStates() {
	n := int64(0)
	if g.states != nil && g.states.why == "" {
		n = g.states.held()
	}
	if g.asleep != nil {
		n += int64(g.asleep.Bytes())
	}
	g.actor.account.Note(account.Snapshot, n)
}

// remember takes the envelope of a turn that has ended; false means that it is still the
// caller's.
func (s *states) remember(l logged) bool {
	if s.why != "" {
		return false
	}
	s.log = append(s.log, l)
	s.bytes += l.env.Size() + overhead
	return true
}

// leave keeps copies of messages that were pushed and go back to the mailbox, until the turns before them
// are remembered. What the host knows of them besides is not copied: guests do not see it.
func (s *states) leave(back []*mailbox.Envelope) {
	for _, e := range back {
		s.left = append(s.left, message.CloneEnvelope(e))
	}
}

// rememberLeft puts them behind the turns of their entry.
func (s *states) rememberLeft(now int64) {
	for i, e := range s.left {
		if s.left[i] = nil; !s.remember(logged{env: e, now: now, behind: true, unread: true}) {
			e.Free()
		}
	}
	s.left = s.left[:0]
}

// checkpointIfDue is called between turns, after those of an entry went well.
func (g *guest) checkpointIfDue(scr *scratch) {
	if s := g.states; s.why == "" && s.due() {
		g.checkpoint(scr)
	}
}

func (s *states) due() bool {
	n := s.snap.Bytes()
	return len(s.log) >= max(checkpointTurns, min(n/checkpointGrain, mostTurns)) || s.bytes >= checkpointBytes+n/4
}

// CannotRewind implements Behaviour.
func (g *guest) CannotRewind() string {
	if g.states == nil {
		return "its states were not kept"
	}
	return g.states.why
}

// Rewind implements Behaviour.
func (g *guest) Rewind(ctx *Context) bool {
	a, x, s := g.actor, g.inst.Load(), g.states
	if x == nil && g.asleep != nil && !g.failed {
		return true // nothing has run since it fell asleep
	}
	if s == nil || x == nil {
		return false
	}
	if !g.goBack(ctx.scr, x) {
		g.release() // it is in no state for a last turn
		return false
	}
	defer func() { a.account.Note(account.Memory, x.Weight()) }() // that of the failed turn is given back
	return g.repeat(ctx.scr, x)
}

// repeat has the turns since the last snapshot once more.
func (g *guest) repeat(scr *scratch, x *sandbox.Instance) bool {
	a := g.actor
	in := sandbox.Entry{
		TurnFuel: a.props.limits.Fuel, Seed: g.seed, MemoryLimit: a.props.limits.Memory, OutboxLimit: a.props.limits.Outbox, Yield: scr.w, Anchor: scr.entry.Anchor,
	}
	for log := g.states.log; len(log) > 0; {
		n, most := 0, 0
		for n == 0 || n < len(log) && log[n].behind {
			if !g.push(scr, x, log[n].env, log[n].now) {
				return false
			}
			if !log[n].unread {
				most++
			}
			n++
		}
		in.Now, in.FirstTurn, in.Most = log[0].now, log[0].turn, most
		var res sandbox.Result
		x.Run(&in, &res)
		scr.w.Spend(res.Worth)
		if res.Failure != nil {
			a.sys.logf(a, abi.LogError, "resuming: turn %d has failed when it was repeated: %v", log[0].turn+uint64(res.Turns), res.Failure)
			return false
		}
		log = log[n:]
	}
	return true
}

// goBack brings the instance back to the last snapshot.
func (g *guest) goBack(scr *scratch, x *sandbox.Instance) bool {
	snap := &g.states.snap
	if snap.Bytes() >= largeCopy || x.MemoryBytes() >= largeReset {
		scr.w.Yield()
	}
	defer g.pause(scr, g.actor.Now())
	return x.Restore(snap) == nil
}

// resumesLater gets a failed guest another instance, if its own was needed elsewhere. It is true if there is no
// room: then the guest keeps its state and tries again, unless its supervisor orders something else before.
func (g *guest) resumesLater(scr *scratch) bool {
	a, s := g.actor, g.states
	if s == nil || s.why != "" || g.inst.Load() != nil || g.asleep != nil && !g.failed {
		return false
	}
	_, err := g.obtain(scr, sandbox.SavedWeight(g.image, &s.snap), nil)
	if err != nil && noRoom(err) {
		g.tryAgain("instance", err, sysmail.Msg{Kind: sysmail.Resume, Kin: sysmail.Kin{How: sysmail.Again, Orders: a.orders}})
		return true
	}
	if err == nil {
		g.waited = 0
		g.forgetSleep()
	}
	return false
}

// forgetStates drops what was remembered.
func (g *guest) forgetStates() {
	if g.states != nil {
		g.states.forget()
		g.states = nil
		g.noteStates()
	}
}

func (s *states) forget() {
	for i := range s.log {
		s.log[i].env.Free()
	}
	clear(s.log)
	s.log, s.bytes = s.log[:0], 0
}
