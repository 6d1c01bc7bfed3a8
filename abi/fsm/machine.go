package fsm

import (
	"errors"
	"strconv"
	"time"
)

// Machine is the state of one machine. It allocates nothing while it runs, except for the first
// change of a state's timeout and a longer list of timers.
type Machine struct {
	table    *Table
	now      int
	armed    bool            // a state timeout is under way
	stopped  bool            // by a step
	timeouts []time.Duration // by state, nil until one is changed
	timers   []timer
}

type timer struct {
	name   string
	active bool
	repeat bool
}

// NewMachine makes a machine in the initial state of a checked table. Begin starts it.
func NewMachine(t *Table) Machine { return Machine{table: t, now: t.index(t.initial)} }

// StepKind is what a handler wants.
type StepKind uint8

// The kinds of steps.
const (
	Stay StepKind = iota + 1
	Goto
	Stop
)

// Step is what a handler wants to happen next.
type Step struct {
	Kind StepKind
	To   State         // Goto
	Max  time.Duration // the state timeout this time; 0: the default, Forever: none
}

// Change is the effect of a step.
type Change struct {
	From, To State
	Fires    bool          // observers of transitions are told
	Arm      time.Duration // set the state timeout; it replaces the one before
	Disarm   bool          // cancel the state timeout
}

// State is the present state.
func (m *Machine) State() State { return m.table.states[m.now].name }

// Stopped reports whether a step has stopped the machine.
func (m *Machine) Stopped() bool { return m.stopped }

// Begin is the transition into the initial state, which fires; max is as in Step.
func (m *Machine) Begin(max time.Duration) Change {
	s := m.State()
	return m.arm(Change{From: s, To: s, Fires: true}, max)
}

// Apply carries out a step. It fails, and changes nothing, if the step goes to a state, or by a
// transition, that is not declared. Going to the present state needs no declaration; it fires,
// staying does not.
func (m *Machine) Apply(s Step) (Change, error) {
	c := Change{From: m.State(), To: m.State()}
	switch s.Kind {
	case Goto:
		to := m.table.index(s.To)
		switch {
		case to < 0:
			return Change{}, errors.New("fsm: there is no state " + strconv.Quote(string(s.To)))
		case to != m.now && !m.table.allowed(c.From, s.To):
			return Change{}, errors.New("fsm: the transition " + string(c.From) + " -> " + string(s.To) + " is not declared")
		}
		c.To, c.Fires = s.To, true
		m.now = to
	case Stop:
		m.stopped = true
		c.Disarm, m.armed = m.armed, false
		return c, nil
	case Stay:
	default:
		return Change{}, errors.New("fsm: the handler of " + string(c.From) + " has returned nothing")
	}
	return m.arm(c, s.Max), nil
}

// arm says which timeout begins with a change.
func (m *Machine) arm(c Change, max time.Duration) Change {
	d := max
	if d == 0 {
		d = m.timeout(m.now)
	}
	if d > 0 && d != Forever {
		c.Arm, m.armed = d, true
		return c
	}
	c.Disarm, m.armed = m.armed, false
	return c
}

func (m *Machine) timeout(i int) time.Duration {
	if m.timeouts != nil {
		return m.timeouts[i]
	}
	return m.table.states[i].timeout
}

// SetTimeout changes a state's default timeout for this machine, from the next step on; 0 is
// none.
func (m *Machine) SetTimeout(s State, d time.Duration) error {
	i := m.table.index(s)
	if i < 0 {
		return errors.New("fsm: there is no state " + strconv.Quote(string(s)))
	}
	if m.timeouts == nil {
		m.timeouts = make([]time.Duration, len(m.table.states))
		for j := range m.timeouts {
			m.timeouts[j] = m.table.states[j].timeout
		}
	}
	m.timeouts[i] = max(d, 0)
	return nil
}

// TimedOut reports whether a state timeout that has just come still holds.
func (m *Machine) TimedOut() bool { return m.armed }

// SetTimer begins a named timer and returns its slot, below MaxTimers. It replaces a timer of the
// same name, and reuses its slot.
func (m *Machine) SetTimer(name string, repeat bool) (slot int, err error) {
	free := -1
	for i := range m.timers {
		if m.timers[i].active && m.timers[i].name == name {
			free = i
			break
		}
		if !m.timers[i].active && free < 0 {
			free = i
		}
	}
	if free < 0 {
		if len(m.timers) == MaxTimers {
			return 0, errors.New("fsm: more than " + strconv.Itoa(MaxTimers) + " timers")
		}
		m.timers = append(m.timers, timer{})
		free = len(m.timers) - 1
	}
	m.timers[free] = timer{name, true, repeat}
	return free, nil
}

// CancelTimer ends a timer and returns its slot; false if it is not active.
func (m *Machine) CancelTimer(name string) (slot int, ok bool) {
	for i := range m.timers {
		if m.timers[i].active && m.timers[i].name == name {
			m.timers[i].active = false
			return i, true
		}
	}
	return 0, false
}

// TimerActive reports whether a timer is set and has not rung, or rings again and again.
func (m *Machine) TimerActive(name string) bool {
	for i := range m.timers {
		if m.timers[i].active && m.timers[i].name == name {
			return true
		}
	}
	return false
}

// Rung is the name of the timer whose slot has rung; false if it is no longer active.
func (m *Machine) Rung(slot uint64) (name string, ok bool) {
	if slot >= uint64(len(m.timers)) || !m.timers[slot].active {
		return "", false
	}
	t := &m.timers[slot]
	t.active = t.repeat
	return t.name, true
}
