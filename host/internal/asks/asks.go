// Package asks has the open asks of an actor. An answer counts if it comes
// from the actor that was asked, or from one that the question was forwarded to.
package asks

import (
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
)

// MaxAnswerers bounds the actors that may answer one ask: those that it was sent to and those that
// it was forwarded to.
const MaxAnswerers = 64

// Answerers are the actors that may answer. The zero value has none.
type Answerers struct {
	first abi.Ref // most asks have only one
	more  []abi.Ref
}

// Add lets another one answer; false if there are too many.
func (a *Answerers) Add(ref abi.Ref) bool {
	switch {
	case a.first == 0:
		a.first = ref
	case a.Has(ref):
	case len(a.more)+1 >= MaxAnswerers:
		return false
	default:
		a.more = append(a.more, ref)
	}
	return true
}

// Has reports whether ref may answer.
func (a *Answerers) Has(ref abi.Ref) bool {
	return ref != 0 && (a.first == ref || slices.Contains(a.more, ref))
}

// Remove removes an actor that has answered; empty: no other actor may answer.
func (a *Answerers) Remove(ref abi.Ref) (empty bool) {
	if a.first == ref {
		a.first = 0
		if n := len(a.more); n > 0 {
			a.first, a.more = a.more[n-1], a.more[:n-1]
		}
	} else if i := slices.Index(a.more, ref); i >= 0 {
		a.more = slices.Delete(a.more, i, i+1)
	}
	return a.first == 0
}

// All is all that may answer.
func (a *Answerers) All() []abi.Ref {
	if a.first == 0 {
		return nil
	}
	return append([]abi.Ref{a.first}, a.more...)
}

// Delegate adds to as an answerer, if from is one.
func (a *Answerers) Delegate(from, to abi.Ref) bool { return a.Has(from) && a.Add(to) }

// Ask is an open ask.
type Ask struct {
	Answerers
	Target abi.Ref   // the ref that it was sent to; 0: a path
	Due    time.Time // when it is given up
	Trace  []byte    // headers of the host's own messages about it, nil for none
	alarm  alarm.Alarm
	// Request is what was asked, if a durable actor has asked a service; else nil.
	Request *Request
	// observers are told when the ask is over: services that work on it.
	observers []abi.Ref
}

// Table is an actor's asks by their correlations. Only the actor's own run may use it.
// The zero value is empty.
type Table struct {
	open map[uint64]*Ask
	held *held // nil: nothing was
}

// held is what few actors have: headers of the host's own messages, and requests.
type held struct {
	bytes    int
	requests Requests
}

// Bytes is what the headers and the requests of the asks take.
func (t *Table) Bytes() int {
	if t.held == nil {
		return 0
	}
	return t.held.bytes
}

func (t *Table) add(bytes int) {
	if bytes != 0 {
		t.more().bytes += bytes
	}
}

func (t *Table) more() *held {
	if t.held == nil {
		t.held = &held{}
	}
	return t.held
}

// Len is the number of asks that wait.
func (t *Table) Len() int { return len(t.open) }

// Get finds an ask, nil if none waits with the correlation.
func (t *Table) Get(correlation uint64) *Ask { return t.open[correlation] }

// Add notes an ask; its alarm is stopped when it is over.
func (t *Table) Add(correlation uint64, a *Ask, timeout alarm.Alarm) {
	if t.open == nil {
		t.open = map[uint64]*Ask{}
	}
	a.alarm = timeout
	t.open[correlation] = a
	t.add(a.bytes())
}

// Observe registers who to be notified when the ask is over; false if it is over already, or has too many
// observers.
func (t *Table) Observe(correlation uint64, who abi.Ref) bool {
	a := t.open[correlation]
	if a == nil || len(a.observers) >= MaxAnswerers {
		return false
	}
	a.observers = append(a.observers, who)
	return true
}

// Observers are those that Observe has registered.
func (a *Ask) Observers() []abi.Ref { return a.observers }

// Remove ends an ask and returns the observers to be told.
func (t *Table) Remove(correlation uint64) (observers []abi.Ref) {
	a := t.open[correlation]
	if a == nil {
		return nil
	}
	delete(t.open, correlation)
	t.add(-a.bytes())
	if r := a.Request; r != nil { // the list may have it for a while
		r.Headers, r.Payload = nil, nil
	}
	a.alarm.Stop()
	return a.observers
}

// bytes is what the ask adds to those of its table.
func (a *Ask) bytes() int {
	if a.Request == nil {
		return len(a.Trace)
	}
	return len(a.Trace) + a.Request.Bytes()
}

// Take is Remove without an end: the ask goes on if it is put back, and is over with its End.
func (t *Table) Take(correlation uint64) *Ask {
	a := t.open[correlation]
	if a != nil {
		delete(t.open, correlation)
		t.add(-a.bytes())
	}
	return a
}

// PutBack undoes Take.
func (t *Table) PutBack(correlation uint64, a *Ask) {
	t.open[correlation] = a
	t.add(a.bytes())
}

// End ends an ask that was taken, and returns the observers to be told.
func (a *Ask) End() (observers []abi.Ref) {
	a.alarm.Stop()
	return a.observers
}

// RemoveAll ends all asks and returns the observers to be told, in the order of the
// correlations.
func (t *Table) RemoveAll() (observers []abi.Ref) {
	if len(t.open) == 0 {
		return nil
	}
	for _, c := range t.Correlations() {
		observers = append(observers, t.Remove(c)...)
	}
	return observers
}

// Correlations are the correlations of the open asks, sorted.
func (t *Table) Correlations() []uint64 {
	out := make([]uint64, 0, len(t.open))
	for c := range t.open {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}
