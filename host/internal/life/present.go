package life

import (
	"sync/atomic"
	"time"
)

// Present is which incarnation of an actor lives now and since when. Any goroutine may read
// it; only the actor's own run changes it.
type Present struct {
	Since  atomic.Int64 // ns since 1970, 0: none has begun
	Number atomic.Uint64
}

// Incarnation is 0 at first and one more after every restart.
func (p *Present) Incarnation() uint64 { return p.Number.Load() }

// StartedAt is when the present incarnation began; the zero time if none has.
func (p *Present) StartedAt() time.Time {
	if at := p.Since.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}
