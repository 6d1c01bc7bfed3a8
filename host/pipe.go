package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// failed is an error as another actor may see it: without what a third actor was doing.
func failed(err error) Failure {
	if timeout := (*TimeoutError)(nil); errors.As(err, &timeout) {
		return Failure{Reason: ErrTimeout.Error()}
	}
	return Failure{Reason: err.Error()}
}

// Pipe sends an actor results that come from outside of actors, as messages: what a goroutine
// returns, or the answer to an ask. A failure becomes a [Failure]. What the actor does not take
// (it has stopped, its mailbox is full) becomes a dead letter, and the sender gets an error. A Pipe
// is immutable; all methods may be called concurrently.
type Pipe struct {
	sys     *System
	to      Ref
	from    Ref
	number  uint64
	bound   bool // to that incarnation
	timeout time.Duration
}

// PipeTo is a pipe to an actor, without a sender.
func (s *System) PipeTo(to Ref) Pipe { return Pipe{sys: s, to: to} }

// WithSender sends in the name of an actor, which will get the answer.
func (p Pipe) WithSender(from Ref) Pipe { p.from = from; return p }

// WithIncarnation sends to the present incarnation of the actor only. When that has ended, what is sent
// becomes a dead letter. Without it any incarnation handles the result.
func (p Pipe) WithIncarnation() Pipe {
	if a := p.sys.here(p.to.UID()); a != nil {
		p.number, p.bound = a.Incarnation(), true
	}
	return p
}

// WithTimeout has Go and Answer give up after d, by the system's clock: the actor gets a Failure. 0
// means that they wait for as long as it takes.
func (p Pipe) WithTimeout(d time.Duration) Pipe { p.timeout = max(d, 0); return p }

// Send sends a result now: v, or if err is not nil a Failure. The error is that of
// [System.TellFrom], or ErrEnded if the incarnation has ended.
func (p Pipe) Send(v any, err error) error {
	if err != nil {
		v = failed(err)
	}
	e, err := message.Envelope(v)
	if err != nil { // what cannot be a message is a failure, too
		if e, err = message.Envelope(failed(err)); err != nil {
			return err
		}
	}
	s := p.sys
	e.Sender, e.SenderPath = p.from.UID(), p.from.URI()
	if a := s.here(p.from.UID()); p.from.UID() != 0 && a != nil {
		e.Attached = a.attached
	}
	if p.bound {
		if a := s.here(p.to.UID()); a != nil && a.Incarnation() != p.number {
			s.deadLetter(DeadIncarnation, a.uid, a.path, e)
			e.Free()
			return ErrEnded
		}
		e.Flags |= mark.Incarnation
		e.Due = int64(p.number)
	}
	span := s.fromOutside(context.Background(), SendSpan, p.to, e)
	err = s.deliver(nil, p.to.UID(), e)
	s.sent(span, err)
	return err
}

