package sandbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/clock"
)

// What the sly guest of host/testdata does; see there.
const (
	slyGrow, slySpin, slyTouch, slyTable, slyChase, slyTrap, slyFill = 1, 2, 4, 8, 16, 32, 64
	slySpins                                                         = 3_000_000 // about what slySpin spends
)

func slyOrder(verb byte, arg uint32) *abi.Envelope {
	p := binary.LittleEndian.AppendUint32([]byte{0x5a, 0, 0, 0, 5, verb}, arg)
	return &abi.Envelope{Kind: abi.KindMessage, Payload: p}
}

func slyImage(t testing.TB, e *Engine) *Image {
	t.Helper()
	code, err := os.ReadFile("../../host/testdata/sly.wasm")
	if err != nil {
		t.Fatal(err)
	}
	i, err := e.Load(context.Background(), code, ImageConfig{Name: "sly"})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// paced is an instance of the sly guest whose fuel takes the time that the test says.
type paced struct {
	*testing.T
	*Instance
	*burning
	anchor  Anchor
	waited  int64 // what the thread has not computed
	threads int   // readings of its clock
	thread  int   // which one it is
}

func newPaced(t *testing.T) *paced {
	b := &burning{Clock: clock.Real(), rate: 0.1, at: 1e18}
	p := &paced{T: t, burning: b}
	cfg := NewConfig().WithClock(b)
	cfg.thread = func() (int64, int, bool) {
		p.threads++
		return b.at - p.waited, p.thread, true
	}
	e := newEngine(t, cfg)
	p.Instance = get(t, slyImage(t, e))
	if _, ok := p.memory.Resident(); !ok {
		p.Put()
		t.Skip("it is not known which pages were touched")
	}
	return p
}

// do has a turn at a rate, and returns the longest time between two looks in it.
func (p *paced) do(verb byte, arg uint32, rate float64) (longest int64) {
	p.Helper()
	p.burning.x, p.burning.rate, p.gaps, p.burning.spent = p.Instance, rate, nil, 0
	if !p.Push(slyOrder(verb, arg)) {
		p.Fatal("it has no room")
	}
	var out Result
	p.Instance.last, p.Instance.unseen = 0, 255 // it is not sampled
	p.Instance.Run(&Entry{Began: p.at, Anchor: &p.anchor}, &out)
	if trapped := out.Failure != nil; trapped != (verb&slyTrap != 0) {
		p.Fatal(out.Failure)
	}
	for _, gap := range p.gaps {
		longest = max(longest, gap)
	}
	return longest
}

// anew begins another life.
func (p *paced) anew() {
	p.Helper()
	if err := p.Reset(); err != nil {
		p.Fatal(err)
	}
}

const touching = 900.0 // ns a unit

// TestSlowestFadesWithTime and with nothing else.
func TestSlowestFadesWithTime(t *testing.T) {
	var s slowest
	const at = int64(1e18)
	s.note(19, at)
	for range 1_000_000 {
		s.note(0.1, at+slowHalf/100)
	}
	for after, want := range map[int64]float64{0: 19, slowHalf: 9.5, 5 * slowHalf: 19.0 / 32, -slowHalf: 19} {
		if got := s.rate(at + after); math.Abs(got-want) > want/50 {
			t.Errorf("after %d ns: %v, want %v", after, got, want)
		}
	}
	if s.note(1, at+5*slowHalf); s.last() != 1 {
		t.Error("after a long time it is still", s.last())
	}
	if s.note(0.5, at+5*slowHalf); s.last() != 1 {
		t.Error("a lower one counts")
	}
}

// TestSlowOnceIsRemembered: code that is quick until its grants are large, and then slow for one of them, so that no two
// measurements in a row say so, takes little of its time in long grants; however large it lets them become, and also
// if each instance does it once. Where it is known how long the thread has computed, that is less than a hundredth.
func TestSlowOnceIsRemembered(t *testing.T) {
	const quick, slow, while = 0.025, 19.0, 8e9 // ns a unit; ns
	for _, known := range []bool{true, false} {
		for _, fresh := range []bool{false, true} {
			for _, size := range []uint64{60_000, 120_000, 250_000, 500_000, DefaultQuantum} {
				now, share, bound := int64(1e18), 1.0/100, 1.2*most
				cfg := NewConfig()
				cfg.thread = func() (int64, int, bool) { return now, 1, known }
				if !known {
					share, bound = 1.0/12, 1.2*mostDoubt
				}
				x := get(t, load(t, newEngine(t, cfg), "echo", ImageConfig{}))
				x.in = &Entry{Anchor: new(Anchor)}
				total, long, worst := 0.0, 0.0, 0.0
				for total < while {
					rate := quick
					if x.grain >= size || fresh {
						rate = slow
					}
					x.anchored(now, false)
					took := max(float64(x.grain)*rate, shortest)
					if total += took; took > bound {
						long += took
					}
					if worst = max(worst, took); rate == slow && fresh {
						x.startPace() // another one
						x.anchored(now, false)
					}
					now += int64(took)
					x.adapt(x.grain, int64(took), now)
					if fresh {
						x.startPace()
					}
				}
				what := fmt.Sprintf("grants of %d, new instances: %v, known: %v", size, fresh, known)
				t.Logf("%s: %.4f of the time is in long ones, the worst takes %.1f ms", what, long/total, worst/1e6)
				if long > total*share {
					t.Errorf("%s: %.4f of the time is in long ones", what, long/total)
				}
				x.Put()
			}
		}
	}
}

// TestStolenTimeIsNotSlow: of a long grant in which the thread has hardly computed nothing follows, however often.
func TestStolenTimeIsNotSlow(t *testing.T) {
	now, computed, thread := int64(1e18), int64(0), 1
	cfg := NewConfig()
	cfg.thread = func() (int64, int, bool) { return computed, thread, true }
	x := get(t, load(t, newEngine(t, cfg), "echo", ImageConfig{}))
	defer x.Put()
	x.in = &Entry{Anchor: new(Anchor)}
	grant := func(took, own int64) {
		x.anchored(now, false)
		now, computed = now+took, computed+own
		x.adapt(x.grain, took, now)
	}
	for range 100 {
		grant(int64(float64(x.grain)*0.1), int64(float64(x.grain)*0.1))
		grant(8_000_000, int64(float64(x.grain)*0.1))
	}
	if x.grain < DefaultQuantum/2 || x.image.slowest.last() > 0.3 || x.image.doubt.rate() > 0 {
		t.Errorf("grants of %d, slowest %v, doubt %v", x.grain, x.image.slowest.last(), x.image.doubt.rate())
	}
	x.anchored(now, true)
	thread = 2 // it was moved, and what another thread has computed says nothing
	now, computed = now+8_000_000, computed+8_000_000
	x.adapt(DefaultQuantum, 8_000_000, now)
	if x.image.slowest.last() > 0.3 || x.image.doubt.rate() == 0 {
		t.Errorf("slowest %v, doubt %v", x.image.slowest.last(), x.image.doubt.rate())
	}
}

// TestTheEndIsMeasured: a turn that is slow only after its last look is noticed at its end, also if it traps there.
func TestTheEndIsMeasured(t *testing.T) {
	for _, trap := range []byte{0, slyTrap} {
		p := newPaced(t)
		p.do(slyTable, 0, 0.01)
		p.do(slySpin, 0, 0.01)
		for p.do(slySpin, 0, 0.01); p.grain < 500_000; {
			p.do(slySpin, 0, 0.01)
		}
		longest := p.do(slyChase|trap, 30_000, 19) // some 360,000 units: the first grant and a part of another
		if slow := p.image.slowest.last(); longest < 3*most || slow < 4 || slow > 20 {
			t.Errorf("after a grant of %d ns the slowest is %v ns a unit", longest, slow)
		}
		p.anew()
		p.do(slySpin, 0, 0.01)
		if longest = p.do(slyChase, 30_000, 19); longest > 3*most/2 {
			t.Errorf("the next one takes %d ns", longest)
		}
		p.Put()
	}
}

// TestFirstTouchesAreFewInAGrant: a memory that is new, was discarded or has grown begins with small grants, and
// code that waits until they are large has one long one.
func TestFirstTouchesAreFewInAGrant(t *testing.T) {
	const pages, short = 6000, most
	t.Run("at once", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		for range 3 {
			if longest := p.do(slyTouch, pages, touching); longest > short {
				t.Errorf("%d ns", longest)
			}
			p.do(slySpin, 0, 0.1)
			if p.grain < 100_000 {
				t.Errorf("grants of %d", p.grain)
			}
			p.anew()
		}
		if p.image.strictness.until.Load() != 0 {
			t.Error("the image is strict")
		}
	})
	t.Run("after a growth", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		for _, rate := range []float64{1, 0.1, 1} { // the growth takes the rest of a grant, or a part of one
			p.do(slySpin, 0, rate)
			const grows = 20 // pages of 64 KiB, for 4096 units each
			p.do(slyGrow|slySpin|slyTouch, grows<<16+300, rate)
			for n := range p.gaps {
				p.gaps[n] = int64(float64(p.gaps[n]) / rate)
			}
			at := slices.IndexFunc(p.gaps, func(gap int64) bool { return gap >= grows*4096 })
			if at < 0 || at+6 >= len(p.gaps) || p.gaps[at+1] > 1100 || p.gaps[at+2] > 4400 || p.gaps[at+6] < 50_000 {
				t.Errorf("looks after so many units: %d", p.gaps)
			}
			p.anew()
			if want := uint32(p.image.memory.NonZero() >> 10); p.touched != want || p.grown != 0 || p.grain != leastGrant {
				t.Errorf("%d KiB are touched after a reset, want %d; %d grown, grants of %d", p.touched, want, p.grown, p.grain)
			}
		}
		if p.image.strictness.until.Load() != 0 {
			t.Error("the image is strict")
		}
	})
	t.Run("after some small growths", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		p.do(slySpin, 0, 0.1)
		for n := 1; n <= 4; n++ {
			const grows = 4 // a quarter of a MiB
			p.do(slyGrow|slyTouch, grows<<16+8, 0.1)
			if small := p.grain == leastGrant; small != (n == 4) {
				t.Errorf("after %d growths, grants of %d", n, p.grain)
			}
		}
	})
	t.Run("later", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		other := get(t, p.image) // it has large grants, too
		defer other.Put()
		q := &paced{T: t, Instance: other, burning: p.burning}
		q.do(slySpin, 0, 0.1)
		p.do(slySpin, 0, 0.1)
		worst := p.do(slyTouch, pages, touching)
		if until := p.image.strictness.until.Load(); worst < 10*most || until < p.at+strictTimes/2*worst {
			t.Fatalf("%d ns, strict for %d", worst, until-p.at)
		}
		if p.image.slowest.last() > 1 {
			t.Errorf("other code may take %v ns a unit", p.image.slowest.last())
		}
		if longest := q.do(slyTouch, pages, touching); longest > short {
			t.Errorf("another instance takes %d ns", longest)
		}
		for range 3 {
			p.anew()
			p.do(slySpin, 0, 0.1)
			if longest := p.do(slyTouch, pages, touching); longest > short {
				t.Errorf("another life takes %d ns", longest)
			}
		}
		p.do(slyTouch, 4100, touching) // little is untouched now
		p.at += (recount + 1) << tickShift
		p.do(slySpin, 0, 0.1)
		if p.grain < 100_000 {
			t.Errorf("when all is touched, grants of %d", p.grain)
		}
		p.anew()
		p.at += strictTimes * 2 * worst
		p.do(slySpin, 0, 0.1)
		if p.grain < 100_000 || p.image.strictness.until.Load() != 0 {
			t.Errorf("after a long time, grants of %d", p.grain)
		}
	})
	t.Run("before the first look", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		p.do(slySpin, 0, 0.1)
		if !p.Push(slyOrder(slyTouch, pages/2)) {
			t.Fatal("it has no room")
		}
		p.Instance.last, p.Instance.unseen = 0, 255 // it is not sampled
		in := &Entry{Began: p.at}
		p.at += 20 * most
		var out Result
		if p.Instance.Run(in, &out); out.Failure != nil || out.Fuel > firstGrant {
			t.Fatal(out)
		}
		if p.image.strictness.until.Load() < p.at+strictTimes*10*most {
			t.Error("the image is not strict")
		}
		// It is if it traps.
		p.image.strictness.until.Store(0)
		p.anew()
		p.grain, p.Instance.last, p.Instance.unseen = firstGrant, 0, 255
		if !p.Push(slyOrder(slyTouch|slyTrap, 400)) {
			t.Fatal("it has no room")
		}
		in.Began = p.at
		p.at += 2 * most
		if p.Instance.Run(in, &out); out.Failure == nil || p.image.strictness.until.Load() == 0 {
			t.Error("the image is not strict after a trap")
		}
	})
	t.Run("in short turns", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		p.do(slySpin, 0, 0.1)
		p.do(slyTouch, 400, 0.1)                            // that all pages are there is of no matter
		for _, last := range []uint32{0, 10 * firstGrant} { // also if long ones were expected
			const runs = 3200
			looks := 0
			for range runs {
				p.image.strictness.until.Store(0)
				p.touched, p.grain, p.Instance.last, p.Instance.unseen = 0, firstGrant, last, 255
				if !p.Push(slyOrder(slyChase, 300)) {
					t.Fatal("it has no room")
				}
				var out Result
				in := &Entry{Began: p.at, Anchor: &p.anchor}
				p.at += 2 * most
				if p.Instance.Run(in, &out); out.Failure != nil || out.Fuel < leastGrant || out.Fuel > firstGrant/4 {
					t.Fatal(out)
				}
				if p.image.strictness.until.Load() != 0 {
					looks++
				}
			}
			if looks < runs/32 || looks > runs/8 {
				t.Errorf("%d of %d are looked back at", looks, runs)
			}
		}
	})
	t.Run("not in quick turns", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		p.do(slySpin, 0, 0.1)
		for range 2 { // touches that take no time, and then it computes
			if !p.Push(slyOrder(slyTouch, 2000)) || !p.Push(slyOrder(slySpin, 0)) {
				t.Fatal("it has no room")
			}
			p.burning.rate, p.burning.spent, p.Instance.last, p.Instance.unseen = 1, 0, 0, 255
			p.touched, p.grain = 0, firstGrant
			var out Result
			if p.Instance.Run(&Entry{Began: p.at, Anchor: &p.anchor}, &out); out.Turns != 2 || p.image.strictness.until.Load() != 0 {
				t.Errorf("%v, strict %v", out.Failure, p.image.strictness.until.Load() != 0)
			}
		}
	})
	t.Run("counted seldom", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		p.do(slyTouch, 2000, 0.1)
		p.image.strictness.until.Store(p.at + 1e12)
		strict := func(after int64) uint32 {
			p.at += after << tickShift
			p.touched = 0
			if !p.strict(p.at) {
				t.Error("it is not strict")
			}
			return p.touched
		}
		if strict(100) < 8000 || strict(recount-2) != 0 || strict(1) != 0 || strict(1) < 8000 {
			t.Error("it is counted at other times")
		}
		p.image.strictness.until.Store(p.at)
		if p.strict(p.at) || p.image.strictness.until.Load() != 0 {
			t.Error("it stays strict")
		}
	})
	t.Run("not without touches", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		p.do(slySpin, 0, 0.1)
		p.do(slyTouch, pages/2, 0.1)
		p.do(slySpin, 0, 0.1)
		p.steal = 50 * most
		p.do(slySpin, 0, 0.1) // may count what was touched before
		p.image.strictness.until.Store(0)
		p.grain = firstGrant
		p.do(slyTouch, 96, 0.1) // too few to matter
		p.steal = 50 * most
		p.do(slySpin, 0, 0.1)
		if p.image.strictness.until.Load() != 0 {
			t.Error("the image is strict")
		}
		// So many units cannot have touched so much.
		p.touched, p.Instance.last, p.Instance.unseen = 0, 0, 255
		if !p.Push(slyOrder(slyChase, 2000)) {
			t.Fatal("it has no room")
		}
		in := &Entry{Began: p.at}
		p.at += 200 * most
		var out Result
		if p.Instance.Run(in, &out); out.Failure != nil || out.Fuel < firstGrant/4 || p.image.strictness.until.Load() != 0 {
			t.Errorf("%d units, strict: %v", out.Fuel, p.image.strictness.until.Load() != 0)
		}
	})
}

