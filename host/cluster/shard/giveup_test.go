package shard

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// A shard whose move is given up stays with its owner in that table, also if the owner is the one that plans: otherwise it would move on at
// once, its keys would never be served in between, and two of them that wait for each other would do so for ever.
func TestAMoveThatIsGivenUpIsNotPlannedAgainAtOnce(t *testing.T) {
	a, b := hosting{Ref: abi.Ref(1<<53 | 7), Born: 1, Weight: 1}, hosting{Ref: abi.Ref(2<<53 | 7), Born: 2, Weight: 1}
	for s := range 8 {
		before := &table{hosts: []hosting{a, b}, places: make([]place, 8)}
		for i := range before.places {
			before.places[i] = place{owner: before.ideal(i), epoch: 1}
		}
		if before.ideal(s) == a.Ref {
			continue
		}
		before.places[s] = place{owner: b.Ref, from: a.Ref, epoch: 5}
		v := &view{
			self: a, hosts: true, plans: true, shards: 8, moves: 16, gone: func(hosting) bool { return false }, held: func(int) bool { return false },
			giveUp: map[int]uint64{s: 5}, guarded: true, returns: true,
		}
		given := before.next(v)
		if p := given.places[s]; p.owner != a.Ref || p.from != 0 || p.epoch != 6 {
			t.Errorf("shard %d: %+v", s, p)
		}
		v.giveUp = nil
		if p := given.next(v).places[s]; p.owner != b.Ref || p.from != a.Ref || p.epoch != 7 {
			t.Errorf("shard %d is not tried again later: %+v", s, p)
		}
		return
	}
	t.Error("all shards belong to one node")
}
