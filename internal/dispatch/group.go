package dispatch

// Group is tasks that stand together for what they compute: the actors of one tree, which
// may wake each other, start each other, or rest in turn, so that each of them has had
// little. Its zero value is ready. All tasks of a group belong to one dispatcher.
//
// A group may have that part of the tokens which its tasks are among all, by how many have
// waited at once; or that which one group is among all groups; or 1/leastShare: whichever is
// most. Who sits down while its group has had more comes behind all others. So many honest
// tasks are not taken for one that never ends, nor does a crowd that never ends make the
// share of others arbitrarily small. Within a group nothing changes.
type Group struct {
	waiting uint32 // seats that its tasks have taken
	window
}

const (
	// period is for how many grants a lane is counted: half a second of slices, about.
	// What counts are the present period and the one before.
	period = 4096
	// leastShare is the part of the tokens that nobody is too much for, as a fraction.
	leastShare = 32
)

// window is what was counted in the present period and in the one before.
type window struct {
	number      uint64 // of the present period
	now, before tally
}

type tally struct {
	grants uint32
	most   uint32 // that waited at a time
}

// roll begins the period with a number, if it has not begun; so many wait now.
func (w *window) roll(number uint64, waiting uint32) {
	if w.number == number {
		return
	}
	w.before = tally{most: waiting}
	if w.number+1 == number {
		w.before = w.now
	}
	w.number, w.now = number, tally{most: waiting}
}

func (w *window) grants() uint64 { return uint64(w.now.grants) + uint64(w.before.grants) }
func (w *window) most() uint64   { return uint64(max(w.now.most, w.before.most)) }

// Member is a [Runnable] whose task stands in a group, always the same.
type Member interface{ Group() *Group }

// rollAll begins the period that it is, for g and for all. d.mu is held.
func (d *Dispatcher) rollAll(g *Group) {
	b := &d.back
	number := d.turns.Load() / uint64(period*len(d.lanes))
	b.tasks.roll(number, uint32(d.queued.Load()))
	b.groups.roll(number, b.busy)
	g.roll(number, g.waiting)
}

// joins counts a seat that one of g's tasks takes; d.queued counts it already. d.mu is held.
func (d *Dispatcher) joins(g *Group) {
	b := &d.back
	if g.waiting++; g.waiting == 1 {
		b.busy++
	}
	g.now.most = max(g.now.most, g.waiting)
	b.groups.now.most = max(b.groups.now.most, b.busy)
	b.tasks.now.most = max(b.tasks.now.most, uint32(d.queued.Load()))
}

// parts counts a seat that one of g's tasks has left. d.mu is held.
func (d *Dispatcher) parts(g *Group) {
	if g.waiting--; g.waiting == 0 {
		d.back.busy--
	}
}

// greedy reports whether g has had more than its share. d.mu is held.
func (d *Dispatcher) greedy(g *Group) bool {
	b, length := &d.back, uint64(period*len(d.lanes))
	all := d.turns.Load() - (max(b.tasks.number, 1)-1)*length // of both periods
	all = max(all, length)                                    // before that nobody has had much
	had := g.grants()
	return had*leastShare > all && had*b.groups.most() > all && had*b.tasks.most() > all*g.most()
}
