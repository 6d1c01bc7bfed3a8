// Package events tells an actor what happens to others: starts, failures, restarts and ends, messages that
// were not delivered or not handled. The manifest grants it, by patterns of paths:
//
//	capabilities:
//	  events: {lifecycle: [/user/shop/**], dead-letters: [/user/shop/**]}
//
// An actor that subscribes has [Subscriptions] among its fields and asks it first about each message:
//
//	func (w *watcher) Started(ctx *actor.Context) error {
//		w.events.Subscribe(ctx, events.Failed, events.Options{}, w.failed)
//		return nil
//	}
//
//	func (w *watcher) Receive(ctx *actor.Context, msg *actor.Message) error {
//		if mine, err := w.events.Receive(ctx, msg); mine {
//			return err
//		}
//		...
//	}
//
// docs/guide/events.md tells what it is for, docs/services/events.md what is promised. Events of actors
// themselves are topics, see guest-sdk/pubsub.
package events

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/feed"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Name is the name of the service and of its grant.
const Name = "events"

// Timeout is how long Subscribe waits for the service.
const Timeout = 10 * time.Second

// Channels. Subscribing to one includes what is below it: dead-letters.mailbox_full is below
// dead-letters. A * stands for any token, > for all.
const (
	Lifecycle   = "lifecycle"
	Started     = "lifecycle.started"
	Failed      = "lifecycle.failed"
	Restarted   = "lifecycle.restarted"
	Resumed     = "lifecycle.resumed"
	Stopped     = "lifecycle.stopped"
	Escalated   = "lifecycle.escalated"
	Paused      = "lifecycle.paused"
	Unpaused    = "lifecycle.unpaused"
	DeadLetters = "dead-letters" // and what kept it from being delivered
	Suppressed  = "suppressed"   // the same, of messages whose senders do not mind
	Unhandled   = "unhandled"
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
	// Paths are patterns of the paths of actors, 16 at most; none means all that the grant has. In an
	// element * stands for any run of characters, ? for one; ** at the end is all below.
	Paths []string
	// Window is how many events may be under way to the actor without an acknowledgement, which this
	// package sends; 0 is 64. It is at most 1024.
	Window int
	// Queue is how many bytes may wait beyond the window; 0 is as many as the grant allows.
	Queue    int
	Overflow Overflow
	// AckWait is the time without any acknowledgement after which a used-up window is considered lost and
	// starts over; 0 is 30 s.
	AckWait time.Duration
	// Then is called with the outcome of subscribing. Without it a failure fails the turn.
	Then func(ctx *actor.Context, err error) error
	// Ended is called when the subscription ends without this actor having asked for it. Without it that fails
	// the turn.
	Ended func(ctx *actor.Context, reason string) error
}

// Event is something that has happened. Fields that the grant does not show, or that are not known, are empty.
type Event struct {
	Channel string // such as lifecycle.failed, dead-letters.mailbox_full
	Time    time.Time
	Path    string // of the actor; of a message's recipient
	From    string // dead letters, unhandled: the path of the sender
	Kind    string // dead letters, unhandled: message, reply and so on
	Bytes   int    // dead letters, unhandled: of the payload

	Type        string        // lifecycle: of the actor
	Incarnation uint64        // lifecycle
	Failure     string        // the kind of failure, such as trap
	Directive   string        // failed, escalated: restart, resume, stop or escalate
	Delay       time.Duration // before the restart
	Failures    int           // of this actor, since the count was reset
	Reason      string        // in words, if the grant has reasons

	// Missed is how many events were dropped before this one, or were not looked at and might have been
	// for this subscription.
	Missed uint64
}

// Handler gets the events of a subscription, each in a turn of its own.
type Handler func(ctx *actor.Context, e Event) error

// Subscriptions are the subscriptions of an actor. The zero value has none.
type Subscriptions struct{ set feed.Set }

// Subscribe calls the handler with what happens from now on in a channel. It replaces a subscription of this actor to
// the same channel, and those of an earlier incarnation. An actor hears nothing of itself.
func (t *Subscriptions) Subscribe(ctx *actor.Context, channel string, o Options, handle Handler) {
	s := &feed.Subscription{Key: channel, Window: o.Window, Ended: o.Ended}
	s.Handle = func(ctx *actor.Context, _ *feed.Subscription, e feed.Event) error {
		x, err := read(e)
		if err != nil {
			return err
		}
		return handle(ctx, x)
	}
	t.set.Put(s)
	args := feed.Args{{Key: "channel", Value: actor.Text(channel)}}.Limits(o.Window, o.Queue, string(o.Overflow), o.AckWait)
	if len(o.Paths) > 0 {
		args = append(args, feed.Arg{Key: "paths", Value: texts(o.Paths)})
	}
	service.Ask(ctx, Name, "subscribe", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if !t.set.Has(s) {
			return nil // it was ended meanwhile, or has another one in its place
		}
		if err == nil {
			r := m.Reader()
			for range r.Map() {
				if string(r.TextBytes()) == "subscription" {
					s.Ref = r.Ref()
				} else {
					r.Skip()
				}
			}
			err = r.Done()
		}
		if err != nil {
			t.set.Drop(s)
		}
		if o.Then != nil {
			return o.Then(ctx, err)
		}
		return err
	})
}

// Unsubscribe ends a subscription. Events that are under way are not handled any more.
func (t *Subscriptions) Unsubscribe(ctx *actor.Context, channel string) {
	if t.set.Remove(channel) {
		service.Tell(ctx, Name, "unsubscribe", feed.Args{{Key: "channel", Value: actor.Text(channel)}})
	}
}

// Receive handles a message if it is an event, or the end of a subscription; mine tells whether it was. An
// event of a subscription that the actor does not know any more is dropped.
func (t *Subscriptions) Receive(ctx *actor.Context, msg *actor.Message) (mine bool, err error) {
	return t.set.Receive(ctx, Name, feed.Words{Event: "happened", Ended: "over"}, msg)
}

// read takes the value of an event apart.
func read(e feed.Event) (x Event, err error) {
	x.Channel, x.Missed = e.Topic, e.Missed
	r := abi.NewReader(e.Value)
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "time":
			x.Time = time.Unix(0, int64(r.Uint())).UTC()
		case "path":
			x.Path = r.Text()
		case "from":
			x.From = r.Text()
		case "kind":
			x.Kind = r.Text()
		case "bytes":
			x.Bytes = int(r.Int())
		case "type":
			x.Type = r.Text()
		case "incarnation":
			x.Incarnation = r.Uint()
		case "failure":
			x.Failure = r.Text()
		case "directive":
			x.Directive = r.Text()
		case "delay":
			x.Delay = time.Duration(r.Uint())
		case "failures":
			x.Failures = int(r.Int())
		case "reason":
			x.Reason = r.Text()
		default:
			r.Skip()
		}
	}
	return x, r.Done()
}

// texts are an array of texts.
type texts []string

// MarshalCBOR implements actor.Encoder.
func (t texts) MarshalCBOR(w *abi.Writer) {
	w.Array(len(t))
	for _, s := range t {
		w.Text(s)
	}
}
