package sandbox

import (
	"context"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/clock"
)

// stretches is the machine's clock, which notes how long the thread computes between two readings.
type stretches struct {
	clock.Clock
	last, worst int64
	all         []int64
}

func (s *stretches) Now() time.Time {
	now, _, _ := readThread()
	s.all = append(s.all, now-s.last)
	s.worst = max(s.worst, now-s.last)
	s.last, _, _ = readThread()
	return s.Clock.Now()
}

// TestStretchesOfGuests measures how long guests compute between two looks that are quick until their grants are
// large. It fails only where a case does not run: the figures are in docs/architecture/metering-lab.md.
func TestStretchesOfGuests(t *testing.T) {
	if os.Getenv("WASMACTORS_STRETCHES") == "" {
		t.Skip("a measurement")
	}
	goruntime.LockOSThread()
	var anchor Anchor
	code, err := os.ReadFile("../../host/testdata/sly.wasm")
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		verb byte
		arg  uint32
		n    int
	}
	plain := message
	inGo, err := buildGoGuest("late")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		lives int
		steps []step
	}{
		{"touch at once", 4, []step{{4, 9000, 1}}},
		{"fill at once", 4, []step{{64, 36 << 20, 1}}},
		{"spin, touch", 6, []step{{6, 9000, 1}}},
		{"spin, fill", 6, []step{{2 + 64, 36 << 20, 1}}},
		{"spin; touch in the next turn", 6, []step{{2, 0, 1}, {4, 9000, 1}}},
		{"spin; touch in a turn that traps", 6, []step{{2, 0, 1}, {4 + 32, 9000, 1}}},
		{"spin; touch in a batch", 6, []step{{2, 0, 1}, {4, 900, 10}}},
		{"grow, touch", 6, []step{{1 + 4, 384<<16 + 6000, 1}}},
		{"spin, grow, touch", 6, []step{{1 + 2 + 4, 384<<16 + 6000, 1}}},
		{"spin, chase", 1, []step{{8, 0, 1}, {2 + 16, 400_000, 6}}},
		{"spin; chase in a turn of its own", 1, []step{{8, 0, 1}, {2, 0, 1}, {16, 100_000, 1}, {2, 0, 1}, {16, 100_000, 1}, {2, 0, 1}, {16, 100_000, 1}}},
		{"spin; chase in a batch", 1, []step{{8, 0, 1}, {2, 0, 1}, {16, 5000, 20}, {2, 0, 1}, {16, 5000, 20}}},
		{"Go: allocate, touch", 4, []step{{11, 0, 1}}},
		{"Go: spin, touch", 6, []step{{17, 0, 1}}},
	} {
		code, message := code, slyOrder
		if strings.HasPrefix(c.name, "Go: ") {
			code, message = inGo, func(verb byte, _ uint32) *abi.Envelope { return plain(verb) }
		}
		s := &stretches{Clock: clock.Real()}
		cfg := NewConfig().WithClock(s)
		cfg.thread = readThread
		e := newEngine(t, cfg)
		i, err := e.Load(context.Background(), code, ImageConfig{Name: c.name})
		if err != nil {
			t.Fatal(err)
		}
		x, err := Get(i)
		if err != nil {
			t.Fatal(err)
		}
		var worst []int64
		over, total := int64(0), int64(0)
		for range c.lives {
			for _, st := range c.steps {
				left := st.n
				for left > 0 {
					n := 0
					for left > 0 && n < 16 && x.Push(message(st.verb, st.arg)) {
						n++
						left--
					}
					if n == 0 {
						t.Fatalf("%s: it takes no message", c.name)
					}
					var out Result
					s.worst = 0
					in := &Entry{Now: time.Now().UnixNano(), TurnFuel: 1 << 40, Anchor: &anchor}
					in.Began = time.Now().UnixNano()
					s.all = s.all[:0]
					s.last, _, _ = readThread()
					if x.Run(in, &out); out.Failure != nil && st.verb&slyTrap == 0 {
						t.Fatalf("%s: %v", c.name, out.Failure)
					}
					now, _, _ := readThread()
					s.all = append(s.all, now-s.last)
					w := int64(0)
					for _, d := range s.all {
						total += d
						w = max(w, d)
						if d > 1_100_000 {
							over += d
						}
					}
					worst = append(worst, w/1000)
				}
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%-36s %5.1f%% over 1.1 ms; longest us: %v", c.name, 100*float64(over)/float64(total), worst)
		x.Put()
	}
}
