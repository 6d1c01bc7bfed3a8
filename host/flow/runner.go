// Package flow runs streams in actors in Go. The streams, that is sources, stages and sinks, are values of abi/flow, which guests
// share (guest-sdk/flow runs them there):
//
//	import (
//		"github.com/wasmactors/wasmactors/abi/flow"
//		hostflow "github.com/wasmactors/wasmactors/host/flow"
//	)
//
//	orders := flow.TakeFrom(shop.UID(), "orders", hostflow.CBOR[Order](), flow.Window{})
//	ref, err := system.Spawn("billing", hostflow.Props(flow.To(orders, hostflow.Do(bill))))
//
// docs/guide/flow.md tells the rest.
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

// turnLimit is how many events of a graph one turn handles; then other actors get theirs.
const turnLimit = 1000

// Keys of timers.
const (
	timerKey = iota + 1 // of the graph
	failKey             // the failure of the stream follows
)

// goOn is what the actor sends itself if a turn was not enough.
var goOn = host.Raw{0x84, 0x64, 'f', 'l', 'o', 'w', 0x00, 0x00, 0xf6}

// Props are those of an actor that runs a stream. It stops when the stream has ended, and fails if the stream has failed: then
// its supervisor decides, and a restart runs the stream from its beginning. With the lifetime [supervision.Temporary] a
// failure is the actor's end, which actors at the other ends of its streams are told.
func Props(s rules.Stream) host.Props {
	return host.Native(func() host.Actor { return &runner{stream: s} })
}

// Run runs a stream in an actor of its own and waits for its end: nil, or the failure. If ctx ends first the actor is
// stopped. An empty name lets the system choose.
func Run(ctx context.Context, sys *host.System, name string, s rules.Stream) error {
	failure := make(chan error, 1)
	p := host.Native(func() host.Actor { return &runner{stream: s, over: func(err error) { failure <- err }} })
	ref, err := sys.Spawn(name, p.WithLifetime(supervision.Temporary))
	if err != nil {
		return err
	}
	ended, forget, err := sys.WatchEnd(ref)
	if err == nil {
		defer forget()
	}
	select {
	case err := <-failure:
		return err
	case <-ctx.Done():
		sys.Stop(ref)
		return context.Cause(ctx)
	case <-ended:
	}
	select {
	case err := <-failure:
		return err
	default:
		return errors.New("flow: the stream's actor was stopped")
	}
}

// Shutdown turns the switch of the stream that an actor runs: what passes a flow.Killable(src, nil) ends there, and so do inboxes and what is
// served. The actor's parent may do the same by a message, flow.StopOf.
func Shutdown(sys *host.System, ref host.Ref) error { return sys.Tell(ref, host.Raw(rules.StopOf(""))) }

// Abort is Shutdown by which the streams fail.
func Abort(sys *host.System, ref host.Ref, reason string) error {
	if reason == "" {
		reason = rules.ErrAborted.Error()
	}
	return sys.Tell(ref, host.Raw(rules.StopOf(reason)))
}

// runner is the actor, and the mail of its graph.
type runner struct {
	stream rules.Stream
	over   func(error)
	g      *rules.Graph
	ctx    *host.Context // of the present turn
	peer   host.Ref      // the last one
	asks   map[uint64]func(host.Message)
	asked  uint64
	armed  time.Time
	going  bool
	err    error
	ended  bool
	told   rules.Moved // to the counters
}

// Started implements host.Starter.
func (r *runner) Started(ctx *host.Context) error {
	r.ctx = ctx
	counted.started.Add(1)
	counted.open.Add(1)
	returned := false
	defer func() { r.left(returned) }()
	r.g = r.stream.Start(r, ctx.Now())
	err := r.run()
	returned = true
	return err
}

// left notes how a turn was left: a runner that has panicked is not told of its end.
func (r *runner) left(returned bool) {
	if !returned && !r.ended {
		r.ended = true
		counted.end(errStopped)
	}
}

// Receive implements host.Actor.
func (r *runner) Receive(ctx *host.Context, m host.Message) error {
	returned := false
	defer func() { r.left(returned) }()
	err := r.take(ctx, m)
	returned = true
	return err
}

func (r *runner) take(ctx *host.Context, m host.Message) error {
	r.ctx = ctx
	var bad error
	switch m.Kind {
	case abi.KindTimer:
		if m.Correlation == failKey {
			return r.err
		}
		r.armed = time.Time{}
	case abi.KindTerminated:
		var reason string
		_ = m.Decode(&reason)
		r.g.Terminated(m.Sender.UID(), reason)
	case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
		then := r.asks[m.Correlation]
		if then == nil {
			return host.ErrUnhandled
		}
		delete(r.asks, m.Correlation)
		then(m)
	case abi.KindMessage:
		if m.Sender.UID() == ctx.Self().UID() && string(m.Payload) == string(goOn) {
			r.going = false
			break
		}
		bad = r.receive(m)
	default:
		return host.ErrUnhandled
	}
	if err := r.run(); err != nil {
		return err
	}
	if bad != nil {
		return host.ErrUnhandled
	}
	return nil
}

