package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// promise is an ask from Go. It ends with one message.
type promise struct {
	asked     asks.Answerers
	patience  patience
	turns     uint64 // of the actor that was asked, until then
	observers []abi.Ref
	answer    Message // if answered
	answered  bool

	// Where the answer goes: one of them.
	waked chan struct{} // System.Ask waits for it, and reads answer itself
	c     chan Message  // of a Pending
	parts chan part     // of an ask of several
	part  int
}

// promise is a promise for System.Ask, reused afterwards: the goroutine that removes it from the outsiders touches it last,
// when it wakes the caller. Each system has its own pool: a channel belongs to the bubble of testing/synctest that it was
// made in.
func (o *outsiders) promise(until patience) *promise {
	p, _ := o.promises.Get().(*promise)
	if p == nil {
		p = &promise{waked: make(chan struct{}, 1)}
	}
	p.patience = until
	return p
}

// free gives back a promise that has been removed, and whose wake-up has come if it was answered.
func (o *outsiders) free(p *promise) {
	*p = promise{waked: p.waked}
	o.promises.Put(p)
}

// put ends it with a message.
func (p *promise) put(m Message) { p.answer, p.answered = m, true }

// refuse ends it without an answer.
func (p *promise) refuse(err error) {
	p.put(message.Unanswered(Message{Kind: abi.KindReplyError, Payload: message.AppendText(nil, err.Error())}, err))
}

func (p *promise) left() []abi.Ref {
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

func (p *promise) take(s *System, e *mailbox.Envelope) (DeadReason, error, bool) {
	if e.Flags&mark.Ours == 0 && !p.asked.Has(e.Sender) {
		return DeadForged, ErrDenied, false
	}
	p.put(s.message(e))
	return 0, nil, true
}

func (p *promise) fail(_ uint64, target abi.Ref, err error) bool {
	if !p.asked.Has(target) {
		return false
	}
	p.refuse(err)
	return true
}

func (p *promise) delegate(_ uint64, from, to abi.Ref) { p.asked.Delegate(from, to) }
func (p *promise) ended(abi.Ref, string) bool          { return false }
func (p *promise) shut() bool                          { p.refuse(ErrStopped); return true }

func (p *promise) expire(now int64) bool {
	if !p.patience.swept || p.patience.due > now {
		return false
	}
	p.refuse(ErrTimeout)
	return true
}
