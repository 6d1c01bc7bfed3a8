// Package breaker has circuit breakers for Go. A breaker stops calling a target that fails, and tries it again after a
// while. [Breaker.Do] and [Call] guard calls of any goroutine, [Asks] those of an actor, and [NewProxy] is an actor that
// guards another one.
//
// The rules are in abi/breaker, which guests share; see docs/guide/circuit-breaker.md.
package breaker

import (
	"errors"
	"fmt"
	"sync"
	"time"

	rules "github.com/wasmactors/wasmactors/abi/breaker"
	"github.com/wasmactors/wasmactors/host"
)

// Settings say when a circuit opens and for how long. Zero fields mean the defaults: 5
// failures, 10 s, 1 min.
type Settings = rules.Settings

// State is where a circuit stands.
type State = rules.State

// The states.
const (
	Closed   = rules.Closed
	Open     = rules.Open
	HalfOpen = rules.HalfOpen
)

// NoTimeout as a call timeout lets calls take as long as they like.
const NoTimeout = rules.NoTimeout

// OpenError says that a call was not made: the circuit is open, or half-open with its trial call
// under way.
type OpenError struct {
	// Remaining is how long nothing will be tried; 0 while the trial call is under way.
	Remaining time.Duration
}

// Error implements error.
func (e *OpenError) Error() string {
	if e.Remaining == 0 {
		return "breaker: the circuit is half-open, and its one trial call is in progress"
	}
	return fmt.Sprintf("breaker: the circuit is open for another %v", e.Remaining)
}

// ErrTimeout is wrapped in the error of a call that has taken longer than the call timeout.
var ErrTimeout = errors.New("breaker: the call has taken longer than its timeout")

// Breaker is a circuit breaker. Its methods are for any goroutine, except those that configure it,
// which come before its use: New(...).OnOpen(...).FailIf(...).
type Breaker struct {
	clock  host.Clock
	failIf func(error) bool

	opened, closed, halfOpened  func()
	succeeded, failed, timedOut func(took time.Duration)
	refused                     func()

	mu      sync.Mutex
	circuit rules.Circuit
	timer   interface{ Stop() bool } // of the end of open
	news    []State                  // transitions of the call that holds mu
}

// New makes a closed breaker with a clock, [host.System.Clock] in most cases.
func New(clock host.Clock, s Settings) (*Breaker, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	b := &Breaker{clock: clock}
	b.circuit = rules.New(s, func(_, to State) { b.news = append(b.news, to) })
	return b, nil
}

// OnOpen makes f be called after the circuit has opened. All such functions are called by the goroutine
// whose call has made the transition, or by the clock's, and may use the breaker.
func (b *Breaker) OnOpen(f func()) *Breaker { b.opened = f; return b }

// OnClose makes f be called after the circuit has closed again.
func (b *Breaker) OnClose(f func()) *Breaker { b.closed = f; return b }

// OnHalfOpen makes f be called when the reset timeout is over: one call may be tried.
func (b *Breaker) OnHalfOpen(f func()) *Breaker { b.halfOpened = f; return b }

// OnSuccess makes f be called with the duration of each call that has succeeded.
func (b *Breaker) OnSuccess(f func(took time.Duration)) *Breaker { b.succeeded = f; return b }

// OnFailure makes f be called with the duration of each call that has failed; for those that took too
// long see OnTimeout.
func (b *Breaker) OnFailure(f func(took time.Duration)) *Breaker { b.failed = f; return b }

// OnTimeout makes f be called for each call that has taken longer than the call timeout.
func (b *Breaker) OnTimeout(f func(took time.Duration)) *Breaker { b.timedOut = f; return b }

// OnRefused makes f be called for each call that was not made.
func (b *Breaker) OnRefused(f func()) *Breaker { b.refused = f; return b }

// FailIf sets which errors are failures; the default is all. A call that takes too long is a failure in
// any case.
func (b *Breaker) FailIf(f func(error) bool) *Breaker { b.failIf = f; return b }

// State is where the circuit stands now.
func (b *Breaker) State() (s State) {
	b.locked(func(now time.Time) { s = b.circuit.State(now) })
	return s
}

// Remaining is how long the circuit will still be open; 0 if it is not.
func (b *Breaker) Remaining() (d time.Duration) {
	b.locked(func(now time.Time) {
		b.circuit.Tick(now)
		d = b.circuit.Remaining(now)
	})
	return d
}

// begin asks whether a call may be made; the error is an *OpenError.
func (b *Breaker) begin() (call rules.Call, err error) {
	b.locked(func(now time.Time) {
		var ok bool
		if call, ok = b.circuit.Begin(now); !ok {
			err = &OpenError{b.circuit.Remaining(now)}
		}
	})
	if err != nil && b.refused != nil {
		b.refused()
	}
	return call, err
}

// outcome is how a call has ended.
type outcome uint8

const (
	good outcome = iota
	bad
	late      // its time is over
	abandoned // given up by its caller: neither a success nor a failure
)

// end notes how a call has ended, and returns it: a successful call may be late.
func (b *Breaker) end(call rules.Call, o outcome) outcome {
	var took time.Duration
	b.locked(func(now time.Time) {
		took = call.Took(now)
		switch {
		case o == abandoned:
			b.circuit.Forget(call)
			return
		case took > b.circuit.Settings().CallTimeout:
			o = late
		}
		b.circuit.End(call, o != good, now)
	})
	if f := [...]func(time.Duration){good: b.succeeded, bad: b.failed, late: b.timedOut, abandoned: nil}[o]; f != nil {
		f(took)
	}
	return o
}

// verdict is the outcome of a call with this error.
func (b *Breaker) verdict(err error) outcome {
	if err == nil || b.failIf != nil && !b.failIf(err) {
		return good
	}
	return bad
}

// locked calls f with the circuit under the lock, and reports its transitions afterwards.
func (b *Breaker) locked(f func(now time.Time)) {
	b.mu.Lock()
	now := b.clock.Now()
	f(now)
	news := b.news
	b.news = nil
	if len(news) > 0 {
		b.arm(now)
	}
	b.mu.Unlock()
	for _, to := range news {
		if f := [...]func(){Closed: b.closed, Open: b.opened, HalfOpen: b.halfOpened}[to]; f != nil {
			f()
		}
	}
}

// arm sets the timer after a transition. mu is held.
func (b *Breaker) arm(now time.Time) {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if d := b.circuit.Remaining(now); d > 0 {
		b.timer = b.clock.AfterFunc(d, func() { b.State() })
	}
}

// timeout is the timeout of a call.
func (b *Breaker) timeout() time.Duration { return b.circuit.Settings().CallTimeout }
