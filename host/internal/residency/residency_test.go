package residency

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
	"pgregory.net/rapid"
)

type guest struct {
	node   Node
	asleep bool
	asked  int  // how often
	busy   bool // it cannot be put away
	next   bool // it sleeps after its run
	list   *List
	ran    bool // since it was last asked to be slim
	slim   int  // how often it has become slim
}

func (g *guest) AskToSleep() { g.asked++; g.sleep() }
func (g *guest) SleepNext()  { g.next = true }
func (g *guest) sleep()      { g.asleep = true; g.list.Remove(&g.node) }
func (g *guest) use()        { g.asleep = false; g.list.Use(&g.node) }
func (g *guest) PutAway() bool {
	if !g.busy {
		g.sleep()
	}
	return !g.busy
}

func (g *guest) Slim(now bool) bool {
	if g.busy || g.ran && !now {
		g.ran = false
		return false
	}
	g.slim++
	g.list.Narrow(&g.node)
	return true
}

// listed counts those that the list holds; it must know their number.
func listed(t interface{ Fatalf(string, ...any) }, l *List) (n int) {
	for i := range l.shards {
		for p := l.shards[i].list.First(); p != nil; p = p.Next() {
			n++
		}
	}
	if got := l.count.Load(); got != int64(n) {
		t.Fatalf("%d are listed, %d counted", n, got)
	}
	return n
}

func newGuests(l *List, n int) (all []*guest) {
	for i := range n {
		g := &guest{list: l}
		g.node.Init(g, uint64(i), nil)
		all = append(all, g)
	}
	return all
}

func awake(all []*guest) (n int) {
	for _, g := range all {
		if !g.asleep {
			n++
		}
	}
	return n
}

func TestIdleGuestsSleep(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	l := New(v, time.Minute, 0)
	all := newGuests(l, 40)
	for _, g := range all {
		g.use()
	}
	v.Advance(time.Minute) // they were used until now
	if n := awake(all); n != 40 || listed(t, l) != 40 {
		t.Errorf("%d are awake: there is no goal, and nobody has been idle", n)
	}
	all[3].use()
	v.Advance(time.Minute)
	if awake(all) != 1 || all[3].asleep || listed(t, l) != 1 {
		t.Errorf("%d are awake", awake(all))
	}
	if v.Pending() != 1 {
		t.Errorf("%d timers for the one that is left", v.Pending())
	}
	v.Advance(time.Minute)
	if awake(all) != 0 || v.Pending() != 0 {
		t.Errorf("%d are awake, %d timers", awake(all), v.Pending())
	}
	all[5].use()
	if v.Pending() != 1 {
		t.Error("nobody will look again")
	}
	v.Advance(time.Minute)
	all[6].use()
	if v.Pending() != 1 {
		t.Errorf("%d timers after a sweep that has left some awake", v.Pending())
	}
}

// A list that is closed makes no timers any more, and may be closed again.
func TestClose(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	l := New(v, time.Minute, 0)
	all := newGuests(l, 2)
	all[0].use()
	l.Close()
	if v.Pending() != 0 {
		t.Error("a timer is left")
	}
	l.Close()
	v = clock.NewVirtual(time.Unix(0, 0))
	l = New(v, time.Minute, 0)
	l.Close()
	l.Use(&all[1].node)
	if v.Pending() != 0 {
		t.Error("a timer was made after Close")
	}
}

// Who has given its instance back by itself is not asked to, and is looked after again once
// it is used.
func TestRemoved(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	l := New(v, time.Minute, 0)
	g := newGuests(l, 1)[0]
	g.use()
	g.sleep()
	g.sleep()
	if listed(t, l) != 0 {
		t.Error("it is listed still")
	}
	v.Advance(2 * time.Minute)
	if g.asked != 0 {
		t.Error("it was asked while it slept")
	}
	g.use()
	v.Advance(2 * time.Minute)
	if g.asked != 1 {
		t.Errorf("asked %d times", g.asked)
	}
}

// A list for which nobody sleeps costs nothing; one with a goal alone has no timer.
func TestNothingToDo(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	for _, most := range []int{0, 5} {
		l := New(v, 0, most)
		all := newGuests(l, 5)
		for _, g := range all {
			g.use()
		}
		if n := listed(t, l); n != most || awake(all) != 5 || v.Pending() != 0 {
			t.Errorf("goal %d: %d listed, %d awake, %d timers", most, n, awake(all), v.Pending())
		}
	}
	l := New(v, 0, 0)
	if l.Count(&newGuests(l, 1)[0].node); l.count.Load() != 0 {
		t.Error("one that cannot sleep is counted")
	}
}

