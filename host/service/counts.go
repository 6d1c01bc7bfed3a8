package service

import (
	"cmp"
	"slices"
	"sync"
	"time"

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
	mu  sync.Mutex
	of  map[countKey]uint64
	ops map[string]struct{}
}

type countKey struct {
	op   string
	code Code
}

func (c *counts) add(op string, err error) {
	code := CodeOf(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of, c.ops = map[countKey]uint64{}, map[string]struct{}{}
	}
	if _, known := c.ops[op]; !known {
		if code == BadRequest || len(c.ops) >= mostOps {
			op = "other"
		} else {
			c.ops[op] = struct{}{}
		}
	}
	c.of[countKey{op, code}]++
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

// denials bounds how many denials are told: a guest could make any number.
type denials struct {
	once  sync.Once
	limit *rate.Limiter
}

// How many denials of a grant, and of all without one, are told.
const (
	denialsASecond = 1
	denialsAtOnce  = 20
)

func (d *denials) allow(now time.Time) bool {
	d.once.Do(func() { d.limit = rate.NewLimiter(denialsASecond, denialsAtOnce) })
	return d.limit.AllowN(now, 1)
}
