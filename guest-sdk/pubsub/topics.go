package pubsub

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/feed"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Overflow says what becomes of events when too many wait for this subscriber.
type Overflow string

// The ways to deal with them. Event.Missed tells how many were dropped.
const (
	DropOldest Overflow = "" // the usual
	DropNewest Overflow = "newest"
	End        Overflow = "end" // the subscription ends
)

// Options are the options of a subscription. The zero value is good for most.
type Options struct {
	// Window is how many events may be under way to the actor without an acknowledgement; 0 is 64. It
	// is at most 1024.
	Window int
	// Queue is how many bytes may wait beyond the window; 0 is as many as the grant allows.
	Queue    int
	Overflow Overflow
	// AckWait is the time without any acknowledgement after which a used-up window is considered lost and
	// starts over; 0 is 30 s.
	AckWait time.Duration
	// Group names subscriptions with the same pattern that share the events: each goes to one of them. It has at most 64 bytes; empty:
	// this one gets all.
	Group string
	// Retained asks for the retained values, before any event.
	Retained bool
	// Manual leaves acknowledgements to Event.Done, which may be called in a later turn. Otherwise
	// an event is done when its handler has returned.
	Manual bool
	// Then is called with the outcome of subscribing, and again if retained values cannot be had. Without it
	// a failure fails the turn.
	Then func(ctx *actor.Context, err error) error
	// Ended is called when the subscription ends without this actor having asked for it. Without it that fails
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
	sub *feed.Subscription
}

// Reader reads the value from its start.
func (e Event) Reader() *abi.Reader { return abi.NewReader(e.Value) }

// Decode reads the whole value into d.
func (e Event) Decode(d actor.Decoder) error {
	r := e.Reader()
	d.UnmarshalCBOR(r)
	return r.Done()
}

// Text is the value if it is a text, else "".
func (e Event) Text() string {
	r := e.Reader()
	if s := r.TextBytes(); r.Done() == nil {
		return string(s)
	}
	return ""
}

// Done acknowledges an event of a subscription with Options.Manual, in any turn. Value need
// not be valid any more.
func (e Event) Done(ctx *actor.Context) {
	if e.sub != nil && e.sub.Manual {
		e.sub.Finish(ctx, e.n)
	}
}

// Handler gets the events of a subscription, each in a turn of its own.
type Handler func(ctx *actor.Context, e Event) error

// Topics are the subscriptions of an actor. The zero value has none.
type Topics struct{ set feed.Set }

// subscription is one of them, until its retained values have come.
type subscription struct {
	feed    *feed.Subscription
	options Options
	handle  Handler
}

// Subscribe calls the handler with what is published from now on to topics that the pattern matches. It replaces a
// subscription of this actor with the same pattern, and those of an earlier incarnation.
func (t *Topics) Subscribe(ctx *actor.Context, pattern string, o Options, handle Handler) {
	s := &subscription{options: o, handle: handle, feed: &feed.Subscription{Key: pattern, Window: o.Window, Manual: o.Manual, Ended: o.Ended}}
	s.feed.Handle = func(ctx *actor.Context, sub *feed.Subscription, e feed.Event) error {
		return handle(ctx, Event{Topic: e.Topic, Value: e.Value, Missed: e.Missed, n: e.N, sub: sub})
	}
	t.set.Put(s.feed)
	args := feed.Args{{Key: "pattern", Value: actor.Text(pattern)}}.Limits(o.Window, o.Queue, string(o.Overflow), o.AckWait)
	if o.Group != "" {
		args = append(args, feed.Arg{Key: "group", Value: actor.Text(o.Group)})
	}
	if o.Retained {
		args = append(args, feed.Arg{Key: "retained", Value: actor.Bool(true)})
	}
	service.Ask(ctx, Name, "subscribe", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		return t.subscribed(ctx, s, m, err)
	})
}

// subscribed is the answer of the service, or a further page of retained values.
func (t *Topics) subscribed(ctx *actor.Context, s *subscription, m *actor.Message, err error) error {
	if !t.set.Has(s.feed) {
		return nil // it was ended meanwhile, or has another one in its place
	}
	first, next := s.feed.Ref == 0, ""
	var values []Event
	if err == nil {
		r := m.Reader()
		for range r.Map() {
			switch string(r.TextBytes()) {
			case "subscription":
				s.feed.Ref = r.Ref()
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
			t.set.Drop(s.feed)
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
		args := feed.Args{{Key: "pattern", Value: actor.Text(s.feed.Key)}, {Key: "after", Value: actor.Text(next)}}
		service.Ask(ctx, Name, "retained", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
			return t.subscribed(ctx, s, m, err)
		})
	}
	return nil
}

// Unsubscribe ends a subscription. Events that are under way are not handled any more.
func (t *Topics) Unsubscribe(ctx *actor.Context, pattern string) {
	if t.set.Remove(pattern) {
		service.Tell(ctx, Name, "unsubscribe", feed.Args{{Key: "pattern", Value: actor.Text(pattern)}})
	}
}

// Receive handles a message if it is an event, or the end of a subscription; mine tells whether it was. An
// event of a subscription that the actor does not know any more is dropped.
func (t *Topics) Receive(ctx *actor.Context, msg *actor.Message) (mine bool, err error) {
	return t.set.Receive(ctx, Name, feed.Words{Event: "event", Ended: "ended"}, msg)
}
