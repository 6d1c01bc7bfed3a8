// Package feed is what subscriptions of services have in common: events that come with a number, are
// acknowledged once per half window, and end.
package feed

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Event is what a subscription has brought. Value is valid until the handler returns.
type Event struct {
	N      uint64
	Topic  string
	Value  []byte // CBOR
	Missed uint64 // events that were dropped before this one
}

// Subscription is a subscription of an actor.
type Subscription struct {
	Key    string // there is one of each
	Window int    // 0: the host's default
	Manual bool   // events are done when Finish is called, not when Handle returns
	Ref    actor.Ref
	Handle func(ctx *actor.Context, s *Subscription, e Event) error
	Ended  func(ctx *actor.Context, reason string) error // nil: fails the turn

	last    uint64 // the last event that came
	acked   uint64
	pending []uint64 // events that are not finished, in order
}

// Set is the subscriptions of an actor to a service.
type Set struct {
	subs   []*Subscription
	closed actor.Ref // the last unknown one that was closed
}

// Words are what messages of a service's subscriptions begin with.
type Words struct{ Event, Ended string }

// Put enters a subscription, and replaces the one with its key.
func (t *Set) Put(s *Subscription) {
	t.Remove(s.Key)
	t.subs = append(t.subs, s)
}

// Remove removes the subscription with a key; false if none has it.
func (t *Set) Remove(key string) bool {
	for _, s := range t.subs {
		if s.Key == key {
			return t.Drop(s)
		}
	}
	return false
}

// Drop removes a subscription; false if it is not there any more.
func (t *Set) Drop(s *Subscription) bool {
	for i, x := range t.subs {
		if x == s {
			t.subs = append(t.subs[:i:i], t.subs[i+1:]...)
			return true
		}
	}
	return false
}

// Has reports whether a subscription is still there: neither ended nor replaced.
func (t *Set) Has(s *Subscription) bool {
	for _, x := range t.subs {
		if x == s {
			return true
		}
	}
	return false
}

func (t *Set) of(ref actor.Ref) *Subscription {
	for _, s := range t.subs {
		if s.Ref == ref {
			return s
		}
	}
	return nil
}

// Receive handles a message if it is an event, or the end of a subscription; mine tells whether it was. An
// event of a subscription that the actor no longer knows is dropped, and the subscription closed.
func (t *Set) Receive(ctx *actor.Context, name string, words Words, msg *actor.Message) (mine bool, err error) {
	sender := msg.Sender()
	if msg.Kind() != actor.KindMessage || sender == 0 {
		return false, nil
	}
	e, reason, ok := read(words, msg)
	if !ok {
		return false, nil
	}
	s := t.of(sender)
	switch {
	case s == nil && e.N != 0 && sender != t.closed: // of an earlier incarnation
		t.closed = sender
		service.TellRef(ctx, sender, "close", nil)
		return true, nil
	case s == nil:
		return true, nil
	case e.N == 0:
		t.Drop(s)
		if s.Ended == nil {
			return true, errors.New(name + ": a subscription has ended: " + reason)
		}
		return true, s.Ended(ctx, reason)
	}
	s.last = e.N
	s.pending = append(s.pending, e.N)
	if err := s.Handle(ctx, s, e); err != nil {
		return true, err
	}
	if !s.Manual {
		s.Finish(ctx, e.N)
	}
	return true, nil
}

// Finish notes that an event is done, and acknowledges once per half window.
func (s *Subscription) Finish(ctx *actor.Context, n uint64) {
	for i, p := range s.pending {
		if p == n {
			s.pending = append(s.pending[:i], s.pending[i+1:]...)
			break
		}
	}
	done := s.last
	if len(s.pending) > 0 {
		done = s.pending[0] - 1
	}
	window := s.Window
	if window == 0 {
		window = 64
	}
	if done >= s.acked+uint64(max(window/2, 1)) {
		s.acked = done
		service.TellRef(ctx, s.Ref, "ack", actor.Uint(done))
	}
}

// read takes apart [event, {"n", "topic", "value", ? "missed"}] and [ended, reason], whose N is 0.
func read(words Words, msg *actor.Message) (e Event, reason string, ok bool) {
	r := msg.Reader()
	if r.Peek() != abi.TypeArray || r.Array() != 2 || r.Peek() != abi.TypeText {
		return Event{}, "", false
	}
	switch what := r.TextBytes(); {
	case string(what) == words.Ended:
		reason = r.Text()
		return Event{}, reason, r.Done() == nil
	case string(what) != words.Event || r.Peek() != abi.TypeMap:
		return Event{}, "", false
	}
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "n":
			e.N = r.Uint()
		case "topic":
			e.Topic = r.Text()
		case "value":
			e.Value = r.Raw()
		case "missed":
			e.Missed = r.Uint()
		default:
			r.Skip()
		}
	}
	return e, "", r.Done() == nil && e.N != 0 && e.Value != nil
}

// Args are a map of arguments.
type Args []Arg

// Arg is one argument.
type Arg struct {
	Key   string
	Value actor.Encoder
}

// Limits adds the limits that a subscriber has set.
func (a Args) Limits(window, queue int, overflow string, ackWait time.Duration) Args {
	if window != 0 {
		a = append(a, Arg{"window", actor.Int(window)})
	}
	if queue != 0 {
		a = append(a, Arg{"queue", actor.Int(queue)})
	}
	if overflow != "" {
		a = append(a, Arg{"overflow", actor.Text(overflow)})
	}
	if ackWait != 0 {
		a = append(a, Arg{"ack_wait", actor.Int(ackWait)})
	}
	return a
}

// MarshalCBOR implements actor.Encoder.
func (a Args) MarshalCBOR(w *abi.Writer) {
	w.Map(len(a))
	for i := range a {
		w.Text(a[i].Key)
		a[i].Value.MarshalCBOR(w)
	}
}
