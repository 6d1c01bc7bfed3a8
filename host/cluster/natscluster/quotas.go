package natscluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// A keeper carries out requests of all bundles. Of what it has for them each bundle has a share: what one asks for does not keep those of
// another from being answered.

// Shares of a bundle.
const (
	bytesSure  = 4 << 20 // of bytesUnder: each of mostJournals bundles has them for itself
	mostKeysOf = 6       // of mostKeysRead
	opensSure  = 2       // of mostOpening, for each of mostJournals bundles
)

// Each bundle has room for a record of any size at all times, and one that is alone has more than half of all.
const (
	_ = uint(bytesSure - 2*cluster.MaxRecord)
	_ = uint(bytesUnder - 2*mostJournals*bytesSure)
	_ = uint(mostOpening - 2*mostJournals*opensSure)
)

// ShareError says that a keeper has not carried out what was asked for, since the share of the bundle is used up. It is
// cluster.ErrBusy: nothing was written, and it may be tried again.
type ShareError struct {
	Bundle string
	Of     string // what the keeper has a share of for each bundle
}

// Error names the bundle, and what can be done.
func (e *ShareError) Error() string {
	return fmt.Sprintf("%s: bundle %s has its share of %s at a keeper; it is tried again, and other bundles go on. Fewer keys that store at once, smaller events, or more keepers help", cluster.ErrBusy, e.Bundle, e.Of)
}

// Unwrap is cluster.ErrBusy.
func (e *ShareError) Unwrap() error { return cluster.ErrBusy }

// What bundles have shares of.
const (
	shareOfBytes = "the bytes of requests that are carried out"
	shareOfReads = "the keys that are read at a time"
	shareOfOpens = "the requests that wait for a journal to open"
)

// shareTexts are the texts that a keeper may have answered with.
var shareTexts = []string{shareOfBytes, shareOfReads, shareOfOpens}

// quotas are bytes, or requests, of which bundles have some at a time, of all together at most so many. Some are sure for each of the first
// mostJournals bundles that have any: no other bundle gets those. The rest is for whoever asks first. Any goroutine may use it; the zero
// value has none.
type quotas struct {
	what       string // they are of, as a ShareError says it
	most, sure int64

	mu     sync.Mutex
	of     map[string]*quota
	sures  int   // bundles with a sure part
	beyond int64 // bytes that bundles have beyond their sure parts
}

// quota is what a bundle has.
type quota struct{ used, sure int64 }

func (s *quota) beyond() int64 { return max(0, s.used-s.sure) }

func newQuotas(what string, most, sure int64) *quotas {
	return &quotas{what: what, most: most, sure: sure, of: map[string]*quota{}}
}

// take gives n bytes to a bundle. The error is a *ShareError: it gets none.
func (s *quotas) take(bundle string, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[bundle]
	if x == nil {
		x = &quota{}
		if s.sures < mostJournals {
			x.sure = s.sure
		}
	}
	after := quota{x.used + n, x.sure}
	beyond := s.beyond - x.beyond() + after.beyond()
	if beyond > s.most-mostJournals*s.sure && after.beyond() > 0 {
		return &ShareError{bundle, s.what}
	}
	if s.of[bundle] == nil {
		s.of[bundle] = x
		if x.sure > 0 {
			s.sures++
		}
	}
	*x, s.beyond = after, beyond
	return nil
}

// give takes n bytes back that a bundle has.
func (s *quotas) give(bundle string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[bundle]
	if x == nil {
		return
	}
	s.beyond -= x.beyond()
	x.used -= n
	s.beyond += x.beyond()
	if x.used <= 0 {
		delete(s.of, bundle)
		if x.sure > 0 {
			s.sures--
		}
	}
}

// used are the bytes that all bundles have.
func (s *quotas) used() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.of {
		n += x.used
	}
	return n
}

// turns let so many go on at a time, of one bundle fewer. Of those that wait the next is one of the bundle that has the fewest. Any
// goroutine may use it.
type turns struct {
	mostOf int // of a bundle

	mu      sync.Mutex
	free    int
	has     map[string]int // by bundle; none has 0
	waiting []*waiter      // in the order in which they came
}

type waiter struct {
	bundle  string
	granted chan struct{}
}

func newTurns(most, mostOf int) *turns {
	return &turns{mostOf: mostOf, free: most, has: map[string]int{}}
}

// begin waits until ctx ends for a turn of a bundle, which end ends. The error is a *ShareError: there is no turn.
func (t *turns) begin(ctx context.Context, bundle string) error {
	w := &waiter{bundle, make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.next()
	t.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return &ShareError{bundle, shareOfReads}
	}
	return nil // it has got one in this moment
}

// end ends a turn of a bundle.
func (t *turns) end(bundle string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.has[bundle]--; t.has[bundle] == 0 {
		delete(t.has, bundle)
	}
	t.free++
	t.next()
}

// next has those go on that may; the caller holds the lock.
func (t *turns) next() {
	for t.free > 0 {
		best := -1
		for i, w := range t.waiting {
			if n := t.has[w.bundle]; n < t.mostOf && (best < 0 || n < t.has[t.waiting[best].bundle]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := t.waiting[best]
		t.waiting = slices.Delete(t.waiting, best, best+1)
		t.has[w.bundle]++
		t.free--
		close(w.granted)
	}
}
