package backoff

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// top draws the highest values there are.
type top struct{}

func (top) Float64() float64 { return math.Nextafter(1, 0) }
func (top) IntN(n int) int   { return n - 1 }

// none must not be drawn from.
type none struct{ t *testing.T }

func (n none) Float64() float64 { n.t.Fatal("randomness was drawn"); return 0 }
func (n none) IntN(int) int     { n.t.Fatal("randomness was drawn"); return 0 }

func build(t testing.TB, s Spec) Policy {
	t.Helper()
	p, err := s.Policy()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Semantics 1.1: with the top value forced, T = 10 ms, ceiling 10.
func TestC_1_1_ForcedTop(t *testing.T) {
	want := []int{10, 30, 70, 150, 310, 630, 1270, 2550, 5110, 0, 10, 30}
	s := Slotted{Slot: 10 * time.Millisecond, Ceiling: 10}
	for i, ms := range want {
		if got := s.Delay(i, top{}); got != time.Duration(ms)*time.Millisecond {
			t.Errorf("attempt %d: %v, want %d ms", i, got, ms)
		}
		s = s.Next(top{})
		if s.Wait() != time.Duration(ms)*time.Millisecond {
			t.Errorf("Next %d: %v, want %d ms", i, s.Wait(), ms)
		}
	}
	if s.Resets() != 1 || s.TotalRetries() != 11 || s.Retries() != 2 {
		t.Errorf("%+v", s)
	}
}

func TestC_1_1_StayAtCeiling(t *testing.T) {
	s := Slotted{Slot: 10 * time.Millisecond, Ceiling: 10, Stay: true}
	for i := range 20 {
		want := 10230 * time.Millisecond
		if i < 9 {
			want = 10 * time.Millisecond * (1<<(i+1) - 1)
		}
		if got := s.Delay(i, top{}); got != want {
			t.Errorf("attempt %d: %v, want %v", i, got, want)
		}
	}
	one := Slotted{Slot: time.Second, Ceiling: 1}
	for i := range 5 {
		if d := one.Delay(i, top{}); d != 0 {
			t.Errorf("ceiling 1 without staying waits %v", d)
		}
	}
}

// Semantics 1.2: the operator's curve is quadratic and clamps.
func TestC_1_2_Quadratic(t *testing.T) {
	p := build(t, Spec{Curve: "quadratic", Min: time.Second, Max: Max, Jitter: "none"})
	for i, want := range []int{1, 4, 9, 16, 25, 36, 49, 64, 81, 100} {
		if got := p.Delay(i, none{t}); got != time.Duration(want)*time.Second {
			t.Errorf("retry %d: %v, want %ds", i+1, got, want)
		}
	}
	if got := p.Delay(96039, none{t}); got != Max {
		t.Errorf("overflow: %v", got)
	}
	if got := build(t, Spec{Curve: "quadratic", Min: Max, Max: Max}).Delay(1, none{t}); got != Max {
		t.Errorf("overflow: %v", got)
	}
}

// Semantics 1.3: MIN 5, MAX 260, NUM 10, in seconds.
func TestC_1_3_Zaqar(t *testing.T) {
	for curve, want := range map[string][]float64{
		"zaqar-linear":       {5, 30.5, 56, 81.5, 107, 132.5, 158, 183.5, 209, 234.5},
		"zaqar-linear-reach": {5, 33.3333, 61.6667, 90, 118.3333, 146.6667, 175, 203.3333, 231.6667, 260},
		"zaqar-arithmetic":   {5, 10.6667, 22, 39, 61.6667, 90, 124, 163.6667, 209, 260},
		"zaqar-geometric":    {5, 7.755986, 12.031065, 18.662556, 28.949306, 44.906085, 69.658198, 108.053608, 167.612464, 260},
		"zaqar-exponential":  {5, 7.755986, 12.031065, 18.662556, 28.949306, 44.906085, 69.658198, 108.053608, 167.612464, 260},
	} {
		p := build(t, Spec{Curve: curve, Min: 5 * time.Second, Max: 260 * time.Second, Num: 10, Jitter: "none"})
		for n, w := range want {
			if got := p.Delay(n, none{t}).Seconds(); math.Abs(got-w) > 5e-5 {
				t.Errorf("%s, n = %d: %v, want %v", curve, n+1, got, w)
			}
		}
		if got := p.Delay(50, none{t}); got != 260*time.Second {
			t.Errorf("%s behind its end: %v", curve, got)
		}
		one := build(t, Spec{Curve: curve, Min: 5 * time.Second, Max: 260 * time.Second, Num: 1})
		if got := one.Delay(0, none{t}); got != 5*time.Second {
			t.Errorf("%s with one step: %v", curve, got)
		}
	}
}

// Semantics 1.4 and 3.5: min 200 ms, max 10 s; and Akka's sample of 3 s, 30 s.
func TestC_1_4_Exponential(t *testing.T) {
	p := build(t, Spec{Min: 200 * time.Millisecond, Max: 10 * time.Second})
	for n, ms := range []int{200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000} {
		if got := p.Delay(n, top{}); got != time.Duration(ms)*time.Millisecond {
			t.Errorf("n = %d: %v, want %d ms", n, got, ms)
		}
	}
	for _, n := range []int{30, 36, 64, 10_000} {
		if got := p.Delay(n, top{}); got != 10*time.Second {
			t.Errorf("n = %d: %v", n, got)
		}
	}
	linear := build(t, Spec{Curve: "linear", Min: 500 * time.Millisecond, Max: 10 * time.Second, Step: 500 * time.Millisecond})
	for n, want := range map[int]time.Duration{0: 500 * time.Millisecond, 1: time.Second, 19: 10 * time.Second, 1 << 40: 10 * time.Second} {
		if got := linear.Delay(n, top{}); got != want {
			t.Errorf("linear, n = %d: %v, want %v", n, got, want)
		}
	}
}

func TestC_3_5_NoiseComesAfterTheCap(t *testing.T) {
	p := build(t, Spec{Min: 3 * time.Second, Max: 30 * time.Second, Jitter: "additive", Spread: 0.2})
	for n, w := range []float64{3, 6, 12, 24, 30, 30} {
		low, high := p.Delay(n, rand.New(zero{})), p.Delay(n, top{})
		if low.Seconds() != w || high.Seconds() < w*1.1999 || high.Seconds() > w*1.2+1e-9 {
			t.Errorf("n = %d: %v to %v, want [%v, %v)", n, low, high, w, w*1.2)
		}
	}
	hard := build(t, Spec{Min: 3 * time.Second, Max: 30 * time.Second, Jitter: "additive", Spread: 0.2, HardCap: true})
	if got := hard.Delay(9, top{}); got != 30*time.Second {
		t.Errorf("a hard cap lets %v pass", got)
	}
}

// zero is a source of zeros.
type zero struct{}

func (zero) Uint64() uint64 { return 0 }

func TestFibonacciAndTable(t *testing.T) {
	fib := build(t, Spec{Curve: "fibonacci", Min: time.Second, Max: time.Minute})
	for n, s := range []int{1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 60, 60} {
		if got := fib.Delay(n, none{t}); got != time.Duration(s)*time.Second {
			t.Errorf("n = %d: %v, want %d s", n, got, s)
		}
	}
	table := build(t, Spec{Curve: "table", Delays: []time.Duration{1, 5, 2}})
	for n, want := range []time.Duration{1, 5, 2, 2, 2} {
		if got := table.Delay(n, none{t}); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}

// Whatever the parameters: never negative, and the same seed draws the same.
func TestNoPolicyIsNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Spec{
			Curve: rapid.SampledFrom(Curves()).Draw(t, "curve"), Jitter: rapid.SampledFrom(append(Jitters(), "")).Draw(t, "jitter"),
			Min: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "min")), Max: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "max")),
			Factor: rapid.Float64Range(1, 1e6).Draw(t, "factor"), Num: rapid.IntRange(1, 1000).Draw(t, "num"),
			Ceiling: rapid.IntRange(1, 62).Draw(t, "ceiling"), Spread: rapid.Float64Range(0, 1).Draw(t, "spread"),
			Delays: []time.Duration{time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "delay"))},
		}
		p, err := s.Policy()
		if err != nil {
			return
		}
		n, seed := rapid.IntRange(-10, 1<<20).Draw(t, "n"), rapid.Uint64().Draw(t, "seed")
		d := p.Delay(n, rand.New(rand.NewPCG(seed, 1)))
		if d < 0 {
			t.Fatalf("%+v: %v", s, d)
		}
		if d != p.Delay(n, rand.New(rand.NewPCG(seed, 1))) {
			t.Fatalf("%+v: two draws of one seed differ", s)
		}
	})
}

