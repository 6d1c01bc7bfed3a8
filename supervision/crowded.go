package supervision

import (
	"math"
	"time"

	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Delays of a child whose start was refused for lack of room, where no backoff has one: trying again at once
// is only work.
const (
	crowdedLeast = 100 * time.Millisecond
	crowdedMost  = 30 * time.Second
)

// crowdedPolicy spreads the attempts of children that wait for the same room.
var crowdedPolicy = backoff.WithJitter(backoff.Exponential(crowdedLeast, crowdedMost, 2), backoff.EqualJitter())

// Crowded is the decision d about a failure of c if that was a start that was refused because there
// is no room: the actor alone is larger than a bound, or has grown beyond one while it started. It is a failure like any other, counted
// and limited. Only a restart that would come at once gets a delay of its own: 0.1 s at first, twice as much
// after each such failure in a row, 30 s at most; the actual wait is between half of that and all of it. Call it
// with every decision about such a failure.
func (s Strategy) Crowded(c *Child, d Decision, rnd backoff.Rand) Decision {
	if c.crowdedAt+1 != int32(c.total) {
		c.crowded = 0
	}
	c.crowded, c.crowdedAt = min(c.crowded, math.MaxUint16-1)+1, int32(c.total)
	if d.Directive == Restart && d.Delay == 0 {
		d.Delay = crowdedPolicy.Delay(int(c.crowded)-1, rnd)
	}
	return d
}
