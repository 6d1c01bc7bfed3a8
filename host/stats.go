package host

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/host/internal/life"
)

// Stats are totals since the start, of actors that have stopped, too.
type Stats struct {
	Actors      int // living
	Asleep      int // idle guests that have given their instances back
	Turns       uint64
	Crashes     uint64
	Restarts    uint64
	DeadLetters uint64
	Fuel        uint64 // spent by completed turns of guests
	// Types are the same by actor type; that of actors in Go is "native".
	Types map[string]TypeStats
}

// TypeStats are totals of the actors of one type.
type TypeStats struct {
	Actors   int // living
	Turns    uint64
	Crashes  uint64
	Restarts uint64
	Fuel     uint64
}

func (t *TypeStats) add(a *actor) {
	t.Turns += a.turnCount()
	t.Crashes += a.counts.crashes.Load()
	t.Restarts += a.counts.restarts.Load()
	t.Fuel += a.counts.fuel.Load()
}

// totals are what a system has counted.
type totals struct {
	crashes, restarts atomic.Uint64
	ending, gone      atomic.Uint64 // actors that have begun their last step, and that have done it

	mu     sync.Mutex
	ended  map[string]*TypeStats // of actors that have stopped
	census *census               // that goes on; nil: none does

	counting sync.Mutex // one census at a time
	number   uint32     // of the last census; only whoever counts uses it
}

// add adds up an actor that is about to leave the table.
func (t *totals) add(a *actor) {
	if a.parent == nil {
		return
	}
	a.done.Store(a.turns)
	t.mu.Lock()
	defer t.mu.Unlock()
	typeStats(&t.ended, a.props.typ).add(a)
	if seen := a.counted.Swap(countedAsEnded); t.census != nil && seen != t.census.number {
		typeStats(&t.census.ended, a.props.typ).add(a)
	}
}

// crashed counts a failure that was decided about. Its actor may have stopped meanwhile.
func (t *totals) crashed(a *actor) {
	t.crashes.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	a.counts.crashes.Add(1)
	if a.counted.Load() == countedAsEnded {
		typeStats(&t.ended, a.props.typ).Crashes++
	}
}

// typeStats is the entry of a type, which it makes if need be.
func typeStats(m *map[string]*TypeStats, typ string) *TypeStats {
	if *m == nil {
		*m = map[string]*TypeStats{}
	}
	s := (*m)[typ]
	if s == nil {
		s = &TypeStats{}
		(*m)[typ] = s
	}
	return s
}

// copied is a copy of totals.
func copied(m map[string]*TypeStats) map[string]TypeStats {
	out := make(map[string]TypeStats, len(m))
	for typ, t := range m {
		out[typ] = *t
	}
	return out
}

// census counts every actor once, although actors run and stop during the count: one that stops is either
// met in the table before it is added up as ended, or not met at all. Which of the two it was stands in
// actor.counted.
type census struct {
	number uint32
	ended  map[string]*TypeStats // of the actors that it has not met and will not meet
}

// countedAsEnded is in actor.counted when the actor was added up. Other values are the number of the
// last census that has met it.
const countedAsEnded = ^uint32(0)

// meets reports whether an actor of the table counts as living.
func (c *census) meets(a *actor) bool {
	for {
		seen := a.counted.Load()
		if seen == countedAsEnded {
			return false
		}
		if a.counted.CompareAndSwap(seen, c.number) {
			return true
		}
	}
}

// count calls f with a census, and returns what the actors have done that it has not met.
func (t *totals) count(f func(*census)) (ended map[string]TypeStats) {
	t.counting.Lock()
	defer t.counting.Unlock()
	if t.number++; t.number == countedAsEnded {
		t.number = 1 // 0 means none's
	}
	c := &census{number: t.number, ended: map[string]*TypeStats{}}
	t.mu.Lock()
	for typ, e := range t.ended {
		own := *e
		c.ended[typ] = &own
	}
	t.census = c
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.census = nil
		ended = copied(c.ended)
	}()
	f(c)
	return nil
}

// Stats takes a snapshot. It looks at every actor. Totals never go down from one call to the next,
// those of a type included: an actor that stops during the call counts once, as living or as stopped.
func (s *System) Stats() Stats {
	st := Stats{Actors: s.table.Len(), Asleep: int(s.asleep.Load()), Crashes: s.totals.crashes.Load(), Restarts: s.totals.restarts.Load()}
	_, st.DeadLetters = s.dead.snapshot()
	living := map[string]*TypeStats{}
	st.Types = s.totals.count(func(c *census) {
		s.table.Each(func(a *actor) {
			if a.parent == nil || !c.meets(a) {
				return // a guardian is nobody's
			}
			t := typeStats(&living, a.props.typ)
			t.Actors++
			t.add(a)
		})
	})
	for typ, t := range living {
		t.join(st.Types[typ])
		st.Types[typ] = *t
	}
	for _, t := range st.Types {
		st.Turns += t.Turns
		st.Fuel += t.Fuel
	}
	return st
}

// join adds what other actors of the type have done.
func (t *TypeStats) join(others TypeStats) {
	t.Turns += others.Turns
	t.Crashes += others.Crashes
	t.Restarts += others.Restarts
	t.Fuel += others.Fuel
}

// Node is one actor in a snapshot of the tree.
type Node struct {
	Ref         Ref
	Type        string
	State       string
	Incarnation uint64
	Asleep      bool // it has given its instance back
	Mailbox     int
	Turns       uint64
	Children    []Node
}

// Tree is a snapshot of /user and all actors below it. Actors keep running during the call.
func (s *System) Tree() Node { return s.user.node() }

func (a *actor) node() Node {
	n := Node{Ref: a.ref(), Type: a.props.typ, State: a.life.State().String(), Incarnation: a.incarnation(), Mailbox: a.box.Len(), Turns: a.turnCount()}
	if x := a.turn; x != nil {
		n.Asleep = !x.awake() && a.life.State() == life.Running
	}
	for _, k := range a.kids() {
		n.Children = append(n.Children, k.node())
	}
	return n
}

// String prints the tree, an actor a line.
func (n Node) String() string {
	var b strings.Builder
	n.print(&b, "")
	return b.String()
}

func (n Node) print(b *strings.Builder, indent string) {
	b.WriteString(indent + n.Ref.Name() + " (" + n.Type + ") " + n.State + ", " + strconv.FormatUint(n.Turns, 10) + " turns\n")
	for _, k := range n.Children {
		k.print(b, indent+"  ")
	}
}
