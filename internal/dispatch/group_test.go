package dispatch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/internal/race"
)

// trick is how a group's tasks go about to get slices: after each of its slices, and in each quantum in which it
// has none, it says which of its tasks wait from now on.
type trick struct {
	begin []*Task
	slice func(v *virtual, k *Task) []*Task // k has had a slice
	tick  func(v *virtual) []*Task          // a quantum has passed
}

// members are new tasks of a group.
func members(g *Group, n int) (all []*Task) {
	for range n {
		k := new(Task)
		k.group = g
		all = append(all, k)
	}
	return all
}

// ring is n tasks that wake one another after so many slices.
func ring(g *Group, n, slices int) trick {
	all, at, had := members(g, n), 0, 0
	return trick{begin: all[:1], slice: func(v *virtual, k *Task) []*Task {
		if had++; had < slices {
			return []*Task{k}
		}
		v.end(k)
		at, had = (at+1)%n, 0
		return []*Task{all[at]}
	}}
}

// heirs are tasks that end after so many slices, each having started the next.
func heirs(g *Group, slices int) trick {
	had := 0
	return trick{begin: members(g, 1), slice: func(v *virtual, k *Task) []*Task {
		if had++; had < slices {
			return []*Task{k}
		}
		v.end(k)
		had = 0
		return members(g, 1)
	}}
}

// bursts is a task that computes for long, and rests for so many quanta.
func bursts(g *Group, slices, rest int) trick {
	k, had, resting := members(g, 1)[0], 0, 0
	return trick{begin: []*Task{k}, slice: func(v *virtual, k *Task) []*Task {
		if had++; had < slices {
			return []*Task{k}
		}
		v.end(k)
		had, resting = 0, rest
		return nil
	}, tick: func(v *virtual) []*Task {
		if resting == 0 {
			return nil
		}
		if resting--; resting > 0 {
			return nil
		}
		return []*Task{k}
	}}
}

// clocks is n tasks that each want so many slices, and the same again so many quanta after they have had them.
func clocks(g *Group, n, slices, every int) trick {
	all := members(g, n)
	had, due, now := map[*Task]int{}, map[int][]*Task{}, 0
	for i, k := range all {
		due[1+i*every/n] = append(due[1+i*every/n], k)
	}
	return trick{slice: func(v *virtual, k *Task) []*Task {
		if had[k]++; had[k] < slices {
			return []*Task{k}
		}
		v.end(k)
		had[k] = 0
		due[now+every] = append(due[now+every], k)
		return nil
	}, tick: func(*virtual) (ready []*Task) {
		now++
		ready = due[now]
		delete(due, now)
		return ready
	}}
}

// share is the part of the slices that a trick gets beside so many tasks that never end, in so many groups.
func share(v *virtual, how trick, endless, groups int) float64 {
	others := map[*Task]bool{}
	all := make([]Group, groups)
	for i := range endless {
		k := members(&all[i%groups], 1)[0]
		others[k] = true
		v.wait(k)
	}
	for range endless * 1000 { // who has had much
		v.wait(v.grant())
	}
	for _, k := range how.begin {
		v.wait(k)
	}
	const slices = 100_000
	got := 0
	for range slices {
		var next []*Task
		if k := v.grant(); others[k] {
			next = []*Task{k}
		} else {
			got++
			next = how.slice(v, k)
		}
		if how.tick != nil {
			next = append(next, how.tick(v)...)
		}
		for _, k := range next {
			v.wait(k)
		}
	}
	return float64(got) / slices
}

