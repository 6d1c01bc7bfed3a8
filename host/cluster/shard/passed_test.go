package shard

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// A region whose node was passed loses what it had, by whoever writes the table first, and takes part again under the new count.
func TestARegionThatWasPassed(t *testing.T) {
	ref := func(node uint64) abi.Ref { return abi.Ref(node<<54 | 7) }
	one, two, three := hosting{Ref: ref(1), Born: 1, Weight: 1}, hosting{Ref: ref(2), Born: 2, Weight: 1}, hosting{Ref: ref(3), Born: 3, Weight: 1}
	before := &table{hosts: []hosting{one, two, three}, revision: 9, places: []place{
		{owner: ref(1), epoch: 4}, {owner: ref(2), epoch: 4}, {owner: ref(1), from: ref(2), epoch: 4}, {owner: ref(2), from: ref(1), epoch: 4}, {owner: ref(3), epoch: 4},
	}}
	count := map[abi.Ref]uint64{ref(1): 1}
	view := func(self hosting, plans bool) *view {
		return &view{self: self, hosts: true, plans: plans, shards: 5, moves: 5, gone: func(h hosting) bool { return count[h.Ref] > h.Passed }, held: func(int) bool { return true }, guarded: true, returns: true}
	}
	check := func(who string, n *table) {
		t.Helper()
		for s, p := range n.places {
			b := before.places[s]
			if p.owner == ref(1) && p.epoch == b.epoch || p.from == ref(1) || p.owner != b.owner && p.epoch <= b.epoch {
				t.Errorf("%s: shard %d is %+v after %+v", who, s, p, b)
			}
		}
		if n.places[2].owner != ref(2) || n.places[3].owner != ref(2) || n.places[3].from != 0 {
			t.Errorf("%s: moves are %+v", who, n.places[2:4])
		}
	}
	self := one
	self.Passed = 1
	own := before.next(view(self, false))
	check("itself", own)
	if h, ok := own.host(ref(1)); !ok || h.Passed != 1 {
		t.Errorf("it takes part as %+v", h)
	}
	other := before.next(view(two, true))
	check("another one", other)
	if _, ok := other.host(ref(1)); ok {
		t.Error("it takes part before it knows")
	}
	if again := own.next(view(two, true)); again.index(ref(1)) < 0 {
		t.Error("it is passed twice for one count")
	}
}
