// Package family has the children of an actor: their names, their order, and what their
// supervisor notes about each of them.
package family

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/linked"
	"github.com/wasmactors/wasmactors/supervision"
)

// Member is a child and what its supervisor notes about it. It may be a part of the
// child; a member of one family is never one of another.
type Member[C any] struct {
	Child C
	name  string

	// Owned by the supervisor: only the parent's own run may use these.
	Record    supervision.Child
	Orders    uint64 // that it was given
	Suspended bool   // left so by a decision
	named     bool   // it has its name in the family, whose lock guards this
	Renewals  int32  // orders of an operator that the next restart carries out

	place linked.Link[*Member[C]]
}

// Name is the child's name, its last element of the path.
func (m *Member[C]) Name() string { return m.name }

// Family is the children of one actor. All methods may be called by any goroutine. The
// zero value is empty and open.
type Family[C comparable] struct {
	mu        sync.Mutex
	byName    map[string]*Member[C]   // a name stays taken until its actor has stopped
	order     linked.List[*Member[C]] // in the order of their start; a child stays until the parent has heard of its end
	members   int                     // in order
	autoNames uint64
	hostKey   abi.RefKey
	hostRefs  uint64
	closed    bool
}

// Refusal is why there cannot be another child.
type Refusal uint8

// The refusals.
const (
	Admitted Refusal = iota
	Closed           // the parent is about to stop
	Full             // it has as many children as it may
	Taken            // a child has the name, or had it and has not gone yet
)

// Adopt makes a child under a name, a fresh one if that is empty, unless it is refused:
// make is called with the name, under the family's lock, and sets Child of the member that
// it returns. An error of make is returned with Admitted, and there is no child then.
func (f *Family[C]) Adopt(name string, limit int, make func(name string) (*Member[C], error)) (*Member[C], Refusal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, Closed, nil
	case name != "" && f.byName[name] != nil:
		return nil, Taken, nil
	case len(f.byName) >= limit || f.members >= 2*limit: // those that have ended take room until the parent has heard of it
		return nil, Full, nil
	}
	fresh := name == ""
	if fresh {
		var text [14]byte // '$' and 64 bits
		name = string(strconv.AppendUint(append(text[:0], '$'), f.autoNames, 36))
	}
	m, err := make(name)
	if err != nil {
		return nil, Admitted, err // whoever repeats what this child's parent has done may not even try to make it
	}
	if fresh {
		f.autoNames++
	}
	m.name, m.place.Of = name, m
	if f.byName == nil {
		f.byName = map[string]*Member[C]{}
	}
	f.byName[name], m.named = m, true
	f.order.PushBack(&m.place)
	f.members++
	return m, Admitted, nil
}

// Find is the child that has a name, or nil.
func (f *Family[C]) Find(name string) *Member[C] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byName[name]
}

// Has reports whether a member is still one.
func (f *Family[C]) Has(m *Member[C]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.place.Listed()
}

// Members is all children in their order, stopping ones included.
func (f *Family[C]) Members() []*Member[C] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members == 0 {
		return nil
	}
	out := make([]*Member[C], 0, f.members)
	for l := f.order.First(); l != nil; l = l.Next() {
		out = append(out, l.Of)
	}
	return out
}

// Children is Members without the notes.
func (f *Family[C]) Children() []C {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members == 0 {
		return nil
	}
	out := make([]C, 0, f.members)
	for l := f.order.First(); l != nil; l = l.Next() {
		out = append(out, l.Of.Child)
	}
	return out
}

// Sort brings the children into the order of their places; those with the same place stay as they are. place is called under the family's
// lock.
func (f *Family[C]) Sort(place func(C) int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	type placed struct {
		m  *Member[C]
		at int
	}
	all := make([]placed, 0, f.members)
	for l := f.order.First(); l != nil; l = l.Next() {
		all = append(all, placed{l.Of, place(l.Of.Child)})
	}
	by := func(a, b placed) int { return cmp.Compare(a.at, b.at) }
	if slices.IsSortedFunc(all, by) {
		return
	}
	slices.SortStableFunc(all, by)
	for _, x := range all {
		f.order.Remove(&x.m.place)
		f.order.PushBack(&x.m.place)
	}
}

// Len is the number of children, stopping ones included.
func (f *Family[C]) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members
}

// Release frees the name and the place of a child that has stopped, for others. It stays
// a member until its parent has heard of that: see Remove.
func (f *Family[C]) Release(m *Member[C]) {
	f.mu.Lock()
	f.release(m)
	f.mu.Unlock()
}

func (f *Family[C]) release(m *Member[C]) {
	if m.named {
		m.named = false
		delete(f.byName, m.name)
	}
}

// Remove removes a child that has stopped. It returns whether it was a member, and how many
// are left.
func (f *Family[C]) Remove(m *Member[C]) (was bool, left int) {
	f.mu.Lock()
	if was = m.place.Listed(); was {
		f.release(m)
		f.order.Remove(&m.place)
		f.members--
	}
	left = f.members
	f.mu.Unlock()
	return was, left
}

// Close refuses further children and returns how many there are.
func (f *Family[C]) Close() (left int) {
	f.mu.Lock()
	f.closed = true
	left = f.members
	f.mu.Unlock()
	return left
}

// Counters are how many names the family has made up, and how many refs the host has taken.
func (f *Family[C]) Counters() (autoNames, hostRefs uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.autoNames, f.hostRefs
}

// SkipTo has the next child without a name get this one, if the family can have made it up, and has not come to it.
func (f *Family[C]) SkipTo(name string) {
	text, _ := strings.CutPrefix(name, "$")
	n, err := strconv.ParseUint(text, 36, 64)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && name != text {
		f.autoNames = max(f.autoNames, n)
	}
}

// SetCounters is the inverse of Counters.
func (f *Family[C]) SetCounters(autoNames, hostRefs uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.autoNames, f.hostRefs = autoNames, hostRefs
}

// NextHostRef counts the children that the host itself starts. Their key is derived
// once, when the first is needed.
func (f *Family[C]) NextHostRef(derive func() abi.RefKey) (key abi.RefKey, n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hostKey == (abi.RefKey{}) {
		f.hostKey = derive()
	}
	f.hostRefs++
	return f.hostKey, f.hostRefs - 1
}
