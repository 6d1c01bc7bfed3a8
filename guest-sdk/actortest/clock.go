//go:build !wasip1

package actortest

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// maxTurns bounds what one Advance runs.
const maxTurns = 1_000_000

// due is an envelope that waits for its time.
type due struct {
	at       time.Time
	order    uint64
	period   time.Duration // of a timer; the delay of a receive timeout
	envelope abi.Envelope
}

func (a *Actor) later(delay, period time.Duration, e abi.Envelope) *due {
	a.order++
	return &due{at: a.now.Add(delay), order: a.order, period: period, envelope: e}
}

// Advance moves the actor's clock and returns the turns of what became due: its
// timers, the timeouts of its asks, its receive timeout, in the order of time. It
// stops early when a turn fails or the actor ends.
func (a *Actor) Advance(d time.Duration) []*Turn {
	a.t.Helper()
	end := a.now.Add(d)
	var turns []*Turn
	for a.failure == nil && !a.ended {
		next := a.next()
		if next == nil || next.at.After(end) {
			break
		}
		if len(turns) == maxTurns {
			a.t.Fatalf("actortest: %d turns before %v: a timer without an end?", maxTurns, end)
		}
		if next.at.After(a.now) {
			a.now = next.at
		}
		turns = append(turns, a.fire(next))
	}
	if a.now.Before(end) {
		a.now = end
	}
	return turns
}

// fire delivers what has become due.
func (a *Actor) fire(next *due) *Turn {
	a.t.Helper()
	switch next.envelope.Kind {
	case abi.KindTimer:
		key := next.envelope.Correlation
		if next.period == 0 {
			delete(a.timers, key)
		} else {
			a.timers[key] = a.later(next.period, next.period, next.envelope)
		}
	case abi.KindReceiveTimeout:
		next.at = a.now // it is set again
	}
	return a.deliver(next.envelope)
}

// next is what becomes due first.
func (a *Actor) next() *due {
	best := a.receive
	for _, from := range []map[uint64]*due{a.timers, a.asks} {
		for _, d := range from {
			if best == nil || d.at.Before(best.at) || d.at.Equal(best.at) && d.order < best.order {
				best = d
			}
		}
	}
	return best
}

// touch begins the receive timeout anew.
func (a *Actor) touch() {
	if a.receive != nil {
		a.receive = a.later(a.receive.period, a.receive.period, a.receive.envelope)
	}
}