// TestABatchHasTheGrantsOfATurn: however many turns an entry has, the host is called after as much fuel as in one.
func TestABatchHasTheGrantsOfATurn(t *testing.T) {
	p := newPaced(t)
	defer p.Put()
	p.do(slySpin, 0, 0.1)
	p.do(slyTouch, 8000, 0.1)
	const turns = 400
	for range turns {
		if !p.Push(slyOrder(slyChase, 500)) { // some 6000 units
			t.Fatal("it has no room")
		}
	}
	looks, reached := 0, uint64(0)
	var out Result
	p.grain = firstGrant
	p.Instance.Run(&Entry{Yield: yielder(func() bool { looks++; return true }), TurnFuel: 1e6}, &out)
	if out.Turns != turns || out.Failure != nil {
		t.Fatal(out, reached)
	}
	if each := out.Fuel / turns; each < 2000 || each > 12_000 || looks == 0 {
		t.Errorf("%d looks in %d turns of %d units", looks, turns, each)
	}
	for n, gap := range p.gaps {
		if gap > 2*aim {
			t.Errorf("look %d comes after %d ns", n, gap)
		}
	}
}

// TestLongRunsBeginWithAGrant: a Run that is likely to be long begins with a look, and with as much as any other grant;
// a short one does so with little, and neither looks.
func TestLongRunsBeginWithAGrant(t *testing.T) {
	p := newPaced(t)
	defer p.Put()
	p.do(slyTable, 0, 0.01)
	p.do(slySpin, 0, 0.01)
	p.do(slySpin, 0, 0.01)
	if p.grain < 500_000 {
		t.Fatalf("grants of %d", p.grain)
	}
	run := func(chase uint32) (reads int, fuel uint64) {
		p.burning.spent, p.reads = 0, 0
		if !p.Push(slyOrder(slyChase, chase)) {
			t.Fatal("it has no room")
		}
		p.unseen = 255
		var out Result
		if p.Instance.Run(&Entry{Anchor: &p.anchor}, &out); out.Failure != nil {
			t.Fatal(out.Failure)
		}
		return p.reads, out.Fuel
	}
	if reads, fuel := run(20_000); reads != 2 || fuel < 5*firstGrant {
		t.Errorf("after a long one: %d readings in %d units, want one before and one after", reads, fuel)
	}
	for n := 0; ; n++ { // some short ones
		last := p.Instance.last
		reads, fuel := run(100)
		if fuel > firstGrant/4 || last > firstGrant && reads != 1 { // those that were expected to be long are not measured
			t.Fatalf("%d readings in %d units, after %d", reads, fuel, last)
		}
		if p.Instance.last <= firstGrant/2 {
			break
		}
		if p.Instance.last >= last || n > 20 {
			t.Fatalf("after short ones it still expects %d", p.Instance.last)
		}
	}
	p.gaps = nil
	if reads, fuel := run(20_000); reads < 2 || fuel < 5*firstGrant || len(p.gaps) == 0 || p.gaps[0] > firstGrant*11/1000 {
		t.Errorf("after short ones: %d readings in %d units, want one after the first grant, %d", reads, fuel, p.gaps)
	}
	// What is slow is measured also if there was no refuel, and the thread has waited before.
	p.threads = 0
	if run(20_000); p.threads != 0 {
		t.Errorf("the thread's clock is read %d times", p.threads)
	}
	p.at, p.waited = p.at+50*most, p.waited+50*most
	p.step = 2 * most
	if _, fuel := run(20_000); p.image.slowest.last() < 1.9*most/float64(fuel) {
		t.Errorf("the slowest is %v ns a unit", p.image.slowest.last())
	}
}

