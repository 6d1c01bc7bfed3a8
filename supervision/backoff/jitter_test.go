package backoff

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var jitterRange = map[string][2]float64{
	"none": {1, 1}, "full": {0, 1}, "equal": {0.5, 1}, "additive": {1, 1.3}, "two-sided": {0.7, 1.3}, "operator": {0.85, 1.15},
}

// Every jitter is uniform over its range: the mean and each tenth of the range.
func TestJitterDistributions(t *testing.T) {
	const n = 100_000
	for _, name := range Jitters() {
		from, to := jitterRange[name][0], jitterRange[name][1]
		p := build(t, Spec{Curve: "constant", Min: time.Hour, Jitter: name, Spread: 0.3})
		rnd := rand.New(rand.NewPCG(3, 4))
		var tenths [10]int
		sum := 0.0
		for range n {
			f := float64(p.Delay(0, rnd)) / float64(time.Hour)
			sum += f
			if name == "none" {
				if f != 1 {
					t.Fatalf("none: %v", f)
				}
				continue
			}
			if f < from-1e-9 || f >= to {
				t.Fatalf("%s: %v is not in [%v, %v)", name, f, from, to)
			}
			tenths[min(int((f-from)/(to-from)*10), 9)]++
		}
		if mean := sum / n; math.Abs(mean-(from+to)/2) > 0.005*(to-from)+1e-9 {
			t.Errorf("%s: mean %v", name, mean)
		}
		for i, k := range tenths {
			if name != "none" && math.Abs(float64(k)-n/10) > 500 { // five standard deviations
				t.Errorf("%s: %d of %d in tenth %d", name, k, n, i)
			}
		}
	}
}

// The end of the range is excluded to the nanosecond, also where the product rounds.
func TestJitterRangesAreHalfOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(1000, int64(90*24*time.Hour)).Draw(t, "base"))
		f := float64(rapid.IntRange(1, 100).Draw(t, "percent")) / 100
		for _, j := range []struct {
			jitter   Jitter
			from, to float64
		}{{FullJitter(), 0, 1}, {EqualJitter(), 0.5, 1}, {AdditiveJitter(f), 1, 1 + f}, {TwoSidedJitter(f), 1 - f, 1 + f}, {OperatorJitter(), 0.85, 1.15}} {
			p := WithJitter(Constant(base), j.jitter)
			if d := p.Delay(0, low{}); math.Abs(float64(d)-float64(base)*j.from) > 1 {
				t.Fatalf("%+v: at least %v of %v", j, d, base)
			}
			if d := p.Delay(0, top{}); float64(d) > float64(base)*j.to+1 || float64(d) < float64(base)*j.to-8 {
				t.Fatalf("%+v: at most %v of %v", j, d, base)
			}
		}
	})
}

