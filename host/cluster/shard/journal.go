package shard

import (
	"maps"
	"slices"
)

// Journal is told which shards of a kind are here, by [Config.WithJournal]: who keeps what happens to their keys puts a fence between
// owners. Its methods are called within a region's turns, and must not block.
type Journal interface {
	// Serve says that actors of the shard's keys may begin here from now on, or go on, and what the shard's epoch is. passed is the
	// count of cluster.Node.Passed under which the shard is here.
	Serve(kind string, shard int, epoch, passed uint64)
	// Release says that they have ended, or must not act any more.
	Release(kind string, shard int)
}

// WithJournal has a journal told which shards are here. Nil, the default: nobody is told.
func (c Config) WithJournal(j Journal) Config { c.journal = j; return c }

// tellJournal tells the journal what has become of a shard. The epoch of one that is about to be handed over is the next owner's.
func (r *region) tellJournal(s int) {
	j := r.keeps()
	if j == nil {
		return
	}
	o := &r.own[s]
	switch told := r.st.told[s]; {
	case (o.phase == serving || o.phase == waiting) && told != o.epoch:
		if o.phase == waiting && told != 0 { // it was another's in between
			j.Release(r.kind, s)
		}
		r.st.told[s] = o.epoch
		j.Serve(r.kind, s, o.epoch, r.me.Passed)
	case (o.phase == none || o.phase == handing || o.phase == handed) && told != 0:
		delete(r.st.told, s)
		j.Release(r.kind, s)
	}
}

// keeps is who is told which shards are here; nil: nobody.
func (r *region) keeps() Journal {
	if r.journal == nil && r.memory != nil {
		return r.memory
	}
	return r.journal
}

// endJournal tells the journal that no shard is here any more.
func (r *region) endJournal() {
	for _, s := range slices.Sorted(maps.Keys(r.st.told)) {
		delete(r.st.told, s)
		r.keeps().Release(r.kind, s)
	}
}
