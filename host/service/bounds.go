package service

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds are how much may be under way for a grant. They hold for the actor of the grant and everything
// that it spawns together. Zero fields mean the service's defaults.
type Bounds struct {
	AtOnce  int           `manifest:"at-once" doc:"requests under way at a time" min:"1" max:"100000"`
	Bytes   Size          `manifest:"bytes" doc:"bytes of requests under way, and of what they hold in the host" min:"1024"`
	Rate    float64       `manifest:"rate" doc:"requests a second, on average; default: any number" min:"0.001" max:"1000000"`
	Burst   int           `manifest:"burst" doc:"rate: how many may come at once; default: those of a second" min:"1" max:"1000000"`
	Timeout time.Duration `manifest:"timeout" doc:"how long a request may take"`
}

// Defaults of [Bounds].
const (
	DefaultAtOnce  = 64
	DefaultBytes   = 16 << 20
	DefaultTimeout = 30 * time.Second
)

// or fills the zero fields of b from defaults.
func (b Bounds) or(defaults Bounds) Bounds {
	if b.AtOnce <= 0 {
		b.AtOnce = defaults.AtOnce
	}
	if b.Bytes <= 0 {
		b.Bytes = defaults.Bytes
	}
	if b.Rate <= 0 {
		b.Rate, b.Burst = defaults.Rate, max(b.Burst, defaults.Burst)
	}
	if b.Burst <= 0 {
		b.Burst = max(int(b.Rate), 1)
	}
	if b.Timeout <= 0 {
		b.Timeout = defaults.Timeout
	}
	return b
}

// budget is how much of its bounds a grant uses. It is safe for concurrent use.
type budget struct {
	bounds Bounds
	limit  *rate.Limiter // nil: none

	mu    sync.Mutex
	open  int
	bytes int64
}

func newBudget(b Bounds) *budget {
	x := &budget{bounds: b}
	if b.Rate > 0 {
		x.limit = rate.NewLimiter(rate.Limit(b.Rate), b.Burst)
	}
	return x
}

// admit begins a request of so many bytes.
func (b *budget) admit(now time.Time, bytes int64) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.open >= b.bounds.AtOnce:
		return Errorf(Busy, "%d requests are in progress, which is the limit; at-once of the grant raises it", b.open)
	case bytes > int64(b.bounds.Bytes):
		return Errorf(TooLarge, "the request has %d bytes, at most %d; bytes of the grant raises it", bytes, b.bounds.Bytes)
	case b.bytes+bytes > int64(b.bounds.Bytes):
		return Errorf(Busy, "requests in progress hold %d bytes of %d; bytes of the grant raises it", b.bytes, b.bounds.Bytes)
	case b.limit != nil && !b.limit.AllowN(now, 1):
		return Errorf(RateLimited, "more than %g requests a second; rate and burst of the grant raise it", b.bounds.Rate)
	}
	b.open++
	b.bytes += bytes
	return nil
}

// hold takes more bytes.
func (b *budget) hold(bytes int64) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes+bytes > int64(b.bounds.Bytes) {
		return Errorf(Busy, "requests in progress hold %d bytes of %d, and %d more are needed; bytes of the grant raises it", b.bytes, b.bounds.Bytes, bytes)
	}
	b.bytes += bytes
	return nil
}

// leave gives back what admit and hold have taken.
func (b *budget) leave(requests int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open -= requests
	b.bytes -= bytes
}
