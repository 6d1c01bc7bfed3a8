package flow

import (
	"context"
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

var errRunner = errors.New("flow: the stream is not run by an actor of host/flow")

// Do is a sink that calls f for each element, within the actor's turn.
func Do[T any](f func(ctx *host.Context, v T) error) rules.Sink[T] {
	return rules.Drain(func(g *rules.Graph) (func(T) error, func(error)) {
		return func(v T) error {
			ctx := ContextOf(g)
			if ctx == nil {
				return errRunner
			}
			return f(ctx, v)
		}, nil
	})
}

// Tell is a sink that sends each element to an actor, as fast as the source gives them. At the end the actor is sent the value end,
// unless that is nil, and a host.Failure if the stream has failed. For one that should set the pace see [Ask] and flow.GiveTo.
func Tell[T any](to host.Ref, end any) rules.Sink[T] {
	return rules.Drain(func(g *rules.Graph) (func(T) error, func(error)) {
		return func(v T) error {
				ctx := ContextOf(g)
				if ctx == nil {
					return errRunner
				}
				return ctx.Tell(to, v)
			}, func(err error) {
				switch ctx := ContextOf(g); {
				case ctx == nil:
				case err != nil:
					_ = ctx.Tell(to, host.Failure{Reason: err.Error()})
				case end != nil:
					_ = ctx.Tell(to, end)
				}
			}
	})
}

// Ask asks an actor each element and gives the answers, in order; n are under way at most. An actor that answers when it has
// room sets the pace of the stream: any actor, a router, or a flow.Inbox. An error answer, or none in time, is an error of the
// stage.
func Ask[A, B any](src rules.Source[A], n int, to host.Ref, timeout time.Duration) rules.Source[B] {
	return rules.MapAsync(src, n, func(g *rules.Graph, v A, done func(B, error)) func() {
		var out B
		r := of(g)
		if r == nil {
			done(out, errRunner)
			return nil
		}
		return r.ask(func(m host.Message) {
			err := answer(m)
			if err == nil {
				err = m.Decode(&out)
			}
			done(out, err)
		}, func(correlation uint64) error { return r.ctx.Ask(to, v, correlation, timeout) })
	})
}

func answer(m host.Message) error {
	if m.Kind == abi.KindAskTimeout {
		return rules.ErrTimeout
	}
	return m.Err()
}

// Work is a stage of a function that may wait, for files, networks and the like: it runs in goroutines, n at a time, outside
// of the actor's turns. Results keep the order of the elements. ctx ends when the result is no longer wanted.
func Work[A, B any](src rules.Source[A], n int, timeout time.Duration, f func(ctx context.Context, v A) (B, error)) rules.Source[B] {
	return rules.MapAsync(src, n, func(g *rules.Graph, v A, done func(B, error)) func() { return work(g, v, timeout, f, done) })
}

func work[A, B any](g *rules.Graph, v A, timeout time.Duration, f func(context.Context, A) (B, error), done func(B, error)) func() {
	r := of(g)
	if r == nil {
		var none B
		done(none, errRunner)
		return nil
	}
	type result struct {
		v   B
		err error
	}
	came := make(chan result, 1)
	return r.ask(func(m host.Message) {
		select {
		case res := <-came:
			done(res.v, res.err)
		default: // a panic, or no result in time
			var none B
			done(none, answer(m))
		}
	}, func(correlation uint64) error {
		return r.ctx.Head().Pipe(func(ctx context.Context) (any, error) {
			b, err := f(ctx, v)
			came <- result{b, err}
			return nil, nil
		}, correlation, timeout)
	})
}

// Async runs a source in an actor of its own, a child of the stream's actor, which works beside what is behind it. Elements travel
// by the codec, in a window. The child ends with the stream, and its crash is a failure of the stream.
func Async[T any](src rules.Source[T], c rules.Codec[T], w rules.Window) rules.Source[T] {
	return rules.Lazily(func(g *rules.Graph) rules.Source[T] {
		r := of(g)
		if r == nil {
			return rules.Failed[T](errRunner)
		}
		child, err := r.ctx.Spawn("", Props(rules.Serve("", src, c)).WithLifetime(supervision.Temporary))
		if err != nil {
			return rules.Failed[T](err)
		}
		return rules.Watch(rules.TakeFrom(child.UID(), "", c, w), nil, func(error) { r.ctx.Stop(child) })
	})
}
