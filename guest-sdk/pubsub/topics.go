package pubsub

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Overflow says what becomes of events when too many wait for this subscriber.
type Overflow string

// What can become of them. Event.Missed tells how many were dropped.
const (
	DropOldest Overflow = "" // the usual
	DropNewest Overflow = "newest"
	End        Overflow = "end" // the subscription ends
)

// Options are how a subscription is to be. The zero value is good for most.
type Options struct {
	// Window is how many events may be under way to the actor without an acknowledgement; 0 is 64. It
	// is at most 1024.
	Window int
	// Queue is how many bytes may wait beyond the window; 0 is as many as the grant allows.
	Queue    int
	Overflow Overflow
	// AckWait is after which time without any acknowledgement a window that is used up is taken as lost and
	// begins anew; 0 is 30 s.
	AckWait time.Duration
	// Retained asks for the values that are retained, before any event.
	Retained bool
	// Manual leaves acknowledgements to Event.Done, which may be called in a later turn. Otherwise
	// an event is done when its handler has returned.
	Manual bool
	// Then hears how subscribing went, and again if values that are retained cannot be had. Without it
	// a failure fails the turn.
	Then func(ctx *actor.Context, err error) error
	// Ended hears of the end of the subscription that this actor has not asked for. Without it that fails
	// the turn.
	Ended func(ctx *actor.Context, reason string) error
}

// Event is what was published. Value is valid until the handler returns.
type Event struct {
	Topic    string
	Value    []byte // CBOR
	Missed   uint64 // events of this subscription that were dropped before this one
	Retained bool   // it is the topic's last value from before the subscription

	n   uint64
	sub *subscription
}

// Reader reads the value from its start.
func (e Event) Reader() *abi.Reader { return abi.NewReader(e.Value) }

// Text is the value if it is a text, else "".
func (e Event) Text() string {
	r := e.Reader()
	if s := r.TextBytes(); r.Done() == nil {
		return string(s)
	}
	return ""
}

// Done acknowledges an event of a subscription with Options.Manual, in any turn. The event need
// not be valid otherwise any more.
func (e Event) Done(ctx *actor.Context) {
	if e.sub != nil && e.sub.options.Manual {
		e.sub.finish(ctx, e.n)
	}
}

// Handler gets the events of a subscription, each in a turn of its own.
type Handler func(ctx *actor.Context, e Event) error

// Topics are the subscriptions of an actor. The zero value has none.
type Topics struct {
	subs   []*subscription
	closed actor.Ref // the last one that was told that nobody knows it
}

type subscription struct {
	pattern string
	options Options
	handle  Handler
	ref     actor.Ref // 0: not answered yet
	last    uint64    // the event that came last
	acked   uint64
	pending []uint64 // events that are not done, in order
}

// Subscribe has the handler called for what is published from now on to topics that the pattern matches. A
// subscription of this actor with the same pattern ends, as those of an earlier incarnation do.
func (t *Topics) Subscribe(ctx *actor.Context, pattern string, o Options, handle Handler) {
	t.forget(pattern)
	s := &subscription{pattern: pattern, options: o, handle: handle}
	t.subs = append(t.subs, s)
	args := pairs{{"pattern", actor.Text(pattern)}}
	if o.Window != 0 {
		args = append(args, pair{"window", actor.Int(o.Window)})
	}
	if o.Queue != 0 {
		args = append(args, pair{"queue", actor.Int(o.Queue)})
	}
	if o.Overflow != "" {
		args = append(args, pair{"overflow", actor.Text(o.Overflow)})
	}
	if o.AckWait != 0 {
		args = append(args, pair{"ack_wait", actor.Int(o.AckWait)})
	}
	if o.Retained {
		args = append(args, pair{"retained", actor.Bool(true)})
	}
	service.Ask(ctx, Name, "subscribe", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		return t.subscribed(ctx, s, m, err)
	})
}

