package backoff

import (
	"math"
	"time"
)

// Decorrelated is AWS's decorrelated jitter: uniform in [min, 3*previous), cut at
// limit, where previous is the delay before, min at first. It depends on what was
// drawn before; Delay(n) draws the n+1 values that lead there.
func Decorrelated(least, limit time.Duration) Policy { return decorrelated{least, limit} }

type decorrelated struct{ least, limit time.Duration }

// Delay implements Policy. It draws at most 64 numbers: beyond, the first ones
// no longer matter.
func (d decorrelated) Delay(n int, rnd Rand) time.Duration {
	previous := d.least
	for range min(max(n, 0), 63) + 1 {
		top := math.Min(3*float64(previous), float64(math.MaxInt64))
		previous = min(saturate(float64(d.least)+(top-float64(d.least))*rnd.Float64()), d.limit)
	}
	return max(previous, d.least)
}

// Slotted is the truncated exponential backoff of network congestion, as the 2012
// article on an exponential-backoff supervisor for Akka has it: the wait before
// attempt s (a slot, from 1) is slot * (2^e - 1) with e uniform in 0..s. At the
// ceiling it either stays, or resets: that attempt waits nothing, and the next
// begins at slot 1 again. It is an immutable value.
type Slotted struct {
	Slot    time.Duration // positive
	Ceiling int           // at least 1; less counts as 1
	Stay    bool          // stay at the ceiling instead of starting again

	slot     int // the next slot, 0 stands for 1
	wait     time.Duration
	retries  int
	resets   int
	attempts int
}

// Started reports whether an attempt was made since the last reset.
func (s Slotted) Started() bool { return s.retries > 0 }

// Wait is the last delay that was drawn.
func (s Slotted) Wait() time.Duration { return s.wait }

// Retries since the last reset.
func (s Slotted) Retries() int { return s.retries }

// Resets so far.
func (s Slotted) Resets() int { return s.resets }

// TotalRetries over all resets.
func (s Slotted) TotalRetries() int { return s.attempts }

// Reset starts again at slot 1; the total is kept.
func (s Slotted) Reset() Slotted {
	s.slot, s.wait, s.retries = 1, 0, 0
	s.resets++
	return s
}

// Next draws the next wait.
func (s Slotted) Next(rnd Rand) Slotted {
	slot, ceiling := max(s.slot, 1), max(s.Ceiling, 1)
	if slot >= ceiling && !s.Stay {
		return s.Reset()
	}
	s.wait = s.draw(slot, rnd)
	s.slot = min(slot+1, ceiling)
	s.retries++
	s.attempts++
	return s
}

// draw is slot * (2^e - 1) with e uniform in 0..n.
func (s Slotted) draw(n int, rnd Rand) time.Duration {
	return saturate(float64(s.Slot) * (math.Pow(2, float64(rnd.IntN(n+1))) - 1))
}

// Delay implements Policy: the wait of attempt n since the start.
func (s Slotted) Delay(n int, rnd Rand) time.Duration {
	n = max(n, 0)
	ceiling := max(s.Ceiling, 1)
	if s.Stay {
		return s.draw(min(n, ceiling-1)+1, rnd)
	}
	slot := n%ceiling + 1
	if slot == ceiling {
		return 0
	}
	return s.draw(slot, rnd)
}