// TestWaitingBeforeIsNotComputing: an anchor that is old says little, so a new one is made before a grant; of one that
// is not old what the thread has waited since is small.
func TestWaitingBeforeIsNotComputing(t *testing.T) {
	now, computed := int64(1e18), int64(0)
	cfg := NewConfig()
	cfg.thread = func() (int64, int, bool) { return computed, 1, true }
	x := get(t, load(t, newEngine(t, cfg), "echo", ImageConfig{}))
	defer x.Put()
	x.in = &Entry{Anchor: new(Anchor)}
	for _, wait := range []int64{anchorAge - 1, anchorAge, 100 * most} {
		x.anchored(now, true)
		now += wait
		x.anchored(now, false)
		now, computed = now+4*most, computed+4*most
		want := int64(4 * most)
		if wait < anchorAge {
			want -= wait
		}
		if own, ok := x.computed(4*most, now); !ok || own != want {
			t.Errorf("after a wait of %d ns it has computed %d, %v, want %d", wait, own, ok, want)
		}
	}
	// Where none was made before a grant an old one says nothing, but the next grant is known.
	x.anchored(now, true)
	now, computed = now+anchorAge+1, computed+anchorAge+1
	for _, known := range []bool{false, true} {
		now, computed = now+4*most, computed+4*most
		if own, ok := x.computed(4*most, now); ok != known || known && own != 4*most {
			t.Errorf("with an old anchor it has computed %d, %v", own, ok)
		}
	}
	// A clock that was set back says nothing.
	x.anchored(now, true)
	now -= 10 * most
	x.anchored(now, false)
	now, computed = now+most, computed+most
	if own, ok := x.computed(most, now); !ok || own != most {
		t.Errorf("%d, %v", own, ok)
	}
	x.image.engine.thread = nil // and the anchor is that of another engine
	if _, ok := x.computed(most, now); ok {
		t.Error("it is known without the thread's clock")
	}
	x.in.Anchor = nil
	if _, ok := x.computed(most, now); ok {
		t.Error("it is known without an anchor")
	}
}

