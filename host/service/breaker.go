package service

import (
	"container/list"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
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

// Breakers are the circuit breakers of a grant, one for each target. They are safe for concurrent
// use. They use the machine's time, as gobreaker does.
type Breakers struct {
	grant BreakerGrant

	mu     sync.Mutex
	of     map[string]*list.Element
	recent *list.List // of breakerOf, the most recent first
}

type breakerOf struct {
	target string
	b      *gobreaker.TwoStepCircuitBreaker[struct{}]
}

// NewBreakers makes breakers that are all closed.
func NewBreakers(g BreakerGrant) *Breakers {
	if g.Failures <= 0 {
		g.Failures = DefaultBreakerFailures
	}
	if g.Open <= 0 {
		g.Open = DefaultBreakerOpen
	}
	if g.Probes <= 0 {
		g.Probes = DefaultBreakerProbes
	}
	return &Breakers{grant: g, of: map[string]*list.Element{}, recent: list.New()}
}

// Allow asks whether a target may be tried. The error is one for the guest, [Unavailable].
// Otherwise done must be called once; failed says whether the target is to blame for a failure.
func (b *Breakers) Allow(target string) (done func(failed bool), err error) {
	if b.grant.Off {
		return func(bool) {}, nil
	}
	report, err := b.breaker(target).Allow()
	switch {
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		return nil, Errorf(Unavailable, "%.100s has failed %d times in a row and is not tried for %v", target, b.grant.Failures, b.grant.Open)
	case err != nil:
		return nil, err
	}
	return func(failed bool) {
		if failed {
			report(errTarget)
		} else {
			report(nil)
		}
	}, nil
}

var errTarget = errors.New("service: the target has failed")

// State is "closed", "open" or "half-open".
func (b *Breakers) State(target string) string { return b.breaker(target).State().String() }

func (b *Breakers) breaker(target string) *gobreaker.TwoStepCircuitBreaker[struct{}] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.of[target]; e != nil {
		b.recent.MoveToFront(e)
		return e.Value.(*breakerOf).b
	}
	for b.recent.Len() >= MostBreakers {
		last := b.recent.Back()
		delete(b.of, b.recent.Remove(last).(*breakerOf).target)
	}
	x := &breakerOf{target, gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: target, MaxRequests: uint32(b.grant.Probes), Timeout: b.grant.Open,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(b.grant.Failures) },
	})}
	b.of[target] = b.recent.PushFront(x)
	return x.b
}
