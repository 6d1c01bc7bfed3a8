package dispatch

// Group is tasks that stand together for what they compute: the actors of one tree, which
// may wake each other, start each other, or rest in turn, so that each of them has had
// little. Its zero value is ready. All tasks of a group belong to one dispatcher.
//
// A group's share of the tokens is the largest of three: its part of all tasks, by how many
// have waited at once; its part of all groups; and 1/leastShare. A task that queues while its
// group has had more than its share comes behind all others. So a group of many honest tasks is
// not treated like one endless run, and a crowd of endless runs cannot make the share of the
// others arbitrarily small. Within a group nothing changes.
type Group struct {
	waiting uint32 // seats that its tasks have taken
	window
	lanes usage // guarded by the injector's lock
}

const (
	// period is for how many slices a lane is counted: half a second, about.
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
	slices uint32
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

func (w *window) slices() uint64 { return uint64(w.now.slices) + uint64(w.before.slices) }
func (w *window) most() uint64   { return uint64(max(w.now.most, w.before.most)) }

// usage is what tasks have computed in lanes, in the present period and in the one before, in
// nanoseconds: those of a group, or all that stand in groups.
type usage struct {
	number      uint64 // of the present period
	now, before int64
}

// laneTime is how long a period is, in what all of them have computed.
const laneTime = period * slice

// count adds ns to u, which is of all, and to g, which is a part of it.
func (u *usage) count(g *usage, ns int64) {
	g.follow(u)
	g.now += ns
	if u.now += ns; u.now >= laneTime {
		*u = usage{number: u.number + 1, before: u.now}
	}
}

// follow begins the period that it is.
func (u *usage) follow(all *usage) {
	if u.number == all.number {
		return
	}
	before := int64(0)
	if u.number+1 == all.number {
		before = u.now
	}
	*u = usage{number: all.number, before: before}
}

// greedy reports whether t's group has had in lanes more than 1/leastShare of u, which is of all.
func (u *usage) greedy(t *Task) bool {
	g := t.group
	return g != nil && g.lanes.now+g.lanes.before > laneTime/leastShare && u.exceeded(&g.lanes)
}

// exceeded reports whether g is more than 1/leastShare of u.
func (u *usage) exceeded(g *usage) bool {
	g.follow(u)
	return (g.now+g.before)*leastShare > max(u.now+u.before, laneTime)
}

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
	had := g.slices()
	return had*leastShare > all && had*b.groups.most() > all && had*b.tasks.most() > all*g.most()
}
