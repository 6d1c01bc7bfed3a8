// Package guard counts what a message, an ask, a crash and a spawn cost: instructions, of
// host and guest, and allocations. Limits stand in limits.json; the test of this package holds every
// change against them.
package guard

import (
	"context"
	"fmt"
	goruntime "runtime"

	"github.com/wasmactors/wasmactors/tools/instrcount"
)

// Native is the kind of an actor in Go, Routed one whose messages go through a round-robin
// router each; every other kind is a guest's file.
const (
	Native = "native"
	Routed = "routed"
)

// Act is what is counted. Actors are alone on one worker; a message has 32 bytes where nothing else is said.
type Act string

// The acts.
const (
	Message Act = "message" // of a ping-pong: to an actor that sends it back
	Kept    Act = "kept"    // the same, of guests that have black boxes
	Taped   Act = "taped"   // the same, of guests that are recorded
	Beside  Act = "beside"  // the same, of guests that are not durable, in a system with a store
	Stepped Act = "stepped" // the same in a manual system
	Durable Act = "durable" // the same in a manual system, of durable guests
	Struct  Act = "struct"  // the same with a struct of six fields
	Kib     Act = "kib"     // the same with 1 KiB
	Ask     Act = "ask"     // of a goroutine, and the answer; its context has no deadline
	AskDue  Act = "ask-due" // the same with a deadline
	Crash   Act = "crash"   // a message at which an actor panics or traps, its restart and the next message
	Spawn   Act = "spawn"   // a new actor's first message, and the end of the one before
	Stages  Act = "stages"  // an element of a stream through ten stages of one actor
	Element Act = "element" // an element of a stream from one actor to another
)

// Case is an act of a kind of actor.
type Case struct {
	Act  Act
	Kind string
}

// Counts are those of one act.
type Counts struct {
	Instructions float64 // of the host and the guest
	Guest        float64 // part of them in compiled wasm
	Allocations  float64
	Functions    []instrcount.Function // of the window with the most acts
	Acts         int                   // of that window
}

// Windows are counted at two lengths; what an act costs is the slope, so that the beginning
// and the end of a window do not count. The lengths are 64 apart, for some work is done once in 64
// turns (a worker's look at the clock), in 16 or 8; less for what takes long. Each step is a switch between two
// processes: a minute for two pairs of windows.
func (c Case) lengths() [2]int {
	switch c.Act {
	case Crash, Spawn:
		return [2]int{1, 5}
	case Ask, AskDue:
		return [2]int{2, 10}
	}
	if c.Act == Element { // a taker asks for more and more at first
		return [2]int{16, 80}
	}
	return [2]int{4, 68}
}

// Work is what the child does whose instructions are counted.
func Work(ctx context.Context, c Case) error {
	r, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.run(r.warmUp); err != nil {
		return err
	}
	return r.windows()
}

// Slope is what the windows of [Work] say of one act.
func Slope(c Case, windows []instrcount.Window) (Counts, error) {
	lengths := c.lengths()
	if len(windows) != len(lengths) {
		return Counts{}, fmt.Errorf("%d windows, not %d", len(windows), len(lengths))
	}
	n := float64(lengths[1] - lengths[0])
	return Counts{
		Instructions: float64(windows[1].Total-windows[0].Total) / n,
		Guest:        float64(windows[1].Guest-windows[0].Guest) / n,
		Functions:    windows[1].Functions(), Acts: lengths[1],
	}, nil
}

// Allocations counts those of an act.
func Allocations(ctx context.Context, c Case) (float64, error) {
	r, err := open(ctx, c)
	if err != nil {
		return 0, err
	}
	defer r.close()
	if err := r.run(r.warmUp); err != nil {
		return 0, err
	}
	acts := 5 * r.warmUp
	best := 0.0
	for i := range 3 { // the collector allocates, too, now and then
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		if err := r.run(acts); err != nil {
			return 0, err
		}
		goruntime.ReadMemStats(&after)
		if a := float64(after.Mallocs-before.Mallocs) / float64(acts); i == 0 || a < best {
			best = a
		}
	}
	return best, nil
}
