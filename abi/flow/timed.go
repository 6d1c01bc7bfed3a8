package flow

import (
	"errors"
	"time"
)

// ErrTimeout says that a stream took longer than it was given.
var ErrTimeout = errors.New("flow: timeout")

// timing is a stage that passes elements on, with functions for what else happens; nil: the usual.
type timing[T any] struct {
	Plain[T, T]
	start   func(p *Pipe[T, T])
	element func(p *Pipe[T, T], v T)
	demand  func(p *Pipe[T, T])
	timer   func(p *Pipe[T, T], key int) error
	end     func(p *Pipe[T, T])
}

func timed[T any](src Source[T], begin func(s *timing[T])) Source[T] {
	return Via(src, func() Stage[T, T] {
		s := &timing[T]{}
		begin(s)
		return s
	})
}

func (s *timing[T]) OnStart(p *Pipe[T, T]) error {
	if s.start != nil {
		s.start(p)
	}
	return nil
}

func (s *timing[T]) OnElement(p *Pipe[T, T], v T) error {
	if s.element != nil {
		s.element(p, v)
	} else {
		p.Push(v)
	}
	return nil
}

func (s *timing[T]) OnDemand(p *Pipe[T, T]) error {
	if s.demand != nil {
		s.demand(p)
	} else {
		p.Pull()
	}
	return nil
}

func (s *timing[T]) OnTimer(p *Pipe[T, T], key int) error { return s.timer(p, key) }

func (s *timing[T]) OnEnd(p *Pipe[T, T]) error {
	if s.end != nil {
		s.end(p)
	} else {
		p.Complete()
	}
	return nil
}

func overdue[T any](*Pipe[T, T], int) error { return ErrTimeout }

func after[T any](d time.Duration) func(*Pipe[T, T]) {
	return func(p *Pipe[T, T]) { p.After(0, d) }
}

// InitialTimeout fails with ErrTimeout if the first element takes longer than d.
func InitialTimeout[T any](src Source[T], d time.Duration) Source[T] {
	return timed(src, func(s *timing[T]) {
		s.start, s.timer = after[T](d), overdue[T]
		s.element = func(p *Pipe[T, T], v T) { p.Cancel(0); p.Push(v) }
	})
}

// CompletionTimeout fails with ErrTimeout if the end takes longer than d.
func CompletionTimeout[T any](src Source[T], d time.Duration) Source[T] {
	return timed(src, func(s *timing[T]) { s.start, s.timer = after[T](d), overdue[T] })
}

// IdleTimeout fails with ErrTimeout if an element, the first one included, comes later than d after the one before.
func IdleTimeout[T any](src Source[T], d time.Duration) Source[T] {
	return timed(src, func(s *timing[T]) {
		s.start, s.timer = after[T](d), overdue[T]
		s.element = func(p *Pipe[T, T], v T) { p.After(0, d); p.Push(v) }
	})
}

// DemandTimeout fails with ErrTimeout if the next element is asked for later than d after the one before was given, or the start.
func DemandTimeout[T any](src Source[T], d time.Duration) Source[T] {
	return timed(src, func(s *timing[T]) {
		s.start, s.timer = after[T](d), overdue[T]
		s.demand = func(p *Pipe[T, T]) { p.Cancel(0); p.Pull() }
		s.element = func(p *Pipe[T, T], v T) { p.After(0, d); p.Push(v) }
	})
}

// KeepAlive gives v whenever an element is wanted and none has come for d.
func KeepAlive[T any](src Source[T], d time.Duration, v T) Source[T] {
	return timed(src, func(s *timing[T]) {
		s.start = after[T](d)
		s.element = func(p *Pipe[T, T], v T) { p.After(0, d); p.Emit(v) }
		s.timer = func(p *Pipe[T, T], _ int) error {
			if p.Wanted() {
				p.Push(v)
			}
			p.After(0, d)
			return nil
		}
	})
}

