package flow

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// with is a sink with the actor's context.
func with[T any](each func(ctx *actor.Context, v T) error, end func(ctx *actor.Context, err error)) rules.Sink[T] {
	return rules.Drain(func(g *rules.Graph) (func(T) error, func(error)) {
		return func(v T) error {
				ctx := ContextOf(g)
				if ctx == nil {
					return errRunner
				}
				return each(ctx, v)
			}, func(err error) {
				if ctx := ContextOf(g); ctx != nil && end != nil {
					end(ctx, err)
				}
			}
	})
}

// Do is a sink that calls f for each element, within the actor's turn.
func Do[T any](f func(ctx *actor.Context, v T) error) rules.Sink[T] { return with(f, nil) }

// Store is a sink that begins something for each element that is not over within the turn, such as a write to a service or a connection.
// f's continuation returns what done returns. n are under way at most, so whoever answers sets the pace of the stream; an error is one
// of the stage.
func Store[T any](n int, f func(ctx *actor.Context, v T, done func(ctx *actor.Context, err error) error)) rules.Sink[T] {
	return rules.Through(func(src rules.Source[T]) rules.Source[struct{}] {
		return rules.MapAsync(src, n, func(g *rules.Graph, v T, done func(struct{}, error)) func() {
			ctx := ContextOf(g)
			if ctx == nil {
				done(struct{}{}, errRunner)
				return nil
			}
			f(ctx, v, func(ctx *actor.Context, err error) error {
				return Later(g, ctx, func() { done(struct{}{}, err) })
			})
			return nil
		})
	}, rules.Ignore[struct{}]())
}

// encoded is an element as a message.
type encoded[T any] struct {
	c rules.Codec[T]
	v T
}

// MarshalCBOR implements actor.Encoder.
func (e encoded[T]) MarshalCBOR(w *abi.Writer) { e.c.Put(w, e.v) }

// Tell is a sink that sends each element to an actor, as fast as the source gives them. At the end the actor is sent the message end,
// unless that is nil, and a failure (guest-sdk/ask) if the stream has failed. For one that should set the pace see [Ask] and
// flow.GiveTo.
func Tell[T any](to actor.Ref, c rules.Codec[T], end actor.Encoder) rules.Sink[T] {
	return with(func(ctx *actor.Context, v T) error { ctx.Tell(to, encoded[T]{c, v}); return nil }, func(ctx *actor.Context, err error) {
		switch {
		case err != nil:
			reason := err.Error()
			ctx.TellWith(to, actor.Text(reason), actor.Header{Key: abi.HeaderFailure, Value: reason[:min(len(reason), abi.MaxHeaderValue)]})
		case end != nil:
			ctx.Tell(to, end)
		}
	})
}

// Ask asks an actor each element and gives the answers, in order; n are under way at most. An actor that answers when it has
// room sets the pace of the stream: any actor, a router, or a flow.Inbox. An error answer, or none in time, is an error of the
// stage.
func Ask[A, B any](src rules.Source[A], n int, to actor.Ref, timeout time.Duration, question rules.Codec[A], answer rules.Codec[B]) rules.Source[B] {
	return rules.MapAsync(src, n, func(g *rules.Graph, v A, done func(B, error)) func() {
		ctx := ContextOf(g)
		if ctx == nil {
			var none B
			done(none, errRunner)
			return nil
		}
		ctx.Ask(to, encoded[A]{question, v}, timeout, func(ctx *actor.Context, m *actor.Message) error {
			return Later(g, ctx, func() {
				var out B
				var err error
				switch m.Kind() {
				case actor.KindAskTimeout:
					err = rules.ErrTimeout
				case actor.KindReplyError:
					err = errors.New(m.Text())
				default:
					r := m.Reader()
					out, err = answer.Get(r), r.Done()
				}
				done(out, err)
			})
		})
		return nil
	})
}