func TestInvalidParametersAreRefused(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		name string
	}{
		{Spec{}, "min"}, {Spec{Min: -1}, "min"}, {Spec{Min: 2, Max: 1}, "max"}, {Spec{Min: 1}, "max"}, {Spec{Min: 2, Max: 1, Curve: "slotted", Ceiling: 1}, "max"},
		{Spec{Min: 1, Max: 2, Factor: math.Inf(1)}, "factor"}, {Spec{Min: 1, Max: 2, Factor: 0.5}, "factor"},
		{Spec{Min: 1, Max: 2, Factor: math.NaN()}, "factor"}, {Spec{Min: 1, Max: 2, Spread: 1.5}, "spread"}, {Spec{Min: 1, Max: 2, Spread: math.NaN()}, "spread"},
		{Spec{Min: 1, Max: 2, Jitter: "loud"}, "jitter"}, {Spec{Min: 1, Max: 2, Curve: "flat"}, "num"}, {Spec{Min: 1, Max: 2, Num: 1, Curve: "flat"}, "curve"},
		{Spec{Min: 1, Curve: "slotted"}, "ceiling"}, {Spec{Curve: "table"}, "delays"}, {Spec{Curve: "table", Delays: []time.Duration{-1}}, "delays"},
		{Spec{Min: 1, Max: 2, Curve: "linear", Step: -1}, "step"}, {Spec{Min: 1, Max: 2, Curve: "zaqar-linear"}, "num"},
	} {
		_, err := c.spec.Policy()
		var p *ParameterError
		if !errors.As(err, &p) || p.Name != c.name {
			t.Errorf("%+v: %v, want a complaint about %s", c.spec, err, c.name)
		}
	}
}

