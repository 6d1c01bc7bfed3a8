package rebuild

import (
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// PastClock tells the time of records until it is released. Alarms are set by the clock behind it.
type PastClock struct {
	clock.Clock
	At atomic.Int64 // of the record, ns since 1970; 0: it is released
}

// Now implements clock.Clock.
func (c *PastClock) Now() time.Time {
	if t := c.At.Load(); t != 0 {
		return time.Unix(0, t)
	}
	return c.Clock.Now()
}

// AfterFunc implements clock.Clock.
func (c *PastClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.Clock.AfterFunc(c.Now().Add(d).Sub(c.Clock.Now()), f)
}
