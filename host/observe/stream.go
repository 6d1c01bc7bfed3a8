package observe

import (
	"sync"
	"sync/atomic"
)

// Stream is a bounded sequence of events. A reader that is too slow loses the newest, and gets their number; no actor waits
// for it. Its methods are for any goroutine.
type Stream[T any] struct {
	c       chan T
	dropped atomic.Uint64

	mu     sync.Mutex
	ended  bool
	reason string
	stop   func() // stops the source
}

func newStream[T any](buffer int) *Stream[T] { return &Stream[T]{c: make(chan T, buffer)} }

// C is the channel of the stream, in order. It is closed at the end; see Reason.
func (s *Stream[T]) C() <-chan T { return s.c }

// Dropped is how many were lost so far.
func (s *Stream[T]) Dropped() uint64 { return s.dropped.Load() }

// Reason is why the stream has ended; "" while it goes on, and after Close.
func (s *Stream[T]) Reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// Close ends the stream. It is idempotent.
func (s *Stream[T]) Close() { s.end("") }

// put sends one value, or drops it; false: the stream has ended.
func (s *Stream[T]) put(v T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	select {
	case s.c <- v:
	default:
		s.dropped.Add(1)
	}
	return true
}

// onEnd sets a function to call at the end, which may have come already.
func (s *Stream[T]) onEnd(stop func()) {
	s.mu.Lock()
	ended := s.ended
	s.stop = stop
	s.mu.Unlock()
	if ended {
		stop()
	}
}

func (s *Stream[T]) end(reason string) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended, s.reason = true, reason
	stop := s.stop
	close(s.c)
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}
