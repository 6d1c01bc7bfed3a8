package gateway

import (
	"slices"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// conns are the connections by the actor that has them, so that they can announce
// themselves again when it was restarted.
type conns struct {
	mu     sync.Mutex
	of     map[abi.Ref]map[*conn]struct{}
	events *host.Subscription // nil: there were no connections yet
	done   chan struct{}

	draining bool
}

func (s *conns) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		s.of = map[abi.Ref]map[*conn]struct{}{}
		s.events = c.g.sys.Subscribe(4096, func(e *host.Event) bool { return e.Kind == host.EventRestarted })
		s.done = make(chan struct{})
		go s.listen(s.events)
		go s.drain(c.g.draining())
	}
	uid := c.target.UID()
	if s.of[uid] == nil {
		s.of[uid] = map[*conn]struct{}{}
	}
	s.of[uid][c] = struct{}{}
	if s.draining {
		c.closeLocked(goingAway)
	}
}

func (s *conns) drop(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := c.target.UID()
	if delete(s.of[uid], c); len(s.of[uid]) == 0 {
		delete(s.of, uid)
	}
}

// listen hears of restarts. If some were missed all are taken to be restarted: who knows its
// connection says nothing to hear of it again.
func (s *conns) listen(events *host.Subscription) {
	defer close(s.done)
	missed := uint64(0)
	for e := range events.C() {
		all := events.Dropped() != missed
		missed = events.Dropped()
		for _, c := range s.those(e.Ref.UID(), all) {
			c.restarted()
		}
	}
}

// drain closes all connections when the gateway is about to end.
func (s *conns) drain(draining <-chan struct{}) {
	select {
	case <-draining:
	case <-s.done:
	}
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, c := range s.those(0, true) {
		c.close(goingAway)
	}
}

var goingAway = frame{kind: frameClose, code: codeGoingAway, b: []byte("the server is about to stop")}

// those are the connections of an actor, or all.
func (s *conns) those(uid abi.Ref, all bool) (out []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, some := range s.of {
		if !all && of != uid {
			continue
		}
		for c := range some {
			out = append(out, c)
		}
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
		<-done
	}
}
