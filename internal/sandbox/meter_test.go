package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// burning is a clock that moves as the guest spends fuel, and with nothing else.
type burning struct {
	clock.Clock
	x     *Instance
	rate  float64 // ns a unit
	at    int64
	spent uint64
	gaps  []int64 // between two looks
	steal int64   // what the next look comes late, ns
	step  int64   // what every reading comes late, ns
	reads int     // of the clock
}

func (b *burning) Now() time.Time {
	b.reads++
	b.at += b.step
	if b.x != nil && b.x.in != nil && b.x.phase > 0 { // in phase 0 the guest has not begun, and its counters are old
		now := b.x.hidden(hiddenSpent) + b.x.earlier
		if b.x.phase%2 == 1 {
			now += b.x.spentNow()
		}
		if now < b.spent { // another Run
			b.spent = 0
		}
		if now > b.spent {
			gap := int64(float64(now-b.spent) * b.rate)
			b.at, b.spent = b.at+gap+b.steal, now
			b.steal = 0
			b.gaps = append(b.gaps, gap)
		}
	}
	return time.Unix(0, b.at)
}

// TestPaceFollowsTheClock: however fast or slow a guest burns its fuel, it looks up
// about every 0.1 ms, and never later than a millisecond once it is known.
func TestPaceFollowsTheClock(t *testing.T) {
	for _, rate := range []float64{0.01, 0.1, 1, 31} {
		t.Run(fmt.Sprint(rate, " ns a unit"), func(t *testing.T) {
			b := &burning{Clock: clock.Real(), rate: rate, at: 1e18}
			e := newEngine(t, NewConfig().WithClock(b))
			x := get(t, load(t, e, "echo", ImageConfig{}))
			defer x.Put()
			b.x = x
			spin := func() {
				b.gaps, b.spent = nil, 0
				in := entry()
				in.TurnFuel = 100_000_000
				push(t, x, 2)
				out, _, _ := run(t, x, in)
				if f := out.Failure; f == nil || f.Kind != abi.FailureFuel {
					t.Fatal(out)
				}
				if err := x.Reset(); err != nil {
					t.Fatal(err)
				}
			}
			spin()
			if first := b.gaps[0]; first > firstGrant*32 {
				t.Errorf("the first look comes after %d ns", first)
			}
			spin()
			ideal := min(aim, int64(DefaultQuantum*rate))
			for n, gap := range b.gaps[:len(b.gaps)-1] {
				if gap > most+most/10 || n > 0 && gap > 2*ideal || n > 8 && gap < ideal/2 {
					t.Fatalf("look %d comes after %d ns, aim %d", n, gap, ideal)
				}
			}
			// Fast code first, and slow code then: what was slow is remembered.
			b.rate = rate / 300
			spin()
			b.gaps = nil
			b.rate = rate
			spin()
			for n, gap := range b.gaps {
				if gap > most+most/10 {
					t.Fatalf("look %d comes after %d ns", n, gap)
				}
			}
		})
	}
}

// TestShortTurnsAreFoundOut: turns that end before they would look up are measured now
// and then.
func TestShortTurnsAreFoundOut(t *testing.T) {
	ticks := &ticking{Clock: clock.Real()}
	e := newEngine(t, NewConfig().WithClock(ticks))
	x := get(t, load(t, e, "echo", ImageConfig{}))
	defer x.Put()
	const grant = 12_000
	runs := 0
	for x.grain = grant; x.grain > 2*leastGrant; runs++ {
		if runs == 1000 {
			t.Fatal("nobody looks")
		}
		push(t, x, 0)
		if out, _, _ := run(t, x, &Entry{}); out.Failure != nil || out.Fuel*2 < grant || out.Fuel > grant {
			t.Fatal(out)
		}
	}
	// Of those that are short, few are, and nothing follows: their time is that of being called.
	before := x.rate
	looks := ticks.n
	ticks.step, x.grain = 1, DefaultQuantum
	for range 10_000 {
		push(t, x, 0)
		if out, _, _ := run(t, x, &Entry{}); out.Fuel*4 > firstGrant {
			t.Fatal(out)
		}
	}
	if n := ticks.n - looks; n < 10_000/96 || n > 10_000/32 {
		t.Errorf("%d looks at the clock", n)
	}
	if x.rate != before {
		t.Errorf("%v ns a unit, before %v", x.rate, before)
	}
}

