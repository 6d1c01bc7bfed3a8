package dispatch

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

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
	v.d.letOthers = func() { v.ways++ }
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
	t := w.lane.next(w)
	if t == nil {
		t = v.d.injector.popInto(w.lane, len(v.d.lanes), severalFresh)
	}
	if t == nil {
		if t = v.d.stealFor(w.lane); t == nil {
			v.at[v.now] += brief
			w.lane.begin(w)
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
	then   func(w *Worker)
	more   bool // it is not done
	runs   int
	begun  int64
}

func (v *lanes) turn(takes int64, g *Group) *turn {
	t := &turn{v: v, takes: takes}
	t.Init(t)
	t.Join(g)
	return t
}

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
	return t.more
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

// A run says what the task is; after a long one it takes two. Where runs may take as long as they like, and in manual
// mode, tasks are light.
func TestClassesOfTasks(t *testing.T) {
	const end = heavy - 1
	for _, c := range []struct {
		was          uint32
		spent        int64
		is, patience uint32
	}{
		{fresh, 0, light, light}, {fresh, brief - 1, light, light}, {fresh, brief, medium, light}, {fresh, slice - 1, medium, light},
		{fresh, slice, heavy, light}, {light, brief, medium, light}, {light, slice, heavy, light}, {medium, brief - 1, light, light},
		{medium, brief, medium, light}, {medium, slice, heavy, light}, {heavy, 0, end, end}, {heavy, slice - 1, end, end},
		{heavy, slice, heavy, end}, {end, brief - 1, light, light}, {end, brief, medium, light}, {end, slice, heavy, light},
	} {
		for _, w := range []*Worker{{d: newDispatcher(1)}, NewManual().manual} {
			var k Task
			k.heat.Store(c.was)
			w.Spend(slice)
			w.began = w.spent // that was another run
			w.Spend(c.spent)
			want := c.is
			if w.d.patient() {
				want = c.patience
			}
			if w.learn(&k); k.heat.Load() != want {
				t.Errorf("class %d, after a run of %d ns: %d, not %d", c.was, c.spent, k.heat.Load(), want)
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

// A medium task that has more to do waits behind what waits in its lane, and outside; alone it stays there.
func TestAMediumTaskWithMoreToDoWaits(t *testing.T) {
	v := newLanes()
	w, l := v.workers[0], v.d.lanes[0]
	l.begin(w)
	x, y := v.turn(slice/2, nil), v.turn(brief/10, nil)
	x.more = true
	v.d.append(l, &x.Task)
	w.run(w.find())
	if l.len() != 1 {
		t.Error("it has left its lane to nobody")
	}
	v.d.append(l, &y.Task)
	w.run(l.pop())
	if l.len() != 1 || v.d.injector.len() != 1 {
		t.Errorf("%d tasks wait in the lane, %d outside", l.len(), v.d.injector.len())
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
		if k := l.next(v.workers[0]); k == nil {
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

// A lane whose tasks are short, and say so, looks at the clock after 64 of them. It is found by the clock that they are
// not, and then it looks after 16; of tasks that report what they take, after a quarter of a slice.
func TestALaneLooksAtTheClock(t *testing.T) {
	for name, c := range map[string]struct {
		takes       int64
		silent      bool
		least, most int // runs to a look
	}{
		"short":            {brief / 100, true, clockTurn, clockTurn},
		"longer than said": {slice / 10, true, injectorTurn, injectorTurn + 1},
		"light":            {brief - 1, false, 2, 4},
		"medium":           {brief, false, 2, 3},
		"nearly heavy":     {slice - 1, false, 1, 1},
		"as said":          {brief / 10, false, injectorTurn, 2 * injectorTurn},
	} {
		v := newLanes()
		w, l := v.workers[0], v.d.lanes[0]
		l.begin(w)
		x := v.turn(c.takes, nil)
		x.silent = c.silent
		x.heat.Store(light)
		const runs = 1 << 14
		slow := 0
		for i := range runs {
			if i == 2*clockTurn {
				v.clocks = 0
			}
			v.d.append(l, &x.Task)
			if w.run(w.find()); l.slow {
				slow++
			}
		}
		if each := runs / v.clocks; each < c.least || each > c.most {
			t.Errorf("%s: %d runs to a look", name, each)
		}
		if most := int(runs * min(c.takes, brief) / brief); !c.silent && (slow > most || slow < most/2) || c.silent && slow > 1 {
			t.Errorf("%s: it looks out after %d of %d runs", name, slow, runs)
		}
	}
}

// Light tasks that talk to each other leave the lane to what waits there after an eighth of a slice.
func TestAConversationOfLightTasksEnds(t *testing.T) {
	v := newLanes()
	w, l := v.workers[0], v.d.lanes[0]
	l.begin(w)
	x := v.pair(brief*9/10, nil, nil)
	y := v.turn(brief/10, nil)
	for _, k := range []*turn{x, y} {
		k.heat.Store(light)
	}
	for range 20 {
		w.run(w.find())
	}
	for range 100 {
		v.d.append(l, &y.Task)
		passed := 0
		for n := y.runs; y.runs == n; passed++ {
			w.run(w.find())
		}
		if passed > 3 {
			t.Fatalf("another one waits for %d of their runs", passed-1)
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
	late := new(Group)
	all.count(&late.lanes, laneTime/8)
	if !all.greedy(members(late, 1)[0]) {
		t.Error("what one has that comes late does not count")
	}
}

// However many tasks of a tree that has had much wait in the global queue, one of another tree is next or the one after.
func TestManyOfAGreedyTreeAreNoQueue(t *testing.T) {
	q := &newDispatcher(1).injector
	much := new(Group)
	q.used.count(&much.lanes, laneTime/4)
	for _, heat := range []uint32{light, medium, fresh} {
		for _, k := range members(much, 1000) {
			k.heat.Store(heat)
			q.push(k)
		}
		honest := members(new(Group), 1)[0]
		honest.heat.Store(heat)
		q.push(honest)
		passed := 0
		for q.pop() != honest {
			passed++
		}
		if passed > 1 {
			t.Errorf("class %d: %d pass", heat, passed)
		}
		for q.pop() != nil {
		}
	}
}

// Lanes that are busy make way for other goroutines about once a slice, but only while these give them tasks, or
// compute with tokens.
func TestBusyLanesMakeWay(t *testing.T) {
	v := newLanes()
	for range 100 {
		v.pair(slice/2, nil, nil)
	}
	busy := func(ns int64) (ways int) {
		v.ways = 0
		for end := v.at[0] + ns; v.at[0] < end; {
			v.step()
		}
		return v.ways
	}
	const long = 200 * slice
	if n := busy(long); n < 200 || n > 500 {
		t.Errorf("2 lanes have made way %d times in 200 slices", n)
	}
	busy(outsideFor)
	if n := busy(long); n != 0 {
		t.Errorf("with nobody outside they make way %d times", n)
	}
	v.d.Schedule(&v.turn(slice/2, nil).Task, nil)
	if n := busy(long); n < 200 {
		t.Errorf("with somebody outside they make way %d times", n)
	}
	busy(outsideFor)
	v.d.tokens.Store(1)
	if n := busy(long); n < 200 || n > 500 {
		t.Errorf("with a long run they make way %d times", n)
	}
	take := func(ns int64) {
		v.d.letOthers = func() {
			v.ways++
			v.at[v.now] += ns
		}
	}
	take(slice)
	const most = 2 * 200 / (laneShare + 1) // of their time
	for _, outside := range []bool{false, true} {
		if outside {
			v.d.Schedule(&v.turn(slice/2, nil).Task, nil)
		}
		if n := busy(long); n > most || n < most*2/3 {
			t.Errorf("2 lanes have made way %d times for long runs of a slice, in 200; somebody asks from outside: %v", n, outside)
		}
	}
	take(mostAway)
	if n := busy(10 * mostAway); n < 8 || n > 12 {
		t.Errorf("2 lanes have made way %d times in 10 times as long as Go lets a goroutine have a processor", n)
	}
	v.d.tokens.Store(0)
	v.d.Schedule(&v.turn(slice/2, nil).Task, nil)
	take(slice * 9 / 10)
	if n := busy(long); n < 160 || n > 220 {
		t.Errorf("2 lanes have made way %d times for 0.9 slices, in 200", n)
	}
	v.d.Schedule(&v.turn(slice/2, nil).Task, nil)
	take(10 * slice)
	if n := busy(long); n < 4 || n > 8 { // 71 and 10
		t.Errorf("2 lanes have made way %d times for 10 slices, in 200", n)
	}
	take(0)
	busy(outsideFor)
	if n := busy(long); n != 0 {
		t.Errorf("with nobody outside they make way %d times", n)
	}
	v.d.Schedule(&v.turn(slice/2, nil).Task, &Worker{d: v.d}) // of a run without a lane
	if n := busy(long); n != 0 {
		t.Errorf("after a message of a long run they make way %d times", n)
	}
	v.d.Schedule(&v.turn(slice/2, nil).Task, nil)
	v.d.parked.Store(1)
	if n := busy(long); n != 0 {
		t.Errorf("without one they make way %d times", n)
	}
}

// A lane that has not come to look at the clock for as long as Go lets a goroutine have the processor makes no way:
// others have had it meanwhile.
func TestALaneThatWasAwayMakesNoWay(t *testing.T) {
	v := newLanes()
	w, l := v.workers[0], v.d.lanes[0]
	l.begin(w)
	v.d.tokens.Store(1)
	g := new(Group)
	w.task = &v.turn(0, g).Task
	for _, c := range []struct {
		took int64
		ways int
	}{
		{slice, 0}, {slice - 1, 0}, {mostAway, 0}, {slice - 1, 0}, {1, 1}, {mostAway - 1, 2}, {100 * mostAway, 2}, // of the first it knows nothing
	} {
		v.at[0] += c.took
		if l.clock(w); v.ways != c.ways {
			t.Errorf("after %d ns it has made way %d times, not %d", c.took, v.ways, c.ways)
		}
	}
	if want := int64(3*mostCharged + 2*slice - 1); g.lanes.now != want {
		t.Errorf("a group was charged %d ns and not %d, of which it may not have had all", g.lanes.now, want)
	}
}

// witness is a task that notes how often others had the processor before it.
type witness struct {
	Task
	others *atomic.Int32
	before int32
	done   chan struct{}
}

func (f *witness) Run(*Worker) bool {
	f.before = f.others.Load()
	close(f.done)
	return false
}

// A heavy task begins after what waits for the processor, as a run does that has waited for a token.
func TestALaneComesBeforeAHeavyTask(t *testing.T) {
	d := New(Config{Workers: 1}.Unwatched())
	var others atomic.Int32
	d.letOthers = func() { others.Add(1) }
	f := &witness{others: &others, done: make(chan struct{})}
	f.Init(f)
	f.heat.Store(heavy)
	d.Schedule(&f.Task, nil)
	<-f.done
	if f.before != 1 {
		t.Errorf("others have had the processor %d times", f.before)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What runs take that are not interrupted counts for their group as long as it was: a copy of 60 ms is no slice.
func TestCopiesCountAsWhatTheyTake(t *testing.T) {
	for _, c := range []struct {
		slices int64 // of each run
		runs   int
		counts uint64
		greedy bool
	}{{1, 40, 40, false}, {600, 1, 600, true}, {100, 2, 200, false}, {100, 5, 500, true}, {1 << 40, 1, 2 * period, true}} {
		v := newVirtual()
		for range 100 {
			v.wait(members(new(Group), 1)[0])
		}
		g := new(Group)
		for _, k := range members(g, c.runs) {
			v.wait(k)
			for v.runs[k] == nil {
				other := v.grant()
				if other != k {
					v.wait(other)
				}
			}
			w := v.runs[k]
			w.task = k
			w.spent += (c.slices - 1) * slice
			v.d.settle(w)
			v.end(k)
		}
		v.d.rollAll(g)
		if got := v.d.greedy(g); got != c.greedy || g.slices() != c.counts {
			t.Errorf("%d times %d slices: greedy %v, it has had %d", c.runs, c.slices, got, g.slices())
		}
	}
}

// script is a task that does something, once.
type script struct {
	Task
	do   func(w *Worker)
	done chan struct{}
}

func (s *script) Run(w *Worker) bool {
	s.do(w)
	close(s.done)
	return false
}

func newScript(g *Group, do func(w *Worker)) *script {
	s := &script{do: do, done: make(chan struct{})}
	s.Init(s)
	s.Join(g)
	s.heat.Store(heavy)
	return s
}

// What a run has had of its token is counted when it passes it on, before it sits down again, and at its end; not what
// it had while nobody waited.
func TestWorkIsCountedWhereATokenIsPassedOn(t *testing.T) {
	const much = 3000
	for name, c := range map[string]struct {
		do          func(w *Worker, other func())
		least, most uint64
	}{
		"in its lane":      {func(w *Worker, other func()) { w.Spend(much * slice); w.Yield() }, 0, 1},
		"at its end":       {func(w *Worker, _ func()) { w.Spend(much * slice) }, much, much},
		"when it yields":   {func(w *Worker, other func()) { other(); w.Spend(much * slice); w.Yield() }, much, much + 2},
		"before its token": {func(w *Worker, other func()) { w.Yield() }, 1, 1},
		"while it is alone": {func(w *Worker, other func()) {
			for range much {
				w.Yield()
			}
			other()
			w.Yield()
		}, 1, 3},
	} {
		d := New(Config{Workers: 1}.Unwatched())
		g := new(Group)
		started, greedy := false, false
		var x, y *script
		y = newScript(new(Group), func(*Worker) {
			d.mu.Lock()
			defer d.mu.Unlock()
			greedy = x.seat.place.Listed() && x.seat.level >= levels
		})
		x = newScript(g, func(w *Worker) {
			c.do(w, func() { started = true; d.Schedule(&y.Task, w) })
		})
		if name == "in its lane" {
			x.heat.Store(fresh)
		}
		d.Schedule(&x.Task, nil)
		<-x.done
		if started {
			<-y.done
		}
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := g.slices(); got < c.least || got > c.most {
			t.Errorf("%s: %d slices were counted, not %d to %d", name, got, c.least, c.most)
		}
		if greedy != (name == "when it yields") {
			t.Errorf("%s: while it waits its group is one that has had too much: %v", name, greedy)
		}
	}
}

// What a run has had of a lane before it leaves it is charged to its group: until the lane has looked at the clock,
// what the run reports.
func TestARunThatLeavesItsLanePays(t *testing.T) {
	var now atomic.Int64
	c := Config{Workers: 1, now: now.Load}
	d := New(c.Unwatched())
	g := new(Group)
	x := newScript(g, func(w *Worker) { now.Add(50 * slice); w.Spend(4 * slice); w.Yield() })
	x.heat.Store(fresh)
	d.Schedule(&x.Task, nil)
	<-x.done
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g.lanes.now != 5*slice {
		t.Errorf("it has paid for %d ns", g.lanes.now)
	}
}

// The first look of a lane that was idle is for later ones: what was meanwhile is nobody's.
func TestAnIdleLaneChargesNobody(t *testing.T) {
	v := newLanes()
	w, l := v.workers[0], v.d.lanes[0]
	v.at[0] = 20 * slice
	w.Spend(slice)
	l.begin(w)
	g := new(Group)
	w.task = &v.turn(0, g).Task
	for i, c := range []struct{ took, reported, charged int64 }{
		{3 * slice, slice / 2, slice / 2}, {3 * slice, slice / 2, 3 * slice},
	} {
		g.lanes.now = 0
		v.at[0] += c.took
		w.Spend(c.reported)
		if l.clock(w); g.lanes.now != c.charged {
			t.Errorf("look %d: it was charged %d ns, not %d", i, g.lanes.now, c.charged)
		}
		if i == 0 && v.clocks != 1 {
			t.Errorf("%d looks at the clock before one was needed", v.clocks-1)
		}
	}
}

// A lane that is handed over because a run was long lets others have the processor first, if somebody asks from outside.
func TestALaneThatIsHandedOverMakesWay(t *testing.T) {
	for name, c := range map[string]struct {
		pause int64 // since somebody has asked
		ways  int32
	}{"asked": {outsideFor - 1, 4}, "not asked for long": {outsideFor, 3}} {
		var now atomic.Int64
		d := New(Config{Workers: 1, now: now.Load}.Unwatched())
		var ways atomic.Int32
		d.letOthers = func() { ways.Add(1) } // a run that has left its lane does that, too, once
		second := newScript(nil, func(w *Worker) { w.Yield() })
		first := newScript(nil, func(w *Worker) {
			w.Yield()
			for end := time.Now().Add(10 * time.Second); ways.Load() < 2 && time.Now().Before(end); {
				runtime.Gosched() // until the other goroutine serves the lane
			}
			now.Add(c.pause)
			d.Schedule(&second.Task, w)
		})
		for _, s := range []*script{first, second} {
			s.heat.Store(fresh)
		}
		d.Schedule(&first.Task, nil)
		<-first.done
		<-second.done
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := ways.Load(); n != c.ways {
			t.Errorf("%s: others have had the processor %d times", name, n)
		}
	}
}
