package dispatch

import "time"

// Unwatched has the monitor never look by itself: a test that is held up does not seem to
// be a lane that stands still.
func (c Config) Unwatched() Config {
	c.tick = 1000 * time.Hour
	return c
}

// Look has the monitor look once.
func (d *Dispatcher) Look() { d.look() }

// Patience is patience.
const Patience = patience
