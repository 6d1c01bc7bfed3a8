package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// How a guest gets back to the state from before a failing turn: a snapshot every
// few turns, and the messages since, which are handled again in silence. A turn is a
// function of the state, the message and the turn's header, so it comes out the same.
// Only an actor whose supervisor can answer resume pays for it.
const (
	// checkpointTurns and checkpointBytes bound what is handled again.
	checkpointTurns = 16
	checkpointBytes = 64 << 10
	// A large snapshot is taken less often: a turn later for each checkpointGrain
	// bytes of it, up to mostTurns. So it costs about as much as the turns between.
	checkpointGrain = 1 << 10
	mostTurns       = 1024
)

// recovery is what resume needs.
type recovery struct {
	snap  sandbox.Snapshot
	log   []logged // turns since the snapshot
	bytes int
	why   string // the state cannot be kept; else empty
}

// logged is a turn that can be repeated.
type logged struct {
	env  *mailbox.Envelope
	now  int64
	turn uint64
}

// firstCheckpoint begins keeping states, at the start of an incarnation.
func (c *cell) firstCheckpoint() {
	c.forgetStates()
	if c.props.image == nil || c.parent == nil || !c.parent.props.strategy.CanResume() {
		return
	}
	c.recovery = &recovery{}
	c.checkpoint()
}

// checkpoint takes a snapshot; what led to it is forgotten.
func (c *cell) checkpoint() {
	r := c.recovery
	r.forget()
	if err := c.inst.Load().Save(&r.snap); err != nil {
		r.why = err.Error()
	}
}

// remember keeps the envelope of a turn that has ended; true means that it is the
// recovery's now.
func (c *cell) remember(e *mailbox.Envelope, now int64, turn uint64) bool {
	r := c.recovery
	if r == nil || r.why != "" {
		return false
	}
	r.log = append(r.log, logged{e, now, turn})
	r.bytes += e.Size() + overhead
	return true
}

// checkpointIfDue is called between turns, after those of an entry went well.
func (c *cell) checkpointIfDue() {
	if r := c.recovery; r != nil && r.why == "" && r.due() {
		c.checkpoint()
	}
}

func (r *recovery) due() bool {
	n := r.snap.Bytes()
	return len(r.log) >= max(checkpointTurns, min(n/checkpointGrain, mostTurns)) || r.bytes >= checkpointBytes+n/4
}

// cannotResume says why the state from before the last turn cannot be had; empty if
// it can.
func (c *cell) cannotResume() string {
	switch r := c.recovery; {
	case !c.begun:
		return "there was no turn before"
	case c.props.image == nil && c.actor == nil:
		return "the actor has panicked"
	case c.props.image == nil || c.relayed:
		return ""
	case r == nil:
		return "its states were not kept"
	default:
		return r.why
	}
}

// rewind brings the actor back to before the failing turn. What it cannot bring back
// is restarted: false.
func (c *cell) rewind(scr *scratch) bool {
	if why := c.cannotResume(); why != "" {
		return false
	}
	if c.props.image == nil {
		return true // an actor in Go goes on as it is
	}
	x, r := c.inst.Load(), c.recovery
	if x == nil || x.Restore(&r.snap) != nil {
		return false
	}
	in := sandbox.Entry{
		TurnFuel: c.limits.Fuel, Seed: c.seed, MemoryLimit: c.limits.Memory, OutboxLimit: c.limits.Outbox, Yield: scr.w,
	}
	for _, l := range r.log {
		e := l.env
		env := abi.Envelope{Kind: e.Kind, Time: l.now, Sender: e.Sender, Correlation: e.Correlation, Headers: e.Headers, Payload: e.Payload}
		in.Now, in.FirstTurn = l.now, l.turn
		var res sandbox.Result
		if !x.Push(&env) {
			return false
		}
		if x.Run(&in, &res); res.Failure != nil {
			c.sys.logf(c, abi.LogError, "resuming: turn %d has failed when it was repeated: %v", l.turn, res.Failure)
			return false
		}
	}
	return true
}

// forgetStates drops what was kept.
func (c *cell) forgetStates() {
	if c.recovery != nil {
		c.recovery.forget()
		c.recovery = nil
	}
}

func (r *recovery) forget() {
	for i := range r.log {
		r.log[i].env.Free()
	}
	clear(r.log)
	r.log, r.bytes = r.log[:0], 0
}