// TestShortRunsReadNoThreadsClock, also those that are measured: that was 7 % of an ask. Long ones do.
func TestShortRunsReadNoThreadsClock(t *testing.T) {
	reads := 0
	cfg := NewConfig()
	cfg.thread = func() (int64, int, bool) { reads++; return 0, 1, true }
	x := get(t, load(t, newEngine(t, cfg), "echo", ImageConfig{}))
	defer x.Put()
	for _, c := range []struct {
		last  uint32
		reads int
	}{{0, 0}, {firstGrant/2 + 1, 0}, {firstGrant, 0}, {firstGrant + 1, 1}} {
		reads = 0
		for x.looked = 0; x.looked == 0; { // some are measured, at random
			x.in, x.last, x.unseen = &Entry{Anchor: new(Anchor)}, c.last, 0
			x.sample()
		}
		if reads != c.reads {
			t.Errorf("after a Run of %d units: %d readings", c.last, reads)
		}
	}
}

// TestWhatTheHostHasWrittenIsTouched: a snapshot that is brought back is not taken for the touches of the guest.
func TestWhatTheHostHasWrittenIsTouched(t *testing.T) {
	p := newPaced(t)
	defer p.Put()
	const pages = 4000
	p.do(slyTouch, pages, 0.1)
	p.do(slyGrow|slyTouch, 20<<16+300, 0.1)
	var s Snapshot
	if err := p.Save(&s); err != nil {
		t.Fatal(err)
	}
	p.anew()
	if err := p.Restore(&s); err != nil {
		t.Fatal(err)
	}
	if p.touched < pages*pageBytes>>10 || p.grown != 0 {
		t.Errorf("%d KiB touched, %d grown", p.touched, p.grown)
	}
	if !p.Push(slyOrder(slyChase, 1500)) {
		t.Fatal("it has no room")
	}
	in := &Entry{Began: p.at, Anchor: &p.anchor}
	p.at += 50 * most // to bring it back
	var out Result
	if p.Instance.Run(in, &out); out.Failure != nil {
		t.Fatal(out.Failure)
	}
	if p.image.strictness.until.Load() != 0 {
		t.Error("the image is strict")
	}
}

