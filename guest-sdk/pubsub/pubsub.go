// Package pubsub publishes to topics and subscribes to them. Topics are tokens with dots between
// them, orders.eu.paid; in the pattern of a subscription * stands for any one token, and > at the end
// for all that follows. The manifest grants both:
//
//	capabilities:
//	  pubsub: {publish: [orders.>], subscribe: [orders.*.paid]}
//
// An actor that subscribes has [Topics] among its fields and asks it first about each message:
//
//	func (s *shop) Started(ctx *actor.Context) error {
//		s.topics.Subscribe(ctx, "orders.*.paid", pubsub.Options{}, s.paid)
//		return nil
//	}
//
//	func (s *shop) Receive(ctx *actor.Context, msg *actor.Message) error {
//		if mine, err := s.topics.Receive(ctx, msg); mine {
//			return err
//		}
//		...
//	}
//
// docs/services/pubsub.md has what is promised.
package pubsub

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/feed"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Name is the name of the service and of its grant.
const Name = "pubsub"

// Timeout is how long the functions of this package wait for the service.
const Timeout = 10 * time.Second

// Result is the outcome of a publication: how many subscriptions have taken it, and how many
// have missed it because they had no room.
type Result struct{ Taken, Missed int }

// Tell publishes without hearing whether anybody took it.
func Tell(ctx *actor.Context, topic string, value actor.Encoder) {
	service.Tell(ctx, Name, "publish", &publication{topic, value, false})
}

// Publish publishes, and tells then how many took it, which may be none.
func Publish(ctx *actor.Context, topic string, value actor.Encoder, then func(*actor.Context, Result, error) error) {
	publish(ctx, &publication{topic, value, false}, then)
}

// Retain is Publish with a value that stays: later subscribers get it, too, until another value replaces it or Forget
// removes it.
func Retain(ctx *actor.Context, topic string, value actor.Encoder, then func(*actor.Context, Result, error) error) {
	publish(ctx, &publication{topic, value, true}, then)
}

func publish(ctx *actor.Context, p *publication, then func(*actor.Context, Result, error) error) {
	service.Ask(ctx, Name, "publish", p, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		var result Result
		if err == nil {
			r := m.Reader()
			for range r.Map() {
				switch string(r.TextBytes()) {
				case "taken":
					result.Taken = int(r.Int())
				case "missed":
					result.Missed = int(r.Int())
				default:
					r.Skip()
				}
			}
			err = r.Done()
		}
		return then(ctx, result, err)
	})
}

// Forget removes the retained value of a topic; service.ErrNotFound if there is none.
func Forget(ctx *actor.Context, topic string, then func(*actor.Context, error) error) {
	service.Ask(ctx, Name, "forget", feed.Args{{Key: "topic", Value: actor.Text(topic)}}, Timeout, func(ctx *actor.Context, _ *actor.Message, err error) error {
		return then(ctx, err)
	})
}

// publication is {"topic", "value", ? "retain"}.
type publication struct {
	topic  string
	value  actor.Encoder
	retain bool
}

// MarshalCBOR implements actor.Encoder.
func (p *publication) MarshalCBOR(w *abi.Writer) {
	n := 2
	if p.retain {
		n++
	}
	w.Map(n)
	w.Text("topic")
	w.Text(p.topic)
	w.Text("value")
	if p.value == nil {
		w.Null()
	} else {
		p.value.MarshalCBOR(w)
	}
	if p.retain {
		w.Text("retain")
		w.Bool(true)
	}
}
