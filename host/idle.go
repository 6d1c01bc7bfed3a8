package host

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/life"
)

// Idle waits until nothing is left to do: no message waits, no turn runs, no
// answer, one-shot timer or delayed restart is pending. Periodic timers and
// receive timeouts do not count. It runs a manual system until then, and advances a virtual
// clock.
//
// It looks at every actor, but only when none that was found busy is so any more, and for a twentieth
// of the time at most.
func (s *System) Idle(ctx context.Context) error {
	var witness *actor
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		if s.cfg.Manual {
			s.RunUntilIdle(1 << 30)
		}
		began := time.Now()
		if witness = s.witness(witness); witness == nil {
			return nil
		}
		wait = max(wait, 20*time.Since(began))
		if v, ok := s.cfg.Clock.(*VirtualClock); ok && s.cfg.Manual {
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

// witness is an actor that has work, which shows that the system is not idle; nil: it is. The one before is looked
// at first.
func (s *System) witness(before *actor) *actor {
	if before != nil && before.life.State() != life.Stopped && before.busy() {
		return before
	}
	done, busy := s.progress()
	if busy != nil {
		return busy
	}
	after, busy := s.progress() // once more: if anything has happened in between, it was not idle
	if busy == nil && done != after {
		return s.user
	}
	return busy
}

// busy reports whether the actor has work.
func (a *actor) busy() bool {
	return a.sysq.Waiting() || a.box.Len() > 0 || a.place.Running() || a.life.Held(life.Commit) || a.alarms.Pending() > 0
}

// progress sums up the turns of all actors and the ends of those that have ended, and finds one
// that has work; /user stands for one that takes its last step, which is no longer in the table, but has yet to
// tell its parent and its watchers.
func (s *System) progress() (done uint64, busy *actor) {
	gone := s.totals.Gone.Load()
	if done = s.totals.Ending.Load(); done != gone {
		busy = s.user
	}
	if d := s.durable; d != nil && d.leaving.Load() > 0 {
		busy = s.user
	}
	s.table.Each(func(a *actor) {
		done += a.tally.Turns.Load() + 1
		if a.busy() {
			busy = a
		}
	})
	return done, busy
}
