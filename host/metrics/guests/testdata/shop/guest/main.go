// A guest of the tests: it counts what it is told to count.
package main

import (
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/metrics"
)

type shop struct{ child actor.Ref }

func (s *shop) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch text := msg.Text(); text {
	case "order":
		metrics.Add(ctx, "orders_total", 1)
		metrics.Set(ctx, "depth", 3)
		metrics.Observe(ctx, "wait_seconds", 0.5)
	case "crash":
		metrics.Add(ctx, "orders_total", 1000)
		panic("on purpose")
	case "batch":
		var b metrics.Batch
		for range 150 {
			b.Add("orders_total", 1)
		}
		b.Send(ctx)
	case "child":
		s.child = ctx.Spawn("shop", "child", nil)
		ctx.Tell(s.child, actor.Text("order"))
	case "end child":
		ctx.Stop(s.child)
	case "unknown":
		metrics.Add(ctx, "secret_total", 1)
	case "backwards":
		metrics.Add(ctx, "orders_total", -1)
	case "half":
		var b metrics.Batch
		b.Add("orders_total", 500)
		b.Add("secret_total", 1)
		b.Send(ctx)
	case "garbage":
		ctx.TellPath(metrics.Path, actor.Text("what?"))
	case "flood":
		for range 20000 {
			metrics.Add(ctx, "orders_total", 1)
		}
	case "ask":
		sender, correlation := msg.Sender(), msg.Correlation()
		ctx.AskPath(metrics.Path, actor.Text("what?"), time.Second, func(ctx *actor.Context, msg *actor.Message) error {
			ctx.Answer(sender, correlation, actor.Text(msg.Text()))
			return nil
		})
		return nil
	case "trace":
		return ctx.Reply(actor.Text(msg.Header("traceparent")))
	}
	return ctx.Reply(actor.Bool(true))
}

func init() { actor.Register("shop", func() actor.Actor { return &shop{} }) }

func main() {}
