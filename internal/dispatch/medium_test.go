package dispatch

import (
	"testing"

	"github.com/wasmactors/wasmactors/internal/race"
)

// lanes are two workers on one goroutine, and a clock for each that only their tasks move.
type lanes struct {
	d       *Dispatcher
	workers []*Worker
	at      []int64
	now     int // whose turn it is
	clocks  int // looks at the clock
	ways    int // times that a lane has made way
}

func newLanes() *lanes {
	v := &lanes{d: newDispatcher(2), at: make([]int64, 2)}
	v.d.now = func() int64 { v.clocks++; return v.at[v.now] }
	for _, l := range v.d.lanes {
		v.workers = append(v.workers, &Worker{d: v.d, lane: l})
	}
	return v
}

// step runs the next task on the worker that is behind the other, or lets it wait a little.
func (v *lanes) step() {
	v.now = 0
	if v.at[1] < v.at[0] {
		v.now = 1
	}
	w := v.workers[v.now]
	looks := v.clocks
	t := w.lane.next(v.d)
	v.ways += v.clocks - looks
	if t == nil {
		t = v.d.injector.popInto(w.lane, len(v.d.lanes), severalFresh)
	}
	if t == nil {
		if t = v.d.stealFor(w.lane); t == nil {
			v.at[v.now] += brief
			w.lane.begin(v.d)
			return
		}
	}
	w.run(t)
}

// turn is a task that takes so long.
type turn struct {
	Task
	v      *lanes
	takes  int64
	silent bool // it reports nothing
	group  *Group
	then   func(w *Worker)
	runs   int
	begun  int64
}

func (v *lanes) turn(takes int64, g *Group) *turn {
	t := &turn{v: v, takes: takes, group: g}
	t.Init(t)
	return t
}

func (t *turn) Group() *Group { return t.group }

func (t *turn) Run(w *Worker) bool {
	t.runs++
	t.begun = t.v.at[t.v.now]
	t.v.at[t.v.now] += t.takes
	if !t.silent {
		w.Spend(t.takes)
	}
	if t.then != nil {
		t.then(w)
	}
	return false
}

// pair is two tasks that wake each other.
func (v *lanes) pair(takes int64, a, b *Group) *turn {
	x, y := v.turn(takes, a), v.turn(takes, b)
	x.then = func(w *Worker) { v.d.Schedule(&y.Task, w) }
	y.then = func(w *Worker) { v.d.Schedule(&x.Task, w) }
	v.d.Schedule(&x.Task, nil)
	return x
}

// A crowd none of whose runs is long holds up a task of another tree for some of its runs, however many it is: if
// their runs are not brief or if they are one tree. They hold up one whose runs are as long as theirs only if each is
// a tree of its own.
func TestACrowdOfShortRunsDoesNotHoldUpOthers(t *testing.T) {
	for name, c := range map[string]struct {
		crowd, honest int64 // how long their runs take
		trees         bool  // each pair is one
		most          int64 // slices until it runs
	}{
		"medium":                         {slice * 9 / 10, brief / 4, false, 3},
		"medium, trees":                  {slice * 9 / 10, brief / 4, true, 3},
		"just not brief, trees":          {brief, brief / 4, true, 3},
		"light":                          {brief * 9 / 10, brief / 4, false, 15},
		"very light":                     {brief / 10, brief / 4, false, 15},
		"a medium one beside medium":     {slice * 9 / 10, slice / 2, false, 8},
		"a medium one beside light ones": {brief / 2, slice / 2, false, 8},
	} {
		for _, crowd := range []int{10, 1000, 5000} {
			if race.Enabled && crowd > 1000 {
				continue // there is one goroutine, and it takes a minute
			}
			v, all, own := newLanes(), new(Group), new(Group)
			for range crowd {
				g := all
				if c.trees {
					g = new(Group)
				}
				v.pair(c.crowd, g, g)
			}
			honest := v.turn(c.honest, own)
			honest.silent = c.honest < brief
			worst := int64(0)
			for range 4*crowd + 60_000 { // until it shows what they are, and who has had much
				v.step()
			}
			for range 30 {
				for range 20 {
					v.step()
				}
				v.d.Schedule(&honest.Task, nil)
				since, runs := v.at[v.now], honest.runs
				for honest.runs == runs {
					v.step()
				}
				worst = max(worst, honest.begun-since)
			}
			if worst > c.most*slice {
				t.Errorf("%s, a crowd of %d: it waits for up to %d us", name, crowd, worst/1000)
			}
		}
	}
}

// Two medium tasks that talk to each other stay on one worker, and wake no other, while nobody else waits; they do
// not when somebody does.
func TestAConversationOfMediumTasksStaysOnItsLane(t *testing.T) {
	v := newLanes()
	x := v.pair(slice/2, nil, nil)
	for range 20 {
		v.step()
	}
	l := v.d.lanes[v.now]
	if l.slot.Load() == nil {
		l = v.d.lanes[1-v.now]
	}
	for range 1000 {
		v.step()
		if l.slot.Load() == nil || v.d.injector.len() > 0 {
			t.Fatal("it has left its lane")
		}
	}
	other := v.turn(slice/2, nil)
	for range 3 { // it is known
		v.d.Schedule(&other.Task, nil)
		for range 10 {
			v.step()
		}
	}
	before := x.runs
	v.d.Schedule(&other.Task, nil)
	for n := other.runs; other.runs == n; {
		v.step()
	}
	if x.runs > before+2 {
		t.Errorf("another one waits for %d of its runs", 2*(x.runs-before))
	}
}

