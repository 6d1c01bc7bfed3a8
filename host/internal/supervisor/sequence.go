package supervisor

import (
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/family"
)

// sequence is a restart of several children in order, as OTP does it for rest-for-one:
// they end in the reverse order of their start, each when the one before it has ended,
// and begin in the order of their start, each when the one before it has begun.
type sequence[C Child] struct {
	order Order
	owed  map[*family.Member[C]]time.Duration // delays of decisions that this one has overtaken
	cause *family.Member[C]                   // the child whose failure it is
	ends  []*family.Member[C]                 // still to end; the last one is next
	begin []*family.Member[C]                 // still to begin; the first one is next
	waits *family.Member[C]                   // the child that was told and has not confirmed yet; never nil
}

// restartInOrder begins a sequence. A sequence under way is abandoned if the new one concerns all
// children that it has not brought back; else, as when two children that were started since fail,
// the new group restarts side by side.
func (s *Supervisor[C]) restartInOrder(p Parent[C], cause *family.Member[C], members []*family.Member[C], o Order) {
	if s.sequence != nil && !s.sequence.within(members) {
		for _, k := range members {
			s.Order(p, k, restartOf(k, cause, o))
		}
		return
	}
	o.Hold = true
	q := &sequence[C]{order: o, cause: cause, ends: slices.Clone(members), owed: map[*family.Member[C]]time.Duration{}}
	for _, m := range members {
		q.owed[m] = s.Owed(m)
	}
	s.sequence = q
	s.advance(p)
}

// within reports whether all that have not begun again are among members.
func (q *sequence[C]) within(members []*family.Member[C]) bool {
	for _, m := range slices.Concat(q.ends, q.begin) {
		if !slices.Contains(members, m) {
			return false
		}
	}
	return slices.Contains(members, q.waits)
}

// willEnd reports whether a restart under way will concern m.
func (q *sequence[C]) willEnd(m *family.Member[C]) bool {
	return q != nil && slices.Contains(q.ends, m)
}

// holds reports whether m is still to be told something: to end, or to begin.
func (q *sequence[C]) holds(m *family.Member[C]) bool {
	return q != nil && (slices.Contains(q.ends, m) || slices.Contains(q.begin, m))
}

// keeps reports whether m begins when a restart under way says so: it has been told to end.
func (q *sequence[C]) keeps(m *family.Member[C]) bool {
	return q != nil && (q.waits == m || slices.Contains(q.begin, m))
}

// waitsFor reports whether a restart under way waits for m.
func (q *sequence[C]) waitsFor(m *family.Member[C]) bool { return q != nil && q.waits == m }

// Owed is the delay that a restart in order has decided on for a child that was not
// told of it yet; 0 for none.
func (s *Supervisor[C]) Owed(m *family.Member[C]) time.Duration {
	if s.sequence.willEnd(m) {
		return s.sequence.delayOf(m)
	}
	return 0
}

func (q *sequence[C]) delayOf(m *family.Member[C]) time.Duration {
	return max(q.order.Delay, q.owed[m])
}

// advance tells the next child, or ends the sequence if there is none.
func (s *Supervisor[C]) advance(p Parent[C]) {
	q := s.sequence
	if n := len(q.ends); n > 0 {
		m := q.ends[n-1]
		q.ends, q.waits = q.ends[:n-1], m
		o := q.order
		o.Delay = q.delayOf(m)
		s.Order(p, m, restartOf(m, q.cause, o))
		return
	}
	if len(q.begin) > 0 {
		m := q.begin[0]
		q.begin, q.waits = q.begin[1:], m
		s.Order(p, m, Order{Kind: Begin})
		return
	}
	s.sequence = nil
}

// Halted notes that a child has ended its incarnation and waits for Begin. orders is how
// many orders it had carried out: what it reports from before the last order is ignored.
func (s *Supervisor[C]) Halted(p Parent[C], m *family.Member[C], orders uint64) {
	if q := s.sequence; q != nil && q.waits == m && q.waits.Orders == orders {
		q.begin = slices.Insert(q.begin, 0, q.waits)
		s.advance(p)
	}
}

// Begun notes that a child has begun an incarnation that was held back; orders is as in
// Halted.
func (s *Supervisor[C]) Begun(p Parent[C], m *family.Member[C], orders uint64) {
	if q := s.sequence; q != nil && q.waits == m && q.waits.Orders == orders {
		s.advance(p)
	}
}

// goOn removes a child that has stopped from the sequence.
func (s *Supervisor[C]) goOn(p Parent[C], m *family.Member[C]) {
	q := s.sequence
	if q == nil {
		return
	}
	gone := func(k *family.Member[C]) bool { return k == m }
	q.ends = slices.DeleteFunc(q.ends, gone)
	q.begin = slices.DeleteFunc(q.begin, gone)
	delete(q.owed, m) // a state of it is the same before and after a start, which does not find m
	if q.waits == m {
		s.advance(p)
	}
}
