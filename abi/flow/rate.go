package flow

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi/throttle"
)

// Overflow says what a full buffer does with another element. The first three are named as the mailboxes are.
type Overflow uint8

// The strategies.
const (
	Block      Overflow = iota // it is not asked for: the source waits
	DropNewest                 // it is dropped
	DropOldest                 // the element that has waited longest is dropped
	DropLast                   // the element that came last before it is dropped
	DropAll                    // all that wait are dropped
	Overrun                    // the stream fails with ErrFull
)

// ErrFull says that a buffer has no room.
var ErrFull = errors.New("flow: the buffer is full")

// store puts v into a buffer of at most size elements.
func (o Overflow) store(n, size int) (drop func(b buffer), keep bool, err error) {
	if n < size {
		return nil, true, nil
	}
	switch o {
	case DropOldest:
		return buffer.dropFirst, true, nil
	case DropLast:
		return buffer.dropLast, true, nil
	case DropAll:
		return buffer.clear, true, nil
	case DropNewest:
		return nil, false, nil
	}
	return nil, false, ErrFull
}

type buffer interface {
	dropFirst()
	dropLast()
	clear()
}

func (q *fifo[T]) dropFirst() { q.pop() }
func (q *fifo[T]) dropLast()  { q.cut() }

func (q *fifo[T]) store(v T, size int, o Overflow) error {
	drop, keep, err := o.store(q.n, size)
	if drop != nil {
		drop(q)
	}
	if keep {
		q.push(v)
	}
	return err
}

// Buffer takes up to n elements before they are wanted, 1 at least.
func Buffer[T any](src Source[T], n int, o Overflow) Source[T] {
	return Via(src, func() Stage[T, T] { return &buffered[T]{size: max(n, 1), o: o} })
}

// Detach takes one element before it is wanted: what is before it does not wait for what is behind.
func Detach[T any](src Source[T]) Source[T] { return Buffer(src, 1, Block) }

type buffered[T any] struct {
	Plain[T, T]
	fifo[T]
	size int
	o    Overflow
}

func (s *buffered[T]) OnStart(p *Pipe[T, T]) error { p.Pull(); return nil }

func (s *buffered[T]) OnElement(p *Pipe[T, T], v T) error {
	if p.Wanted() {
		p.Push(v)
	} else if err := s.store(v, s.size, s.o); err != nil {
		p.Fail(err)
		return nil
	}
	if s.o != Block || s.n < s.size {
		p.Pull()
	}
	return nil
}

func (s *buffered[T]) OnDemand(p *Pipe[T, T]) error {
	if s.n > 0 {
		p.Push(s.pop())
	}
	if s.n == 0 && p.Ended() {
		p.Complete()
	}
	p.Pull()
	return nil
}

func (s *buffered[T]) OnEnd(p *Pipe[T, T]) error {
	if s.n == 0 {
		p.Complete()
	}
	return nil
}

// Batch combines elements while none is wanted: seed begins a batch, add adds to it. What cost says of the elements of a
// batch is at most most, unless it has only one; then the source waits. cost nil counts elements.
func Batch[A, B any](src Source[A], most int, cost func(A) int, seed func(A) B, add func(B, A) B) Source[B] {
	if cost == nil {
		cost = func(A) int { return 1 }
	}
	return Via(src, func() Stage[A, B] { return &batch[A, B]{most: most, cost: cost, seed: seed, add: add} })
}

// Conflate combines elements while none is wanted, any number of them: the source never waits.
func Conflate[T any](src Source[T], add func(T, T) T) Source[T] {
	return Batch(src, 1, func(T) int { return 0 }, func(v T) T { return v }, add)
}

type batch[A, B any] struct {
	Plain[A, B]
	most, left int
	cost       func(A) int
	seed       func(A) B
	add        func(B, A) B
	now        B
	open       bool
	next       A // did not fit
	waits      bool
}

