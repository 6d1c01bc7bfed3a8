// Package breaker has the rules of circuit breakers: when a call may be tried, what its end
// means, how long the circuit stays open. It is shared by guest-sdk/breaker for guests and
// host/breaker for actors in Go, which make the calls. It has no clock, messages or locks: the
// caller passes the time in, and calls it from one goroutine at a time.
//
// The rules are those of Akka 2.4's CircuitBreaker, see docs/guide/circuit-breaker.md.
package breaker

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// State is where a circuit stands.
type State uint8

// The states.
const (
	Closed   State = iota // calls are made, failures in a row are counted
	Open                  // calls fail at once
	HalfOpen              // one call is tried, all others fail at once
)

// String is the state's name: closed, open or half-open.
func (s State) String() string {
	return [...]string{"closed", "open", "half-open", "?"}[min(s, 3)]
}

// Header is the header that tells a breaker's actor how to treat a message: TellOnly or Passthrough.
// Without it a message that wants an answer is a call, and any other is TellOnly.
const (
	Header      = "wasmactors.breaker"
	TellOnly    = "tell"        // passed on while the circuit is closed, else unhandled
	Passthrough = "passthrough" // passed on always, and not counted
)

// Defaults of Settings.
const (
	DefaultMaxFailures  = 5
	DefaultCallTimeout  = 10 * time.Second
	DefaultResetTimeout = time.Minute
	DefaultMaxReset     = 24 * time.Hour
)

// NoTimeout as a call timeout lets calls take as long as they like.
const NoTimeout time.Duration = 1<<63 - 1

// Settings say when a circuit opens and for how long. Zero fields mean the defaults.
type Settings struct {
	// MaxFailures is how many calls in a row must fail for the circuit to open.
	MaxFailures int
	// CallTimeout is how long a call may take; one that takes longer is a failure.
	CallTimeout time.Duration
	// ResetTimeout is how long the circuit stays open before one call is tried.
	ResetTimeout time.Duration
	// Backoff, at least 1, is the factor by which the time grows after each trial call that
	// fails, until one succeeds; default 1, it does not grow.
	Backoff float64
	// MaxReset bounds what Backoff makes of ResetTimeout.
	MaxReset time.Duration
}

// Check reports what is wrong with settings.
func (s Settings) Check() error {
	switch {
	case s.MaxFailures < 0:
		return errors.New("breaker: MaxFailures is " + strconv.Itoa(s.MaxFailures) + ": it must be at least 1")
	case s.CallTimeout < 0, s.ResetTimeout < 0, s.MaxReset < 0:
		return errors.New("breaker: CallTimeout, ResetTimeout and MaxReset must not be negative")
	case s.Backoff != 0 && !(s.Backoff >= 1 && s.Backoff <= 1000):
		return errors.New("breaker: Backoff is " + strconv.FormatFloat(s.Backoff, 'g', -1, 64) + ": it must be from 1 to 1000")
	case s.MaxReset != 0 && s.MaxReset < s.ResetTimeout:
		return errors.New("breaker: MaxReset is below ResetTimeout")
	}
	return nil
}

func (s Settings) withDefaults() Settings {
	if s.MaxFailures == 0 {
		s.MaxFailures = DefaultMaxFailures
	}
	if s.CallTimeout == 0 {
		s.CallTimeout = DefaultCallTimeout
	}
	if s.ResetTimeout == 0 {
		s.ResetTimeout = DefaultResetTimeout
	}
	if s.Backoff == 0 {
		s.Backoff = 1
	}
	if s.MaxReset == 0 {
		s.MaxReset = max(DefaultMaxReset, s.ResetTimeout)
	}
	return s
}

// Call is a call that was let through. It counts only in the period in which it began: the end
// of a call from before the circuit opened says nothing about what was tried since.
type Call struct {
	period uint64
	began  time.Time
}

// Took is how long a call has taken until now.
func (c Call) Took(now time.Time) time.Duration { return now.Sub(c.began) }

// Circuit is one circuit. Its methods allocate nothing. Times must not go back.
type Circuit struct {
	settings Settings
	changed  func(from, to State)

	state    State
	period   uint64    // one more at every transition, from 1
	failures int       // in a row, while closed
	trials   int       // that have failed since it was closed
	until    time.Time // when it stops being open
	probing  bool      // the trial call of half-open is under way
	probe    time.Time // when that call began
}

// New makes a closed circuit of checked settings. changed, which may be nil, is called at each
// transition, after it.
func New(s Settings, changed func(from, to State)) Circuit {
	return Circuit{settings: s.withDefaults(), changed: changed, period: 1}
}

// Settings are the settings in force, with the defaults filled in.
func (c *Circuit) Settings() Settings { return c.settings }

// State is the circuit's state at the given time.
func (c *Circuit) State(now time.Time) State {
	c.Tick(now)
	return c.state
}

// Failures are how many calls in a row have failed, while the circuit is closed.
func (c *Circuit) Failures() int { return c.failures }

// Remaining is how long it will still be open; 0 if it is not.
func (c *Circuit) Remaining(now time.Time) time.Duration {
	if c.state != Open {
		return 0
	}
	return max(c.until.Sub(now), 0)
}

// Tick makes the transitions that are due by time alone: an open circuit becomes half-open,
// and a trial call has failed when its time is over. Begin and End do so themselves.
func (c *Circuit) Tick(now time.Time) {
	for {
		switch {
		case c.state == Open && !now.Before(c.until):
			c.become(HalfOpen)
		case c.state == HalfOpen && c.probing && now.Sub(c.probe) > c.settings.CallTimeout:
			c.open(c.probe.Add(c.settings.CallTimeout))
		default:
			return
		}
	}
}

// Begin asks whether a call may be made now. If so, End or Forget is called once with it.
func (c *Circuit) Begin(now time.Time) (call Call, ok bool) {
	c.Tick(now)
	switch c.state {
	case Open:
		return Call{}, false
	case HalfOpen:
		if c.probing {
			return Call{}, false
		}
		c.probing, c.probe = true, now
	}
	return Call{c.period, now}, true
}

// End says how a call has ended. One that has taken longer than the call timeout has failed.
// It reports whether the call has failed.
func (c *Circuit) End(call Call, failed bool, now time.Time) bool {
	failed = failed || call.Took(now) > c.settings.CallTimeout
	c.Tick(now)
	switch {
	case call.period != c.period:
	case c.state == HalfOpen && failed:
		c.open(now)
	case c.state == HalfOpen:
		c.trials, c.failures = 0, 0
		c.become(Closed)
	case !failed:
		c.failures = 0
	default:
		if c.failures++; c.failures >= c.settings.MaxFailures {
			c.open(now)
		}
	}
	return failed
}

// Forget says that a call was given up by its caller, which counts neither as a success nor as a
// failure. If it was the trial call of a half-open circuit, the next call is.
func (c *Circuit) Forget(call Call) {
	if call.period == c.period {
		c.probing = false
	}
}

// open opens the circuit for a full reset timeout from now.
func (c *Circuit) open(now time.Time) {
	d := float64(c.settings.ResetTimeout) * math.Pow(c.settings.Backoff, float64(c.trials))
	reset := c.settings.MaxReset
	if d < float64(reset) {
		reset = time.Duration(d)
	}
	c.trials++
	c.until = now.Add(reset)
	c.become(Open)
}

func (c *Circuit) become(s State) {
	from := c.state
	c.state, c.probing = s, false
	c.period++
	if c.changed != nil {
		c.changed(from, s)
	}
}
