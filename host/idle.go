package host

import (
	"context"
	"time"
)

// Idle waits until nothing is left to do: no message waits, no turn runs, no
// answer, one-shot timer or delayed restart is pending. Periodic timers and
// receive timeouts do not count. It runs a manual system until then, and advances a virtual
// clock.
//
// It looks at every actor, at growing intervals, so it is for tests and for the
// end of a batch job.
func (s *System) Idle(ctx context.Context) error {
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		if s.cfg.manual {
			s.RunUntilIdle(1 << 30)
		}
		if s.idle() {
			return nil
		}
		if v, ok := s.cfg.clock.(*VirtualClock); ok && s.cfg.manual {
			v.AdvanceToNext()
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return nil
		case <-time.After(wait):
		}
	}
}

// idle looks twice: if anything has happened in between, the system was not idle.
func (s *System) idle() bool {
	before, busy := s.progress()
	if busy {
		return false
	}
	after, busy := s.progress()
	return !busy && before == after
}

// progress sums up the turns of all actors and the ends of those that have ended, and reports
// whether any has work. An actor that takes its last step is no longer in the table, but has yet to
// tell its parent and its watchers.
func (s *System) progress() (done uint64, busy bool) {
	gone := s.totals.gone.Load()
	done = s.totals.ending.Load()
	busy = done != gone
	s.table.Each(func(a *actor) {
		done += a.turnCount() + 1
		if a.sysq.waiting() || a.box.Len() > 0 || a.running() || a.alarms.Pending() > 0 {
			busy = true
		}
	})
	return done, busy
}