func (s *batch[A, B]) OnStart(p *Pipe[A, B]) error { p.Pull(); return nil }

func (s *batch[A, B]) OnElement(p *Pipe[A, B], v A) error {
	c := s.cost(v)
	switch {
	case !s.open:
		s.now, s.open, s.left = s.seed(v), true, s.most-c
	case c <= s.left:
		s.now, s.left = s.add(s.now, v), s.left-c
	default:
		s.next, s.waits = v, true
		return nil
	}
	if p.Wanted() {
		s.give(p)
	}
	p.Pull()
	return nil
}

// give pushes the batch, and begins the next one with the element that did not fit.
func (s *batch[A, B]) give(p *Pipe[A, B]) {
	v := s.now
	var none B
	s.now, s.open = none, false
	if s.waits {
		var zero A
		s.now, s.open, s.left, s.waits = s.seed(s.next), true, s.most-s.cost(s.next), false
		s.next = zero
	}
	p.Push(v)
}

func (s *batch[A, B]) OnDemand(p *Pipe[A, B]) error {
	if s.open {
		s.give(p)
	}
	if !s.open && p.Ended() {
		p.Complete()
	}
	p.Pull()
	return nil
}

func (s *batch[A, B]) OnEnd(p *Pipe[A, B]) error {
	if !s.open {
		p.Complete()
	}
	return nil
}

// Expand gives elements made of the last one while no other has come: f returns a function that makes them, until ok is false.
// Each element is used at least once if f's function has one.
func Expand[A, B any](src Source[A], f func(A) func() (v B, ok bool)) Source[B] {
	return Via(src, func() Stage[A, B] { return &expand[A, B]{f: f} })
}

type expand[A, B any] struct {
	Plain[A, B]
	f    func(A) func() (B, bool)
	more func() (B, bool)
	used bool
}

func (s *expand[A, B]) OnStart(p *Pipe[A, B]) error { p.Pull(); return nil }

func (s *expand[A, B]) OnElement(p *Pipe[A, B], v A) error {
	s.more, s.used = s.f(v), false
	if p.Wanted() {
		return s.OnDemand(p)
	}
	return nil
}

func (s *expand[A, B]) OnDemand(p *Pipe[A, B]) error {
	if s.more != nil {
		if v, ok := s.more(); ok {
			p.Push(v)
		} else {
			s.more = nil
		}
		s.used = true
	}
	if p.Ended() && (s.more == nil || s.used) {
		p.Complete()
	}
	if s.used {
		p.Pull()
	}
	return nil
}

func (s *expand[A, B]) OnEnd(p *Pipe[A, B]) error {
	if s.more == nil || s.used {
		p.Complete()
	}
	return nil
}

// Throttle lets elements pass by the rule of throttlers: at most r.N in each interval, and the source waits. A rate that is
// wrong fails the stream.
func Throttle[T any](src Source[T], r throttle.Rate) Source[T] {
	if err := r.Check(); err != nil {
		return Failed[T](err)
	}
	return Via(src, func() Stage[T, T] { return &paced[T]{meter: throttle.NewMeter(r)} })
}

type paced[T any] struct {
	Plain[T, T]
	meter throttle.Meter
	wait  []T // one at most
}

func (s *paced[T]) OnElement(p *Pipe[T, T], v T) error {
	if s.meter.Take(p.Now()) {
		p.Push(v)
		return nil
	}
	s.wait = append(s.wait, v)
	p.After(0, s.meter.Wait(p.Now()))
	return nil
}

func (s *paced[T]) OnTimer(p *Pipe[T, T], _ int) error {
	v := s.wait[0]
	s.wait = s.wait[:0]
	s.meter.Take(p.Now())
	p.Emit(v)
	if p.Ended() {
		p.Complete()
	}
	return nil
}

func (s *paced[T]) OnEnd(p *Pipe[T, T]) error {
	if len(s.wait) == 0 {
		p.Complete()
	}
	return nil
}
