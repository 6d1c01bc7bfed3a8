package sandbox

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// TestSamplesAreWhereFuelGoes: the number of samples is what was spent, whether turns are
// longer or shorter than the distance between samples, and the fuel of turns is the same as
// without.
func TestSamplesAreWhereFuelGoes(t *testing.T) {
	for name, cfg := range setups {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, cfg)
			x := get(t, load(t, e, "echo", ImageConfig{}))
			defer x.Put()
			push(t, x, 0)
			plain, _, _ := run(t, x, entry())
			if plain.Failure != nil {
				t.Fatal(plain)
			}
			samples, stacks := 0, map[string]int{}
			in := entry()
			p := &Profiler{Every: 4 * plain.Fuel, Sample: func(_ LogSink, stack []string) {
				samples++
				stacks[strings.Join(stack, ";")]++
			}}
			if !e.Profile(p) || e.Profile(&Profiler{}) {
				t.Fatal("one may profile")
			}
			defer e.Profile(nil)
			const turns = 4000
			for range turns {
				push(t, x, 0)
				x.Profiled()
				out, _, _ := run(t, x, in)
				if out.Failure != nil || out.Fuel != plain.Fuel {
					t.Fatalf("%+v, without a profiler %+v", out, plain)
				}
			}
			want := float64(turns) / 4
			if p.Every < MinSample {
				t.Logf("turns of %d units", plain.Fuel)
			}
			if math.Abs(float64(samples)-want) > 5*math.Sqrt(want)+0.1*want {
				t.Errorf("%d samples of %v", samples, want)
			}
			e.Profile(nil)
			push(t, x, 15)
			if out, _, _ := run(t, x, in); out.Failure != nil || x.grain < leastGrant || x.sampling != nil {
				t.Errorf("afterwards %d units are granted at once, %v", x.grain, out)
			}
			for s := range stacks {
				if cfg.interpreter != (s == "") {
					t.Errorf("the stack %q", s)
				}
			}
		})
	}
}

// TestStackOfASample is that of a trap at the same place.
func TestStackOfASample(t *testing.T) {
	e := newEngine(t, NewConfig())
	x := get(t, load(t, e, "echo", ImageConfig{}))
	defer x.Put()
	var stack []string
	e.Profile(&Profiler{Every: MinSample, Sample: func(_ LogSink, s []string) { stack = slices.Clone(s) }})
	defer e.Profile(nil)
	in := entry() // kept, as a worker keeps its own
	in.TurnFuel = 50_000_000
	for range 2 {
		push(t, x, 2) // it spins
		out, _, _ := run(t, x, in)
		if f := out.Failure; f == nil || f.Kind != abi.FailureFuel {
			t.Fatal(out)
		} else if stack != nil && !slices.Equal(stack, f.Stack) {
			t.Errorf("the sample's is %q, the failure's %q", stack, f.Stack)
		}
		if err := x.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	if canUnwind && len(stack) == 0 {
		t.Error("there is none")
	}
}

// TestStackLayout: wazero's objects are those that callStack knows. If this fails after an
// update of wazero, profiles say nothing of guests' functions until stackLayoutOf knows the
// new ones.
func TestStackLayout(t *testing.T) {
	e := newEngine(t, NewConfig())
	x := get(t, load(t, e, "echo", ImageConfig{}))
	defer x.Put()
	if canUnwind && x.image.callers.stacks(x) == nil {
		t.Error("not known")
	}
}

// What does not look like a stack ends it.
func TestUnwindStaysWithinTheStack(t *testing.T) {
	stack := make([]byte, 256)
	for i := range stack {
		stack[i] = 0xff
	}
	for sp := uintptr(0); sp < 600; sp++ {
		if n := len(unwind(stack, 200, sp, sp, make([]uintptr, 0, 8))); n > 8 {
			t.Error(n)
		}
	}
	clear(stack)
	for sp := uintptr(0); sp < 600; sp++ {
		unwind(stack, 200, sp, sp, make([]uintptr, 0, 8))
	}
}