// TestAStolenProcessorIsForgotten: one look that comes very late, since the system had
// other things to do, makes no difference for long, and none to what a turn is said to
// have cost.
func TestAStolenProcessorIsForgotten(t *testing.T) {
	b := &burning{Clock: clock.Real(), rate: 0.1, at: 1e18}
	e := newEngine(t, NewConfig().WithClock(b))
	x := get(t, load(t, e, "echo", ImageConfig{}))
	defer x.Put()
	b.x = x
	n, late := 0, 0.0
	in := entry()
	in.TurnFuel = 200_000_000
	in.Yield = yielder(func() bool {
		if n++; n == 20 {
			b.steal = 1e9
		}
		if n == 21 {
			late = float64(x.rate)
		}
		return true
	})
	push(t, x, 2)
	run(t, x, in)
	if len(b.gaps) < 30 {
		t.Fatal(len(b.gaps), " looks")
	}
	if last := b.gaps[len(b.gaps)-2]; last < aim/2 {
		t.Errorf("it still looks every %d ns", last)
	}
	if late == 0 || late > 0.2 || x.rate > 0.2 {
		t.Errorf("%v and %v ns a unit", late, x.rate)
	}
	if worst := x.image.slowest.last(); worst > 0.21 {
		t.Errorf("the slowest is %v ns a unit", worst)
	}
}

// TestTinyGrantsGrow: however small the grants have become, fast code makes them grow.
func TestTinyGrantsGrow(t *testing.T) {
	b := &burning{Clock: clock.Real(), rate: 0.01, at: 1e18}
	e := newEngine(t, NewConfig().WithClock(b))
	i := load(t, e, "echo", ImageConfig{})
	i.slowest.note(implausible, 1e18)
	x := get(t, i)
	defer x.Put()
	if x.grain != most/implausible {
		t.Errorf("the first grant is %d", x.grain)
	}
	b.x, x.grain = x, leastGrant
	b.at += 20 * slowHalf
	in := entry()
	in.TurnFuel = 1 << 40
	looks := 0
	in.Yield = yielder(func() bool { looks++; return x.grain < 100_000 && looks < 10_000 })
	push(t, x, 2)
	run(t, x, in)
	if x.grain < 100_000 {
		t.Errorf("the grant is %d after %d yields", x.grain, looks)
	}
}

// TestShortTurnsDoNotYield: a turn that looks up since its grants are small is short all
// the same, and no others need to run.
func TestShortTurnsDoNotYield(t *testing.T) {
	ticks := &ticking{Clock: clock.Real(), step: time.Microsecond}
	e := newEngine(t, NewConfig().WithClock(ticks))
	i := load(t, e, "echo", ImageConfig{})
	i.slowest.note(0.1, 1e18)
	x := get(t, i)
	defer x.Put()
	yields := 0
	in := entry()
	in.Yield = yielder(func() bool { yields++; return true })
	for range 100 {
		x.grain = 1000
		before := ticks.n
		push(t, x, 0)
		if out, _, _ := run(t, x, in); out.Failure != nil || ticks.n == before {
			t.Fatal(out, ticks.n-before, " looks")
		}
	}
	if yields > 0 {
		t.Errorf("%d yields", yields)
	}
	ticks.step = aim // and if they are not short, others do
	x.grain = 1000
	push(t, x, 0)
	run(t, x, in)
	if yields == 0 {
		t.Error("no yield in a turn of many slices")
	}
}

// ticking is a clock that moves a millisecond with each look.
type ticking struct {
	clock.Clock
	step time.Duration // 0: a millisecond
	n    int64
	at   int64
}

func (c *ticking) Now() time.Time {
	c.n++
	c.at += int64(cmp.Or(c.step, time.Millisecond))
	return time.Unix(0, 1e18+c.at)
}