// TestBeganOfAnotherClock: where the engine's clock is not the machine's, it is not compared with the caller's.
func TestBeganOfAnotherClock(t *testing.T) {
	p := newPaced(t)
	defer p.Put()
	p.image.engine.thread = nil
	p.do(slySpin, 0, 0.1)
	p.at += 50 * most
	in := &Entry{Began: p.at - 50*most}
	if !p.Push(slyOrder(slyTouch, 4000)) {
		t.Fatal("it has no room")
	}
	p.Instance.last, p.Instance.unseen = 0, 255
	var out Result
	if p.Instance.Run(in, &out); out.Failure != nil || out.Fuel < firstGrant/4 {
		t.Fatal(out)
	}
	if p.image.strictness.until.Load() != 0 {
		t.Error("the image is strict")
	}
}

// TestSomeMiddlingRunsAreMeasured: of Runs that are not long, but no shorter than half a first grant, one in eight is.
func TestSomeMiddlingRunsAreMeasured(t *testing.T) {
	p := newPaced(t)
	defer p.Put()
	p.do(slySpin, 0, 0.1)
	const runs = 1600
	p.reads, p.touched = 0, 1<<20 // it is not sparse
	for range runs {
		p.Instance.last, p.Instance.unseen = firstGrant, 255
		if !p.Push(slyOrder(slyChase, 2500)) {
			t.Fatal("it has no room")
		}
		var out Result
		if p.Instance.Run(&Entry{}, &out); out.Fuel < firstGrant/2 || out.Fuel > firstGrant {
			t.Fatal(out)
		}
	}
	if n := p.reads / 2; n < runs/16 || n > runs/4 {
		t.Errorf("%d of %d", n, runs)
	}
}

