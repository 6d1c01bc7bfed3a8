package durable

import (
	"cmp"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/record"
)

// touched are the actors that records are about since the mark of a checkpoint. What a start makes of an actor follows from its part and
// the records about it: of one that none is about, and that is inert or steady, the part is still its state. It is used with the log's
// lock.
type touched struct {
	refs  map[abi.Ref]uint64 // of those that have begun: when, as a number that grows; else 0
	last  [256]abi.Ref       // that were added last, by their last bits: most records are about one of them
	begun uint64             // that number
}

func (t *touched) add(ref abi.Ref) {
	x := &t.last[ref%abi.Ref(len(t.last))]
	if *x == ref {
		return
	}
	*x = ref
	t.put(ref, 0)
}

func (t *touched) put(ref abi.Ref, begun uint64) {
	if t.refs == nil {
		t.refs = map[abi.Ref]uint64{}
	}
	t.refs[ref] = max(begun, t.refs[ref])
}

// of adds all whom a record is about: also who has sent a signal, or is named in it, and the parent of whoever begins.
func (t *touched) of(r *record.Record) {
	t.add(r.Actor)
	if x := r.Signal; x != nil {
		t.add(x.From)
		t.add(x.Other)
	}
	if r.Life != nil {
		t.add(r.Life.Parent)
	}
	if r.Kind == record.Began {
		t.begun++
		t.put(r.Actor, t.begun)
	}
}

// take returns all, and begins anew.
func (t *touched) take() map[abi.Ref]uint64 {
	refs := t.refs
	*t = touched{begun: t.begun}
	return refs
}

// placed are actors that a book has, in its order, and then others in that of their beginning.
func placed(b *dormant.Book, refs map[abi.Ref]uint64) []abi.Ref {
	type place struct {
		ref   abi.Ref
		at    int
		begun uint64
	}
	all := make([]place, 0, len(refs))
	for ref, begun := range refs {
		all = append(all, place{ref, b.Place(ref), begun})
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.begun, b.begun), cmp.Compare(a.ref, b.ref))
	})
	to := make([]abi.Ref, len(all))
	for i, x := range all {
		to[i] = x.ref
	}
	return to
}