// ended describes how a Run has ended, and what it has left behind.
func ended(x *Instance, out *Result) string {
	sum := uint64(14695981039346656037)
	for _, b := range x.memory.Bytes() {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	f := *out.Failure
	return fmt.Sprintf("%d turns, fuel %d, unread %d, %s %q turn %d fuel %d, memory %d %x",
		out.Turns, out.Fuel, out.Unread, f.Kind, f.Reason, f.Turn, f.Fuel, x.MemoryBytes(), sum)
}

// TestCut: a turn that was ended from outside ends at the same instruction when it is
// repeated, on another engine, with other grants.
func TestCut(t *testing.T) {
	still := clock.NewVirtual(time.Unix(1000, 0))
	a := newEngine(t, NewConfig().WithClock(still).WithQuantum(7919))
	i := load(t, a, "echo", ImageConfig{})
	b := newEngine(t, NewConfig().WithInterpreter(true).WithQuantum(50_021))
	j := load(t, b, "echo", ImageConfig{})
	for what, script := range map[string][]byte{"first turn": {2}, "third turn": {10, 15, 14, 2}, "all": {15, 15, 15, 15}} {
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			x, y := get(t, i), get(t, j)
			in := entry()
			in.FirstTurn = 100
			left := 1 + rnd.IntN(40)
			deadline := seed%3 == 1
			if deadline {
				in.Deadline = time.Second
			}
			crowd := seed%3 == 2
			from := uint64(0) // the last ones end at the first look from that turn on
			if seed >= 12 {
				left, from = 1, 100+min(seed%4, uint64(len(script)-1))
			}
			in.Yield = yielder(func() bool {
				if x.turnNumber() < from {
					return true
				}
				if left--; left > 0 {
					return true
				}
				if deadline {
					x.started -= int64(time.Hour) // the turn has begun long ago
					return true
				}
				if crowd {
					return false
				}
				x.Kill("enough")
				return true
			})
			push(t, x, script...)
			out, _, _ := run(t, x, in)
			if out.Failure == nil {
				x.Put()
				y.Put()
				continue // it has ended before
			}
			cut := x.Cut()
			if cut == nil {
				t.Fatalf("%s: %v, and no cut", what, out.Failure)
			}
			again := entry()
			again.FirstTurn, again.Cut = 100, cut
			push(t, y, script...)
			rep, _, _ := run(t, y, again)
			if rep.Failure == nil {
				t.Fatalf("%s: not repeated: %+v", what, rep)
			}
			if got, want := ended(y, &rep), ended(x, &out); got != want {
				t.Errorf("%s, %+v:\n%s\nwant\n%s", what, *cut, got, want)
			}
			if !reflect.DeepEqual(y.Cut(), cut) {
				t.Errorf("cut %+v, want %+v", y.Cut(), cut)
			}
			x.Put()
			y.Put()
		}
	}
}

type yielder func() bool

func (f yielder) Yield() bool { return f() }

// room is an Account that refuses the n-th growth.
type room struct{ n int }

func (r *room) Grow(from, to uint64) bool {
	r.n--
	return r.n != 0
}

// TestGrowthThatTheSystemRefuses ends the turn; the guest never sees it.
func TestGrowthThatTheSystemRefuses(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		i := load(t, e, "echo", ImageConfig{MemoryLimit: 1 << 20})
		x, y := get(t, i), get(t, i)
		defer x.Put()
		defer y.Put()
		in := entry()
		in.Account = &room{3}
		push(t, x, 4, 4, 10, 4, 4)
		out, turns, _ := run(t, x, in)
		if f := out.Failure; f == nil || f.Kind != abi.FailureMemoryLimit || !strings.Contains(f.Reason, "the system has no room") || f.Turn != 3 || len(turns) != 3 {
			t.Fatalf("%+v", out)
		}
		again := entry()
		again.Cut = x.Cut()
		push(t, y, 4, 4, 10, 4, 4)
		rep, _, _ := run(t, y, again)
		if rep.Failure == nil {
			t.Fatal("not repeated")
		}
		if got, want := ended(y, &rep), ended(x, &out); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
		// Beyond the actor's own limit it is the guest's affair, and nobody is asked.
		if err := x.Reset(); err != nil {
			t.Fatal(err)
		}
		in = entry()
		in.MemoryLimit = 2 << 16
		in.Account = &room{1}
		push(t, x, 4)
		if out, _, _ := run(t, x, in); out.Failure != nil {
			t.Error(out.Failure)
		}
	})
}

