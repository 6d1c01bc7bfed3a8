package saved

import (
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/supervision"
)

// Noted is what its supervisor has noted about an actor of a checkpoint.
type Noted struct {
	_         struct{} `cbor:",toarray"`
	Record    supervision.ChildState
	Orders    uint64
	Suspended bool
}

// child is the actor as its parent has it.
func (s *State) child() Child {
	n := s.Whole.Noted
	return Child{Ref: s.Ref, Name: s.Whole.name(), Type: s.Type, Record: n.Record, Orders: n.Orders, Suspended: n.Suspended}
}

// inert reports whether nothing is under way in an actor: it does nothing until somebody turns to it.
func (s *State) inert() bool {
	w := s.Whole
	return s.steady() && len(w.Mail) == 0 && w.Due == 0 && !w.Waits && s.Receive == 0 &&
		len(s.Timers)+len(s.Asks)+len(s.Watches)+len(s.Stash)+len(s.Lookouts)+len(s.Children) == 0
}

// steady reports whether the state stays what it is as long as no record is about the actor: it runs, and nobody decides about it.
func (s *State) steady() bool {
	w := s.Whole
	return w.Noted != nil && !w.Noted.Suspended && w.Life == life.Running && w.Begun && w.Suspended == 0 && !w.Paused && !w.Below && !w.Crowded && !w.Failed &&
		w.Cause == nil && w.Ended == 0 && w.Start == nil && w.Restart == nil && w.Grace == nil && w.Trial == nil && len(w.Next) == 0 &&
		len(s.Guest) > 0 && !busy(&w.Super)
}

// busy reports whether a supervisor has to decide about children, or is about to carry out what it has decided.
func busy(x *supervisor.State) bool {
	return len(x.Undecided) > 0 || x.Escalated != 0 || x.Sequence != nil
}

// sort is what the actor was made with.
func (s *State) sort() string {
	return dormant.Sort{Type: s.Type, Code: s.Whole.Code, Spawned: s.Whole.Spawned, Options: s.Whole.Options}.Text()
}