// While light tasks keep the lanes busy, those that are medium, and those of a tree that has had much, have their turn.
func TestLightTasksLeaveTimeForMediumOnes(t *testing.T) {
	v := newLanes()
	for range 500 {
		v.pair(brief/4, new(Group), new(Group))
	}
	for _, g := range []*Group{new(Group), new(Group)} {
		var all []*turn
		for range 10 {
			all = append(all, v.pair(slice/2, g, g))
		}
		for range 200_000 {
			v.step()
		}
		least := all[0].runs
		for _, x := range all {
			least = min(least, x.runs)
		}
		if least < 100 {
			t.Errorf("one of ten has run %d times in %d ms", least, v.at[0]/1e6)
		}
	}
}

// A lane whose tasks take long looks outside after each of them, but leaves its own every second turn.
func TestALanesOwnTasksHaveTheirTurn(t *testing.T) {
	v := newLanes()
	const crowd = 100
	var own, others []*turn
	for range crowd {
		x := v.turn(brief, nil)
		x.heat.Store(light)
		others = append(others, x)
		y := v.turn(brief, nil)
		y.heat.Store(light)
		own = append(own, y)
	}
	l := v.d.lanes[0]
	for _, y := range own {
		v.d.append(l, &y.Task)
	}
	for i := range crowd {
		for _, x := range others[i : i+1] { // one comes from outside whenever one has been taken
			v.d.injector.push(&x.Task)
		}
		l.lookOut()
		if k := l.next(v.d); k == nil {
			t.Fatal("there is nothing to do")
		} else {
			k.what.(*turn).runs++
		}
	}
	mine := 0
	for _, y := range own {
		mine += y.runs
	}
	if mine < crowd/2-2 || mine > crowd/2+2 {
		t.Errorf("%d of %d runs were the lane's own", mine, crowd)
	}
}

// Runs that report nothing are found by the clock: new ones at once, others after some of them, and it is not looked
// at for each.
func TestALaneLooksAtTheClock(t *testing.T) {
	for _, new := range []bool{true, false} {
		v := newLanes()
		l, w := v.d.lanes[0], v.workers[0]
		x := v.turn(slice/10, nil)
		x.silent = true
		l.begin(v.d)
		v.clocks = 0
		runs := 0
		for ; l.busy < slice && runs < 1000; runs++ {
			if new {
				x.heat.Store(fresh)
			} else {
				x.heat.Store(light)
			}
			v.d.append(l, &x.Task)
			w.run(l.next(v.d))
		}
		if most := map[bool]int{true: 12, false: 70}[new]; runs > most {
			t.Errorf("new: %v: after %d runs it has noticed", new, runs)
		}
		if !new && v.clocks > runs/60 {
			t.Errorf("%d looks at the clock in %d runs", v.clocks, runs)
		}
	}
}

// Of each kind of tasks in the global queue some come, however many there are of the others.
func TestEveryKindOfTaskHasItsTurn(t *testing.T) {
	d := newDispatcher(1)
	q := &d.injector
	much := new(Group)
	q.used.count(&much.lanes, laneTime/4)
	kinds := map[*Task]string{}
	push := func(name string, heat uint32, g *Group) {
		k := members(g, 1)[0]
		k.heat.Store(heat)
		kinds[k] = name
		q.push(k)
	}
	all := map[string]uint32{"fresh": fresh, "light": light, "medium": medium}
	for name, heat := range all {
		for range 1000 {
			push(name, heat, new(Group))
			push(name+", greedy", heat, much)
		}
	}
	got := map[string]int{}
	for range 1000 {
		k := q.pop()
		got[kinds[k]]++
	}
	for name := range all {
		if got[name] < 150 || got[name+", greedy"] < 50 {
			t.Errorf("%s: %d of 1000, of a group that has had much %d", name, got[name], got[name+", greedy"])
		}
	}
	if got["light"] < 350 || q.len() != 5000 {
		t.Errorf("%v; %d are left", got, q.len())
	}
}

// What a group has had in lanes is forgotten after two periods.
func TestUsageOfLanesIsForgotten(t *testing.T) {
	all, g, other := new(usage), new(Group), new(Group)
	k := members(g, 1)[0]
	all.count(&g.lanes, laneTime/leastShare)
	if all.greedy(k) {
		t.Error("it has had its share")
	}
	all.count(&g.lanes, laneTime/leastShare)
	for range 2 {
		if !all.greedy(k) {
			t.Error("what it has had counts in the period and in the next one")
		}
		for n := all.number; n == all.number; {
			all.count(&other.lanes, laneTime/100)
		}
	}
	if all.greedy(k) {
		t.Error("what it had two periods ago counts")
	}
}

// Lanes that are busy make way for other goroutines about once a slice, but only while these give them tasks.
func TestBusyLanesMakeWay(t *testing.T) {
	v := newLanes()
	for range 100 {
		v.pair(slice/2, nil, nil)
	}
	for end := v.at[0] + outsideFor; v.at[0] < end; {
		v.step()
	}
	if slices := outsideFor / slice; v.ways < slices || v.ways > 3*slices {
		t.Errorf("2 lanes have made way %d times in %d slices", v.ways, slices)
	}
	for end := v.at[0] + outsideFor/10; v.at[0] < end; {
		v.step()
	}
	v.ways = 0
	for range 1000 {
		v.step()
	}
	if v.ways != 0 {
		t.Errorf("with nobody outside they make way %d times", v.ways)
	}
	v.d.Schedule(&v.turn(slice/2, nil).Task, nil)
	for range 100 {
		v.step()
	}
	if v.ways < 40 {
		t.Errorf("with somebody outside they make way %d times", v.ways)
	}
}
