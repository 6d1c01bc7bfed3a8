package service

import (
	"container/list"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// BreakerGrant is what a grant says about circuit breakers, to be nested under the key breaker.
// The zero value is the defaults.
type BreakerGrant struct {
	Off      bool          `manifest:"off" doc:"true: a target that fails is asked all the same"`
	Failures int           `manifest:"failures" doc:"failures in a row that open the circuit; default: 5" min:"1" max:"1000000"`
	Open     time.Duration `manifest:"open" doc:"how long nothing is sent to the target then; default: 10s"`
	Probes   int           `manifest:"probes" doc:"requests that may try it afterwards, all of which must do well; default: 1" min:"1" max:"1000"`
}

// Defaults of [BreakerGrant].
const (
	DefaultBreakerFailures = 5
	DefaultBreakerOpen     = 10 * time.Second
	DefaultBreakerProbes   = 1
)

// MostBreakers is how many targets are remembered; beyond it the one that was used least
// recently is forgotten, and begins closed.
const MostBreakers = 1024

// Breakers are the circuit breakers of a grant, one for each target, in the time of a clock. They are safe for
// concurrent use.
type Breakers struct {
	grant BreakerGrant
	clock host.Clock

	mu     sync.Mutex
	of     map[string]*list.Element
	recent *list.List // of *circuit, the most recent first
}

// circuit is the breaker of one target.
type circuit struct {
	target string
	state  circuitState
	period uint64    // one more at every change of the state
	count  int       // closed: failures in a row; half-open: requests that were let through
	well   int       // half-open: requests that did well
	until  time.Time // open: when it becomes half-open
}

type circuitState uint8

const (
	circuitClosed circuitState = iota
	circuitOpen
	circuitHalfOpen
)

// NewBreakers makes breakers that are all closed; Env.Clock is the clock for those of a service.
func NewBreakers(g BreakerGrant, clock host.Clock) *Breakers {
	if g.Failures <= 0 {
		g.Failures = DefaultBreakerFailures
	}
	if g.Open <= 0 {
		g.Open = DefaultBreakerOpen
	}
	if g.Probes <= 0 {
		g.Probes = DefaultBreakerProbes
	}
	return &Breakers{grant: g, clock: clock, of: map[string]*list.Element{}, recent: list.New()}
}

// Allow asks whether a target may be tried. The error is one for the guest, [Unavailable].
// Otherwise done must be called once; failed says whether the target is to blame for a failure.
func (b *Breakers) Allow(target string) (done func(failed bool), err error) {
	if b.grant.Off {
		return func(bool) {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuit(target)
	switch {
	case c.state == circuitOpen, c.state == circuitHalfOpen && c.count >= b.grant.Probes:
		return nil, Errorf(Unavailable, "%.100s has failed %d times in a row and is not tried for %v", target, b.grant.Failures, b.grant.Open)
	case c.state == circuitHalfOpen:
		c.count++
	}
	period := c.period
	return func(failed bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if c.period == period { // what began before says nothing about what was tried since
			b.ended(c, failed)
		}
	}, nil
}

// ended counts the outcome of a request. The caller holds the lock.
func (b *Breakers) ended(c *circuit, failed bool) {
	switch {
	case c.state == circuitHalfOpen && failed:
		b.open(c)
	case c.state == circuitHalfOpen:
		if c.well++; c.well >= b.grant.Probes {
			c.become(circuitClosed)
		}
	case !failed:
		c.count = 0
	default:
		if c.count++; c.count >= b.grant.Failures {
			b.open(c)
		}
	}
}

func (b *Breakers) open(c *circuit) {
	c.become(circuitOpen)
	c.until = b.clock.Now().Add(b.grant.Open)
}

func (c *circuit) become(s circuitState) {
	c.state, c.count, c.well = s, 0, 0
	c.period++
}

// State is "closed", "open" or "half-open".
func (b *Breakers) State(target string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return [...]string{"closed", "open", "half-open"}[b.circuit(target).state]
}

// circuit is the breaker of a target, at this time. The caller holds the lock.
func (b *Breakers) circuit(target string) *circuit {
	if e := b.of[target]; e != nil {
		b.recent.MoveToFront(e)
		c := e.Value.(*circuit)
		if c.state == circuitOpen && !b.clock.Now().Before(c.until) {
			c.become(circuitHalfOpen)
		}
		return c
	}
	for b.recent.Len() >= MostBreakers {
		last := b.recent.Back()
		delete(b.of, b.recent.Remove(last).(*circuit).target)
	}
	c := &circuit{target: target}
	b.of[target] = b.recent.PushFront(c)
	return c
}