// What is left out has a default, and the ends of what is allowed are allowed.
func TestDefaultsAndEnds(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		n    int
		want time.Duration
	}{
		{Spec{Curve: "linear", Min: 5, Max: 100}, 3, 20},
		{Spec{Min: 5, Max: 100, Factor: 1}, 3, 5},
		{Spec{Min: 5, Max: 100, Factor: math.MaxFloat64}, 1, 100},
		{Spec{Min: 5, Max: 100}, 3, 40},
		{Spec{Curve: "constant", Min: 5}, 3, 5},
		{Spec{Curve: "slotted", Min: 5, Ceiling: 1, Stay: true}, 3, 5},
		{Spec{Curve: "slotted", Min: 5, Ceiling: 10}, 3, 5 * 15},
		{Spec{Curve: "table", Delays: []time.Duration{3, 0}}, 1, 0},
		{Spec{Curve: "table", Delays: []time.Duration{3, 7}, HardCap: true}, 1, 7},
		{Spec{Curve: "table", Delays: []time.Duration{3, 7}, Max: 5}, 1, 5},
	} {
		if got := build(t, c.spec).Delay(c.n, top{}); got != c.want {
			t.Errorf("%+v: attempt %d after %d, want %d", c.spec, c.n, got, c.want)
		}
	}
}

// Curves are exact up to where they would leave the range of a duration.
func TestCurvesUpToMax(t *testing.T) {
	for _, c := range []struct {
		name  string
		curve Curve
		n     int
		want  time.Duration
	}{
		{"linear without steps", Linear(5, 100, 0), 1 << 40, 5},
		{"linear, the last step below Max", Linear(1, Max, 1<<62), 1, 1<<62 + 1},
		{"linear, above", Linear(1, Max, 1<<62), 2, Max},
		{"fibonacci, the last step below Max", Fibonacci(1, Max), 91, 7540113804746346429}, // F(92)
		{"fibonacci, above", Fibonacci(1, Max), 92, Max},
		{"fibonacci, far above", Fibonacci(1, Max), math.MaxInt, Max},
		{"fibonacci without a unit", Fibonacci(0, Max), math.MaxInt, 0},
	} {
		if got := c.curve.Base(c.n); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A curve does not change with what it was made of.
func TestTableIsImmutable(t *testing.T) {
	delays := []time.Duration{1, 2}
	curve := Table(delays...)
	delays[0] = 9
	if got := curve.Base(0); got != 1 {
		t.Errorf("the first delay is %v now", got)
	}
}

func TestNegativeAttemptsCountAsTheFirst(t *testing.T) {
	for _, curve := range Curves() {
		for _, stay := range []bool{false, true} {
			p := build(t, Spec{Curve: curve, Min: 5, Max: 100, Num: 4, Ceiling: 4, Stay: stay, Delays: []time.Duration{5}})
			for _, n := range []int{-1, -3, math.MinInt} {
				if got, want := p.Delay(n, top{}), p.Delay(0, top{}); got != want {
					t.Errorf("%s: attempt %d after %d, want %d", curve, n, got, want)
				}
			}
		}
	}
}