// Who cannot give its instance back counts and is left alone, also by its tree, until it is used again.
func TestWhoIsHeldIsLeftAlone(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	l := New(v, time.Minute, 0)
	var tree Tree
	g := newGuests(l, 1)[0]
	g.node.Init(g, 0, &tree)
	g.use()
	l.Hold(&g.node)
	v.Advance(2 * time.Minute)
	if g.asked != 0 || l.MakeRoom(nil, anybody) || tree.MakeRoom(nil, anybody) || l.count.Load() != 1 {
		t.Errorf("asked %d times to sleep, asleep %v, %d counted", g.asked, g.asleep, l.count.Load())
	}
	g.use()
	if listed(t, l) != 1 || tree.list.First() == nil {
		t.Error("it is used, and not looked at")
	}
	v.Advance(2 * time.Minute)
	if g.asked != 1 {
		t.Errorf("asked %d times", g.asked)
	}
}

// Who was asked to sleep is in no list until it is used again, whatever it does, and counts until it sleeps.
func TestWhoIsAskedIsInNoList(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	l := New(v, time.Minute, 0)
	var tree Tree
	g := &reluctant{}
	g.node.Init(g, 0, &tree)
	for i := range 3 {
		l.Use(&g.node)
		v.Advance(3 * time.Minute)
		if g.asked != i+1 || l.anyListed() || tree.list.First() != nil || l.count.Load() != 1 {
			t.Fatalf("round %d: asked %d times, listed %v, %d counted", i, g.asked, l.anyListed(), l.count.Load())
		}
	}
	l.Remove(&g.node)
	if l.count.Load() != 0 {
		t.Error("it counts, and sleeps")
	}
}

// reluctant never gives its instance back.
type reluctant struct {
	node          Node
	asked, looked int
}

func (r *reluctant) AskToSleep()    { r.asked++ }
func (r *reluctant) PutAway() bool  { r.looked++; return false }
func (r *reluctant) SleepNext()     {}
func (r *reluctant) Slim(bool) bool { return false }

// Who makes room looks at 32 of those that are busy, and then gives up.
func TestLooksForRoomAreBounded(t *testing.T) {
	l := New(clock.NewVirtual(time.Unix(0, 0)), time.Minute, 100)
	var tree Tree
	all := make([]reluctant, 101)
	looked := func() (n int) {
		for i := range all {
			n += all[i].looked
			all[i].looked = 0
		}
		return n
	}
	for i := range all[:100] {
		all[i].node.Init(&all[i], uint64(i), &tree)
		l.Use(&all[i].node)
	}
	newcomer := &all[100]
	newcomer.node.Init(newcomer, 0, nil)
	l.Count(&newcomer.node)
	if n := looked(); n != tries {
		t.Errorf("%d of the list", n)
	}
	for i := range all[:100] {
		all[i].node.used.Store(true)
	}
	tree.MakeRoom(&newcomer.node, anybody)
	if n := looked(); n != tries/2 { // the others were used
		t.Errorf("%d of the tree", n)
	}
}

// Within a tree, too, who was used since somebody looked has a second chance.
func TestSecondChanceInATree(t *testing.T) {
	l := New(clock.NewVirtual(time.Unix(0, 0)), time.Minute, 0)
	var tree Tree
	all := newGuests(l, 3)
	for _, g := range all {
		g.node.Init(g, 0, &tree)
		g.use()
	}
	all[1].node.used.Store(false)
	for _, want := range []int{1, 0, 2} { // 0 was looked at before 1, and not used since
		if !tree.MakeRoom(nil, anybody) || !all[want].asleep {
			t.Errorf("%d is awake", want)
		}
	}
}

// One that is idle is found whatever shard it is in.
func TestEveryShardGivesRoom(t *testing.T) {
	l := New(clock.NewVirtual(time.Unix(0, 0)), time.Minute, 0)
	for i, g := range newGuests(l, shards) {
		g.use()
		if !l.MakeRoom(nil, anybody) || !g.asleep {
			t.Errorf("not in shard %d", i)
		}
	}
}

// Where all that are looked at were used the oldest goes.
func TestTheOldestOfTheUsedGoes(t *testing.T) {
	l := New(clock.NewVirtual(time.Unix(0, 0)), time.Minute, 0)
	all := newGuests(l, 20)
	for _, g := range all {
		g.node.Init(g, 0, nil)
		g.use()
	}
	if n := l.shards[0].victim(&all[0].node, anybody); n != &all[1].node {
		t.Error("another one")
	}
}

// Who was used since somebody looked has a second chance: the oldest of the others goes.
func TestSecondChance(t *testing.T) {
	l := New(clock.NewVirtual(time.Unix(0, 0)), 0, 3)
	var all []*guest
	for range 5 {
		g := &guest{list: l}
		g.node.Init(g, 0, nil) // one shard
		all = append(all, g)
	}
	for i, want := range []string{"", "", "", "0", "0", "02"} {
		all[[]int{0, 1, 2, 3, 1, 4}[i]].use()
		got := ""
		for k, g := range all {
			if g.asleep {
				got += string(rune('0' + k))
			}
		}
		if got != want {
			t.Errorf("after use %d %q sleep, want %q", i, got, want)
		}
	}
}

