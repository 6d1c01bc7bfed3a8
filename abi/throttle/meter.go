// Package throttle has the rule of throttlers: at most N starts per interval. guest-sdk/throttle (for guests) and
// host/throttle (for actors in Go) share it. It has no clock, messages or locks: the caller passes the time in, and calls it
// from one goroutine at a time.
//
// The rule is that of Akka 2.4's TimerBasedThrottler; docs/guide/throttler.md has it.
package throttle

import (
	"errors"
	"strconv"
	"time"
)

// Rate is how many may start in each interval.
type Rate struct {
	N   int
	Per time.Duration
}

// Check reports what is wrong with a rate.
func (r Rate) Check() error {
	if r.N < 1 || r.Per <= 0 {
		return errors.New("throttle: the rate is " + strconv.Itoa(r.N) + " in " + r.Per.String() + ": both must be more than 0")
	}
	return nil
}

// Meter counts vouchers. An interval begins with the first start that finds none under way, and has
// Rate.N vouchers; those that are not used are lost at its end. Only starts count: how long
// anything takes does not matter. So there are never more than N starts in an interval, and never more
// than 2N in any span of that length. It allocates nothing.
type Meter struct {
	rate  Rate
	used  int
	began time.Time
}

// NewMeter makes a meter of a checked rate.
func NewMeter(r Rate) Meter { return Meter{rate: r} }

// Rate is the present rate.
func (m *Meter) Rate() Rate { return m.rate }

// SetRate changes the rate. It holds at once, also for the interval that is under way: what has started in
// it counts, and it ends as long after its begin as the new rate says.
func (m *Meter) SetRate(r Rate) { m.rate = r }

// ends is the end of the interval.
func (m *Meter) ends() time.Time { return m.began.Add(m.rate.Per) }

// Take takes a voucher; false if none is left in this interval.
func (m *Meter) Take(now time.Time) bool {
	if !now.Before(m.ends()) {
		m.used, m.began = 0, now
	}
	if m.used >= m.rate.N {
		return false
	}
	m.used++
	return true
}

// Wait is how long it takes until there is a voucher; 0 if there is one.
func (m *Meter) Wait(now time.Time) time.Duration {
	if m.used < m.rate.N || !now.Before(m.ends()) {
		return 0
	}
	return m.ends().Sub(now)
}
