package asks

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Taken are the bound questions that an actor has taken and perhaps not answered. A nil Taken has none.
type Taken struct {
	asks []Open
	trim int // length at which answered ones are looked for and removed
}

// Open is the ask of somebody outside.
type Open struct {
	Asker       abi.Ref
	Correlation uint64
}

const (
	leastTaken = 32   // noted before any are forgotten
	mostTaken  = 4096 // from then on the oldest are forgotten that are not known to wait: those of other nodes
)

// Note notes one more. waits reports whether an asker of this node, the receiver's, waits.
func (t *Taken) Note(asker abi.Ref, correlation uint64, node uint16, waits func(abi.Ref) bool) {
	t.asks = append(t.asks, Open{asker, correlation})
	if len(t.asks) < max(t.trim, leastTaken) {
		return
	}
	open := t.asks[:0]
	for i, q := range t.asks {
		if waits(q.Asker) || q.Asker.Node() != node && i >= len(t.asks)-mostTaken {
			open = append(open, q)
		}
	}
	t.asks, t.trim = open, max(leastTaken, 2*len(open))
}

// End is all of them.
func (t *Taken) End() []Open {
	if t == nil {
		return nil
	}
	return t.asks
}

// Binding tells which questions are bound, for the receivers of a system.
type Binding struct {
	Node      uint16
	Waits     func(abi.Ref) bool // an asker of this node waits
	Elsewhere func(abi.Ref) bool // the asker is on another node that can be told
}

// Take notes the question of a turn that has ended, whose envelope has a Value, if it is bound. It returns t, or what is in its
// place; t may be nil.
func (b *Binding) Take(t *Taken, e *mailbox.Envelope) *Taken {
	if e.Kind != abi.KindMessage || !message.IsBound(e) || !b.Waits(e.Sender) && !b.Elsewhere(e.Sender) {
		return t
	}
	if t == nil {
		t = new(Taken)
	}
	t.Note(e.Sender, e.Correlation, b.Node, b.Waits)
	return t
}
