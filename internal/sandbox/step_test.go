package sandbox

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
)

// stateOf identifies memory and globals.
func stateOf(t testing.TB, x *Instance) uint32 {
	t.Helper()
	sum := crc32.Checksum(x.Memory(), castagnoli)
	globals, err := Globals(x)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range globals {
		sum = crc32.Update(sum, castagnoli, binary.LittleEndian.AppendUint64(nil, g))
	}
	return sum
}

// place is where a Run has stopped, and its state there.
type place struct {
	at    Position
	state uint32
	depth int
}

// TestSteps: a Run that stops at places, and goes back and forth between them, has there the state of one that goes straight,
// and ends as one that does not stop.
func TestSteps(t *testing.T) {
	for name, cfg := range setups {
		if cfg.compile != compileDefault {
			continue
		}
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, cfg)
			i := load(t, e, "wander", ImageConfig{})
			want := plainRun(t, i)
			places := straightRun(t, i, want)
			canStep := !cfg.interpreter && canUnwind
			rng := rand.New(rand.NewPCG(1, 2))
			backs, forths := wanderingRun(t, i, want, places, rng, canStep)
			if canStep && (backs < 30 || forths < 30) {
				t.Errorf("it went back %d times, and on %d times", backs, forths)
			}
			if err := i.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

type outcome struct {
	Result
	outbox string
	state  uint32
	logged logLines
}

func finish(t *testing.T, x *Instance, run func(in *Entry, out *Result)) (o outcome) {
	t.Helper()
	push(t, x, 1, 1)
	in := entry()
	in.Log = &o.logged
	run(in, &o.Result)
	for {
		if _, _, ok, err := x.NextTurn(nil); err != nil {
			t.Fatal(err)
		} else if !ok {
			break
		}
	}
	o.outbox, o.state, o.Worth = string(x.Outbox(o.Turns)), stateOf(t, x), 0
	return o
}

func plainRun(t *testing.T, i *Image) outcome {
	x := get(t, i)
	defer x.Put()
	o := finish(t, x, x.Run)
	if o.Failure != nil || o.Turns != 2 {
		t.Fatal(o.Failure, o.Turns)
	}
	return o
}

func sameOutcome(t *testing.T, o, want outcome, logs bool) {
	t.Helper()
	if o.Failure != nil || o.Fuel != want.Fuel || o.Turns != want.Turns || o.outbox != want.outbox || o.state != want.state {
		t.Errorf("it ends with %+v, without stops with %+v", o.Result, want.Result)
	}
	if logs && !slices.Equal(o.logged, want.logged) {
		t.Errorf("it has logged %q, without stops %q", o.logged, want.logged)
	}
}

// straightRun stops at every 50th place.
func straightRun(t *testing.T, i *Image, want outcome) (places []place) {
	x := get(t, i)
	defer x.Put()
	n := 0
	o := finish(t, x, func(in *Entry, out *Result) {
		RunSteps(x, in, out, Position{1, 0}, func(s *Steps) {
			if n++; n%50 == 0 {
				places = append(places, place{s.At(), stateOf(t, x), len(s.Frames(100))})
			}
			at := s.At()
			s.Stop(Position{at.Phase, at.Fuel + 1})
		})
	})
	sameOutcome(t, o, want, true)
	if len(places) < 200 {
		t.Fatalf("%d places", len(places))
	}
	return places
}

// wanderingRun goes to places at random, back by checkpoints.
func wanderingRun(t *testing.T, i *Image, want outcome, places []place, rng *rand.Rand, canStep bool) (backs, forths int) {
	x := get(t, i)
	defer x.Put()
	var kept []*Checkpoint
	var keeper Keeper
	goal := rng.IntN(len(places))
	o := finish(t, x, func(in *Entry, out *Result) {
		RunSteps(x, in, out, places[goal].at, func(s *Steps) {
			p := places[goal]
			if at := s.At(); at != p.at {
				t.Fatalf("stopped at %v, not at %v", at, p.at)
			}
			if state := stateOf(t, x); state != p.state {
				t.Fatalf("another state at %v", p.at)
			}
			if depth := len(s.Frames(100)); depth != p.depth {
				t.Fatalf("%d frames at %v, not %d", depth, p.at, p.depth)
			}
			var near *Checkpoint
			if len(kept) > 0 && goal%3 > 0 {
				near = kept[goal%len(kept)]
			}
			if c, err := s.Checkpoint(&keeper, near); err == nil {
				kept = append(kept, c)
			} else if canStep && !x.hosted {
				t.Fatal(err)
			}
			next := rng.IntN(len(places))
			if backs+forths > 150 {
				s.Stop(Position{1 << 40, 0})
				return
			}
			if next > goal {
				forths++
				goal = next
				s.Stop(places[goal].at)
				return
			}
			for k, c := range slices.Backward(kept) {
				if c.At.Before(places[next].at) && s.Back(c, places[next].at) {
					kept = slices.Delete(kept, k, k+1)
					goal = next
					backs++
					return
				}
			}
			goal = min(goal+1, len(places)-1)
			if s.Stop(places[goal].at); places[goal].at == p.at {
				s.Stop(Position{1 << 40, 0})
			}
		})
	})
	sameOutcome(t, o, want, false)
	for _, c := range kept {
		c.Drop()
	}
	if keeper.Bytes() != 0 {
		t.Errorf("%d bytes of memories are left", keeper.Bytes())
	}
	return backs, forths
}

// A Run that is killed, out of fuel or over its deadline by a Cut ends where it did while it stops, and places behind the end
// are never reached.
func TestStepsToACut(t *testing.T) {
	e := newEngine(t, NewConfig())
	i := load(t, e, "wander", ImageConfig{})
	defer i.Close()
	var free Result
	x := get(t, i)
	defer x.Put()
	push(t, x, 1)
	x.Run(entry(), &free)
	cut := &Cut{Stage: StageTurn, Phase: 1, At: free.Fuel / 2, Kind: 7, Reason: "was killed"}
	for _, in := range []*Entry{{TurnFuel: free.Fuel / 3}, {Cut: cut}, {Cut: &Cut{Stage: StageGrowth, Phase: 1, At: 1, Kind: 6, Reason: "no room"}}} {
		var want, got Result
		for _, out := range []*Result{&want, &got} {
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			push(t, x, 1)
			if out == &want {
				x.Run(in, out)
				continue
			}
			RunSteps(x, in, out, Position{1, 0}, func(s *Steps) {
				at := s.At()
				if want.Failure.Kind == 7 && at.Fuel >= want.Failure.Fuel {
					t.Error("a stop behind the end")
				}
				s.Stop(Position{at.Phase, at.Fuel + 1})
			})
		}
		if want.Failure == nil || got.Failure == nil || got.Failure.Error() != want.Failure.Error() || got.Failure.Fuel != want.Failure.Fuel {
			t.Errorf("%v (%v), without stops %v", got.Failure, got.Fuel, want.Failure)
		}
	}
}