// The bound holds, whoever is used: one that is idle is put away for each that wakes, and only
// where nobody is does the newcomer stay, and is told to give its instance back after its run.
func TestBoundHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 20).Draw(t, "most")
		l := New(clock.NewVirtual(time.Unix(0, 0)), 0, most)
		all := newGuests(l, 60)
		for _, g := range all {
			g.asleep = true
		}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 1, 200).Draw(t, "used") {
			before, idle := awake(all), 0
			for k, g := range all {
				g.busy = rapid.IntRange(0, 3).Draw(t, "busy") == 0
				if k != i && !g.asleep && !g.busy {
					idle++
				}
			}
			if all[i].asleep {
				before++
			}
			all[i].next = false
			all[i].use()
			if all[i].asleep {
				t.Fatal("the newcomer itself sleeps")
			}
			n := awake(all)
			if n > most && idle > 0 && !all[i].next {
				t.Fatalf("%d are awake, the bound is %d, and %d are idle", n, most, idle)
			}
			if n < min(before, most) {
				t.Fatalf("%d of %d are awake, the bound is %d", n, before, most)
			}
			if all[i].next {
				all[i].sleep() // after its run
			}
			if n := awake(all); n > most {
				t.Fatalf("%d are awake after the run, the bound is %d", n, most)
			}
			if listed(t, l) != awake(all) {
				t.Fatal("who is awake is not listed")
			}
		}
	})
}

// Who needs an instance gets one of another's, and never its own or one that is in use.
func TestMakeRoom(t *testing.T) {
	l := New(clock.NewVirtual(time.Unix(0, 0)), time.Minute, 0)
	all := newGuests(l, 3)
	if l.MakeRoom(&all[0].node, anybody) {
		t.Error("room, and nobody is awake")
	}
	for _, g := range all {
		g.use()
	}
	all[1].busy = true
	if !l.MakeRoom(&all[0].node, anybody) || !all[2].asleep || awake(all) != 2 {
		t.Error("the one that is idle is awake")
	}
	if l.MakeRoom(&all[0].node, anybody) || awake(all) != 2 {
		t.Error("room of one that is busy")
	}
}

// Who gets an instance that it cannot give back has others make room for it.
func TestCountMakesRoom(t *testing.T) {
	l := New(clock.NewVirtual(time.Unix(0, 0)), 0, 3)
	all := newGuests(l, 5)
	for _, g := range all[:3] {
		g.use()
	}
	for _, g := range all[3:] {
		l.Count(&g.node)
	}
	if n := awake(all); n != 3 || l.count.Load() != 3 || all[3].asleep || all[4].asleep {
		t.Errorf("%d are awake, %d counted", n, l.count.Load())
	}
	for _, g := range all {
		l.Remove(&g.node)
	}
	if listed(t, l) != 0 {
		t.Error("somebody is left")
	}
}

// Room within a tree is found among any number of others, who are left alone and keep their order.
func TestTreeMakesRoomOfItsOwn(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	l := New(v, time.Minute, 0)
	var tree, empty Tree
	others, own := newGuests(l, 2000), newGuests(l, 40)
	for _, g := range own {
		g.node.Init(g, 3, &tree)
	}
	for _, g := range append(others, own...) {
		g.use()
	}
	order := func() (list []*Node) {
		for i := range l.shards {
			for p := l.shards[i].list.First(); p != nil; p = p.Next() {
				if p.Of.tree == nil {
					list = append(list, p.Of)
				}
			}
		}
		return list
	}
	before := order()
	own[7].busy = true
	odd := func(s Sleeper) bool { return s != own[8] }
	for i := range 38 {
		made := tree.MakeRoom(&own[9].node, odd)
		if !made { // all that it has looked at were in use
			made = tree.MakeRoom(&own[9].node, odd)
		}
		if made != (i < 37) {
			t.Fatalf("room for number %d: %v", i, made)
		}
	}
	if n := awake(own); n != 3 || own[7].asleep || own[8].asleep || own[9].asleep {
		t.Errorf("%d are awake", n)
	}
	if tree.MakeRoom(&own[9].node, odd) || empty.MakeRoom(nil, anybody) {
		t.Error("there is room where nobody can give it")
	}
	if awake(others) != 2000 || !slices.Equal(before, order()) {
		t.Error("others were touched")
	}
	v.Advance(2 * time.Minute) // they all sleep
	if listed(t, l) != 0 || tree.list.First() != nil {
		t.Error("a tree has guests that are in no list")
	}
}