// TestAShortFailureSaysNothing of the speed, since it is not known what it has spent.
func TestAShortFailureSaysNothing(t *testing.T) {
	p := newPaced(t)
	defer p.Put()
	p.do(slySpin, 0, 0.1)
	before := p.Instance.rate
	if !p.Push(slyOrder(slyChase|slyTrap, 3000)) {
		t.Fatal("it has no room")
	}
	p.step = 1000 // it is measured, since a long one was before
	p.Instance.last = 10 * firstGrant
	var out Result
	if p.Instance.Run(&Entry{}, &out); out.Failure == nil || p.Instance.rate != before {
		t.Errorf("%v ns a unit, before %v", p.Instance.rate, before)
	}
}

// TestOthersHaveShownWhatIsSlow: an instance with large grants hears of it at its first look.
func TestOthersHaveShownWhatIsSlow(t *testing.T) {
	p := newPaced(t)
	defer p.Put()
	p.do(slySpin, 0, 0.01)
	p.do(slySpin, 0, 0.01)
	p.image.slowest.note(19, p.at)
	if p.do(slySpin, 0, 1); p.gaps[1] > most/19*11/10 {
		t.Errorf("%d units are granted", p.gaps[1])
	}
}

// TestDoubtFades with computing.
func TestDoubtFades(t *testing.T) {
	var d doubt
	d.note(19)
	if d.note(5); d.rate() != 19 {
		t.Error("a lower one counts")
	}
	d.fade(doubtHalf / 2)
	if d.fade(doubtHalf / 2); math.Abs(d.rate()-9.5) > 0.01 {
		t.Errorf("after half of the time it is %v", d.rate())
	}
	if d.note(implausible + 1); d.rate() > 10 {
		t.Error("it was the system")
	}
	x := get(t, load(t, newEngine(t, NewConfig()), "echo", ImageConfig{}))
	defer x.Put()
	x.in = &Entry{}
	x.image.doubt.note(19)
	for range 10 * doubtHalf / aim {
		x.adapt(aim, aim, 1e18)
	}
	if x.image.doubt.rate() > 0.1 {
		t.Errorf("after long it is %v", x.image.doubt.rate())
	}
}

