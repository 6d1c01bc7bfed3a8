package supervision

import "time"

// window counts restarts.
type window struct {
	count int
	start time.Time
	ring  []time.Time // of the last restarts, oldest at next; sliding only
	next  int
}

// tumble is Akka's rule (ChildRestartStats.requestRestartPermission), n restarts
// within w:
//
//	n = 0          never
//	n > 0, w = 0   n in the child's life
//	n > 0, w > 0   the first failure opens a window; inside it n are allowed,
//	               outside it another opens
//	n < 0, w > 0   as with n = 1: the first failure of a window is always allowed
//	n < 0, w = 0   always
func (c *window) tumble(n int, w time.Duration, now time.Time) bool {
	switch {
	case n == 0:
		return false
	case w == 0 && n < 0:
		return true
	case w == 0:
		c.count++
		return c.count <= n
	}
	if c.count > 0 && now.Sub(c.start) <= w {
		c.count++
		return c.count <= n
	}
	c.count, c.start = 1, now
	return true
}

// maxRing bounds what the sliding window remembers; beyond, it tumbles.
const maxRing = 10_000

// slide is OTP's intensity and period: refused if n restarts lie within the
// last w already. Each call takes constant time.
func (c *window) slide(n int, w time.Duration, now time.Time) bool {
	if n <= 0 || w == 0 || n > maxRing {
		return c.tumble(n, w, now)
	}
	if len(c.ring) < n {
		c.ring = append(c.ring, now)
		return true
	}
	if now.Sub(c.ring[c.next]) <= w {
		return false
	}
	c.ring[c.next] = now
	c.next = (c.next + 1) % n
	return true
}
