package supervision

import "time"

// Record is what a supervisor has noted about a child, as it stands at a time.
type Record struct {
	Failures int           // since the count was reset; 0 if it would be reset now
	Total    int           // over its life
	InWindow int           // restarts that count for the limit now; of all children if the window is shared
	Delay    time.Duration // its last delay
}

// Look is what is noted about a child. It changes nothing.
func (s Strategy) Look(c *Child, g *Group, now time.Time) Record {
	r := Record{Failures: c.failures, Total: c.total, Delay: c.delay}
	if s.backoff != nil && s.backoff.stable(c, now) {
		r.Failures, r.Delay = 0, 0
	}
	w := &c.window
	if s.shared {
		w = &g.window
	}
	r.InWindow = w.within(s.within, now)
	return r
}

// within is how many of the restarts that were counted still count.
func (c *window) within(w time.Duration, now time.Time) (n int) {
	if len(c.ring) > 0 {
		for _, t := range c.ring {
			if now.Sub(t) <= w {
				n++
			}
		}
		return n
	}
	if w > 0 && now.Sub(c.start) > w {
		return 0
	}
	return c.count
}
