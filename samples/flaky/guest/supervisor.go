package main

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// supervisor takes orders, in their order, and hands them to its client one by
// one. An order stays here until there is a receipt, as in the article of 2012:
// whatever a crash of the client takes down is handed on again when the client is
// back. How long that takes is in the manifest, and differs from one supervisor to
// the next.
type supervisor struct {
	client actor.Ref // the same in all its incarnations; 0 until the first is ready
	up     bool
	lost   string // why it will not be up any more
	orders []*waiting
	failed int64 // attempts at the first order
}

// waiting is an order with whoever wants its outcome.
type waiting struct {
	order
	customer actor.Ref
	question uint64
	since    time.Time
}

// most bounds the orders that wait; more are refused.
const most = 1000

func (s *supervisor) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case msg.Kind() == actor.KindTerminated:
		s.giveUp(ctx, msg.Text())
	case s.client == 0 && msg.Is("ready"): // the host starts children before it lets others in
		s.client = ctx.Sender()
		ctx.Watch(s.client)
		s.ready(ctx)
	case ctx.Sender() != s.client:
		return s.take(ctx, msg)
	case msg.Is("ready"):
		s.ready(ctx)
	default:
		var r receipt
		if err := msg.Decode(&r); err != nil {
			return err
		}
		s.done(ctx, &r)
	}
	return nil
}

// ChildFailed learns that the client is gone. What is to be done about it is left
// to the default decider, and when it is done to the backoff in the manifest.
func (s *supervisor) Decide(*actor.Context, actor.Ref, *abi.Failure) actor.Directive {
	s.up = false
	s.failed++
	return actor.DefaultDirective
}

// take puts an order in the queue.
func (s *supervisor) take(ctx *actor.Context, msg *actor.Message) error {
	w := &waiting{customer: ctx.Sender(), question: ctx.Correlation(), since: ctx.Now()}
	switch err := msg.Decode(&w.order); {
	case err != nil:
		return ctx.ReplyError("not an order: " + err.Error())
	case s.lost != "":
		return ctx.ReplyError(s.lost)
	case len(s.orders) >= most:
		return ctx.ReplyError("too many orders wait")
	}
	s.orders = append(s.orders, w)
	if len(s.orders) == 1 {
		s.next(ctx)
	}
	return nil
}

func (s *supervisor) ready(ctx *actor.Context) {
	s.up = true
	s.next(ctx)
}

// next hands the first order to the client, if there are both.
func (s *supervisor) next(ctx *actor.Context) {
	if !s.up || len(s.orders) == 0 {
		return
	}
	first := s.orders[0]
	c := call{ID: first.ID, Attempt: s.failed + 1}
	if s.failed < int64(len(first.Trouble)) {
		c.Trouble = first.Trouble[s.failed]
	}
	ctx.Tell(s.client, &c)
}

// done tells the customer, and goes on with the next order.
func (s *supervisor) done(ctx *actor.Context, r *receipt) {
	if len(s.orders) == 0 || s.orders[0].ID != r.ID {
		return
	}
	first := s.orders[0]
	waited := ctx.Now().Sub(first.since).Milliseconds()
	_ = ctx.Answer(first.customer, first.question, &outcome{r.ID, r.Text, s.failed + 1, waited})
	s.orders, s.failed = s.orders[1:], 0
	s.next(ctx)
}

// giveUp answers everybody: the client was stopped and does not come back.
func (s *supervisor) giveUp(ctx *actor.Context, why string) {
	s.up, s.lost = false, "given up: the client has ended ("+why+")"
	for _, w := range s.orders {
		_ = ctx.AnswerError(w.customer, w.question, s.lost)
	}
	s.orders = nil
}
