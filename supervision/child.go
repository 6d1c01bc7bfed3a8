package supervision

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Child is what a supervisor remembers of one child. The zero value is a child
// that has never failed. It is not safe for concurrent use.
type Child struct {
	window   window
	failures int           // since the last reset
	total    int           // over its life
	started  time.Time     // of the present incarnation
	delay    time.Duration // before the last restart that was delayed
	counted  bool          // the last end is counted in failures

	crowded   uint16 // starts in a row that were refused for lack of room
	crowdedAt int32  // total, at the last of them
}

// Started notes that an incarnation has begun to work.
func (c *Child) Started(now time.Time) { c.started = now }

// Reset starts the count of failures again.
func (c *Child) Reset() { c.failures, c.crowdedAt = 0, -1 }

// Recall uncounts the last failure, which will be decided on again.
func (c *Child) Recall() {
	c.total--
	if c.counted {
		c.failures = max(c.failures-1, 0)
	}
}

// Failures since the last reset.
func (c *Child) Failures() int { return c.failures }

// Total failures over the child's life.
func (c *Child) Total() int { return c.total }

// Group is what a supervisor remembers of all its children together. The zero
// value is ready. It is not safe for concurrent use.
type Group struct{ window window }

// Decision is the outcome of a failure, or of the stop of a child by itself.
type Decision struct {
	Directive Directive
	Delay     time.Duration // before a Restart
	Failures  int           // of the child since the last reset, this one included
	// Alone says that the directive does not apply to siblings, for any kind of strategy.
	Alone bool
	// Refused says why a restart was turned into something else; empty if it was
	// not.
	Refused string
}

// Failed decides about a failure of c at a time. For all-for-one and
// rest-for-one the host asks [Strategy.Permit] for each other child that a
// restart concerns, and stops all if one is refused.
func (s Strategy) Failed(c *Child, g *Group, life Lifetime, typ string, f *abi.Failure, now time.Time, rnd backoff.Rand) Decision {
	return s.Directed(s.Decide(typ, f), c, g, life, now, rnd)
}

// Directed is Failed where the directive is known already: the supervising actor
// has given it.
func (s Strategy) Directed(d Directive, c *Child, g *Group, life Lifetime, now time.Time, rnd backoff.Rand) Decision {
	if d == Ask {
		return Decision{Directive: Ask, Failures: c.failures + 1}
	}
	c.count(s.backoff, now, OnFailure)
	if d == Restart && life == Temporary {
		return Decision{Directive: Stop, Failures: c.failures, Alone: true, Refused: "a temporary actor is not restarted"}
	}
	if d != Restart {
		return Decision{Directive: d, Failures: c.failures, Alone: d == Stop && life == Temporary}
	}
	return s.restart(c, g, now, rnd, OnFailure)
}

// Stopped decides about a child that has stopped itself: only a permanent child is
// restarted.
func (s Strategy) Stopped(c *Child, g *Group, life Lifetime, now time.Time, rnd backoff.Rand) Decision {
	if life != Permanent {
		return Decision{Directive: Stop, Failures: c.failures, Alone: true}
	}
	c.count(s.backoff, now, OnStop)
	return s.restart(c, g, now, rnd, OnStop)
}

// count adds a failure, after the reset that is due. Ends that are not delayed do not
// count for the backoff.
func (c *Child) count(b *Backoff, now time.Time, on Ends) {
	c.total++
	c.counted = b == nil || b.delays(on)
	if !c.counted {
		return
	}
	if b != nil && b.stable(c, now) {
		c.Reset()
	}
	c.failures++
}

// restart is a restart, delayed if need be, unless a limit forbids it.
func (s Strategy) restart(c *Child, g *Group, now time.Time, rnd backoff.Rand, on Ends) Decision {
	d := Decision{Directive: Restart, Failures: c.failures}
	if s.shared && !s.permit(&g.window, now) || !s.shared && !s.Permit(c, now) {
		d.Directive, d.Refused = s.Exceeded(), "more restarts than allowed"
		return d
	}
	b := s.backoff
	if b == nil || !b.delays(on) {
		return d
	}
	if b.MaxFailures > 0 && c.failures > b.MaxFailures {
		d.Directive, d.Refused = b.GiveUp.directive(), "failed too often"
		return d
	}
	d.Delay = b.Policy.Delay(c.failures-1, rnd)
	c.delay = d.Delay
	return d
}

// Permit asks for one restart of c under the limit of restarts and counts it. With
// a shared window other children's restarts are free.
func (s Strategy) Permit(c *Child, now time.Time) bool {
	return s.shared || s.permit(&c.window, now)
}

func (s Strategy) permit(w *window, now time.Time) bool {
	if s.sliding {
		return w.slide(s.restarts, s.within, now)
	}
	return w.tumble(s.restarts, s.within, now)
}

// ChildState is what is noted about a child, as a snapshot holds it.
type ChildState struct {
	_        struct{} `cbor:",toarray"`
	Failures int
	Total    int
	Started  int64 // ns since 1970; 0: not
	Delay    time.Duration
	Counted  bool
	Count    int     // of the window
	Opened   int64   // when it was, ns since 1970; 0: not
	Ring     []int64 // of a sliding one, oldest at Next
	Next     int

	Crowded   uint16
	CrowdedAt int32
}

// State is what is noted about the child.
func (c *Child) State() ChildState {
	s := ChildState{
		Failures: c.failures, Total: c.total, Started: nanos(c.started), Delay: c.delay, Counted: c.counted,
		Crowded: c.crowded, CrowdedAt: c.crowdedAt,
	}
	c.window.save(&s)
	return s
}

func (c *window) save(s *ChildState) {
	s.Count, s.Opened, s.Next = c.count, nanos(c.start), c.next
	for _, t := range c.ring {
		s.Ring = append(s.Ring, nanos(t))
	}
}

// State is what is noted about all children together, as the window of a child.
func (g *Group) State() (s ChildState) {
	g.window.save(&s)
	return s
}

// Group is what [Group.State] has saved; false if the state is not valid.
func (s ChildState) Group() (g Group, ok bool) {
	c, ok := s.Child()
	return Group{c.window}, ok
}

// Child is the child with this state; false if the state is not valid.
func (s ChildState) Child() (c Child, ok bool) {
	if s.Failures < 0 || s.Total < 0 || s.Delay < 0 || s.Count < 0 || len(s.Ring) > maxRing || s.Next < 0 || s.Next > 0 && s.Next >= len(s.Ring) {
		return Child{}, false
	}
	c = Child{
		failures: s.Failures, total: s.Total, started: timeOf(s.Started), delay: s.Delay, counted: s.Counted,
		crowded: s.Crowded, crowdedAt: s.CrowdedAt,
		window: window{count: s.Count, start: timeOf(s.Opened), next: s.Next},
	}
	for _, t := range s.Ring {
		c.window.ring = append(c.window.ring, timeOf(t))
	}
	return c, true
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}
