package host

// Listen calls hear with each event that filter lets pass (all if it is nil), one after the other in the
// order in which they have happened, with a buffer like that of [System.Subscribe]. It is for code that
// tells actors of events. A goroutine of the system calls hear, some time after the event; in a manual
// system [System.Step] does, at its end, or at its beginning for events since the last Step: so with
// one seed actors always hear of events at the same point. Several listeners hear in the order in which they
// were added. Close of the subscription ends it; C is not for the caller. [System.Close] waits for hear to
// return.
func (s *System) Listen(buffer int, filter func(*Event) bool, hear func(*Event)) *Subscription {
	if s.cfg.manual {
		return s.bus.subscribe(buffer, filter, hear)
	}
	sub := s.bus.add(buffer, filter)
	s.logging.Go(func() {
		for e := range sub.c {
			hear(&e)
		}
	})
	return sub
}

// flush calls the listeners of a manual system with what has happened, and returns how many events that were.
// Events that they cause are left for the next flush.
func (b *bus) flush() (n int) {
	if b.hearing.Load() == 0 {
		return 0
	}
	subs := b.subs.Load()
	if subs == nil {
		return 0
	}
	for _, s := range *subs {
		if s.hear == nil {
			continue
		}
		for range len(s.c) {
			e, open := <-s.c
			if !open {
				break
			}
			s.hear(&e)
			n++
		}
	}
	return n
}

// Step runs one actor of a manual system, and calls the listeners with what has happened; false means that
// there was nothing to do.
func (s *System) Step() bool {
	heard := s.bus.flush()
	if s.disp.Step() {
		s.bus.flush()
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
