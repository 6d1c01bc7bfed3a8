package backoff

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Semantics 1.2: the RxJava operator "ExpBackoff", which is quadratic.

// low draws the least values there are.
type low struct{}

func (low) Float64() float64 { return 0 }
func (low) IntN(int) int     { return 0 }

func TestC_1_2_TableWithJitter(t *testing.T) {
	plain := build(t, Spec{Curve: "quadratic", Min: time.Second, Max: Max, Jitter: "none"})
	jittered := build(t, Spec{Curve: "quadratic", Min: time.Second, Max: Max, Jitter: "operator"})
	for _, c := range []struct {
		retry     int
		nominal   float64
		from, to  float64 // half open
		low, high int     // after truncation to seconds
	}{{1, 1, 0.85, 1.15, 0, 1}, {2, 4, 3.40, 4.60, 3, 4}, {3, 9, 7.65, 10.35, 7, 10}, {4, 16, 13.60, 18.40, 13, 18}, {5, 25, 21.25, 28.75, 21, 28}, {10, 100, 85, 115, 85, 114}} {
		if got := plain.Delay(c.retry-1, none{t}).Seconds(); got != c.nominal {
			t.Errorf("retry %d: %v, want %v", c.retry, got, c.nominal)
		}
		from, to := jittered.Delay(c.retry-1, low{}), jittered.Delay(c.retry-1, top{})
		if math.Abs(from.Seconds()-c.from) > 2e-9 || to.Seconds() >= c.to || to.Seconds() < c.to-1e-6 {
			t.Errorf("retry %d: %v to %v, want [%v, %v)", c.retry, from, to, c.from, c.to)
		}
		// In whole seconds, as the operator does with that unit: the reason for not doing so.
		if l, h := int((from + 1).Seconds()), int(to.Seconds()); l != c.low || h != c.high {
			t.Errorf("retry %d truncated: %d to %d, want %d to %d", c.retry, l, h, c.low, c.high)
		}
	}
	var sum time.Duration
	for n := range 3 {
		sum += plain.Delay(n, none{t})
	}
	if sum != 14*time.Second {
		t.Errorf("the sample of three retries waits %v in all, want 14s", sum)
	}
}

// Products that leave int64 are clamped; on amd64 the conversion alone would give a
// negative number.
func TestC_1_2_Overflow(t *testing.T) {
	p := build(t, Spec{Curve: "quadratic", Min: time.Second, Max: Max, Jitter: "none"})
	if last, over := p.Delay(96038-1, none{t}), p.Delay(96039-1, none{t}); last != time.Duration(96038*96038)*time.Second || over != Max {
		t.Errorf("r = 96038: %v, r = 96039: %v", last, over)
	}
	for _, jitter := range Jitters() {
		p := build(t, Spec{Curve: "quadratic", Min: Max, Max: Max, Jitter: jitter, Spread: 1})
		for _, n := range []int{0, 1, 1 << 40, math.MaxInt} {
			for _, rnd := range []Rand{low{}, top{}} {
				if d := p.Delay(n, rnd); d < 0 || d == 0 && rnd == (top{}) {
					t.Errorf("%s, n = %d: %v", jitter, n, d)
				}
			}
		}
	}
}

// The operator takes its jitter modulo 0.3, so its mean is 0.99; ours is uniform.
func TestC_1_2_JitterIsUniform(t *testing.T) {
	p := build(t, Spec{Curve: "constant", Min: time.Hour, Jitter: "operator"})
	rnd := rand.New(rand.NewPCG(1, 2))
	const n = 200_000
	sum, below := 0.0, 0
	for range n {
		f := float64(p.Delay(0, rnd)) / float64(time.Hour)
		sum += f
		if f < 0.95 {
			below++
		}
	}
	if mean, share := sum/n, float64(below)/n; math.Abs(mean-1) > 0.001 || math.Abs(share-1.0/3) > 0.005 {
		t.Errorf("mean %v, %v of all below 0.95", mean, share)
	}
}
