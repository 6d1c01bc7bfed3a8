// Package asking is the Go code of docs/guide/asking.md.
package asking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Prices asks all shops, and takes what two of them answer first.
func Prices(ctx context.Context, s *host.System, shops []host.Ref) (prices []int64, err error) {
	results, err := s.AskSeveral(ctx, host.Quorum(2), shops, "price")
	if err != nil {
		return nil, err // a *host.SeveralError, which says what became of each
	}
	for _, r := range results {
		var price int64
		if r.Err == nil && r.Message.Decode(&price) == nil {
			prices = append(prices, price)
		}
	}
	return prices, nil
}

// Buy asks again while the shop's mailbox is full or it is about to be restarted, and when it has
// not answered within 100 ms: the shop can tell by the key that it is the same order.
func Buy(ctx context.Context, s *host.System, shop host.Ref, order string) (host.Message, error) {
	retry := host.NewRetry().
		WithAttempts(4).
		WithEach(100*time.Millisecond).
		WithPolicy(backoff.WithJitter(backoff.Exponential(10*time.Millisecond, time.Second, 2), backoff.FullJitter())).
		WithOn(host.ErrMailboxFull, host.ErrRestarting, host.ErrTimeout).
		WithKey(order)
	return s.AskRetry(ctx, shop, "busy", retry)
}

// Why says why a shop has not answered.
func Why(err error) string {
	var timeout *host.TimeoutError
	if errors.As(err, &timeout) {
		return fmt.Sprintf("%s did not answer a %s within %v: %s", timeout.Target.Name(), timeout.Question, timeout.Waited.Round(time.Millisecond), timeout.Doing())
	}
	return err.Error()
}

// Lookup sends an actor what a slow function comes to, unless the actor was restarted meanwhile.
func Lookup(s *host.System, to host.Ref, look func(context.Context) (any, error)) error {
	return s.PipeTo(to).WithIncarnation().WithTimeout(5 * time.Second).Go(look)
}

// reader is an actor in Go that asks a function, and others with the time that is left.
type reader struct {
	shops   []host.Ref
	several *host.Several
	asker   host.Ref
}

// Reader is its props.
func Reader(shops []host.Ref) host.Props {
	return host.Native(func() host.Actor { return &reader{shops: shops} })
}

// Receive implements host.Actor.
func (r *reader) Receive(ctx *host.Context, m host.Message) error {
	if r.several != nil {
		if results, over, err := r.several.Take(ctx, m); over {
			r.several = nil
			return ctx.Tell(r.asker, fmt.Sprint(len(results), " shops, ", err))
		}
	}
	var what string
	switch err := m.Decode(&what); {
	case err != nil:
		return host.ErrUnhandled
	case what == "file":
		r.asker = m.Sender
		return ctx.Head().Pipe(func(context.Context) (any, error) { return "contents", nil }, 1, time.Second)
	case what == "shops":
		r.asker = m.Sender
		several, err := ctx.AskSeveral(host.All(), r.shops, "price", 100, ctx.Head().Within(time.Second))
		r.several = several
		return err
	case what == "contents":
		return ctx.Tell(r.asker, what)
	}
	return nil
}
