package supervisor

import (
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/supervision"
)

// State is what a supervisor notes besides the records of its children, as a snapshot has it. Children are named by their
// refs.
type State struct {
	Group     supervision.ChildState `cbor:"1,keyasint"`
	Undecided []ReportState          `cbor:"2,keyasint,omitempty"`
	Escalated abi.Ref                `cbor:"3,keyasint,omitempty"` // 0: none
	Sequence  *SequenceState         `cbor:"4,keyasint,omitempty"`
}

// ReportState is a report that waits for the supervisor to go on.
type ReportState struct {
	_         struct{} `cbor:",toarray"`
	Of        abi.Ref
	Ref       abi.Ref
	Failure   *abi.Failure
	Ended     bool
	Reason    string
	Orders    uint64
	Directive uint8
	Again     bool
	Escalated bool
	Crowded   bool
}

// SequenceState is a restart in order under way.
type SequenceState struct {
	_       struct{} `cbor:",toarray"`
	Failure *abi.Failure
	Delay   time.Duration
	Keep    bool
	Cause   abi.Ref
	Ends    []abi.Ref
	Begin   []abi.Ref
	Waits   abi.Ref
	Owed    []Owed
}

// Owed is a delay that a child is owed.
type Owed struct {
	_     struct{} `cbor:",toarray"`
	Ref   abi.Ref
	Delay time.Duration
}

// Concerns reports whether something under way is about a child, so that it does not only wait for an operator.
func (s *State) Concerns(child abi.Ref) bool {
	return s.Escalated == child || s.Sequence != nil ||
		slices.ContainsFunc(s.Undecided, func(r ReportState) bool { return r.Of == child })
}

// Save is the state of the supervisor.
func (s *Supervisor[C]) Save(ref func(C) abi.Ref) State {
	x := State{Group: s.group.State()}
	var nobody C
	of := func(m *family.Member[C]) abi.Ref {
		if m == nil || m.Child == nobody { // see Load
			return 0
		}
		return ref(m.Child)
	}
	for _, r := range s.undecided {
		if !s.Family.Has(r.of) {
			continue // it has stopped since
		}
		x.Undecided = append(x.Undecided, ReportState{
			Of: of(r.of), Ref: r.Ref, Failure: r.Failure, Ended: r.Ended, Reason: r.Reason, Orders: r.Orders,
			Directive: uint8(r.Directive), Again: r.Again, Escalated: r.Escalated, Crowded: r.Crowded,
		})
	}
	x.Escalated = of(s.escalated)
	if q := s.sequence; q != nil {
		y := &SequenceState{Failure: q.order.Failure, Delay: q.order.Delay, Keep: q.order.Keep, Cause: of(q.cause), Waits: of(q.waits)}
		for _, m := range q.ends {
			y.Ends = append(y.Ends, of(m))
		}
		for _, m := range q.begin {
			y.Begin = append(y.Begin, of(m))
		}
		for m, d := range q.owed {
			y.Owed = append(y.Owed, Owed{Ref: of(m), Delay: d})
		}
		slices.SortFunc(y.Owed, func(a, b Owed) int {
			if a.Ref < b.Ref {
				return -1
			}
			return 1
		})
		x.Sequence = y
	}
	return x
}

// Load is the inverse of Save; false if the state is about children that are not there, or is no state.
func (s *Supervisor[C]) Load(x *State, member func(abi.Ref) *family.Member[C]) (ok bool) {
	missing := false
	of := func(ref abi.Ref) *family.Member[C] {
		m := member(ref)
		missing = missing || m == nil
		return m
	}
	if s.group, ok = x.Group.Group(); !ok {
		return false
	}
	for _, r := range x.Undecided {
		m := member(r.Of)
		if m == nil {
			continue // it has stopped since: earlier releases have kept what it had reported
		}
		s.undecided = append(s.undecided, undecided[C]{m, Report{
			Ref: r.Ref, Failure: r.Failure, Ended: r.Ended, Reason: r.Reason, Orders: r.Orders,
			Directive: supervision.Directive(r.Directive), Again: r.Again, Escalated: r.Escalated, Crowded: r.Crowded,
		}})
	}
	if x.Escalated != 0 {
		s.escalated = of(x.Escalated)
	}
	if y := x.Sequence; y != nil {
		q := &sequence[C]{
			order: Order{Kind: Restart, Failure: y.Failure, Delay: y.Delay, Keep: y.Keep, Hold: true}, owed: map[*family.Member[C]]time.Duration{},
			waits: of(y.Waits),
		}
		if q.cause = member(y.Cause); q.cause == nil { // it has gone meanwhile: it stands for nobody of the rest
			q.cause = &family.Member[C]{}
		}
		for _, ref := range y.Ends {
			q.ends = append(q.ends, of(ref))
		}
		for _, ref := range y.Begin {
			q.begin = append(q.begin, of(ref))
		}
		for _, o := range y.Owed {
			if m := member(o.Ref); m != nil {
				q.owed[m] = o.Delay
			}
		}
		s.sequence = q
	}
	return !missing
}
