package gateway

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// conns are the connections by the actor that has them, so that they can announce
// themselves again when it was restarted.
type conns struct {
	mu     sync.Mutex
	of     map[abi.Ref]map[*conn]struct{}
	kept   map[string]map[*conn]struct{} // of actors that a keeper stands for, by their paths
	events *host.Subscription            // nil: there were no connections yet
	done   chan struct{}
	clock  host.Clock // once there are events

	keepers  atomic.Int64 // connections that a keeper has
	draining bool
}

func (s *conns) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		s.of, s.kept = map[abi.Ref]map[*conn]struct{}{}, map[string]map[*conn]struct{}{}
		s.events = c.g.sys.Subscribe(4096, func(e *host.Event) bool {
			return e.Kind == host.EventRestarted || e.Kind == host.EventStarted && s.keepers.Load() > 0
		})
		s.done = make(chan struct{})
		s.clock = c.g.clock
		executor.Go(s.clock, func() { s.listen(s.events) })
		executor.Go(s.clock, func() { s.drain(c.g.draining()) })
	}
	if c.target.Kept() {
		enter(s.kept, c.target.Path(), c)
		s.keepers.Add(1)
	} else {
		enter(s.of, c.target.To.UID(), c)
	}
	if s.draining {
		c.closeLocked(goingAway)
	}
}

func (s *conns) drop(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.target.Kept() {
		leave(s.kept, c.target.Path(), c)
		s.keepers.Add(-1)
	} else {
		leave(s.of, c.target.To.UID(), c)
	}
}

func enter[K comparable](all map[K]map[*conn]struct{}, key K, c *conn) {
	if all[key] == nil {
		all[key] = map[*conn]struct{}{}
	}
	all[key][c] = struct{}{}
}

func leave[K comparable](all map[K]map[*conn]struct{}, key K, c *conn) {
	if delete(all[key], c); len(all[key]) == 0 {
		delete(all, key)
	}
}

// listen handles events of restarts, and of keyed actors that start. If some were missed, all actors are assumed to be
// restarted: an actor that knows its connection already ignores the repetition.
func (s *conns) listen(events *host.Subscription) {
	defer close(s.done)
	missed := uint64(0)
	for {
		e, which := executor.Take(s.clock, events.C())
		if which != 0 {
			return
		}
		all := events.Dropped() != missed
		missed = events.Dropped()
		for _, c := range s.those(e.Ref, all) {
			c.restarted()
		}
	}
}

// drain closes all connections when the gateway is about to end.
func (s *conns) drain(draining <-chan struct{}) {
	executor.Take(s.clock, draining, s.done)
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, c := range s.those(host.Ref{}, true) {
		c.close(goingAway)
	}
}

var goingAway = frame{kind: frameClose, code: codeGoingAway, b: []byte("the server is about to stop")}

// those are the connections of an actor, or all.
func (s *conns) those(of host.Ref, all bool) (out []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	add := func(some map[*conn]struct{}) {
		for c := range some {
			out = append(out, c)
		}
	}
	if all {
		for _, some := range s.of {
			add(some)
		}
		for _, some := range s.kept {
			add(some)
		}
	} else {
		add(s.of[of.UID()])
		add(s.kept[of.Path()])
	}
	slices.SortFunc(out, func(a, b *conn) int { return a.ref.Compare(b.ref) })
	return out
}

// close ends listening.
func (s *conns) close() {
	s.mu.Lock()
	events, done := s.events, s.done
	s.mu.Unlock()
	if events != nil {
		events.Close()
		executor.Take(s.clock, done)
	}
}
