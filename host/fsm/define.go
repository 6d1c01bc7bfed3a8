// Package fsm makes finite state machines of actors in Go: states with data, declared transitions,
// state timeouts, named timers, subscribers. The rules are those of guests' machines
// (guest-sdk/fsm), which have the same names.
//
//	var door = fsm.Define(Closed, func(*host.Context) (int, error) { return 0, nil }).
//		When(Closed, closed, fsm.To(Open, "open")).
//		When(Open, open, fsm.To(Closed, "close")).
//		StateTimeout(Open, 10*time.Second)
//
//	ref, err := system.Spawn("door", door.Props())
//
// docs/guide/fsm.md tells the rest.
package fsm

import (
	"time"

	rules "github.com/wasmactors/wasmactors/abi/fsm"
	"github.com/wasmactors/wasmactors/host"
)

// State is the name of a state: letters, digits and '_'.
type State = rules.State

// Any stands for every state in OnTransition.
const Any = rules.Any

// Forever as a timeout of one step means no timeout this time.
const Forever = rules.Forever

// Handler says what follows from an event. Return the result of Stay, Goto, Stop or Unhandled of the
// machine. An error fails the turn: then nothing has happened, the state included.
type Handler[D any] func(m *Machine[D], e Event) (Next[D], error)

// Edge is a transition that a state's handlers may make.
type Edge struct {
	To    State
	Label string // for diagrams; may be empty
}

// To declares a transition. The label says in diagrams what triggers it.
func To(s State, label string) Edge { return Edge{s, label} }

// Definition is the states, transitions and handlers of a kind of machine. It is made once, in
// package variables or init, and must not change once machines run.
type Definition[D any] struct {
	table      *rules.Table
	data       func(ctx *host.Context) (D, error)
	first      time.Duration
	clauses    []clause[D]
	unhandled  Handler[D]
	observers  []observer[D]
	terminated func(m *Machine[D], r Reason)
	depth      int
}

type clause[D any] struct {
	state  State
	handle Handler[D]
}

type observer[D any] struct {
	from, to State
	f        func(m *Machine[D], from, to State)
}

// Define begins a definition: initial is the state in which machines begin, data makes the data that they
// begin with, for each incarnation anew; nil is the zero value.
func Define[D any](initial State, data func(ctx *host.Context) (D, error)) *Definition[D] {
	return &Definition[D]{table: rules.NewTable(initial), data: data}
}

// When adds a handler of a state and the transitions that it may make. Several handlers of one state are
// called in order, until one does not return Unhandled.
func (d *Definition[D]) When(s State, handle Handler[D], to ...Edge) *Definition[D] {
	d.table.Declare(s)
	for i := range to {
		d.table.Edge(s, to[i].To, to[i].Label)
	}
	d.clauses = append(d.clauses, clause[D]{s, handle})
	return d
}

// StateTimeout sets the default timeout of a state: an event of kind StateTimeout comes when nothing else has
// come for so long.
func (d *Definition[D]) StateTimeout(s State, after time.Duration) *Definition[D] {
	d.table.Timeout(s, after)
	return d
}

// InitialTimeout is the timeout of the first stay in the initial state, instead of its default.
func (d *Definition[D]) InitialTimeout(after time.Duration) *Definition[D] {
	d.first = after
	return d
}

// Unhandled sets the handler of events that no handler of the state handles; the last one set counts.
// Without it, such a message is returned as unhandled, which is an event of the system.
func (d *Definition[D]) Unhandled(handle Handler[D]) *Definition[D] {
	d.unhandled = handle
	return d
}

// OnTransition makes f be called at transitions between two states, either of which may be Any. All
// that match are called, in the order in which they were added; Data is still the old data,
// NextData the new. Going from a state to itself is a transition, staying is not; the beginning is one, too.
func (d *Definition[D]) OnTransition(from, to State, f func(m *Machine[D], from, to State)) *Definition[D] {
	d.observers = append(d.observers, observer[D]{from, to, f})
	return d
}

// OnTermination sets what is called when the machine stops, also from outside; the last one counts.
func (d *Definition[D]) OnTermination(f func(m *Machine[D], r Reason)) *Definition[D] {
	d.terminated = f
	return d
}

// Log makes machines remember their last depth events; see Machine.Log.
func (d *Definition[D]) Log(depth int) *Definition[D] {
	d.depth = depth
	return d
}

// Props makes props of an actor that is a machine of this definition. A definition that is
// wrong panics.
func (d *Definition[D]) Props() host.Props {
	if err := d.table.Check(); err != nil {
		panic(err.Error())
	}
	return host.Native(func() host.Actor { return d.New() })
}

// Mermaid is the definition as a Mermaid state diagram.
func (d *Definition[D]) Mermaid() string { return d.table.Mermaid() }

// New makes a machine as a field of an actor, whose Started, Receive and Stopped call those
// of the machine. A definition that is wrong panics.
func (d *Definition[D]) New() *Machine[D] {
	if err := d.table.Check(); err != nil {
		panic(err.Error())
	}
	m := &Machine[D]{def: d, rules: rules.NewMachine(d.table)}
	if d.depth > 0 {
		m.log = make([]Entry, 0, d.depth)
	}
	return m
}
