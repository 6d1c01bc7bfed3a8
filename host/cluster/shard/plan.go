package shard

import (
	"cmp"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
)

// view is what a region knows when it writes the next table.
type view struct {
	self    hosting
	hosts   bool // it takes shards
	plans   bool // it is the one that plans
	shards  int
	moves   int
	gone    func(hosting) bool // whose node does not act any more
	held    func(int) bool     // shards that are not to be moved now
	begun   map[int]uint64     // shards that it has begun, and their epochs
	giveUp  map[int]uint64     // shards that it cannot hand over
	stolen  map[int]bool       // shards that are here, and that the table gives to others
	pins    map[int]uint16     // where shards should be
	guarded bool               // what moves is not moved again
	returns bool               // a shard whose new owner is gone goes back to the old one
}

// over reports whether a region has ended: its node is gone, or it was the one before this one here.
func (v *view) over(h hosting) bool {
	return v.gone(h) || v.hosts && h.Ref.Node() == v.self.Ref.Node() && h.Ref != v.self.Ref && h.Born == v.self.Born
}

// next is the table that should follow; nil if the kind lives with another number of shards.
func (t *table) next(v *view) *table {
	if t == nil || len(t.places) != v.shards {
		n := &table{places: make([]place, v.shards)}
		if t != nil {
			if slices.ContainsFunc(t.hosts, func(h hosting) bool { return !v.over(h) }) {
				return nil
			}
			last := uint64(0)
			for _, p := range t.places {
				last = max(last, p.epoch)
			}
			for i := range n.places {
				n.places[i].epoch = last + 1
			}
			n.revision = t.revision
		}
		t = n
	}
	n := t.clone()
	n.bury(v)
	n.enrol(v)
	for s, epoch := range v.begun {
		if p := &n.places[s]; p.owner == v.self.Ref && p.from != 0 && p.epoch == epoch {
			p.from = 0
		}
	}
	for s := range v.stolen {
		p := &n.places[s]
		p.owner, p.from = v.self.Ref, 0
		p.epoch++
	}
	for s, epoch := range v.giveUp {
		if p := &n.places[s]; p.from == v.self.Ref && p.epoch == epoch {
			p.owner, p.from, p.epoch = v.self.Ref, 0, epoch+1
		}
	}
	for s, pin := range v.pins {
		n.places[s].pin = pin
	}
	if v.plans && len(n.hosts) > 0 {
		n.plan(v)
	}
	return n
}

// enrol notes the region itself.
func (t *table) enrol(v *view) {
	if !v.hosts {
		return
	}
	if i := t.index(v.self.Ref); i >= 0 {
		t.hosts[i] = v.self
	} else if len(t.hosts) < maxHosts {
		t.hosts = append(t.hosts, v.self)
		slices.SortFunc(t.hosts, func(a, b hosting) int { return cmp.Compare(a.Ref, b.Ref) })
	}
}

// bury drops the regions that have ended. A shard goes back to who was to hand it over, or waits for a new owner.
func (t *table) bury(v *view) {
	dead := map[abi.Ref]bool{}
	t.hosts = slices.DeleteFunc(t.hosts, func(h hosting) bool {
		dead[h.Ref] = v.over(h) && (v.plans || !v.gone(h)) || h.Ref == v.self.Ref && h.Passed < v.self.Passed
		return dead[h.Ref]
	})
	for i := range t.places {
		p := &t.places[i]
		if dead[p.from] {
			p.from = 0
		}
		if dead[p.owner] {
			if p.owner, p.from = p.from, 0; !v.returns {
				p.owner = 0
			}
			p.epoch++
		}
	}
}

// plan gives owners to shards that have none, and begins moves.
func (t *table) plan(v *view) {
	under := 0
	for s := range t.places {
		p := &t.places[s]
		if p.owner == 0 {
			p.owner = t.ideal(s)
			p.epoch++
		}
		if p.from != 0 {
			under++
		}
	}
	for s := range t.places {
		p := &t.places[s]
		if under >= v.moves {
			return
		}
		if _, givesUp := v.giveUp[s]; givesUp || p.from != 0 && v.guarded || v.held(s) {
			continue // what this table gives up is served again before it moves once more
		}
		if to := t.ideal(s); to != p.owner {
			p.from, p.owner = p.owner, to
			p.epoch++
			under++
		}
	}
}
