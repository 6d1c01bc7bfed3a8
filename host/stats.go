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

	mu    sync.Mutex
	ended map[string]*TypeStats // of actors that have stopped
}

// add adds up an actor that has stopped.
func (t *totals) add(a *actor) {
	if a.parent == nil {
		return
	}
	a.done.Store(a.turns)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended = map[string]*TypeStats{}
	}
	s := t.ended[a.props.typ]
	if s == nil {
		s = &TypeStats{}
		t.ended[a.props.typ] = s
	}
	s.add(a)
}

// Stats takes a snapshot. It looks at every actor.
func (s *System) Stats() Stats {
	st := Stats{
		Actors: s.table.Len(), Asleep: int(s.asleep.Load()), Crashes: s.totals.crashes.Load(), Restarts: s.totals.restarts.Load(),
		Types: map[string]TypeStats{},
	}
	_, st.DeadLetters = s.dead.snapshot()
	s.totals.mu.Lock()
	for typ, t := range s.totals.ended {
		st.Types[typ] = *t
	}
	s.totals.mu.Unlock()
	s.table.Each(func(a *actor) {
		if a.parent == nil {
			return // a guardian is nobody's
		}
		t := st.Types[a.props.typ]
		t.Actors++
		t.add(a)
		st.Types[a.props.typ] = t
	})
	for _, t := range st.Types {
		st.Turns += t.Turns
		st.Fuel += t.Fuel
	}
	return st
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

// Tree is a snapshot of /user and what is below it. Actors go on meanwhile.
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
