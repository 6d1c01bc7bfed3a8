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
	costHostCall = 200 // crossing the border and back
	costByte     = 16  // bytes copied or looked at for a unit
)

// meter accounts for the fuel of the turns of one Run. What is in the guest's
// fuel global is always part of what the meter has granted: the quantum that
// each turn begins with, and what refuel has added. So a turn fails for fuel
// exactly if it has spent more than Entry.TurnFuel at one of its checks, whatever
// the quantum is.
type meter struct {
	in      *Entry
	quantum uint64 // what a turn begins with
	budget  uint64 // what a turn may spend
	phase   uint64 // the phase that granted belongs to
	granted uint64 // added to that phase
	earlier uint64 // added to turns that ended before
	started int64  // when that phase was first looked at, ns by the engine's clock; 0: not yet
}

// prepare begins a Run.
func (m *meter) prepare(in *Entry, quantum uint64) {
	m.in = in
	m.budget = in.TurnFuel
	if m.budget == 0 || m.budget > math.MaxInt64 {
		m.budget = math.MaxInt64
	}
	m.quantum = min(quantum, m.budget)
	m.phase, m.granted, m.earlier = 0, 0, 0
	m.started = 0
}

// phaseNow tells the turns of a Run apart, and the time between two turns, which
// belongs to none: odd while turn phase/2 runs, even in between.
func (x *Instance) phaseNow() uint64 {
	h := x.globals()
	begun, ended := uint64(uint32(h.begun.Get())), uint64(uint32(h.ended.Get()))
	return begun + ended
}

// turnNumber is the number, in the actor's life, of the turn that runs.
func (x *Instance) turnNumber() uint64 { return x.in.FirstTurn + x.phaseNow()/2 }

// enterPhase makes the account that of the phase that runs.
func (x *Instance) enterPhase() {
	now := x.phaseNow()
	if now == x.phase {
		return
	}
	if x.phase%2 == 1 {
		x.earlier += x.granted
	}
	x.phase, x.granted = now, 0
	if x.in.Deadline > 0 {
		x.started = x.now()
	}
}

// refuel is called when the guest's fuel is below zero: once a quantum. It
// returns what the guest may go on with, or ends the turn.
func (x *Instance) refuel(left int64) int64 {
	x.globals().fuel.Set(uint64(left)) // for the account, should the turn end here
	x.checkKill()
	x.enterPhase()
	left = x.grant(left)
	x.yield()
	x.checkKill()
	return left
}

// grant adds fuel until left is not negative.
func (x *Instance) grant(left int64) int64 {
	if left >= 0 {
		return left
	}
	need := uint64(-(left + 1)) + 1 // -left, which may be 2^63
	room := x.budget - x.quantum - x.granted
	if need > room {
		x.granted += room
		panic(&abort{kind: abi.FailureFuel, reason: fmt.Sprintf("fuel %d spent", x.budget)})
	}
	more := min(room, max(need, x.quantum))
	x.granted += more
	return left + int64(more)
}

// yield lets others run and checks the deadline. The time that others take does
// not count.
func (x *Instance) yield() {
	in := x.in
	if in.Deadline <= 0 {
		x.rest()
		return
	}
	now := x.now()
	if x.started == 0 {
		x.started = now
	}
	if now-x.started > int64(in.Deadline) {
		panic(&abort{kind: abi.FailureDeadline, reason: fmt.Sprintf("deadline %s passed", in.Deadline)})
	}
	x.rest()
	x.started += x.now() - now
}

// now is the engine's clock.
func (x *Instance) now() int64 { return x.image.engine.clock.Now().UnixNano() }

func (x *Instance) rest() {
	if x.in.Yield != nil {
		x.in.Yield.Yield()
	} else {
		goruntime.Gosched()
	}
}

func (x *Instance) checkKill() {
	if reason := x.kill.Load(); reason != nil {
		panic(&abort{kind: abi.FailureKilled, reason: *reason})
	}
}

// charge takes fuel for work that the guest makes the host do.
func (x *Instance) charge(fuel uint64) {
	g := x.globals().fuel
	left := int64(g.Get())
	if fuel > math.MaxInt64 || left < math.MinInt64+int64(fuel) {
		left = math.MinInt64
	} else {
		left -= int64(fuel)
	}
	if left < 0 {
		left = x.refuel(left)
	}
	g.Set(uint64(left))
}

// exceeded ends the turn because the rewriter's code says so.
func (x *Instance) exceeded(code uint32) {
	panic(&abort{kind: abi.FailureStackOverflow, reason: fmt.Sprintf("calls nest deeper than %d bytes of stack", x.image.cfg.StackLimit)})
}

func (x *Instance) exit(code uint32) {
	panic(&abort{kind: abi.FailureExit, reason: fmt.Sprintf("exit code %d", code)})
}

// spentNow is what the phase that runs has spent; enterPhase has been called.
func (x *Instance) spentNow() uint64 {
	return uint64(int64(x.quantum+x.granted) - int64(x.globals().fuel.Get()))
}