func (r *runner) receive(m host.Message) error {
	from := m.Sender.UID()
	outside := from == 0 || m.Sender.Path() == "/temp" // Go code that has the system
	if r.peer = m.Sender; outside {
		r.peer = host.Ref{}
	}
	_, failed := m.Failure()
	l := rules.Letter{From: from, Payload: m.Payload, Failed: failed, Parent: outside || from == r.ctx.Parent().UID()}
	if m.Correlation != 0 && !rules.IsMessage(m.Payload) {
		reply, err := r.ctx.Later()
		if err != nil {
			_ = r.ctx.ReplyError(err.Error())
			return err
		}
		l.Ack = func(err error) {
			if err != nil {
				_ = reply.Fail(err.Error())
			} else {
				_ = reply.Send(nil)
			}
		}
	}
	return r.g.Receive(l)
}

// run lets the graph handle its events, and ends with it.
func (r *runner) run() error {
	if r.ended {
		return nil
	}
	more := r.g.Run(r.ctx.Now(), turnLimit)
	r.told = counted.moved(r.told, r.g.Moved())
	if more && !r.going {
		r.going = true
		if err := r.ctx.Tell(r.ctx.Self(), goOn); err != nil {
			return err
		}
	}
	if over, err := r.g.Over(); over {
		r.ended, r.err = true, err
		counted.end(err)
		if r.over != nil {
			r.over(err)
		}
		if err != nil { // in a turn of its own: what this one sends must leave
			return r.ctx.After(failKey, 0, 0, nil)
		}
		r.ctx.Stop(r.ctx.Self())
		return nil
	}
	next, ok := r.g.Next()
	switch {
	case ok && (r.armed.IsZero() || next.Before(r.armed)): // one that is too early is set again when it rings
		r.armed = next
		return r.ctx.After(timerKey, max(next.Sub(r.ctx.Now()), 0), 0, nil)
	case !ok && !r.armed.IsZero():
		r.armed = time.Time{}
		r.ctx.Cancel(timerKey)
	}
	return nil
}

// Stopped implements host.Stopper: the other ends of streams are told.
func (r *runner) Stopped(ctx *host.Context) {
	r.ctx = ctx
	if r.g != nil && !r.ended {
		r.ended = true
		counted.end(errStopped)
		r.g.Close("the actor has stopped")
	}
}

// Send implements flow.Mail.
func (r *runner) Send(to abi.Ref, payload []byte) {
	ref, err := r.refOf(to)
	if err != nil {
		return
	}
	var v any = host.Raw(payload)
	if rules.Late(payload) {
		v = host.Marked{Value: v, Marks: host.Suppressed}
	}
	_ = r.ctx.Tell(ref, v) // one that has ended is a dead letter
}

func (r *runner) refOf(to abi.Ref) (host.Ref, error) {
	if r.peer.UID() == to {
		return r.peer, nil
	}
	ref, err := r.ctx.System().RefOf(to, host.Ref{})
	if err == nil {
		r.peer = ref
	}
	return ref, err
}

// Watch implements flow.Mail.
func (r *runner) Watch(to abi.Ref) error {
	ref, err := r.refOf(to)
	if err != nil {
		return err
	}
	return r.ctx.Watch(ref)
}

// Unwatch implements flow.Mail.
func (r *runner) Unwatch(to abi.Ref) {
	if ref, err := r.refOf(to); err == nil {
		r.ctx.Unwatch(ref)
	}
}

// Incarnation implements flow.Mail.
func (r *runner) Incarnation() uint64 { return r.ctx.Head().Incarnation() }

// ask notes what follows from the answer to a question that begin asks.
func (r *runner) ask(then func(host.Message), begin func(correlation uint64) error) (cancel func()) {
	r.asked++
	n := r.asked
	if err := begin(n); err != nil {
		then(failedMessage(err))
		return nil
	}
	if r.asks == nil {
		r.asks = map[uint64]func(host.Message){}
	}
	r.asks[n] = then
	return func() {
		if r.asks[n] != nil {
			delete(r.asks, n)
			r.ctx.CancelAsk(n)
		}
	}
}

func failedMessage(err error) host.Message {
	payload, _ := host.Encode(err.Error())
	return host.Message{Kind: abi.KindReplyError, Payload: payload}
}

// of is the runner of a graph; nil if it has another one.
func of(g *rules.Graph) *runner {
	r, _ := g.Mail().(*runner)
	return r
}

// ContextOf is the context of the present turn, for stages and sinks that send messages; nil if the graph is not run by this
// package. It must not be kept.
func ContextOf(g *rules.Graph) *host.Context {
	if r := of(g); r != nil {
		return r.ctx
	}
	return nil
}
