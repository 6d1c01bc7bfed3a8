package host

import "github.com/wasmactors/wasmactors/host/internal/look"

// Subscription is a bounded stream of events. A reader that is too slow loses events, and gets
// their number; no actor waits for it. Its methods: C (the channel, which Close and [System.Close] close), Dropped (how many
// events were lost), Close. The last event of a system, also of one that stops by itself, is EventTerminated, except for
// dead letters and events of its extensions until it is closed.
type Subscription = look.Subscription

// Listen calls hear with each event that filter lets pass (all if it is nil), one after the other in the
// order in which they have happened, with a buffer like that of [System.Subscribe]. It is for code that
// tells actors of events. A goroutine of the system calls hear, some time after the event; in a manual
// system [System.Step] does, at its end, or at its beginning for events since the last Step: so with
// one seed actors always hear of events at the same point. Several listeners hear in the order in which they
// were added. Close of the subscription ends it; C is not for the caller. [System.Close] waits for hear to
// return.
func (s *System) Listen(buffer int, filter func(*Event) bool, hear func(*Event)) *Subscription {
	if s.cfg.Manual {
		return s.audience.Subscribe(buffer, filter, hear)
	}
	sub := s.audience.Add(buffer, filter)
	s.logging.Go(func() {
		for e := range sub.C() {
			hear(&e)
		}
	})
	return sub
}

// Step runs one actor of a manual system, and calls the listeners with what has happened; false means that
// there was nothing to do.
func (s *System) Step() bool {
	heard := s.audience.Flush()
	if s.disp.Step() {
		s.audience.Flush()
		return true
	}
	return heard > 0 // a listener may have made work for an actor
}

// RunUntilIdle runs actors of a manual system until none has work, max spells at
// the most, and returns how many ran.
func (s *System) RunUntilIdle(max int) int {
	n := 0
	for n < max && s.Step() {
		n++
	}
	return n
}
