package host

// Listen has hear called with each event that filter lets pass (all if it is nil), one after the other in the
// order in which they have happened, with a buffer as [System.Subscribe] has one. It is for whoever lets
// actors know of events. A goroutine of the system's calls hear, some time after the event; in a manual
// system it is [System.Step], at its end, or at its beginning what has happened since the last one: so with
// one seed actors hear of events always at the same point. Several listeners hear in the order in which they
// have begun. Close of the subscription ends it; C is not for the caller. [System.Close] waits for hear to
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

// flush has the listeners of a manual system hear what has happened, and returns how many events that were.
// What they cause meanwhile is for the next time.
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

// Step runs one actor of a manual system, and has listeners hear of what has happened; false means that
// there was nothing to do.
func (s *System) Step() bool {
	heard := s.bus.flush()
	if s.disp.Step() {
		s.bus.flush()
		return true
	}
	return heard > 0 // it may have given somebody work
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
