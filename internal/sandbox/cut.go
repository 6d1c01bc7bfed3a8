package sandbox

import (
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
)

// Stage is where in a Run something from outside has ended a turn.
type Stage uint8

// The stages.
const (
	StageTurn   Stage = iota // in the guest's code
	StageGrowth              // at a growth of the guest's memory
	StageWork                // while the host carried out the turn's commands
)

// Cut is where something from outside has ended a turn: a kill, a deadline, a bound
// of the system. The turn's inputs do not determine it, so a replay needs it as well: with
// Entry.Cut set, a Run over the same envelopes ends at the same instruction, with the same
// failure. Such a Run needs neither deadline nor account.
type Cut struct {
	Stage Stage
	// Phase is 2n+1 in turn n of the Run, counted from 0, and 2n in the guest's code
	// before it. In StageWork it is 2n+1.
	Phase uint64
	// At is the fuel that the phase had spent. In StageGrowth it is the number of
	// the growth within the Run, counted from 1.
	At uint64
	// Kind and Reason are the failure's.
	Kind   abi.FailureKind
	Reason string

	// stop is that of a Run that stops on its way, see Steps: it is called at each check of the meter instead of ending the
	// turn, moves the cut to where the Run stops next, and ends the turn at within, the cut that is to be repeated.
	stop   func(left int64)
	within *Cut
}

// Cut is where the last Run, or the work after it, was ended from outside; nil if
// nothing did.
func (x *Instance) Cut() *Cut { return x.cut }

// budget makes the fuel end exactly at the check where the cut was: the first one
// at which at least At was spent.
func (c *Cut) budget() uint64 { return max(c.At, 1) - 1 }

func (c *Cut) abort() *abort { return &abort{kind: c.Kind, reason: c.Reason} }

// cutNow is the cut that is to be repeated in the phase that runs, or nil. left is the guest's fuel.
func (x *Instance) cutNow(left int64) *Cut {
	c := x.in.Cut
	if c == nil {
		return nil
	}
	if c.stop != nil {
		c.stop(left)
	}
	if c.Stage == StageTurn && c.Phase == uint64(x.phase) {
		return c
	}
	return nil
}

// guestMemory is the instance's memory as wazero sees it.
type guestMemory struct{ x *Instance }

// Reallocate is called by wazero when the guest grows its memory. A growth beyond the
// actor's own limit is refused, as the guest expects. One that the system has no room for
// ends the turn: otherwise the guest could see how full the system is, and a turn that is
// replayed could come out differently.
func (g guestMemory) Reallocate(size uint64) []byte {
	x := g.x
	in := x.in
	if in == nil || size <= x.memory.Size() {
		return x.memory.Reallocate(size)
	}
	x.growths++
	limit := x.memoryLimit()
	c := in.Cut
	if c != nil && c.stop != nil {
		c = c.within
	}
	if c != nil && c.Stage == StageGrowth && c.At == uint64(x.growths) {
		x.cut = c
		panic(c.abort())
	}
	if size <= limit && in.Account != nil && !in.Account.Grow(x.memory.Size(), size) {
		x.endGrowth(size)
	}
	was := x.memory.Size()
	b := x.memory.Reallocate(size)
	if b == nil && size <= limit {
		x.endGrowth(size)
	}
	if b != nil {
		x.grown += uint32((size - was) >> 10)
	}
	return b
}

func (x *Instance) endGrowth(size uint64) {
	x.enterPhase()
	x.cut = &Cut{Stage: StageGrowth, Phase: uint64(x.phase), At: uint64(x.growths), Kind: abi.FailureMemoryLimit,
		Reason: fmt.Sprintf("the system has no room for %d KiB of memory", size>>10)}
	panic(x.cut.abort())
}

// Free is called by wazero when the instance is closed.
func (g guestMemory) Free() { g.x.memory.Free() }
