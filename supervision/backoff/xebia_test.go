package backoff

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Semantics 1.1: the slotted algorithm of the 2012 article.

// chosen draws one value of IntN, whatever the bound.
type chosen int

func (c chosen) Float64() float64 { return 0 }
func (c chosen) IntN(n int) int   { return min(int(c), n-1) }

func TestC_1_1_TableOfSlots(t *testing.T) {
	ms := func(x float64) time.Duration { return time.Duration(math.Round(x * 1e6)) }
	var worst, expected time.Duration
	for _, c := range []struct {
		crash  int
		stay   bool
		max    float64 // ms
		mean   float64 // ms
		values int     // of e; P(0) is one of them
	}{
		{1, false, 10, 5.00, 2}, {2, false, 30, 13.33, 3}, {3, false, 70, 27.50, 4}, {4, false, 150, 52.00, 5}, {5, false, 310, 95.00, 6},
		{6, false, 630, 171.43, 7}, {7, false, 1270, 308.75, 8}, {8, false, 2550, 557.78, 9}, {9, false, 5110, 1013.00, 10},
		{10, false, 0, 0, 1}, {10, true, 10230, 1850.91, 11}, {11, true, 10230, 1850.91, 11}, {500, true, 10230, 1850.91, 11},
		{11, false, 10, 5.00, 2}, {20, false, 0, 0, 1},
	} {
		s := Slotted{Slot: 10 * time.Millisecond, Ceiling: 10, Stay: c.stay}
		var sum time.Duration
		zeros := 0
		for e := range c.values {
			d := s.Delay(c.crash-1, chosen(e))
			want := 10 * time.Millisecond * (1<<e - 1)
			if c.max == 0 {
				want = 0
			}
			if d != want {
				t.Errorf("crash %d, e = %d: %v, want %v", c.crash, e, d, want)
			}
			if d == 0 {
				zeros++
			}
			sum += d
		}
		if d := s.Delay(c.crash-1, top{}); d != ms(c.max) {
			t.Errorf("crash %d: at most %v, want %v ms", c.crash, d, c.max)
		}
		mean := sum / time.Duration(c.values)
		if math.Abs(float64(mean-ms(c.mean))) > float64(5*time.Microsecond) || zeros != 1 {
			t.Errorf("crash %d: mean %v, %d of %d are 0; want %v ms, one", c.crash, mean, zeros, c.values, c.mean)
		}
		if c.crash < 10 {
			worst += ms(c.max)
			expected += mean
		}
	}
	if worst != 10130*time.Millisecond || math.Abs(expected.Seconds()-2.24379) > 1e-5 {
		t.Errorf("the nine waits before the reset: %v at worst, %v expected", worst, expected)
	}
}

// Next follows the table of exact effects.
func TestC_1_1_Operations(t *testing.T) {
	s := Slotted{Slot: 10 * time.Millisecond, Ceiling: 3}
	check := func(what string, started bool, wait time.Duration, retries, resets, total int) {
		t.Helper()
		if s.Started() != started || s.Wait() != wait || s.Retries() != retries || s.Resets() != resets || s.TotalRetries() != total {
			t.Errorf("%s: started %v, wait %v, retries %d, resets %d, total %d", what, s.Started(), s.Wait(), s.Retries(), s.Resets(), s.TotalRetries())
		}
	}
	check("new", false, 0, 0, 0, 0)
	s = s.Next(top{})
	check("first", true, 10*time.Millisecond, 1, 0, 1)
	s = s.Next(chosen(0))
	check("second, by chance without a wait", true, 0, 2, 0, 2)
	s = s.Next(top{})
	check("at the ceiling", false, 0, 0, 1, 2) // not counted
	s = s.Next(top{}).Next(top{})
	check("again", true, 30*time.Millisecond, 2, 1, 4)
	s = s.Reset()
	check("an ack", false, 0, 0, 2, 4)
	s = s.Reset()
	check("an ack when nothing fails counts, too", false, 0, 0, 3, 4)
}

func TestC_1_1_Edges(t *testing.T) {
	for _, ceiling := range []int{1, 0, -1, math.MinInt} {
		s := Slotted{Slot: time.Second, Ceiling: ceiling}
		stay := Slotted{Slot: time.Second, Ceiling: ceiling, Stay: true}
		for n := range 5 {
			if d := s.Delay(n, top{}); d != 0 {
				t.Errorf("ceiling %d: waits %v", ceiling, d)
			}
			if low, high := stay.Delay(n, chosen(0)), stay.Delay(n, top{}); low != 0 || high != time.Second {
				t.Errorf("ceiling %d, staying: %v or %v", ceiling, low, high)
			}
			s, stay = s.Next(top{}), stay.Next(top{})
			if s.Wait() != 0 || s.Resets() != n+1 || s.TotalRetries() != 0 || stay.Wait() != time.Second {
				t.Errorf("ceiling %d: %+v, %+v", ceiling, s, stay)
			}
		}
		if ceiling < 1 {
			if _, err := (Spec{Curve: "slotted", Min: 1, Ceiling: ceiling}).Policy(); err == nil {
				t.Errorf("ceiling %d is accepted", ceiling)
			}
		}
	}
	// 10 ms * (2^e - 1) leaves int64 above e = 39.
	long := Slotted{Slot: 10 * time.Millisecond, Ceiling: 2000, Stay: true}
	for e, want := range map[int]time.Duration{39: 10 * time.Millisecond * (1<<39 - 1), 40: Max, 63: Max, 1999: Max} {
		if d := long.Delay(1999, chosen(e)); math.Abs(float64(d)-float64(want)) > 1024 { // a float's last bit
			t.Errorf("e = %d: %v, want %v", e, d, want)
		}
	}
}

// The drawback that nothing but the ceiling caps the wait is ours no more.
func TestC_1_1_Capped(t *testing.T) {
	p := build(t, Spec{Curve: "slotted", Min: 10 * time.Millisecond, Ceiling: 10, Max: time.Second})
	for i, ms := range []int{10, 30, 70, 150, 310, 630, 1000, 1000, 1000, 0, 10} {
		if d := p.Delay(i, top{}); d != time.Duration(ms)*time.Millisecond {
			t.Errorf("attempt %d: %v, want %d ms", i, d, ms)
		}
	}
}

// A policy and the value that goes from step to step are the same algorithm.
func TestSlottedPolicyIsItsSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Slotted{Slot: time.Millisecond, Ceiling: rapid.IntRange(-2, 40).Draw(t, "ceiling"), Stay: rapid.Bool().Draw(t, "stay")}
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))
		for n, step := 0, s; n < 100; n++ {
			step = step.Next(a)
			if d := s.Delay(n, b); d != step.Wait() || d < 0 {
				t.Fatalf("attempt %d: %v and %v", n, d, step.Wait())
			}
		}
	})
}
