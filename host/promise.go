package host

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// promise is an ask from Go. It ends with one message.
type promise struct {
	asked     asks.Answerers
	patience  patience
	turns     uint64 // of who was asked, until then
	observers []abi.Ref
	answer    Message // if answered
	answered  bool

	// Where the answer goes: one of them.
	waked chan struct{} // System.Ask waits for it, and reads answer itself
	c     chan Message  // of a Pending
	parts chan part     // of an ask of several
	part  int
}

// promises are those of System.Ask, which nobody keeps: who has taken one out of the outsiders
// touches it last when it wakes the caller.
var promises = sync.Pool{New: func() any { return &promise{waked: make(chan struct{}, 1)} }}

// newPromise is an ask that free ends.
func newPromise(until patience) *promise {
	p := promises.Get().(*promise)
	p.patience = until
	return p
}

// free gives back a promise that has been taken out of the outsiders, and whose wake-up has come, if it
// was answered.
func (p *promise) free() {
	*p = promise{waked: p.waked}
	promises.Put(p)
}

// put ends it.
func (p *promise) put(m Message) { p.answer, p.answered = m, true }

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
	if _, ours := e.Value.(hostAnswer); !ours && !p.asked.Has(e.Sender) {
		return DeadForged, ErrDenied, false
	}
	p.put(s.message(e))
	return 0, nil, true
}

func (p *promise) fail(_ uint64, target abi.Ref, err error) bool {
	if !p.asked.Has(target) {
		return false
	}
	p.put(Message{Kind: abi.KindReplyError, err: err, Payload: appendText(nil, err.Error())})
	return true
}

func (p *promise) delegate(_ uint64, from, to abi.Ref) { p.asked.Delegate(from, to) }
func (p *promise) ended(abi.Ref, string) bool          { return false }

func (p *promise) expire(now int64) bool {
	if !p.patience.swept || p.patience.due > now {
		return false
	}
	p.put(Message{Kind: abi.KindReplyError, err: ErrTimeout, Payload: appendText(nil, ErrTimeout.Error())})
	return true
}
