package outside

import (
	"context"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// The contract of an ask, for any asker: it ends with the answer of the actor that was asked, or of one that it has
// forwarded the question to; with a *ReplyError if that is an error; at once with a *TurnError if the question's turn fails
// and it is not delivered again; at once with the reason if it is not delivered (ErrStopped, ErrMailboxFull, ...); with
// ErrStopped when the system has been closed; and with ErrTimeout when its time is over. An answer that comes after that is
// a dead letter.

// Ask sends a question and waits for the answer, until ctx ends or, if it has no deadline, for the system's timeout. v is
// what e says.
func (t *Table) Ask(ctx context.Context, to ref.Ref, v any, e *mailbox.Envelope) (message.Message, error) {
	return t.askUntil(ctx, to, v, e, t.Patience(ctx), nil)
}

// askUntil is Ask that also ends when over is closed.
func (t *Table) askUntil(ctx context.Context, to ref.Ref, v any, e *mailbox.Envelope, until Patience, over <-chan struct{}) (m message.Message, err error) {
	if (t.Traced || e.Value != nil) && e.Flags&mark.Control == 0 {
		s := t.kernel.Begin(ctx, span.Ask, to, e)
		defer func() { t.kernel.Sent(s, err) }()
	}
	if t.Carries {
		e.Attached = message.StillBelow(t.kernel.Values(ctx), e.Attached)
	}
	p := t.promise(until)
	uid, err := t.enter(p, to, e, ctx)
	switch {
	case err == nil:
		answered, cause := t.await(ctx, p, uid, over)
		if m = p.answer; !answered {
			err = t.timedOut(p, to, v, cause)
		} else if m.Kind != abi.KindReply {
			err = t.unanswered(p, to, v, m)
		}
	case p.answered: // the refusal is also on its way to the asker
		<-p.waked
	}
	t.free(p)
	return m, err
}

// await waits for an answer; without one, cause is that of the context, if the context has ended.
func (t *Table) await(ctx context.Context, p *Promise, uid abi.Ref, over <-chan struct{}) (answered bool, cause error) {
	done := ctx.Done()
	if done == nil && over == nil { // a select costs more
		<-p.waked
		return true, nil
	}
	if over == nil {
		select {
		case <-p.waked:
			return true, nil
		case <-done:
			cause = ctx.Err()
		}
	} else {
		select {
		case <-p.waked:
			return true, nil
		case <-done:
			cause = ctx.Err()
		case <-over:
		}
	}
	if !t.giveUp(uid) { // it was answered meanwhile
		<-p.waked
		return true, nil
	}
	return false, cause
}

// unanswered is the error of an ask that has ended without an answer.
func (t *Table) unanswered(p *Promise, to ref.Ref, v any, m message.Message) error {
	err := m.Err()
	if err == errs.ErrTimeout {
		err = t.timedOut(p, to, v, nil)
	}
	return err
}

// Patience is how long an ask waits.
func (t *Table) Patience(ctx context.Context) Patience {
	p := Patience{at: t.Time.Now()}
	if at, ok := ctx.Deadline(); ok {
		p.due = t.Time.Of(at, p.at)
	} else {
		p.due, p.swept = p.at+int64(t.Timeout), true
	}
	return p
}

// Request sends a question from a new promise.
func (t *Table) Request(to ref.Ref, e *mailbox.Envelope, until Patience) (*Pending, error) {
	p := &Promise{c: make(chan message.Message, 1), patience: until}
	uid, err := t.enter(p, to, e, nil)
	return &Pending{t, uid, p}, err
}

// enter sends a question from a promise. If room is not nil, it may wait for room in the mailbox until room ends.
func (t *Table) enter(p *Promise, to ref.Ref, e *mailbox.Envelope, room context.Context) (abi.Ref, error) {
	p.asked.Add(to.UID())
	until := p.patience
	if e.Flags&mark.Lasting == 0 {
		e.Flags |= mark.Promised
	}
	if until.due != 0 {
		mark.Until(e, until.due)
	}
	uid := t.NewRef()
	t.Put(uid, p)
	if until.swept {
		t.arm()
	}
	e.Sender, e.Correlation, e.SenderPath = uid, 1, t.Path
	if err := t.kernel.Question(to.UID(), e, room, &p.turns); err != nil {
		t.Remove(uid)
		return 0, err
	}
	if t.closed.Load() && t.Remove(uid) { // as when an inbox has taken it
		return 0, errs.ErrStopped
	}
	return uid, nil
}

// Pending is an ask that was sent and may be answered.
type Pending struct {
	t   *Table
	uid abi.Ref
	p   *Promise
}

// RefOf is the ref that an ask waits under.
func (t *Table) RefOf(p *Pending) abi.Ref { return p.uid }

// Answer delivers the outcome of the ask, once; [message.Message.Err] tells an answer from
// an error.
func (p *Pending) Answer() <-chan message.Message { return p.p.c }

// Cancel gives up waiting: an answer will be a dead letter.
func (p *Pending) Cancel() { p.t.giveUp(p.uid) }

// Abandon is Cancel, and closes the channel of Answer unless an answer is there.
func (p *Pending) Abandon() {
	if p.t.giveUp(p.uid) {
		close(p.p.c)
	}
}