// TakeWithin ends after d.
func TakeWithin[T any](src Source[T], d time.Duration) Source[T] {
	return timed(src, func(s *timing[T]) {
		s.start = after[T](d)
		s.timer = func(p *Pipe[T, T], _ int) error { p.Complete(); return nil }
	})
}

// DropWithin leaves out what comes before d has passed.
func DropWithin[T any](src Source[T], d time.Duration) Source[T] {
	return timed(src, func(s *timing[T]) {
		drop := true
		s.start = after[T](d)
		s.timer = func(*Pipe[T, T], int) error { drop = false; return nil }
		s.element = func(p *Pipe[T, T], v T) {
			if drop {
				p.Pull()
			} else {
				p.Push(v)
			}
		}
	})
}

// InitialDelay does not ask for the first element before d has passed.
func InitialDelay[T any](src Source[T], d time.Duration) Source[T] {
	return timed(src, func(s *timing[T]) {
		over := false
		s.start = after[T](d)
		s.timer = func(p *Pipe[T, T], _ int) error {
			if over = true; p.Wanted() {
				p.Pull()
			}
			return nil
		}
		s.demand = func(p *Pipe[T, T]) {
			if over {
				p.Pull()
			}
		}
	})
}

// Delay gives each element d after it came. At most n wait, then the source does.
func Delay[T any](src Source[T], d time.Duration, n int) Source[T] {
	type late struct {
		v  T
		at time.Time
	}
	return timed(src, func(s *timing[T]) {
		var q fifo[late]
		give := func(p *Pipe[T, T]) {
			if q.n > 0 && p.Wanted() && !q.ring[q.at].at.After(p.Now()) {
				p.Push(q.pop().v)
			}
			switch {
			case q.n > 0:
				if left := q.ring[q.at].at.Sub(p.Now()); left > 0 { // else it waits for demand
					p.After(0, left)
				}
			case p.Ended():
				p.Complete()
			}
			if q.n < max(n, 1) {
				p.Pull()
			}
		}
		s.start = func(p *Pipe[T, T]) { p.Pull() }
		s.element = func(p *Pipe[T, T], v T) {
			q.push(late{v, p.Now().Add(d)})
			give(p)
		}
		s.demand = give
		s.timer = func(p *Pipe[T, T], _ int) error { give(p); return nil }
		s.end = give
	})
}

// GroupedWithin gives the elements n at a time, or as many as have come whenever d has passed since a group began, if there are any.
func GroupedWithin[T any](src Source[T], n int, d time.Duration) Source[[]T] {
	return Via(src, func() Stage[T, []T] { return &grouping[T]{n: max(n, 1), d: d} })
}

type grouping[T any] struct {
	Plain[T, []T]
	n     int
	d     time.Duration
	group []T
	due   bool
}

func (s *grouping[T]) OnStart(p *Pipe[T, []T]) error { p.Pull(); return nil }

func (s *grouping[T]) OnElement(p *Pipe[T, []T], v T) error {
	if len(s.group) == 0 {
		p.After(0, s.d)
	}
	s.group = append(s.group, v)
	s.due = s.due || len(s.group) == s.n
	return s.OnDemand(p)
}

func (s *grouping[T]) OnTimer(p *Pipe[T, []T], _ int) error {
	s.due = true
	return s.OnDemand(p)
}

func (s *grouping[T]) OnDemand(p *Pipe[T, []T]) error {
	if s.due && len(s.group) > 0 && p.Wanted() {
		p.Cancel(0)
		group := s.group
		s.group, s.due = nil, false
		p.Push(group)
		if p.Ended() {
			p.Complete()
		}
	}
	if len(s.group) < s.n {
		p.Pull()
	}
	return nil
}

func (s *grouping[T]) OnEnd(p *Pipe[T, []T]) error {
	if len(s.group) == 0 {
		p.Complete()
		return nil
	}
	s.due = true
	return s.OnDemand(p)
}
