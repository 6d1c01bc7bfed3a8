package costs

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/tools/instrcount"
)

// crowded is a clock with so many timers that are due between one and two hours from now.
func crowded(c clock.Clock, n int) []clock.Timer {
	r := rand.New(rand.NewPCG(1, 1))
	held := make([]clock.Timer, n)
	for i := range held {
		held[i] = c.AfterFunc(far(r), func() {})
	}
	return held
}

func far(r *rand.Rand) time.Duration { return time.Hour + time.Duration(r.Int64N(int64(time.Hour))) }

var clocks = []struct {
	name string
	make func() clock.Clock
}{
	{"AfterFunc", clock.Real},
	{"heap", func() clock.Clock { return clock.NewVirtual(time.Now()) }},
	{"wheel", func() clock.Clock { return clock.NewWheel(clock.Real()) }},
}

// Setting a timer and stopping it costs a wheel the same among a hundred others and among a hundred
// thousand. With WASMACTORS_LONG=1 the others are counted, too.
func TestWheelCost(t *testing.T) {
	if !instrcount.Counting() {
		thorough.SkipUnlessSlow(t)
	}
	if race.Enabled {
		t.Skip("the race detector's own instructions would be counted")
	}
	const ops = 64
	crowds := []int{100, 100_000}
	clocks := clocks
	if os.Getenv("WASMACTORS_LONG") == "" {
		clocks = clocks[2:] // the wheel
	}
	if instrcount.Counting() {
		for _, c := range clocks {
			for _, n := range crowds {
				made := c.make()
				held := crowded(made, n)
				r := rand.New(rand.NewPCG(2, 2))
				delays := make([]time.Duration, 2*ops)
				for i := range delays {
					delays[i] = far(r)
				}
				nothing := func() {}
				for _, d := range delays[:ops] {
					made.AfterFunc(d, nothing).Stop()
				}
				instrcount.Begin()
				for _, d := range delays[ops:] {
					made.AfterFunc(d, nothing).Stop()
				}
				instrcount.End()
				for _, x := range held {
					x.Stop()
				}
			}
		}
		return
	}
	windows, err := instrcount.Self(t.Context(), "-test.run=^TestWheelCost$")
	if errors.Is(err, instrcount.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || len(windows) != len(clocks)*len(crowds) {
		t.Fatalf("%d windows, %v", len(windows), err)
	}
	for i, c := range clocks {
		few, many := windows[2*i].Total/ops, windows[2*i+1].Total/ops
		t.Logf("%s: %d instructions among %d others, %d among %d", c.name, few, crowds[0], many, crowds[1])
		if c.name == "wheel" && (many > few+few/10 || many > 1000) {
			t.Errorf("the wheel takes %d instructions among few, %d among many", few, many)
		}
	}
}
