package sandbox

import (
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// TestCallLayout: wazero's function objects are those that callers knows. If this
// fails after an update of wazero, look whether a function depends on its instance by
// parent alone, as before; until then instances work as well, but weigh more.
func TestCallLayout(t *testing.T) {
	for name, cfg := range setups {
		e := newEngine(t, cfg)
		i := load(t, e, "echo", ImageConfig{})
		x := get(t, i)
		shared := i.callers.layout != nil
		if shared == cfg.interpreter || shared != (x.own == nil) || shared != (x.engine != nil) {
			t.Errorf("%s: shared is %v", name, shared)
		}
		if !cfg.interpreter {
			var names []string
			f := reflect.TypeOf(x.module.ExportedFunction(rewrite.ExportEnter)).Elem()
			for k := range f.NumField() {
				names = append(names, f.Field(k).Name)
			}
			if !slices.Equal(names, knownCall) {
				t.Errorf("fields %q", names)
			}
		}
		x.Put()
	}
}

// TestCallersServeWhoCalls: functions go round among instances of several images, from
// several goroutines, through traps and grown stacks, and each call reaches its own
// instance.
func TestCallersServeWhoCalls(t *testing.T) {
	e := newEngine(t, NewConfig())
	images := []*Image{load(t, e, "echo", ImageConfig{}), load(t, e, "echo", ImageConfig{StackLimit: 2 << 20})}
	turns := thorough.SlowOf(1000, 3000)
	if race.Enabled {
		turns = 500
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			in := entry() // kept, as a worker keeps its own
			in.TurnFuel = 5_000_000
			var live [6]*Instance
			var counts [6]uint64
			for n := range turns {
				k := (n*7 + g) % len(live)
				if live[k] == nil {
					x, err := Get(images[k%2])
					if err != nil {
						t.Error(err)
						return
					}
					live[k], counts[k] = x, 0
				}
				x := live[k]
				what := []byte{10, 10, 10, 10, 1, 3, 10}[(n/5+k)%7]
				if !x.Push(message(what)) {
					t.Error("no room")
					return
				}
				entered := in
				if n%11 == 0 { // a copy has no function of its own
					other := *in
					entered = &other
				}
				var out Result
				x.Run(entered, &out)
				if what != 10 {
					if out.Failure == nil {
						t.Error("no failure")
						return
					}
					if n%2 == 0 {
						x.Put()
						live[k] = nil
					} else if err := x.Reset(); err != nil {
						t.Error(err)
						return
					}
					counts[k] = 0
					continue
				}
				counts[k] += 2
				_, cmds, _, err := x.NextTurn(nil)
				if err != nil || len(cmds) != 1 || cmds[0].Correlation != counts[k] {
					t.Errorf("instance %d: %v %v, want %d", k, cmds, err, counts[k])
					return
				}
			}
			for _, x := range live {
				if x != nil {
					x.Put()
				}
			}
		})
	}
	wg.Wait()
}

// TestLargeStacksAreGivenBack: a call stack that has grown is not kept for others.
func TestLargeStacksAreGivenBack(t *testing.T) {
	e := newEngine(t, NewConfig())
	i := load(t, e, "echo", ImageConfig{StackLimit: 8 << 20})
	x := get(t, i)
	defer x.Put()
	if i.callers.layout == nil { // known once there is an instance
		t.Skip("call stacks are not shared here")
	}
	in := entry()
	push(t, x, 3)
	if out, _, _ := run(t, x, in); out.Failure == nil {
		t.Fatal("no stack overflow")
	}
	if in.last.it != nil {
		t.Error("the entry has kept it")
	}
	for range 3 {
		if c, _ := i.callers.stock.Get().(*caller); c != nil && i.callers.stackLen(c) > maxKeptStack {
			t.Error("the stock has kept it")
		}
	}
}

// held is an Account that adds up, up to a bound.
type held struct{ now, peak, most int64 }

func (h *held) Grow(from, to uint64) bool {
	if to > from && h.now+int64(to-from) > h.most {
		return false
	}
	h.now += int64(to) - int64(from)
	h.peak = max(h.peak, h.now)
	return true
}

// A call stack that has grown is on the account while others run, and no longer than the call; without room for it
// the turn ends.
func TestGrownStacksAreOnTheAccount(t *testing.T) {
	e := newEngine(t, NewConfig())
	i := load(t, e, "echo", ImageConfig{StackLimit: 32 << 20})
	get(t, i).Put()
	if i.callers.layout == nil { // known once there was an instance
		t.Skip("call stacks are not shared here")
	}
	for _, c := range []struct {
		most int64
		kind abi.FailureKind
	}{{1 << 40, abi.FailureStackOverflow}, {1 << 20, abi.FailureMemoryLimit}} {
		x := get(t, i)
		in, h := entry(), &held{most: c.most}
		in.Account, in.TurnFuel, in.Deadline = h, 0, 0
		seen := int64(0)
		in.Yield = yielder(func() bool { seen = max(seen, h.now); return true })
		push(t, x, 3)
		out, _, _ := run(t, x, in)
		if out.Failure == nil || out.Failure.Kind != c.kind {
			t.Errorf("%+v", out.Failure)
		}
		if h.now != 0 || h.peak > c.most || c.most > 1<<30 && seen < 2<<20 {
			t.Errorf("%d bytes are left on the account, %d at the most, %d while others ran", h.now, h.peak, seen)
		}
		x.Put()
	}
}
