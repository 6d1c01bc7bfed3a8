package shard

import "github.com/wasmactors/wasmactors/host/cluster"

// spoilt is called when the directory has something in the place of the table that no node writes, but any member can. A region
// that knows the table goes on with it, and writes it again. One that does not waits for another that does; if its node is the only
// one, no shard has an owner, and it begins anew, with epochs that are above all that there can have been.
func (r *region) spoilt(e cluster.Entry, why error) {
	switch {
	case r.table != nil && len(r.table.places) == r.shards:
		t := r.table.clone()
		t.revision = e.Revision
		r.table, r.mends = t, true
		return
	case r.alone():
		t := &table{places: make([]place, r.shards), revision: e.Revision}
		for i := range t.places {
			t.places[i].epoch = mostEpochs * e.Revision
		}
		r.table, r.mends, r.wrong = t, true, nil
		return
	}
	r.wrong = why
}

// alone reports whether no other node is there.
func (r *region) alone() bool {
	self := r.node.Self()
	for _, m := range r.node.Members() {
		if m.Number != self.Number {
			return false
		}
	}
	return r.node.Acting()
}