// subscribed is the answer of the service, or a further page of retained values.
func (t *Topics) subscribed(ctx *actor.Context, s *subscription, m *actor.Message, err error) error {
	at := t.find(func(x *subscription) bool { return x == s })
	if at < 0 {
		return nil // it was ended meanwhile, or has another one in its place
	}
	first, next := s.ref == 0, ""
	var values []Event
	if err == nil {
		r := m.Reader()
		for range r.Map() {
			switch string(r.TextBytes()) {
			case "subscription":
				s.ref = r.Ref()
			case "retained":
				for range r.Array() {
					if r.Array() != 2 {
						r.Fail(abi.ErrArity)
					}
					values = append(values, Event{Topic: r.Text(), Value: r.Raw(), Retained: true})
				}
			case "next":
				next = r.Text()
			default:
				r.Skip()
			}
		}
		err = r.Done()
	}
	if err != nil {
		if first {
			t.remove(at)
		}
		if s.options.Then != nil {
			return s.options.Then(ctx, err)
		}
		return err
	}
	if first {
		if s.options.Then != nil {
			if err := s.options.Then(ctx, nil); err != nil {
				return err
			}
		}
	}
	for i := range values {
		if err := s.handle(ctx, values[i]); err != nil {
			return err
		}
	}
	if next != "" {
		args := pairs{{"pattern", actor.Text(s.pattern)}, {"after", actor.Text(next)}}
		service.Ask(ctx, Name, "retained", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
			return t.subscribed(ctx, s, m, err)
		})
	}
	return nil
}

// Unsubscribe ends a subscription. Events that are under way are not handled any more.
func (t *Topics) Unsubscribe(ctx *actor.Context, pattern string) {
	if t.forget(pattern) {
		service.Tell(ctx, Name, "unsubscribe", pairs{{"pattern", actor.Text(pattern)}})
	}
}

// forget takes the subscription with a pattern out.
func (t *Topics) forget(pattern string) bool {
	i := t.find(func(x *subscription) bool { return x.pattern == pattern })
	if i < 0 {
		return false
	}
	t.remove(i)
	return true
}

func (t *Topics) find(is func(*subscription) bool) int {
	for i, s := range t.subs {
		if is(s) {
			return i
		}
	}
	return -1
}

func (t *Topics) remove(i int) { t.subs = append(t.subs[:i:i], t.subs[i+1:]...) }

// Receive handles a message if it is an event, or the end of a subscription; mine tells whether it was. An
// event of a subscription that the actor does not know any more is dropped.
func (t *Topics) Receive(ctx *actor.Context, msg *actor.Message) (mine bool, err error) {
	sender := msg.Sender()
	if msg.Kind() != actor.KindMessage || sender == 0 {
		return false, nil
	}
	e, reason, ok := read(msg)
	if !ok {
		return false, nil
	}
	i := t.find(func(x *subscription) bool { return x.ref == sender })
	switch {
	case i < 0 && e.n != 0 && sender != t.closed: // of an earlier incarnation
		t.closed = sender
		service.TellRef(ctx, sender, "close", nil)
		return true, nil
	case i < 0:
		return true, nil
	case e.n == 0:
		ended := t.subs[i].options.Ended
		t.remove(i)
		if ended == nil {
			return true, errors.New("pubsub: a subscription has ended: " + reason)
		}
		return true, ended(ctx, reason)
	}
	s := t.subs[i]
	e.sub, s.last = s, e.n
	s.pending = append(s.pending, e.n)
	if err := s.handle(ctx, e); err != nil {
		return true, err
	}
	if !s.options.Manual {
		s.finish(ctx, e.n)
	}
	return true, nil
}

// finish notes that an event is done, and acknowledges half a window at a time.
func (s *subscription) finish(ctx *actor.Context, n uint64) {
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
	window := s.options.Window
	if window == 0 {
		window = 64
	}
	if done >= s.acked+uint64(max(window/2, 1)) {
		s.acked = done
		service.TellRef(ctx, s.ref, "ack", actor.Uint(done))
	}
}

// read takes apart ["event", {"n", "topic", "value", ? "missed"}] and ["ended", reason], whose n is 0.
func read(msg *actor.Message) (e Event, reason string, ok bool) {
	r := msg.Reader()
	if r.Peek() != abi.TypeArray || r.Array() != 2 || r.Peek() != abi.TypeText {
		return Event{}, "", false
	}
	switch what := r.TextBytes(); {
	case string(what) == "ended":
		reason = r.Text()
		return Event{}, reason, r.Done() == nil
	case string(what) != "event" || r.Peek() != abi.TypeMap:
		return Event{}, "", false
	}
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "n":
			e.n = r.Uint()
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
	return e, "", r.Done() == nil && e.n != 0 && e.Value != nil
}
