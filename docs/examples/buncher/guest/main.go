// A buncher as a guest: see docs/guide/fsm.md.
package main

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/fsm"
)

// The states.
const (
	Idle   fsm.State = "Idle"   // nothing is queued
	Active fsm.State = "Active" // something is
)

// todo is the data: the receiver and the message.
type todo struct {
	target actor.Ref
	queue  batch
}

type batch []int64

// MarshalCBOR implements actor.Encoder.
func (b batch) MarshalCBOR(w *abi.Writer) {
	w.Array(len(b))
	for _, n := range b {
		w.Int(n)
	}
}

// idle knows one message: its sender is the target from now on.
func idle(m *fsm.Machine[todo], e fsm.Event) (fsm.Next[todo], error) {
	if e.Kind == fsm.Received && e.Message.Is("target") {
		return m.Stay().Using(todo{target: e.Message.Sender()}), nil
	}
	return m.Unhandled(), nil
}

// active waits for more, but not for ever.
func active(m *fsm.Machine[todo], e fsm.Event) (fsm.Next[todo], error) {
	if e.Kind == fsm.StateTimeout || e.Kind == fsm.Received && e.Message.Is("flush") {
		return m.Goto(Idle).Using(todo{target: m.Data().target}), nil
	}
	return m.Unhandled(), nil
}

// queue is the same in both states.
func queue(m *fsm.Machine[todo], e fsm.Event) (fsm.Next[todo], error) {
	if e.Kind == fsm.Received {
		if n, ok := e.Message.Int(); ok {
			d := m.Data()
			d.queue = append(d.queue, n)
			return m.Goto(Active).Using(d), nil
		}
	}
	return m.Unhandled(), nil
}

var buncher = fsm.Define[todo](Idle, nil).
	When(Idle, idle, fsm.To(Active, "a number")).
	When(Active, active, fsm.To(Idle, "flush, or a second without numbers")).
	StateTimeout(Active, time.Second).
	Unhandled(queue).
	OnTransition(Active, Idle, func(m *fsm.Machine[todo], _, _ fsm.State) {
		m.Context().Tell(m.Data().target, m.Data().queue) // the data of before
	})

func init() { buncher.Register("buncher") }

func main() {}
