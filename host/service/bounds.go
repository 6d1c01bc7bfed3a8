package service

import (
	"container/list"
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
	Wait    time.Duration `manifest:"wait" doc:"how long a request waits while at-once others are under way, before it is refused; default: 1s"`
}

// Defaults of [Bounds].
const (
	DefaultAtOnce  = 64
	DefaultBytes   = 16 << 20
	DefaultTimeout = 30 * time.Second
	DefaultWait    = time.Second
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
	if b.Wait <= 0 {
		b.Wait = defaults.Wait
	}
	return b
}

// budget is how much of its bounds a grant uses. It is safe for concurrent use.
type budget struct {
	bounds Bounds
	limit  *rate.Limiter // nil: none

	mu      sync.Mutex
	open    int
	bytes   int64
	waiting list.List // of *waiter, in the order in which they came
}

// waiter is a request that begins when there is room for it.
type waiter struct {
	// start begins the request, and wait is called if that comes later; both with the lock of the budget, so that
	// requests begin in their order.
	start, wait func()

	place *list.Element // nil: it does not wait
}

func newBudget(b Bounds) *budget {
	x := &budget{bounds: b}
	if b.Rate > 0 {
		x.limit = rate.NewLimiter(rate.Limit(b.Rate), b.Burst)
	}
	return x
}

// admit takes the bytes of a request, and of its rate.
func (b *budget) admit(now time.Time, bytes int64) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case bytes > int64(b.bounds.Bytes):
		return Errorf(TooLarge, "the request has %d bytes, at most %d; bytes of the grant raises it", bytes, b.bounds.Bytes)
	case b.bytes+bytes > int64(b.bounds.Bytes):
		return Errorf(Busy, "requests in progress hold %d bytes of %d; bytes of the grant raises it", b.bytes, b.bounds.Bytes)
	case b.limit != nil && !b.limit.AllowN(now, 1):
		return Errorf(RateLimited, "more than %g requests a second; rate and burst of the grant raise it", b.bounds.Rate)
	}
	b.bytes += bytes
	return nil
}

// room fails if as many requests wait as may.
func (b *budget) room(most int) *Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.waiting.Len(); n >= most {
		return Errorf(Busy, "%d requests are in progress, which is the limit, and %d wait for them; at-once of the grant raises it", b.open, n)
	}
	return nil
}

// enter begins a request at once, or when those before it leave room.
func (b *budget) enter(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open < b.bounds.AtOnce && b.waiting.Len() == 0 {
		b.open++
		w.start()
		return
	}
	w.place = b.waiting.PushBack(w)
	w.wait()
}

// abandon takes a request out of the queue; false: it has begun.
func (b *budget) abandon(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.place == nil {
		return false
	}
	b.waiting.Remove(w.place)
	w.place = nil
	return true
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

// leave gives back what enter, admit and hold have taken, and lets others begin.
func (b *budget) leave(requests int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open -= requests
	b.bytes -= bytes
	for b.open < b.bounds.AtOnce && b.waiting.Len() > 0 {
		w := b.waiting.Remove(b.waiting.Front()).(*waiter)
		w.place = nil
		b.open++
		w.start()
	}
}
