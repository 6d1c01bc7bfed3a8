// A front that passes visits on to counters, which are a pool: all visits of a user come to the
// same one.
package main

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/router"
)

// visit is {"user": name}.
type visit struct{ user string }

// MarshalCBOR implements actor.Encoder.
func (v visit) MarshalCBOR(w *abi.Writer) {
	w.Map(1)
	w.Text("user")
	w.Text(v.user)
}

// counter counts the visits of each user that come to it.
type counter struct{ visits map[string]int64 }

func (c *counter) Receive(ctx *actor.Context, m *actor.Message) error {
	if m.Is("reset") {
		clear(c.visits)
		return nil
	}
	r := m.Reader()
	if r.Map() != 1 || r.Text() != "user" {
		return actor.ErrUnhandled
	}
	user := r.Text()
	if err := r.Done(); err != nil {
		return err
	}
	c.visits[user]++
	return ctx.Reply(actor.Int(c.visits[user]))
}

// front gets the name of a user, and answers with how often that user was there.
type front struct{}

func (front) Receive(ctx *actor.Context, m *actor.Message) error {
	if m.Is("reset") {
		return reset(ctx)
	}
	asker, correlation := ctx.Sender(), ctx.Correlation()
	ctx.AskPath("/user/counters", visit{m.Text()}, time.Second, func(ctx *actor.Context, m *actor.Message) error {
		if m.Kind() != actor.KindReply {
			return ctx.AnswerError(asker, correlation, m.Text())
		}
		return ctx.Answer(asker, correlation, actor.Int(m.Reader().Int()))
	})
	return nil
}

const counters = router.At("/user/counters")

// reset tells every counter to start over, and makes the pool larger by one.
func reset(ctx *actor.Context) error {
	asker, correlation := ctx.Sender(), ctx.Correlation()
	counters.ToAll(ctx, actor.Text("reset"))
	counters.Adjust(ctx, 1, time.Second, func(ctx *actor.Context, err error) error {
		if err != nil {
			return ctx.AnswerError(asker, correlation, err.Error())
		}
		counters.Routees(ctx, time.Second, func(ctx *actor.Context, at []string, err error) error {
			return ctx.Answer(asker, correlation, actor.Int(len(at)))
		})
		return nil
	})
	return nil
}

func init() {
	actor.Register("counter", func() actor.Actor { return &counter{map[string]int64{}} })
	actor.Register("front", func() actor.Actor { return front{} })
}

func main() {}
