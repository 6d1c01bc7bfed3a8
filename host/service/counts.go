package service

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/internal/histogram"
	"golang.org/x/time/rate"
)

// Count is how many requests have ended in one way.
type Count struct {
	Op   string // "other" for those that guests have made up
	Code Code   // "" for those that were answered without an error
	N    uint64
}

// mostOps bounds the operations that are counted by their names: guests can make names up.
const mostOps = 64

// counts are safe for concurrent use.
type counts struct {
	mu    sync.Mutex
	of    map[countKey]uint64
	ops   map[string]struct{}
	times map[string]*histogram.Histogram // by operation, of requests that the provider has seen
}

// Times are how long requests of an operation took, from when the service took them until they were answered.
type Times struct {
	Op string // as in Count
	histogram.Counts
}

type countKey struct {
	op   string
	code Code
}

// add counts a request that the provider has seen.
func (c *counts) add(op string, err error, took time.Duration) {
	code := CodeOf(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.ops[op]; !known && code != BadRequest && len(c.ops) < mostOps {
		if c.ops == nil {
			c.ops = map[string]struct{}{}
		}
		c.ops[op] = struct{}{}
	}
	op = c.count(op, code)
	if c.times == nil {
		c.times = map[string]*histogram.Histogram{}
	}
	if c.times[op] == nil {
		c.times[op] = &histogram.Histogram{}
	}
	c.times[op].Observe(took)
}

// turnedAway counts a request that the provider has not seen; so it is not known whether the
// operation exists.
func (c *counts) turnedAway(op string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(op, CodeOf(err))
}

// count returns the name that the operation is counted by. c.mu is held.
func (c *counts) count(op string, code Code) string {
	if _, known := c.ops[op]; !known {
		op = "other"
	}
	if c.of == nil {
		c.of = map[countKey]uint64{}
	}
	c.of[countKey{op, code}]++
	return op
}

// allTimes are sorted by operation.
func (c *counts) allTimes() []Times {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Times, 0, len(c.times))
	for op, h := range c.times {
		out = append(out, Times{op, h.Counts()})
	}
	slices.SortFunc(out, func(a, b Times) int { return cmp.Compare(a.Op, b.Op) })
	return out
}

// all is sorted by operation and code.
func (c *counts) all() []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Count, 0, len(c.of))
	for k, n := range c.of {
		out = append(out, Count{k.op, k.code, n})
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Code, b.Code)) })
	return out
}

// occasional bounds how often something is reported that a guest can cause any number of times.
type occasional struct {
	mu     sync.Mutex
	limit  *rate.Limiter
	silent int
}

// How many denials of a grant, denials without any grant, and faults of a service are reported.
const (
	toldASecond = 1
	toldAtOnce  = 20
)

// allow also returns how many were not reported since the last one that was.
func (o *occasional) allow(now time.Time) (ok bool, silent int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.limit == nil {
		o.limit = rate.NewLimiter(toldASecond, toldAtOnce)
	}
	if !o.limit.AllowN(now, 1) {
		o.silent++
		return false, 0
	}
	silent, o.silent = o.silent, 0
	return true, silent
}

// Measured is a provider that counts for itself. The metrics of a system show what it counts, as wasmactors_service_figure.
type Measured interface {
	// Figures are what was counted so far, always the same names in the same order. Any goroutine may call it.
	Figures() []Figure
}

// Figure is a number that a service counts. Its name is of small letters, digits and _; one that ends in _total only grows.
type Figure struct {
	Name  string
	Value float64
}
