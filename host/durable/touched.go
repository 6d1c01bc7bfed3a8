package durable

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
)

// touched are the actors that records are about since the mark of a checkpoint. What a start makes of an actor follows from its part and
// the records about it: of one that none is about, and that had nothing under way, the part is still its state. It is used with the log's
// lock.
type touched struct {
	refs map[abi.Ref]struct{}
	last [256]abi.Ref // that were added last, by their last bits: most records are about one of them
}

func (t *touched) add(ref abi.Ref) {
	x := &t.last[ref%abi.Ref(len(t.last))]
	if *x == ref {
		return
	}
	if *x = ref; t.refs == nil {
		t.refs = map[abi.Ref]struct{}{}
	}
	t.refs[ref] = struct{}{}
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
}

// take returns all, and begins anew.
func (t *touched) take() map[abi.Ref]struct{} {
	refs := t.refs
	*t = touched{}
	return refs
}
