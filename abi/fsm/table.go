// Package fsm has the rules of finite state machines: which states there are, which
// transitions are allowed, which timeout holds, which timers are active. It is shared by
// guest-sdk/fsm for guests and host/fsm for actors in Go, which call the handlers and carry
// out what follows. There is no clock, no message and no actor in it.
//
// The rules are those of Akka 2.4's FSM, see docs/guide/fsm.md.
package fsm

import (
	"errors"
	"strconv"
	"time"
)

// State is the name of a state: 1 to MaxName bytes of letters, digits and '_', not beginning
// with a digit, so that it is an identifier in diagrams.
type State string

// Any stands for every state where transitions are observed.
const Any State = "*"

// Bounds.
const (
	MaxName   = 64
	MaxLabel  = 128 // bytes
	MaxStates = 256
	MaxTimers = 64 // named timers of a machine at a time
)

// Forever as a timeout means no timeout, for any default.
const Forever time.Duration = 1<<63 - 1

// Table is the states and transitions of a definition. Declare everything, call Check, and do
// not change it afterwards; then any number of machines may use it at the same time.
type Table struct {
	initial State
	states  []state
	edges   []edge
}

type state struct {
	name    State
	timeout time.Duration // 0: none
}

type edge struct {
	from, to State
	label    string
}

// NewTable makes a table whose machines begin in a state, which must be declared as well.
func NewTable(initial State) *Table { return &Table{initial: initial} }

// Declare makes a state known. Declaring it again changes nothing.
func (t *Table) Declare(s State) {
	if t.index(s) < 0 {
		t.states = append(t.states, state{name: s})
	}
}

// Edge allows a transition; the label is for diagrams. The same transition may have several
// labels.
func (t *Table) Edge(from, to State, label string) {
	t.edges = append(t.edges, edge{from, to, label})
}

// Timeout sets a declared state's default timeout; 0: no timeout.
func (t *Table) Timeout(s State, d time.Duration) {
	t.Declare(s)
	t.states[t.index(s)].timeout = d
}

// Initial is the state in which machines begin.
func (t *Table) Initial() State { return t.initial }

func (t *Table) index(s State) int {
	for i := range t.states {
		if t.states[i].name == s {
			return i
		}
	}
	return -1
}

func (t *Table) allowed(from, to State) bool {
	for i := range t.edges {
		if t.edges[i].from == from && t.edges[i].to == to {
			return true
		}
	}
	return false
}

// Check reports what is wrong with the definition.
func (t *Table) Check() error {
	switch {
	case t.index(t.initial) < 0:
		return errors.New("fsm: the initial state " + strconv.Quote(string(t.initial)) + " has no handler: add When")
	case len(t.states) > MaxStates:
		return errors.New("fsm: more than " + strconv.Itoa(MaxStates) + " states")
	}
	for i := range t.states {
		if s := t.states[i]; !validName(s.name) {
			return errors.New("fsm: " + strconv.Quote(string(s.name)) + " cannot be a state: use letters, digits and '_', at most " + strconv.Itoa(MaxName) + " bytes")
		} else if s.timeout < 0 {
			return errors.New("fsm: the timeout of " + string(s.name) + " is negative")
		}
	}
	for i := range t.edges {
		e := &t.edges[i]
		for _, s := range []State{e.from, e.to} {
			if t.index(s) < 0 {
				return errors.New("fsm: a transition " + string(e.from) + " -> " + string(e.to) + " names the state " + strconv.Quote(string(s)) + ", which has no handler: add When")
			}
		}
		if len(e.label) > MaxLabel {
			return errors.New("fsm: the label of " + string(e.from) + " -> " + string(e.to) + " is longer than " + strconv.Itoa(MaxLabel) + " bytes")
		}
	}
	return nil
}

func validName(s State) bool {
	if len(s) == 0 || len(s) > MaxName {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return true
}

// Mermaid is the definition as a state diagram, in the order of declaration.
func (t *Table) Mermaid() string {
	b := append([]byte("stateDiagram-v2\n    [*] --> "), t.initial...)
	for i := range t.states {
		s := &t.states[i]
		b = append(append(b, "\n    "...), s.name...)
		if s.timeout > 0 && s.timeout != Forever {
			b = append(append(b, " : after "...), s.timeout.String()...)
		}
	}
	for i := range t.edges {
		e := &t.edges[i]
		b = append(append(append(append(b, "\n    "...), e.from...), " --> "...), e.to...)
		if e.label != "" {
			b = append(b, " : "...)
			for _, r := range e.label { // what has a meaning in diagrams is left out
				switch {
				case r < ' ', r == 0x7f, r == ':', r == ';', r == '#', r == '<', r == '>':
					r = ' '
				}
				b = append(b, string(r)...)
			}
		}
	}
	return string(append(b, '\n'))
}
