package outside

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Promise is an ask from Go. It ends with one message.
type Promise struct {
	Deaf
	asked     asks.Answerers
	patience  Patience
	turns     uint64 // of the actor that was asked, until then
	observers []abi.Ref
	answer    message.Message // if answered
	answered  bool

	// Where the answer goes: one of them.
	waked chan struct{}        // Ask waits for it, and reads answer itself
	c     chan message.Message // of a Pending
	parts chan part            // of an ask of several
	part  int
}

// Patience is how long an ask waits, in nanoseconds since 1970 by the turns' clock. The zero
// value means until it is cancelled.
type Patience struct {
	at, due int64
	swept   bool // only the system's sweep ends it
}

// part is the outcome for one of several.
type part struct {
	i int
	m message.Message
}

// promise is a promise for Ask, reused afterwards: the goroutine that removes it from the table touches it last,
// when it wakes the caller. Each system has its own pool: a channel belongs to the bubble of testing/synctest that it was
// made in.
func (t *Table) promise(until Patience) *Promise {
	p, _ := t.promises.Get().(*Promise)
	if p == nil {
		p = &Promise{waked: make(chan struct{}, 1)}
	}
	p.patience = until
	return p
}

// free gives back a promise that has been removed, and whose wake-up has come if it was answered.
func (t *Table) free(p *Promise) {
	*p = Promise{waked: p.waked}
	t.promises.Put(p)
}

// put ends it with a message.
func (p *Promise) put(m message.Message) { p.answer, p.answered = m, true }

// refuse ends it without an answer.
func (p *Promise) refuse(err error) {
	p.put(message.Unanswered(message.Message{Kind: abi.KindReplyError, Payload: message.AppendText(nil, err.Error())}, err))
}

// Left implements Receiver.
func (p *Promise) Left() []abi.Ref {
	observers := p.observers
	switch { // there is room in each
	case !p.answered:
	case p.waked != nil:
		p.waked <- struct{}{}
	case p.parts != nil:
		p.parts <- part{p.part, p.answer}
	default:
		p.c <- p.answer
	}
	return observers
}

// Take implements Receiver.
func (p *Promise) Take(t *Table, e *mailbox.Envelope) (event.DeadReason, error, bool) {
	if e.Flags&mark.Ours == 0 && !p.asked.Has(e.Sender) {
		return event.DeadForged, errs.ErrDenied, false
	}
	p.put(t.message(e))
	return 0, nil, true
}

// Fail implements Receiver.
func (p *Promise) Fail(_ uint64, target abi.Ref, err error) bool {
	if !p.asked.Has(target) {
		return false
	}
	p.refuse(err)
	return true
}

// Observe implements Receiver.
func (p *Promise) Observe(_ uint64, handle abi.Ref) bool {
	if len(p.observers) >= asks.MaxAnswerers {
		return false
	}
	p.observers = append(p.observers, handle)
	return true
}

// Delegate implements Receiver.
func (p *Promise) Delegate(_ uint64, from, to abi.Ref) { p.asked.Delegate(from, to) }

// Shut implements Receiver.
func (p *Promise) Shut() bool { p.refuse(errs.ErrStopped); return true }

// Expire implements Receiver.
func (p *Promise) Expire(now int64) (over, swept bool) {
	if !p.patience.swept || p.patience.due > now {
		return false, p.patience.swept
	}
	p.refuse(errs.ErrTimeout)
	return true, false
}
