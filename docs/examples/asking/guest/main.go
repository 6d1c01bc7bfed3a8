// A buyer that asks several shops, asks one again until it answers, and has an answer sent on.
package main

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/ask"
)

// shop has one price. It is busy the first time that it is asked again and again, and it is
// slow to answer "never".
type shop struct{ busy map[string]int }

func (s *shop) Receive(ctx *actor.Context, m *actor.Message) error {
	switch m.Text() {
	case "never":
		return nil
	case "no":
		return ctx.ReplyError("sold out")
	case "busy":
		key := m.Header("idempotency-key")
		if s.busy[key]++; s.busy[key] < 3 {
			return ctx.ReplyError("busy")
		}
		return ctx.Reply(actor.Text("bought after " + strconv.Itoa(s.busy[key]) + " attempts"))
	case "left": // how long does who asks still wait?
		left, ok := ask.Remaining(ctx, m)
		return ctx.Reply(actor.Text(strconv.FormatBool(ok && left > 0 && left <= time.Second)))
	}
	return ctx.Reply(actor.Int(17))
}

// buyer is told the refs of the shops, then what to do.
type buyer struct{ shops []actor.Ref }

func (b *buyer) Receive(ctx *actor.Context, m *actor.Message) error {
	if m.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	if reason, failed := ask.Failure(m); failed {
		ctx.Info("no answer was sent on: " + reason)
		return nil
	}
	if r := m.Reader(); r.Peek() == abi.TypeArray {
		b.shops = b.shops[:0]
		for range r.Array() {
			b.shops = append(b.shops, actor.Ref(r.Uint()))
		}
		return r.Done()
	}
	asker, correlation := ctx.Sender(), ctx.Correlation()
	switch what := m.Text(); what {
	case "two":
		b.two(ctx, m, asker, correlation)
	case "busy":
		b.again(ctx, asker, correlation)
	case "pipe":
		ask.Pipe(ctx, b.shops[0], actor.Text("price"), time.Second, asker)
	default: // one shop, and what it answers
		ctx.Ask(b.shops[0], actor.Text(what), ask.Within(ctx, m, time.Second), func(ctx *actor.Context, m *actor.Message) error {
			return ctx.Answer(asker, correlation, actor.Raw(m.Payload()))
		})
	}
	return nil
}

// two asks all shops for a price and takes the first two.
func (b *buyer) two(ctx *actor.Context, m *actor.Message, asker actor.Ref, correlation uint64) {
	ask.Several(ctx, ask.Quorum(2), b.shops, actor.Text("price"), ask.Within(ctx, m, time.Second),
		func(ctx *actor.Context, results []ask.Result, err error) error {
			if err != nil {
				return ctx.AnswerError(asker, correlation, err.Error())
			}
			n := 0
			for _, r := range results {
				if r.Err == nil {
					n++
				}
			}
			return ctx.Answer(asker, correlation, actor.Int(n))
		})
}

// again asks the first shop until it is not busy any more.
func (b *buyer) again(ctx *actor.Context, asker actor.Ref, correlation uint64) {
	retry := ask.Retry{
		Attempts: 5,
		Within:   time.Second,
		Wait:     ask.Doubling(time.Millisecond, 10*time.Millisecond),
		On:       func(err *ask.Error) bool { return err.Reason == "busy" },
	}
	ask.Again(ctx, b.shops[0], actor.Text("busy"), retry, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return ctx.AnswerError(asker, correlation, err.Error())
		}
		return ctx.Answer(asker, correlation, actor.Raw(m.Payload()))
	})
}

func init() {
	actor.Register("shop", func() actor.Actor { return &shop{map[string]int{}} })
	actor.Register("buyer", func() actor.Actor { return &buyer{} })
}

func main() {}