// Go runs f in a goroutine of its own and sends what it returns. The context of f ends when the actor
// has stopped, with the cause ErrStopped, or after the timeout, with ErrTimeout; in both cases f is
// not waited for. A result that has come in counts, even if the time is over too. A panic in f is a failure.
// An error of Go says that the actor has gone; then f is not run.
func (p Pipe) Go(f func(context.Context) (any, error)) error {
	ended, forget, err := p.sys.WatchEnd(p.to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	result := make(chan outcome, 1)
	go func() { result <- complete(ctx, f) }()
	go func() {
		defer cancel(nil)
		defer forget()
		late, stop := p.late()
		defer stop()
		r, why := first(result, late, ended)
		switch why {
		case nil:
			_ = p.Send(r.v, r.err)
		case ErrTimeout:
			cancel(why)
			_ = p.Send(nil, why)
		default:
			cancel(why)
		}
	}()
	return nil
}

// Answer sends what an ask ends with: the payload of the answer, or a Failure. It waits in a
// goroutine of its own, which gives the ask up when the actor has stopped, or after the
// timeout. An answer that has come in counts, even if the time is over too. An error of Answer says that the
// actor has gone; then the ask is given up.
func (p Pipe) Answer(ask *Pending) error {
	ended, forget, err := p.sys.WatchEnd(p.to)
	if err != nil {
		ask.Cancel()
		return err
	}
	go func() {
		defer forget()
		late, stop := p.late()
		defer stop()
		m, why := first(ask.Answer(), late, ended)
		if why != nil {
			ask.Cancel()
		}
		switch why {
		case nil:
			if err := m.Err(); err != nil {
				_ = p.Send(nil, err)
			} else {
				_ = p.Send(Raw(m.Payload), nil)
			}
		case ErrTimeout:
			_ = p.Send(nil, why)
		}
	}()
	return nil
}

// first waits for the result, the timeout or the end of the actor. If more than one of them is there, the result
// counts before the end, and the end before the timeout, whichever came first.
func first[T any](result <-chan T, late, ended <-chan struct{}) (r T, why error) {
	select {
	case r = <-result:
		return r, nil
	case <-late:
	case <-ended:
	}
	select {
	case r = <-result:
		return r, nil
	default:
	}
	select {
	case <-ended:
		return r, ErrStopped
	default:
		return r, ErrTimeout
	}
}

// late returns a channel that is closed when the timeout is over, and what stops the timer.
func (p Pipe) late() (late <-chan struct{}, stop func()) {
	if p.timeout == 0 {
		return nil, func() {}
	}
	c := make(chan struct{})
	t := p.sys.cfg.clock.AfterFunc(p.timeout, func() { close(c) })
	return c, func() { t.Stop() }
}

// outcome is what a function has come to.
type outcome struct {
	v   any
	err error
}

// complete calls f, whose panic is an error.
func complete(ctx context.Context, f func(context.Context) (any, error)) (r outcome) {
	defer func() {
		if x := recover(); x != nil {
			r = outcome{nil, fmt.Errorf("host: the piped function panicked: %v", x)}
		}
	}()
	v, err := f(ctx)
	return outcome{v, err}
}

// Pipe asks a Go function instead of an actor. f runs in a goroutine of its own when the turn has ended; if the turn fails
// it does not run. What f returns comes as the answer to an ask with this correlation: a Message of KindReply,
// KindReplyError or KindAskTimeout. As every ask it counts in Limits.Asks, and its answer never reaches a later incarnation.
// The context of f ends, with the cause ErrGone, when the answer is no longer wanted. Pipe fails as Ask does.
func (h Head) Pipe(f func(context.Context) (any, error), correlation uint64, timeout time.Duration) error {
	a := h.ctx.actor
	uid := a.sys.outside.newRef()
	if _, err := h.ctx.enterAsk(correlation, uid, timeout); err != nil {
		return err
	}
	a.work.Asks.Observe(correlation, uid)
	ctx, cancel := context.WithCancelCause(context.Background())
	a.sys.outside.put(uid, pipeDoor{cancel})
	begin := func() {
		go func() { a.answerPipe(uid, correlation, complete(ctx, f)) }()
	}
	if h.ctx.scr == nil {
		begin()
		return nil
	}
	e := h.ctx.scr.newEnvelope()
	e.Value = begin
	h.ctx.scr.effects = append(h.ctx.scr.effects, effect{Kind: turn.Pipe, Env: e})
	return nil
}

// answerPipe answers the ask of a function.
func (a *actor) answerPipe(uid abi.Ref, correlation uint64, r outcome) {
	kind, v := abi.KindReply, r.v
	if r.err != nil {
		kind, v = abi.KindReplyError, failed(r.err).Reason
	}
	e, err := message.Envelope(v)
	if err != nil {
		if e, err = message.Envelope(err.Error()); err != nil {
			return
		}
		kind = abi.KindReplyError
	}
	e.Kind, e.Sender, e.Correlation = kind, uid, correlation
	if err := a.sys.deliver(nil, a.uid, e); err != nil {
		a.sys.willNotAnswer(nil, a.uid, correlation, uid, err)
	}
	a.sys.outside.remove(uid)
}

// pipeDoor is a function that is asked, as the system sees it.
type pipeDoor struct{ cancel context.CancelCauseFunc }

func (d pipeDoor) ended(abi.Ref, string) bool { d.cancel(ErrGone); return true }
func (d pipeDoor) shut() bool                 { d.cancel(ErrGone); return true }
func (d pipeDoor) take(*System, *mailbox.Envelope) (DeadReason, error, bool) {
	return DeadUnknown, ErrUnknown, false
}
func (d pipeDoor) fail(uint64, abi.Ref, error) bool  { return false }
func (d pipeDoor) delegate(uint64, abi.Ref, abi.Ref) {}
func (d pipeDoor) expire(int64) bool                 { return false }
func (d pipeDoor) left() []abi.Ref                   { return nil }