// However the tasks of a group share the work among them, they get no more than as many get that never end, or one
// group among all, or the least that everybody may have; and their part of those whose turn it is whatever they had.
func TestTricksGetNoMoreThanEndlessOnes(t *testing.T) {
	const endless = 100
	for name, c := range map[string]struct {
		how  func(g *Group) trick
		most int // that wait at a time
	}{
		"a ring":                          {func(g *Group) trick { return ring(g, 10, 2) }, 1},
		"a long ring":                     {func(g *Group) trick { return ring(g, 5000, 1) }, 1},
		"a ring of two":                   {func(g *Group) trick { return ring(g, 2, 8) }, 1},
		"each starts the next":            {func(g *Group) trick { return heirs(g, 2) }, 1},
		"long bursts, short rests":        {func(g *Group) trick { return bursts(g, 500, 20) }, 1},
		"short bursts, the shortest rest": {func(g *Group) trick { return bursts(g, 2, 2) }, 1},
		"one after the other, by clocks":  {func(g *Group) trick { return clocks(g, 1000, 2, 2000) }, 1000},
		"some by clocks":                  {func(g *Group) trick { return clocks(g, 10, 2, 20) }, 10},
	} {
		for _, groups := range []int{1, 10, endless} {
			if race.Enabled && groups != 10 {
				continue // there is one goroutine, and it takes half a minute
			}
			fair := max(1/float64(leastShare), 1/float64(groups+1), float64(c.most)/float64(c.most+endless))
			got := share(newVirtual(), c.how(new(Group)), endless, groups)
			t.Logf("%s, beside %d groups: %.3f, fair is %.3f", name, groups, got, fair)
			if got > 1.1*fair+0.02 {
				t.Errorf("%s: %.3f of the slices beside %d groups, %.3f are fair", name, got, groups, fair)
			}
		}
	}
}

// delays is how long honest tasks wait for their slices, in quanta for each that they need: the mean, and the
// worst of a hundred. They come at random so that all of them together need a part of the machine; others never end.
func delays(tasks, needs int, load float64, of *Group, endless []*Task) (mean, worst float64) {
	v, r := newVirtual(), rand.New(rand.NewPCG(1, 2))
	for _, k := range endless {
		v.wait(k)
	}
	for range len(endless) * 200 {
		v.wait(v.grant())
	}
	idle := members(of, tasks)
	type want struct{ since, had int }
	wants := map[*Task]*want{}
	var all []float64
	for now := range 200_000 {
		if len(idle) > 0 && r.Float64() < load/float64(needs) {
			i := r.IntN(len(idle))
			k := idle[i]
			idle[i] = idle[len(idle)-1]
			idle = idle[:len(idle)-1]
			wants[k] = &want{since: now}
			v.wait(k)
		}
		if v.d.queued.Load() == 0 {
			v.d.turns.Add(1)
			continue
		}
		k := v.grant()
		w := wants[k]
		if w != nil {
			if w.had++; w.had == needs {
				v.end(k)
				delete(wants, k)
				idle = append(idle, k)
				all = append(all, float64(now+1-w.since)/float64(needs))
				continue
			}
		}
		v.wait(k)
	}
	slices.Sort(all)
	for _, d := range all {
		mean += d / float64(len(all))
	}
	return mean, all[len(all)*99/100]
}

