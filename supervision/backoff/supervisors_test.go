package backoff

import (
	"testing"
	"time"
)

// Semantics 1.4 (actor-ts) and 3.5 (Akka): what backoff_test.go does not have.

func TestC_1_4_CumulativeAndBounds(t *testing.T) {
	exact := build(t, Spec{Min: 200 * time.Millisecond, Max: 10 * time.Second, Jitter: "two-sided"})
	spread := build(t, Spec{Min: 200 * time.Millisecond, Max: 10 * time.Second, Spread: 0.2})
	var sum time.Duration
	for n, want := range []struct{ sum, low, high int }{
		{200, 160, 240}, {600, 320, 480}, {1400, 640, 960}, {3000, 1280, 1920}, {6200, 2560, 3840}, {12600, 5120, 7680}, {22600, 8000, 12000}, {32600, 8000, 12000}, {42600, 8000, 12000},
	} {
		sum += exact.Delay(n, none{t}) // with a factor of 0 nothing is drawn
		low, high := spread.Delay(n, low{}), spread.Delay(n, top{})
		ms := time.Millisecond
		if sum != time.Duration(want.sum)*ms || low != time.Duration(want.low)*ms || high >= time.Duration(want.high)*ms || high < time.Duration(want.high)*ms-time.Microsecond {
			t.Errorf("n = %d: %v in all, [%v, %v], want %+v", n, sum, low, high, want)
		}
	}
	for _, n := range []int{30, 31, 36, 63, 64, 1 << 20, 1 << 62} {
		if d := exact.Delay(n, none{t}); d != 10*time.Second {
			t.Errorf("n = %d: %v", n, d)
		}
	}
	if d := spread.Delay(-3, low{}); d != 160*time.Millisecond {
		t.Errorf("n < 0: %v", d)
	}
}

func TestC_1_4_LinearPolicy(t *testing.T) {
	p := build(t, Spec{Curve: "linear", Min: 500 * time.Millisecond, Max: 10 * time.Second, Step: 500 * time.Millisecond, Jitter: "none"})
	for n := range 40 {
		want := min(time.Duration(n+1)*500*time.Millisecond, 10*time.Second)
		if d := p.Delay(n, none{t}); d != want || (d == 10*time.Second) != (n >= 19) {
			t.Errorf("n = %d: %v, want %v", n, d, want)
		}
	}
}

// A policy may be any value or function.
func TestC_1_4_CustomPolicy(t *testing.T) {
	p := WithJitter(CurveFunc(func(n int) time.Duration { return time.Duration(7-3*n) * time.Second }), NoJitter())
	for n, want := range []time.Duration{7 * time.Second, 4 * time.Second, time.Second, 0, 0} {
		if d := p.Delay(n, none{t}); d != want {
			t.Errorf("n = %d: %v, want %v", n, d, want)
		}
	}
	limited := WithCap(CurveFunc(func(int) time.Duration { return time.Hour }), TwoSidedJitter(0.5), time.Minute, false)
	if low, high := limited.Delay(0, low{}), limited.Delay(0, top{}); low != 30*time.Second || high <= time.Minute || high > 90*time.Second {
		t.Errorf("capped before the jitter: %v to %v", low, high)
	}
}

// The noise is added after the cap, so that max is no upper bound; with hard-cap it is.
func TestC_3_5_Bounds(t *testing.T) {
	p := build(t, Spec{Min: 3 * time.Second, Max: 30 * time.Second, Jitter: "additive", Spread: 0.2})
	for n, want := range [][2]float64{{3, 3.6}, {6, 7.2}, {12, 14.4}, {24, 28.8}, {30, 36}, {30, 36}} {
		low, high := p.Delay(n, low{}).Seconds(), p.Delay(n, top{}).Seconds()
		if low != want[0] || high >= want[1] || high < want[1]-1e-6 {
			t.Errorf("n = %d: [%v, %v), want %v", n, low, high, want)
		}
	}
}
