// Guests that get along with others that fail, are slow, or get too much: see docs/guide/circuit-breaker.md,
// throttler.md, reliable.md and interceptors.md.
package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/breaker"
	"github.com/wasmactors/wasmactors/guest-sdk/reliable"
	"github.com/wasmactors/wasmactors/guest-sdk/throttle"
)

// shop asks the stock for what it is asked for, and leaves it alone for a minute when it has failed
// three times.
type shop struct{ stock *breaker.Breaker }

func newShop() actor.Actor {
	s := &shop{breaker.New(breaker.Settings{MaxFailures: 3, CallTimeout: time.Second, ResetTimeout: time.Minute})}
	s.stock.OnOpen(func(ctx *actor.Context) { ctx.Warn("the stock does not answer") })
	return s
}

// Receive implements actor.Actor.
func (s *shop) Receive(ctx *actor.Context, msg *actor.Message) error {
	asker, correlation := ctx.Sender(), ctx.Correlation()
	err := s.stock.AskPath(ctx, "/user/stock", actor.Raw(msg.Payload()), func(ctx *actor.Context, msg *actor.Message) error {
		if msg.Kind() != actor.KindReply {
			return ctx.AnswerError(asker, correlation, "the stock has failed")
		}
		return ctx.Answer(asker, correlation, actor.Raw(msg.Payload()))
	})
	if err != nil { // it was not asked
		return ctx.ReplyError(err.Error())
	}
	return nil
}

// pacer sends what it is told to who has said "here", three messages a second.
type pacer struct {
	to   actor.Ref
	pace *throttle.Throttler
}

func newPacer() actor.Actor {
	return &pacer{pace: throttle.New(throttle.Rate{N: 3, Per: time.Second}, 1).Limit(100, 64<<10)}
}

// Receive implements actor.Actor.
func (p *pacer) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case p.pace.Receive(ctx, msg): // its timer
		return nil
	case msg.Is("here"):
		p.to = ctx.Sender()
		return nil
	}
	return p.pace.Tell(ctx, p.to, actor.Raw(msg.Payload()))
}

// clerk sends what it is told to the ledger that has said "hello".
type clerk struct{ out *reliable.Sender }

func newClerk() actor.Actor {
	return &clerk{reliable.NewSender(0, 1).RetryAfter(time.Second).Limit(1000, 256<<10)}
}

// Receive implements actor.Actor.
func (c *clerk) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case c.out.Receive(ctx, msg): // acknowledgements, its timer, the end of the ledger
		return nil
	case msg.Is("hello"):
		c.out.Connect(ctx, ctx.Sender())
		return nil
	}
	return c.out.Send(ctx, actor.Raw(msg.Payload()))
}

// ledger enters each text once, and tells /user/probe.
type ledger struct{ in reliable.Receiver }

// Receive implements actor.Actor.
func (l *ledger) Receive(ctx *actor.Context, msg *actor.Message) error {
	if !l.in.Accept(ctx, msg) {
		return nil // it was entered before, or comes again
	}
	if msg.Is("bad") && ctx.Incarnation()%2 == 0 {
		panic("as told")
	}
	ctx.TellPath("/user/probe", actor.Raw(msg.Payload()))
	return nil
}

// short answers texts of more than 20 bytes with an error, whatever the actor inside would do.
func short(next actor.Behavior) actor.Behavior {
	return func(ctx *actor.Context, msg *actor.Message) error {
		if len(msg.Text()) > 20 {
			return ctx.ReplyError("too long") // handled completely: next is not called
		}
		return next(ctx, msg)
	}
}

// trimmed hands texts on without the space around them, and says afterwards how many it were.
func trimmed(next actor.Behavior) actor.Behavior {
	var r actor.Replacement
	handled := 0 // in this incarnation
	return func(ctx *actor.Context, msg *actor.Message) error {
		err := r.Next(ctx, msg, actor.Text(strings.TrimSpace(msg.Text())), next)
		if err == nil { // after
			handled++
			ctx.Info(strconv.Itoa(handled) + " texts were handled")
		}
		return err
	}
}

type echo struct{}

// Receive implements actor.Actor.
func (echo) Receive(ctx *actor.Context, msg *actor.Message) error {
	return ctx.Reply(actor.Text(msg.Text()))
}

func init() {
	actor.Register("shop", newShop)
	actor.Register("pacer", newPacer)
	actor.Register("clerk", newClerk)
	actor.Register("ledger", func() actor.Actor { return &ledger{} })
	actor.Register("echo", actor.Intercepted(func() actor.Actor { return echo{} }, short, trimmed))
}

func main() {}
