package main

import "time"

// policy says how often a job is tried, and how long it waits in between.
type policy struct {
	attempts       int64
	first, longest time.Duration
}

// pause is how long to wait after so many failed attempts, at least one: first, doubled with each, at most longest, and
// of that between half and all, as chance in [0, 1) says ("equal jitter"). So jobs that have failed together do not come
// back together.
func (p policy) pause(failed int64, chance float64) time.Duration {
	d := p.first
	for ; failed > 1 && d < p.longest; failed-- {
		d *= 2
	}
	d = min(d, p.longest)
	return d/2 + time.Duration(chance*float64(d-d/2))
}
