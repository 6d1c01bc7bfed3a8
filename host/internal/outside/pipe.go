package outside

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/span"
)

// failed is an error as another actor may see it: without what a third actor was doing.
func failed(err error) message.Failure {
	if timeout := (*TimeoutError)(nil); errors.As(err, &timeout) {
		return message.Failure{Reason: errs.ErrTimeout.Error()}
	}
	return message.Failure{Reason: err.Error()}
}

// Pipe sends an actor results that come from outside of actors, as messages: what a goroutine
// returns, or the answer to an ask. A failure becomes a Failure. What the actor does not take
// (it has stopped, its mailbox is full) becomes a dead letter, and the sender gets an error. A Pipe
// is immutable; all methods may be called concurrently.
type Pipe struct {
	t       *Table
	to      ref.Ref
	from    ref.Ref
	number  uint64
	bound   bool // to that incarnation
	timeout time.Duration
}

// PipeTo is a pipe to an actor, without a sender.
func (t *Table) PipeTo(to ref.Ref) Pipe { return Pipe{t: t, to: to} }

// WithSender sends in the name of an actor, which will get the answer.
func (p Pipe) WithSender(from ref.Ref) Pipe { p.from = from; return p }

// WithIncarnation sends to the present incarnation of the actor only. When that has ended, what is sent
// becomes a dead letter. Without it any incarnation handles the result.
func (p Pipe) WithIncarnation() Pipe {
	if n, ok := p.t.kernel.Incarnation(p.to.UID()); ok {
		p.number, p.bound = n, true
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
	k := p.t.kernel
	e.Sender, e.SenderPath = p.from.UID(), p.from.URI()
	if p.from.UID() != 0 {
		e.Attached = k.Attached(p.from.UID())
	}
	if p.bound {
		if n, ok := k.Incarnation(p.to.UID()); ok && n != p.number {
			k.Letter(event.DeadIncarnation, p.to.UID(), e)
			e.Free()
			return errs.ErrEnded
		}
		e.Flags |= mark.Incarnation
		e.Due = int64(p.number)
	}
	sent := k.Begin(context.Background(), span.Send, p.to, e)
	err = k.Deliver(p.to.UID(), e)
	k.Sent(sent, err)
	return err
}

// Go runs f in a goroutine of its own and sends what it returns. The context of f ends when the actor
// has stopped, with the cause ErrStopped, or after the timeout, with ErrTimeout; in both cases f is
// not waited for. A result that has come in counts, even if the time is over too. A panic in f is a failure.
// An error of Go says that the actor has gone; then f is not run.
func (p Pipe) Go(f func(context.Context) (any, error)) error {
	ended, forget, err := p.t.WatchEnd(p.to.UID())
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
		case errs.ErrTimeout:
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
	ended, forget, err := p.t.WatchEnd(p.to.UID())
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
				_ = p.Send(message.Raw(m.Payload), nil)
			}
		case errs.ErrTimeout:
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
		return r, errs.ErrStopped
	default:
		return r, errs.ErrTimeout
	}
}

// late returns a channel that is closed when the timeout is over, and what stops the timer.
func (p Pipe) late() (late <-chan struct{}, stop func()) {
	if p.timeout == 0 {
		return nil, func() {}
	}
	c := make(chan struct{})
	t := p.t.kernel.Clock().AfterFunc(p.timeout, func() { close(c) })
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

// Function has actors ask a Go function: begin runs it in a goroutine of its own and answers the ask of by, which has uid as the
// actor that it has asked. The context of f ends, with the cause ErrGone, when the answer is no longer wanted.
func (t *Table) Function(uid, by abi.Ref, correlation uint64, f func(context.Context) (any, error)) (begin func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	t.Put(uid, function{cancel: cancel})
	return func() {
		go func() { t.answer(uid, by, correlation, complete(ctx, f)) }()
	}
}

// answer answers the ask of a function.
func (t *Table) answer(uid, by abi.Ref, correlation uint64, r outcome) {
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
	if err := t.kernel.Deliver(by, e); err != nil {
		t.kernel.Signal(by, signal.Signal{Kind: signal.Unanswered, From: uid, Correlation: correlation, Err: err})
	}
	t.Remove(uid)
}

// function is a function that is asked, as a Receiver.
type function struct {
	Deaf
	cancel context.CancelCauseFunc
}

// Ended implements Receiver.
func (f function) Ended(abi.Ref, string) bool { f.cancel(errs.ErrGone); return true }

// Shut implements Receiver.
func (f function) Shut() bool { f.cancel(errs.ErrGone); return true }
