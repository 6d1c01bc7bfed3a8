package sandbox

import (
	"fmt"
	"math"
	goruntime "runtime"

	"github.com/wasmactors/wasmactors/abi"
)

// What a guest pays for making the host work, in fuel; a unit is about half a
// nanosecond.
const (
	costHostCall = 200 // a call of a host function
	costByte     = 16  // bytes copied or read, a unit
)

// meter accounts for the fuel of the turns of one Run. A turn gets its fuel in grants: the first
// one begins with one, every other one with what is left, and there is one whenever refuel is called. The
// guest's fuel global holds what is left of them. So a turn fails for fuel exactly if it has spent more than
// Entry.TurnFuel at one of its checks, however large the grants are.
type meter struct {
	in      *Entry
	budget  uint64 // what a turn may spend
	opened  uint64 // what that phase has begun with
	granted uint64 // added to that phase, less what was withdrawn from it; with opened it is not negative
	earlier uint64 // added to turns that ended before
	started int64  // when the clock was first read in that phase, ns by the engine's clock; 0: not yet
	cut     *Cut   // where something from outside has ended the Run
	phase   uint32 // the phase that opened and granted belong to
	first   uint32 // what the Run begins with
	pace
}

// prepare begins a Run.
func (m *meter) prepare(in *Entry, most uint64) {
	m.in = in
	m.budget = in.TurnFuel
	if m.budget == 0 || m.budget > math.MaxInt64 {
		m.budget = math.MaxInt64
	}
	m.phase, m.granted, m.earlier = 0, 0, 0
	m.grantFirst(min(firstGrant, most))
	m.started, m.looked, m.since = 0, 0, 0
	if m.cut != nil {
		m.cut = nil
	}
	m.growths, m.hosted = 0, false
}

// grantFirst makes the first grant, of so much at most.
func (m *meter) grantFirst(most uint64) {
	first := min(m.grain, most, m.budget, math.MaxUint32)
	if c := m.in.Cut; c != nil && c.Stage == StageTurn {
		first = min(first, c.budget())
	}
	m.first, m.opened = uint32(first), first
}

// phaseNow is the present phase of a Run: odd while turn phase/2 runs, even between two
// turns.
func (x *Instance) phaseNow() uint64 {
	begun, ended := uint64(uint32(x.hidden(hiddenBegun))), uint64(uint32(x.hidden(hiddenEnded)))
	return begun + ended
}

// turnNumber is the number, in the actor's life, of the turn that runs.
func (x *Instance) turnNumber() uint64 { return x.in.FirstTurn + x.phaseNow()/2 }

// enterPhase begins the account of the present phase, unless it has begun.
func (x *Instance) enterPhase() {
	now := x.phaseNow()
	if now == uint64(x.phase) {
		return
	}
	if x.phase%2 == 1 {
		x.earlier += x.granted
	}
	x.phase, x.opened, x.granted = uint32(now), x.hidden(hiddenQuantum), 0
	x.started = 0
}

// refuel is called when the guest's fuel is below zero, and when its memory has grown. It returns the new
// amount, or ends the turn.
func (x *Instance) refuel(left int64) int64 {
	x.setHidden(hiddenFuel, uint64(left)) // for the account, should the turn end here
	x.enterPhase()
	if x.places != nil {
		x.noteBlock()
	}
	now := x.now()
	x.checkKill()
	if p := x.image.engine.profiler.Load(); p != nil {
		if left < 0 {
			x.lookForSample(p, now)
		}
	} else if x.sampling != nil {
		x.sampling = nil
		x.grain = x.usualGrant(now)
	} else {
		x.measure(left, now)
	}
	left = x.withdraw(x.grant(left))
	x.setHidden(hiddenFuel, uint64(left))
	x.base = left
	x.look(now)
	return left
}

