// Package alarm runs functions later and counts those that are still to come, so
// that a system can tell whether it is idle. It is the only place that counts them.
package alarm

import (
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// Board is an actor's alarms. The zero value is ready.
type Board struct{ pending atomic.Int32 }

// Pending is the number of alarms that were set and have neither fired nor been
// stopped. Any goroutine may ask.
func (b *Board) Pending() int { return int(b.pending.Load()) }

// After calls f once, when d has passed on the clock, on the clock's goroutine. The
// alarm is pending until f has returned.
func (b *Board) After(c clock.Clock, d time.Duration, f func()) Alarm {
	b.pending.Add(1)
	return Alarm{b, c.AfterFunc(max(d, 0), func() {
		f()
		b.pending.Add(-1)
	})}
}

// Alarm is one of them; the zero value never fires.
type Alarm struct {
	board *Board
	timer clock.Timer
}

// Stop keeps the alarm from firing; false if it has fired, or was stopped before.
func (a Alarm) Stop() bool {
	if a.timer == nil || !a.timer.Stop() {
		return false
	}
	a.board.pending.Add(-1)
	return true
}
