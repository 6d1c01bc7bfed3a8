// Package flow runs streams in guests. The streams, that is sources, stages and sinks, are values of abi/flow, which actors in Go
// share (host/flow runs them there):
//
//	import (
//		"github.com/wasmactors/wasmactors/abi/flow"
//		guestflow "github.com/wasmactors/wasmactors/guest-sdk/flow"
//	)
//
//	func init() {
//		guestflow.Register("doubler", func(ctx *actor.Context) flow.Stream {
//			numbers := flow.Inbox(16, flow.DropNewest, flow.Ints)
//			return flow.Serve("doubled", flow.Map(numbers, func(n int64) int64 { return 2 * n }), flow.Ints)
//		})
//	}
//
// docs/guide/flow.md tells the rest.
package flow

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/pubsub"
	"github.com/wasmactors/wasmactors/guest-sdk/tcp"
)

// turnLimit is how many events of a graph one turn handles; then other actors get theirs.
const turnLimit = 1000

// Keys of timers; the actor's own must be lower.
const (
	timerKey = 1<<62 + iota // of the graph
	goOnKey                 // one turn was not enough
	failKey                 // the failure of the stream follows
)

// Register makes actors that run a stream an actor type. It is called in init.
func Register(typ string, stream func(ctx *actor.Context) rules.Stream) {
	actor.Register(typ, func() actor.Actor { return New(stream) })
}

// New makes an actor that runs the stream that the function returns, or a part of one, whose Started, Receive, Stopped and
// PreRestart call those of the Runner. The actor stops when the stream has ended, and fails if the stream has failed: then its
// supervisor decides, and a restart runs the stream from its beginning.
func New(stream func(ctx *actor.Context) rules.Stream) *Runner {
	return &Runner{stream: stream, conns: frameConns()}
}

// Runner is an actor that runs a stream. Its methods are for its actor, within its turns.
type Runner struct {
	stream func(ctx *actor.Context) rules.Stream
	g      *rules.Graph
	ctx    *actor.Context // of the present turn
	topics pubsub.Topics
	conns  tcp.Conns
	armed  time.Time
	going  bool
	ended  bool
	err    error
}

// Started implements actor.Starter.
func (r *Runner) Started(ctx *actor.Context) error {
	r.ctx = ctx
	r.g = r.stream(ctx).Start(r, ctx.Now())
	r.run()
	return nil
}

// Receive implements actor.Actor. It returns actor.ErrUnhandled for what is not for the stream.
func (r *Runner) Receive(ctx *actor.Context, m *actor.Message) error {
	r.ctx = ctx
	if mine, err := r.topics.Receive(ctx, m); mine {
		r.run()
		return err
	}
	if err := r.conns.Receive(ctx, m); err != actor.ErrUnhandled {
		r.run()
		return err
	}
	var bad error
	switch m.Kind() {
	case actor.KindTimer:
		switch m.Correlation() {
		case failKey:
			return r.err
		case goOnKey:
			r.going = false
		case timerKey:
			r.armed = time.Time{}
		default:
			return actor.ErrUnhandled
		}
	case actor.KindTerminated:
		r.g.Terminated(m.Sender(), m.Text())
	case actor.KindMessage:
		bad = r.receive(ctx, m)
	default:
		return actor.ErrUnhandled
	}
	r.run()
	if bad != nil {
		return actor.ErrUnhandled
	}
	return nil
}

func (r *Runner) receive(ctx *actor.Context, m *actor.Message) error {
	payload := m.Payload()
	to, correlation := m.Sender(), m.Correlation()
	l := rules.Letter{From: to, Payload: payload, Failed: m.HasHeader(abi.HeaderFailure), Parent: to == 0 || to == ctx.Parent()}
	if correlation != 0 && !rules.IsMessage(payload) {
		l.Ack = func(err error) {
			if err != nil {
				_ = r.ctx.AnswerError(to, correlation, err.Error())
			} else {
				_ = r.ctx.Answer(to, correlation, actor.Null)
			}
		}
	}
	return r.g.Receive(l)
}

// run lets the graph handle its events, and ends with it.
func (r *Runner) run() {
	if r.ended {
		return
	}
	if r.g.Run(r.ctx.Now(), turnLimit) && !r.going {
		r.going = true
		r.ctx.After(goOnKey, 0, nil)
	}
	if over, err := r.g.Over(); over {
		r.ended, r.err = true, err
		if err != nil { // in a turn of its own: what this one sends must leave
			r.ctx.After(failKey, 0, nil)
		} else {
			r.ctx.StopSelf()
		}
		return
	}
	next, ok := r.g.Next()
	switch {
	case ok && (r.armed.IsZero() || next.Before(r.armed)): // one that is too early is set again when it rings
		r.armed = next
		r.ctx.After(timerKey, next.Sub(r.ctx.Now()), nil)
	case !ok && !r.armed.IsZero():
		r.armed = time.Time{}
		r.ctx.Cancel(timerKey)
	}
}

// Stopped implements actor.Stopper: the other ends of streams are told.
func (r *Runner) Stopped(ctx *actor.Context) {
	r.ctx = ctx
	if r.g != nil && !r.ended {
		r.g.Close("the actor has stopped")
	}
}

// PreRestart tells the other ends of streams of a restart, too. It is not called after a trap or a panic.
func (r *Runner) PreRestart(ctx *actor.Context, _ string) { r.Stopped(ctx) }

// Send implements flow.Mail.
func (r *Runner) Send(to abi.Ref, payload []byte) {
	if rules.Late(payload) {
		r.ctx.TellWith(to, actor.Raw(payload), actor.Suppressed)
	} else {
		r.ctx.Tell(to, actor.Raw(payload))
	}
}

// Watch implements flow.Mail.
func (r *Runner) Watch(ref abi.Ref) error {
	if ref == 0 {
		return rules.ErrUnknown
	}
	r.ctx.Watch(ref)
	return nil
}

// Unwatch implements flow.Mail.
func (r *Runner) Unwatch(ref abi.Ref) { r.ctx.Unwatch(ref) }

// Incarnation implements flow.Mail.
func (r *Runner) Incarnation() uint64 { return r.ctx.Incarnation() }

var errRunner = errors.New("flow: the stream is not run by an actor of guest-sdk/flow")

// ContextOf is the context of the present turn, for stages and sinks that send messages; nil if the graph is not run by this
// package. It must not be kept.
func ContextOf(g *rules.Graph) *actor.Context {
	if r, ok := g.Mail().(*Runner); ok {
		return r.ctx
	}
	return nil
}

// Later is for a Call, and for other code that goes on in a later turn: it does f, which calls done, and lets the stream go on.
func Later(g *rules.Graph, ctx *actor.Context, f func()) error {
	r, ok := g.Mail().(*Runner)
	if !ok {
		return errRunner
	}
	r.ctx = ctx
	f()
	r.run()
	return nil
}
