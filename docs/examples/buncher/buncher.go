// Package buncher is a finite state machine: it collects numbers and sends them on together, when it
// is told to or when none has come for a second.
package buncher

import (
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/fsm"
)

// The states.
const (
	Idle   fsm.State = "Idle"   // nothing is queued
	Active fsm.State = "Active" // something is
)

type todo struct {
	target host.Ref
	queue  []int64
}

// idle knows one message: its sender is the target from now on.
func idle(m *fsm.Machine[todo], e fsm.Event) (fsm.Next[todo], error) {
	if is(e, "target") {
		return m.Stay().Using(todo{target: e.Message.Sender}), nil
	}
	return m.Unhandled(), nil
}

// active waits for more, but not for ever.
func active(m *fsm.Machine[todo], e fsm.Event) (fsm.Next[todo], error) {
	if e.Kind == fsm.StateTimeout || is(e, "flush") {
		return m.Goto(Idle).Using(todo{target: m.Data().target}), nil
	}
	return m.Unhandled(), nil
}

// queue is the same in both states.
func queue(m *fsm.Machine[todo], e fsm.Event) (fsm.Next[todo], error) {
	var n int64
	if e.Kind == fsm.Received && e.Message.Decode(&n) == nil {
		d := m.Data()
		d.queue = append(d.queue, n)
		return m.Goto(Active).Using(d), nil
	}
	return m.Unhandled(), nil
}

func is(e fsm.Event, text string) bool {
	var s string
	return e.Kind == fsm.Received && e.Message.Decode(&s) == nil && s == text
}

// Buncher is the definition; Buncher.Props() is an actor of it.
var Buncher = fsm.Define[todo](Idle, nil).
	When(Idle, idle, fsm.To(Active, "a number")).
	When(Active, active, fsm.To(Idle, "flush, or a second without numbers")).
	StateTimeout(Active, time.Second).
	Unhandled(queue).
	OnTransition(Active, Idle, func(m *fsm.Machine[todo], _, _ fsm.State) {
		_ = m.Context().Tell(m.Data().target, m.Data().queue) // the data of before
	})
