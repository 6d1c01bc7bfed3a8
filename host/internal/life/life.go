// Package life is the state machine of an actor's life: which states there are, and
// what leads from one to the next. What an actor does on the way is not its concern.
package life

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// State is where an actor is in its life. It is in stores: a number never gets another meaning.
type State uint8

// The states.
const (
	New        State = iota // not started yet
	Running                 // handles messages, unless something holds it back
	Failed                  // waits for its supervisor's decision
	Restarting              // between two incarnations: waits for a delay, for its children to stop, or for its turn in a group
	Stopping                // waits for its children to stop
	Stopped                 // gone
	states
)

var stateNames = [states]string{"new", "running", "failed", "restarting", "stopping", "stopped"}

// String is the state's name as events and snapshots show it.
func (s State) String() string { return stateNames[s] }

// Ending is how an actor came to wait for its supervisor, or to stop. It is in stores: a number never gets another meaning.
type Ending uint8

// The ends.
const (
	Ordered   Ending = iota // somebody else wants it, or nothing has ended
	ByItself                // by its own wish or failure
	Escalated               // it waits because of a child's failure
)

// Event is what leads from one state to another.
type Event uint8

// The events.
const (
	Start   Event = iota // the first incarnation begins
	Fail                 // a turn has failed, or the actor has ended and its supervisor must decide
	Resume               // the supervisor lets it go on as it was
	Restart              // the supervisor wants another incarnation
	Begin                // the next incarnation begins
	Stop                 // it is to stop for good
	End                  // nothing of it is left
	events
)

var eventNames = [events]string{"start", "fail", "resume", "restart", "begin", "stop", "end"}

// String is the event's name.
func (e Event) String() string { return eventNames[e] }

const none = states // no transition

// table is the whole machine: a row for each state, a column for each event. The entry none leaves
// the state as it is and is reported as not allowed; every such pair is a message
// that was overtaken by another.
var table = [states][events]State{
	//           start    fail    resume   restart     begin    stop      end
	New:        {Running, none, none, none, none, Stopping, none},
	Running:    {none, Failed, none, Restarting, none, Stopping, none},
	Failed:     {none, none, Running, Restarting, none, Stopping, none},
	Restarting: {none, none, none, none, Running, Stopping, none},
	Stopping:   {none, none, none, none, none, none, Stopped},
	Stopped:    {none, none, none, none, none, none, none},
}

// Next is the state after an event; ok is false if the event means nothing in s.
func (s State) Next(e Event) (next State, ok bool) {
	if next = table[s][e]; next == none {
		return s, false
	}
	return next, true
}

// Ending reports whether the actor is stopping, or has stopped.
func (s State) Ending() bool { return s == Stopping || s == Stopped }

// Machine is an actor's state. Any goroutine may read it; only the actor's own run
// changes it.
type Machine struct {
	state atomic.Uint32
	// suspended counts the ancestors that have failed and wait for a decision. Only the
	// owner changes it.
	suspended atomic.Int32
	holds     atomic.Uint32 // a set of Hold
	Begun     atomic.Bool   // the start of the present incarnation has worked
}

// State is where the actor is now.
func (m *Machine) State() State { return State(m.state.Load()) }

// Do makes the transition for an event; false, and nothing happens, if the event means nothing now.
func (m *Machine) Do(e Event) bool {
	next, ok := m.State().Next(e)
	if ok {
		m.state.Store(uint32(next))
	}
	return ok
}

// Suspend notes that an ancestor has failed.
func (m *Machine) Suspend() { m.suspended.Add(1) }

// Unsuspend undoes one Suspend.
func (m *Machine) Unsuspend() { m.suspended.Add(-1) }

// Inherit begins with the suspensions of a parent.
func (m *Machine) Inherit(n int) { m.suspended.Store(int32(n)) }

// Restore sets the state that a snapshot has, and how many ancestors have failed then.
func (m *Machine) Restore(s State, suspended int) {
	m.state.Store(uint32(s))
	m.suspended.Store(int32(suspended))
}

// Suspended is how many ancestors have failed and wait for a decision.
func (m *Machine) Suspended() int { return int(m.suspended.Load()) }

// Burden is how often a child of the actor is suspended: once for each ancestor that
// has failed, the actor itself included.
func (m *Machine) Burden() int {
	if m.State() == Failed {
		return m.Suspended() + 1
	}
	return m.Suspended()
}

// Open reports whether the actor may handle messages: it runs, no ancestor waits for a decision, and nothing holds it.
func (m *Machine) Open() bool {
	return m.holds.Load() == 0 && m.suspended.Load() == 0 && m.State() == Running
}

// Diagram is the machine as a Mermaid state diagram, as docs/architecture/actors.md
// shows it.
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> new\n")
	for s := range states {
		for e := range events {
			if next, ok := s.Next(e); ok {
				fmt.Fprintf(&b, "    %v --> %v: %v\n", s, next, e)
			}
		}
	}
	b.WriteString("    stopped --> [*]\n")
	return b.String()
}