// Decorrelated jitter: in [min, max], and each delay below three times some delay
// that could have come before it.
func TestDecorrelated(t *testing.T) {
	p := build(t, Spec{Curve: "decorrelated", Min: time.Second, Max: time.Minute})
	for n, want := range []time.Duration{3, 9, 27, 60, 60} {
		if d := p.Delay(n, top{}); d > want*time.Second || d < want*time.Second-time.Microsecond {
			t.Errorf("n = %d: at most %v, want %v", n, d, want*time.Second)
		}
		if d := p.Delay(n, low{}); d != time.Second {
			t.Errorf("n = %d: at least %v", n, d)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	sum := 0.0
	for range 100_000 {
		sum += p.Delay(0, rnd).Seconds()
	}
	if mean := sum / 100_000; math.Abs(mean-2) > 0.01 {
		t.Errorf("the first is %v on average, want 2 s", mean)
	}
	if d := build(t, Spec{Curve: "decorrelated", Min: Max, Max: Max}).Delay(math.MaxInt, top{}); d != Max {
		t.Errorf("overflow: %v", d)
	}
}

// counted counts what is drawn.
type counted struct {
	low
	n int
}

func (c *counted) Float64() float64 { c.n++; return 0 }

// However many attempts there were, a delay costs a bounded number of draws.
func TestDecorrelatedDrawsABoundedNumber(t *testing.T) {
	p := Decorrelated(time.Second, time.Minute)
	for n, want := range map[int]int{-1: 1, 0: 1, 1: 2, 63: 64, 64: 64, math.MaxInt: 64} {
		rnd := &counted{}
		if p.Delay(n, rnd); rnd.n != want {
			t.Errorf("attempt %d draws %d numbers, want %d", n, rnd.n, want)
		}
	}
}

// With a hard cap no delay exceeds max, whatever the curve and the jitter.
func TestHardCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Spec{
			Curve: rapid.SampledFrom(Curves()).Draw(t, "curve"), Jitter: rapid.SampledFrom(Jitters()).Draw(t, "jitter"), HardCap: true,
			Min: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "min")), Max: time.Duration(rapid.Int64Range(int64(time.Hour), math.MaxInt64).Draw(t, "max")),
			Num: rapid.IntRange(1, 100).Draw(t, "num"), Ceiling: rapid.IntRange(1, 100).Draw(t, "ceiling"), Stay: true, Spread: 1,
		}
		if s.Curve == "table" {
			t.Skip("has no max")
		}
		if s.Curve == "slotted" || s.Curve == "decorrelated" {
			s.Jitter, s.Spread = "none", 0
		}
		p, err := s.Policy()
		if err != nil {
			t.Fatal(err)
		}
		for _, rnd := range []Rand{low{}, top{}} {
			if d := p.Delay(rapid.IntRange(0, math.MaxInt).Draw(t, "n"), rnd); d < 0 || d > s.Max {
				t.Fatalf("%+v: %v", s, d)
			}
		}
	})
}

// Every parameter of every curve that makes no sense is refused by its name.
func TestEveryParameterIsChecked(t *testing.T) {
	for _, curve := range Curves() {
		valid := Spec{Curve: curve, Min: 1, Max: 2, Num: 2, Ceiling: 2, Delays: []time.Duration{1}}
		if _, err := valid.Policy(); err != nil {
			t.Errorf("%s: %v", curve, err)
		}
		bad := map[string]func(*Spec){
			"spread": func(s *Spec) { s.Spread = math.Inf(1) }, "jitter": func(s *Spec) { s.Jitter = "x" },
		}
		if curve != "table" {
			bad["min"], bad["max"] = func(s *Spec) { s.Min = 0 }, func(s *Spec) { s.Max, s.Min = 1, 2 }
		}
		switch curve {
		case "exponential":
			bad["factor"] = func(s *Spec) { s.Factor = math.Inf(1) }
		case "linear":
			bad["step"] = func(s *Spec) { s.Step = -1 }
		case "slotted":
			bad["ceiling"] = func(s *Spec) { s.Ceiling = -1 }
			bad["jitter"] = func(s *Spec) { s.Jitter = "full" } // it is random itself
		case "decorrelated":
			bad["jitter"] = func(s *Spec) { s.Spread = 0.5 }
		case "table":
			bad["delays"] = func(s *Spec) { s.Delays = []time.Duration{1, -1} }
		}
		for name, spoil := range bad {
			s := valid
			spoil(&s)
			_, err := s.Policy()
			var p *ParameterError
			if !errors.As(err, &p) || p.Name != name {
				t.Errorf("%s: %+v: %v, want a complaint about %s", curve, s, err, name)
			}
		}
	}
}

// A jitter of one's own is applied to the base, between the cap before and the hard cap
// after it; what is negative is 0.
func TestJitterFunc(t *testing.T) {
	plus := JitterFunc(func(base time.Duration, rnd Rand) time.Duration { return base + 3*time.Second })
	minus := JitterFunc(func(base time.Duration, rnd Rand) time.Duration { return base - time.Minute })
	curve := Linear(time.Second, time.Hour, time.Second)
	for _, c := range []struct {
		policy Policy
		want   time.Duration
	}{
		{WithJitter(curve, plus), 13 * time.Second},
		{WithCap(curve, plus, 5*time.Second, false), 8 * time.Second},
		{WithCap(curve, plus, 5*time.Second, true), 5 * time.Second},
		{WithJitter(curve, minus), 0},
	} {
		if got := c.policy.Delay(9, nil); got != c.want {
			t.Errorf("%v instead of %v", got, c.want)
		}
	}
}