// TestCharge: commands are paid for before anything of the turn is seen, and the
// host's work for them has fuel, deadline and kill.
func TestCharge(t *testing.T) {
	still := clock.NewVirtual(time.Unix(1000, 0))
	e := newEngine(t, NewConfig().WithClock(still))
	i := load(t, e, "echo", ImageConfig{})
	open := func(t *testing.T, in *Entry, whats ...byte) *Instance {
		t.Helper()
		x := get(t, i)
		t.Cleanup(x.Put)
		push(t, x, whats...)
		var out Result
		if x.Run(in, &out); out.Failure != nil {
			t.Fatal(out.Failure)
		}
		return x
	}
	next := func(t *testing.T, x *Instance) error {
		t.Helper()
		_, _, _, err := x.NextTurn(nil)
		return err
	}
	t.Run("the commands", func(t *testing.T) {
		x := open(t, &Entry{}, 0, 0)
		for n := range 2 {
			if err := next(t, x); err != nil {
				t.Fatal(err)
			}
			if got := x.WorkFuel(); got != uint64(n+1)*CostSend {
				t.Errorf("%d turns cost %d", n+1, got)
			}
		}
	})
	t.Run("too dear", func(t *testing.T) {
		x := get(t, load(t, e, "single", ImageConfig{}))
		defer x.Put()
		push(t, x, 0)
		var out Result
		if x.Run(&Entry{TurnFuel: CostSend - 1, FirstTurn: 5}, &out); out.Failure != nil {
			t.Fatal(out.Failure)
		}
		var f *abi.Failure
		if err := next(t, x); !errors.As(err, &f) || f.Kind != abi.FailureFuel || f.Turn != 5 || f.Fuel != CostSend {
			t.Error(err)
		}
		if !x.Poisoned() {
			t.Error("it goes on")
		}
		if err := next(t, x); err == nil {
			t.Error("something follows")
		}
	})
	t.Run("fuel is a turn's", func(t *testing.T) {
		x := open(t, &Entry{TurnFuel: 10_000}, 0, 0)
		for range 2 {
			if err := next(t, x); err != nil {
				t.Fatal(err)
			}
			if f := x.Charge(10_000 - CostSend); f != nil {
				t.Fatal(f)
			}
		}
		if f := x.Charge(1); f == nil || f.Kind != abi.FailureFuel || f.Turn != 1 || x.Cut() != nil {
			t.Errorf("%v, cut %v", f, x.Cut())
		}
	})
	t.Run("overflow", func(t *testing.T) {
		x := open(t, &Entry{TurnFuel: 10_000}, 0)
		if err := next(t, x); err != nil {
			t.Fatal(err)
		}
		if f := x.Charge(1<<64 - 1); f == nil || f.Kind != abi.FailureFuel {
			t.Error(f)
		}
	})
	t.Run("kill", func(t *testing.T) {
		x := open(t, &Entry{FirstTurn: 9}, 0, 0)
		if err := errors.Join(next(t, x), next(t, x)); err != nil {
			t.Fatal(err)
		}
		if f := x.Charge(5000); f != nil {
			t.Fatal(f)
		}
		x.Kill("enough")
		f := x.Charge(1)
		if f == nil || f.Kind != abi.FailureKilled || f.Reason != "enough" || f.Turn != 10 {
			t.Fatal(f)
		}
		// Again, without the kill.
		y := open(t, &Entry{FirstTurn: 9, Cut: x.Cut()}, 0, 0)
		if err := errors.Join(next(t, y), next(t, y)); err != nil {
			t.Fatal(err)
		}
		if f := y.Charge(5000); f != nil {
			t.Fatal(f)
		}
		if got := y.Charge(1); !reflect.DeepEqual(got, f) {
			t.Errorf("%v, want %v", got, f)
		}
	})
	t.Run("deadline and yield", func(t *testing.T) {
		yields := 0
		in := &Entry{Deadline: time.Second}
		in.Yield = yielder(func() bool { yields++; still.Advance(time.Hour); return true })
		x := open(t, in, 0)
		if err := next(t, x); err != nil {
			t.Fatal(err)
		}
		for range 10 { // what others take does not count
			if f := x.Charge(workLook); f != nil {
				t.Fatal(f)
			}
		}
		if yields != 10 {
			t.Errorf("%d yields", yields)
		}
		still.Advance(2 * time.Second)
		if f := x.Charge(workLook); f == nil || f.Kind != abi.FailureDeadline {
			t.Error(f)
		}
	})
	t.Run("a crowd", func(t *testing.T) {
		x := open(t, &Entry{Yield: yielder(func() bool { return false })}, 0)
		if err := next(t, x); err != nil {
			t.Fatal(err)
		}
		if f := x.Charge(workLook); f == nil || f.Kind != abi.FailureDeadline || f.Reason != crowded {
			t.Error(f)
		}
	})
}

