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
}

func newPaced(t *testing.T) *paced {
	b := &burning{Clock: clock.Real(), rate: 0.1, at: 1e18}
	cfg := NewConfig().WithClock(b)
	cfg.thread = func() (int64, int, bool) { return b.at, 1, true }
	e := newEngine(t, cfg)
	if e.space.Portable() {
		t.Skip("it is not known which pages were touched")
	}
	return &paced{t, get(t, slyImage(t, e)), b}
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
	p.Instance.Run(&Entry{Began: p.at}, &out)
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
		for range 3 {
			p.do(slySpin, 0, 1)
			const grows = 20 // pages of 64 KiB, for 4096 units each
			p.do(slyGrow|slyTouch, grows<<16+300, 1)
			at := slices.IndexFunc(p.gaps, func(gap int64) bool { return gap >= grows*4096 })
			if at < 0 || at+2 >= len(p.gaps) || p.gaps[at+1] > 1100 || p.gaps[at+2] > 4400 {
				t.Errorf("looks after so many units: %d", p.gaps)
			}
			p.anew()
		}
		if p.image.strictness.until.Load() != 0 {
			t.Error("the image is strict")
		}
	})
	t.Run("later", func(t *testing.T) {
		p := newPaced(t)
		defer p.Put()
		other := get(t, p.image) // it has large grants, too
		defer other.Put()
		q := &paced{t, other, p.burning}
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
		p.at += recount
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
		// Of short Runs one in 16 is looked back at.
		p.image.strictness.until.Store(0)
		for n := range 17 {
			if !p.Push(slyOrder(slyTouch, 300)) {
				t.Fatal("it has no room")
			}
			p.grain, p.Instance.last = firstGrant, 0
			in.Began = p.at
			p.at += 2 * most
			if p.Instance.Run(in, &out); out.Fuel > firstGrant/4 {
				t.Fatal(out)
			}
			if p.image.strictness.until.Load() > 0 {
				break
			}
			if n == 16 {
				t.Error("no short one is looked at")
			}
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
		p.steal = 50 * most
		p.do(slySpin, 0, 0.1)
		if p.image.strictness.until.Load() != 0 {
			t.Error("the image is strict")
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
