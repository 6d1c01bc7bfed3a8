// Package histogram counts durations in fixed buckets, without locks.
package histogram

import (
	"sort"
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of the buckets, in steps of 1, 2, 5: a quantile is at most 2.5 times off.
var bounds = [...]time.Duration{
	2 * time.Microsecond, 5 * time.Microsecond, 10 * time.Microsecond, 20 * time.Microsecond, 50 * time.Microsecond,
	100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 50 * time.Second,
}

// Bounds are the upper bounds of the buckets, each included; the last bucket, which has none, is left out.
func Bounds() []time.Duration { return append([]time.Duration(nil), bounds[:]...) }

// Histogram is ready as its zero value. All methods are for any goroutine.
type Histogram struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

// Observe counts a duration; one below 0 counts as 0.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	h.counts[sort.Search(len(bounds), func(i int) bool { return d <= bounds[i] })].Add(1)
	h.sum.Add(int64(d))
}

// Counts are what was observed so far.
type Counts struct {
	Buckets []uint64 // one more than Bounds: each has those above the bound before it
	Sum     time.Duration
}

// Counts is a snapshot. Concurrent observations may be in the buckets and not in the sum.
func (h *Histogram) Counts() Counts {
	c := Counts{Buckets: make([]uint64, len(h.counts)), Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		c.Buckets[i] = h.counts[i].Load()
	}
	return c
}

// N is how many durations there were.
func (c *Counts) N() (n uint64) {
	for _, k := range c.Buckets {
		n += k
	}
	return n
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	if c.Buckets == nil {
		c.Buckets = make([]uint64, len(other.Buckets))
	}
	for i, k := range other.Buckets {
		c.Buckets[i] += k
	}
	c.Sum += other.Sum
}