// TestTurnHash: equal turns have equal hashes, whatever stands around them.
func TestTurnHash(t *testing.T) {
	e := newEngine(t, NewConfig())
	x := get(t, load(t, e, "echo", ImageConfig{}))
	defer x.Put()
	push(t, x, 0, 10, 0, 8)
	var out Result
	x.Run(entry(), &out)
	seen := map[[32]byte]int{}
	for {
		n, _, ok, err := x.NextTurn(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		h := x.TurnHash()
		if was, dup := seen[h]; dup != (n == 2) || dup && was != 0 {
			t.Errorf("turn %d: %v", n, seen)
		}
		seen[h] = n
	}
	if len(seen) != 3 {
		t.Error(len(seen))
	}
}

// TestPrepare: an initialisation of an instance's own has limits like a turn.
func TestPrepare(t *testing.T) {
	still := clock.NewVirtual(time.Unix(1000, 0))
	e := newEngine(t, NewConfig().WithClock(still))
	i := load(t, e, "restless", ImageConfig{NoFreeze: true})
	for _, c := range []struct {
		name string
		in   Entry
		each func(x *Instance)
		want string
	}{
		{name: "well"},
		{name: "fuel", in: Entry{TurnFuel: 1_000_000}, want: "fuel: fuel 1000000 spent"},
		{name: "deadline", in: Entry{Deadline: time.Second}, each: func(x *Instance) { x.started -= 2e9 }, want: "deadline: deadline 1s passed"},
		{name: "memory", in: Entry{MemoryLimit: 3 << 16}, want: "memory_limit: more than 192 KiB of memory"},
		{name: "account", in: Entry{Account: &room{1}}, want: "memory_limit: the system has no room for 256 KiB of memory"},
		{name: "kill", each: func(x *Instance) { x.Kill("enough") }, want: "killed: enough"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, err := Get(i)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Put()
			yields := 0
			in := c.in
			in.FirstTurn = 3
			in.Yield = yielder(func() bool {
				yields++
				if c.each != nil {
					c.each(x)
				}
				return true
			})
			if x.Push(message(0)) {
				t.Error("it takes messages")
			}
			f := x.Prepare(&in)
			if yields == 0 {
				t.Error("it does not yield")
			}
			if c.want == "" {
				if f != nil || !x.Push(message(0)) {
					t.Error(f)
				}
				if f := x.Prepare(&in); f != nil || x.Pending() != 1 {
					t.Error("prepared twice", f)
				}
				return
			}
			if f == nil || f.Kind != abi.FailureInit || f.Reason != c.want || f.Turn != 3 {
				t.Fatalf("%+v", f)
			}
			if x.Push(message(0)) {
				t.Error("it takes messages")
			}
			// Another try, after a reset, is a new beginning.
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			if f := x.Prepare(&Entry{}); f != nil || !x.Push(message(0)) {
				t.Error(f)
			}
		})
	}
}

// TestPrepareDrawsFromTheSeed: each instance's initialisation has its own randomness.
func TestPrepareDrawsFromTheSeed(t *testing.T) {
	e := newEngine(t, NewConfig())
	i := load(t, e, "restless", ImageConfig{NoFreeze: true})
	drawn := func(in Entry) string {
		x, err := Get(i)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Put()
		if f := x.Prepare(&in); f != nil {
			t.Fatal(f)
		}
		return string(x.memory.Bytes()[512:528])
	}
	a := drawn(Entry{Seed: [16]byte{1}})
	if a != drawn(Entry{Seed: [16]byte{1}}) || a == drawn(Entry{Seed: [16]byte{2}}) || a == drawn(Entry{Seed: [16]byte{1}, FirstTurn: 1}) {
		t.Error("not a function of seed and turn")
	}
}

// TestLoadIsInterrupted: the initialisation at load ends with the context.
func TestLoadIsInterrupted(t *testing.T) {
	e := newEngine(t, NewConfig())
	ctx, cancel := context.WithCancel(context.Background())
	endless := newSketch()
	endless.m.Code[0].Code = []byte{wasm.OpLoop, 0x40, wasm.OpBr, 0, wasm.OpEnd, wasm.OpI32Const, 16, wasm.OpEnd}
	cfg := ImageConfig{Name: "endless", InitFuel: 1 << 60, Progress: func(stage string) {
		if stage == "initialise" {
			time.AfterFunc(0, cancel)
		}
	}}
	if _, err := e.Load(ctx, endless.bytes(), cfg); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
