// Package clock is the only source of time in the product.
//
// Everything that waits or measures takes a [Clock], so that a whole actor
// system runs as well on [Real] time as on a [Virtual] clock that a test or a
// simulation moves by hand.
package clock

import "time"

// Clock tells the time and runs functions later. Implementations are safe for
// use by any number of goroutines.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc runs f once, after d has passed on this clock. A d that is not positive is due at
	// once (on a [Virtual] clock: at the next Advance). Where f runs depends on the
	// implementation: Real starts a goroutine for it, Virtual calls it on the goroutine that
	// advances.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending function call of [Clock.AfterFunc].
type Timer interface {
	// Stop cancels the call. It reports true if this call of Stop has prevented the function from
	// running, and false if the function was started before or another Stop was first. It does
	// not wait for a function that is running. Any goroutine may call it, any number of times.
	Stop() bool
}

// Real is the machine's clock: time.Now and time.AfterFunc. It has no state;
// all values that Real returns are equal.
func Real() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