// Honest tasks that stand together do not wait longer for it: many of them beside a few that never end, a few beside
// many, and all in one group.
func TestGroupsDoNotHarmTheHonest(t *testing.T) {
	apart := func(n int) (all []*Task) {
		for range n {
			all = append(all, members(new(Group), 1)...)
		}
		return all
	}
	for name, c := range map[string]struct {
		tasks, needs int
		load         float64
		endless      func(own *Group) []*Task
	}{
		"10,000 beside one":                {10_000, 3, 0.9, func(*Group) []*Task { return apart(1) }},
		"10,000 beside ten":                {10_000, 3, 0.7, func(*Group) []*Task { return apart(10) }},
		"10,000 beside a crowd":            {10_000, 3, 0.45, func(*Group) []*Task { return members(new(Group), 1000) }},
		"10,000 in a group with a crowd":   {10_000, 3, 0.7, func(own *Group) []*Task { return members(own, 1000) }},
		"one that does little":             {1, 10, 0.012, func(*Group) []*Task { return apart(1000) }},
		"one that does much, beside one":   {1, 10, 0.45, func(*Group) []*Task { return apart(1) }},
		"one beside a crowd that is a few": {1, 100, 0.45, func(*Group) []*Task { return members(new(Group), 100) }},
	} {
		if race.Enabled && c.tasks > 1 {
			continue // as above
		}
		own := new(Group)
		mean, worst := delays(c.tasks, c.needs, c.load, own, c.endless(own))
		alone := apart(0)
		for range c.endless(new(Group)) {
			alone = append(alone, new(Task))
		}
		before, worstBefore := delays(c.tasks, c.needs, c.load, nil, alone)
		t.Logf("%s: %.2f and %.1f quanta a slice, without groups %.2f and %.1f", name, mean, worst, before, worstBefore)
		if mean > 1.2*before || worst > 1.3*worstBefore {
			t.Errorf("%s: %.2f and %.1f quanta a slice, without groups %.2f and %.1f", name, mean, worst, before, worstBefore)
		}
	}
}

// A group may have 1/32 of what was granted, its part among the groups, or its part among the tasks, whichever is
// most. Before a period has passed it is that of a whole one.
func TestShareOfAGroup(t *testing.T) {
	d := newVirtual().d
	length := uint32(period * len(d.lanes))
	for name, c := range map[string]struct {
		turns, most        uint32
		own, groups, tasks uint32 // that have waited at a time
	}{
		"one of many":            {length, length / leastShare, 1, 1000, 1000},
		"one group of two":       {length, length / 2, 1, 2, 1000},
		"five tasks of ten":      {length, length / 2, 5, 1000, 10},
		"one of four, at first":  {1, length / 4, 1, 4, 4},
		"one of many, at first":  {1, length / leastShare, 1, 1000, 1000},
		"one group of two, late": {length + length/2, length/2 + length/4, 1, 2, 1000},
	} {
		d.turns.Store(uint64(c.turns))
		d.back.groups.now.most, d.back.tasks.now.most = c.groups, c.tasks
		g := &Group{window: window{before: tally{c.most, c.own}}}
		if d.greedy(g) {
			t.Errorf("%s: %d are too many", name, c.most)
		}
		if g.now.slices++; !d.greedy(g) {
			t.Errorf("%s: one more is not too many", name)
		}
	}
}

// What counts are the present period and the one before, of a group and of all.
func TestWhatWasLongAgoDoesNotCount(t *testing.T) {
	v := newVirtual()
	length := uint64(period * len(v.d.lanes))
	groups := make([]Group, 5)
	for i := range groups {
		for _, k := range members(&groups[i], 2) {
			v.wait(k)
		}
	}
	g, b := &groups[0], &v.d.back
	count := func(when string, own, busy, seats, grants uint64) {
		t.Helper()
		if g.most() != own || b.groups.most() != busy || b.tasks.most() != seats || g.slices() != grants {
			t.Errorf("%s: %d of the group, %d groups, %d tasks, %d grants", when, g.most(), b.groups.most(), b.tasks.most(), g.slices())
		}
	}
	count("they wait", 2, 5, 10, 0)
	for range 10 {
		v.grant()
	}
	count("they have had one each", 2, 5, 10, 2)
	at := v.d.turns.Load()
	v.d.turns.Store(at + length)
	v.d.rollAll(g)
	count("a period later", 2, 5, 10, 2)
	v.d.turns.Store(at + 2*length)
	v.d.rollAll(g)
	count("two periods later", 0, 0, 0, 0)
	v.wait(members(g, 1)[0])
	v.grant()
	v.d.turns.Store(at + 3*length)
	v.d.rollAll(g)
	count("a period later again", 1, 1, 1, 1)
	v.d.turns.Store(at + 9*length)
	v.d.rollAll(g)
	count("after a time without grants", 0, 0, 0, 0)
}