// TestAnchorsAreMadeAtLooks: also where the thread has waited before, or others have run and the goroutine has moved
// to another thread, it is known how much of a long grant was computing.
func TestAnchorsAreMadeAtLooks(t *testing.T) {
	p := newPaced(t)
	defer p.Put()
	p.touched = 1 << 20 // it is not sparse
	p.do(slyTable, 0, 0.01)
	p.do(slySpin, 0, 0.01)
	wait := func(ns int64) { p.at, p.waited = p.at+ns, p.waited+ns }
	wait(50 * most)
	p.threads = 0
	p.do(slyChase, 40_000, 10)
	if got := p.image.slowest.last(); got < 9 {
		t.Errorf("after a wait it is %v ns a unit", got)
	}
	if p.threads > 2+len(p.gaps)*3 {
		t.Errorf("%d readings in %d looks", p.threads, len(p.gaps))
	}

	// Quick until others have run on this thread for a while, and this goroutine goes on on another one; then slow.
	p.image.slowest = slowest{}
	p.do(slySpin, 0, 0.1)
	p.burning.rate, p.burning.spent, p.Instance.last, p.Instance.unseen = 0.1, 0, 0, 255
	if !p.Push(slyOrder(slySpin, 0)) {
		t.Fatal("it has no room")
	}
	yields, got := 0, 0.0
	var out Result
	p.Instance.Run(&Entry{Anchor: &p.anchor, Yield: yielder(func() bool {
		switch yields++; yields {
		case 1:
			wait(2 * moved)
			p.thread++
			p.burning.rate = 10
		case 2:
			got = p.image.slowest.last()
		}
		return true
	})}, &out)
	if out.Failure != nil || got < 9 {
		t.Errorf("after %d yields it is %v ns a unit", yields, got)
	}
}