// grant adds fuel until left is not negative.
func (x *Instance) grant(left int64) int64 {
	if left >= 0 {
		return left
	}
	budget, cut := x.budget, x.cutNow(left)
	if cut != nil {
		budget = min(budget, cut.budget())
	}
	need := uint64(-(left + 1)) + 1 // -left, which may be 2^63
	room := budget - x.opened - x.granted
	if need > room {
		if cut != nil && budget < x.budget {
			x.cut = cut
			panic(cut.abort())
		}
		panic(&abort{kind: abi.FailureFuel, reason: fmt.Sprintf("fuel %d spent", x.budget)})
	}
	more := x.grain
	if c := x.in.Cut; c != nil && c.Stage == StageTurn {
		more = min(more, c.budget()) // the turn that it ends must not begin with more
	}
	more = min(room, max(need, more))
	x.granted += more
	return left + int64(more)
}

// look checks the deadline, and lets others run when it is time. Their time does not count
// for the deadline.
func (x *Instance) look(now int64) {
	if x.started == 0 {
		x.started = now
	}
	if d := int64(x.in.Deadline); d > 0 && now-x.started > d {
		x.endTurn(abi.FailureDeadline, fmt.Sprintf("deadline %s passed", x.in.Deadline))
	}
	if !x.due(now) {
		x.looked = now
		x.anchored(now, false)
		return
	}
	x.noteStack()
	if !rest(x.in) {
		x.endTurn(abi.FailureDeadline, crowded)
	}
	after := x.now()
	x.started += after - now
	x.looked, x.rested = after, after
	x.anchored(after, after-now > moved)
	x.checkKill()
}

// crowded is the reason of a failure when there are too many long turns.
const crowded = "more long turns are in progress than the system allows, and this one has taken longest"

// IsCrowded reports whether a turn was ended because too many long turns were in progress: it is no fault of its own.
func IsCrowded(f *abi.Failure) bool { return f.Kind == abi.FailureDeadline && f.Reason == crowded }

// now is the engine's clock.
func (x *Instance) now() int64 { return x.image.engine.time.Now() }

// rest lets others run; false means that the turn should end.
func rest(in *Entry) bool {
	if in.Yield != nil {
		return in.Yield.Yield()
	}
	goruntime.Gosched()
	return true
}

func (x *Instance) checkKill() {
	if reason := x.kill.Load(); reason != nil {
		x.endTurn(abi.FailureKilled, *reason)
	}
}

// endTurn ends the turn for a reason from outside. A replay of the turn needs to know where
// that was, so it is noted as a Cut.
func (x *Instance) endTurn(kind abi.FailureKind, reason string) {
	x.cut = &Cut{Stage: StageTurn, Phase: uint64(x.phase), At: x.spentNow(), Kind: kind, Reason: reason}
	panic(x.cut.abort())
}

// charge takes fuel for work that the guest makes the host do.
func (x *Instance) charge(fuel uint64) {
	left := int64(x.hidden(hiddenFuel))
	if fuel > math.MaxInt64 || left < math.MinInt64+int64(fuel) {
		left = math.MinInt64
	} else {
		left -= int64(fuel)
	}
	if left < 0 {
		x.hosted = true
		left = x.refuel(left)
		x.hosted = false
	}
	x.setHidden(hiddenFuel, uint64(left))
}

// exceeded ends the turn at a limit that the rewriter's code has found exceeded.
func (x *Instance) exceeded(code uint32) {
	panic(&abort{kind: abi.FailureStackOverflow, reason: fmt.Sprintf("calls nest deeper than %d bytes of stack", x.image.cfg.StackLimit)})
}

func (x *Instance) exit(code uint32) {
	panic(&abort{kind: abi.FailureExit, reason: abi.ExitReason(code)})
}

// spentNow is what the present phase has spent. enterPhase must have been called.
func (x *Instance) spentNow() uint64 {
	return uint64(int64(x.opened+x.granted) - int64(x.hidden(hiddenFuel)))
}
