package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Flags of envelopes within the host.
const (
	flagPoison      uint16 = 1 << iota // stop when it is reached
	flagKill                           // fail when it is reached
	flagIdentify                       // answer when it is reached
	flagNoInfluence                    // does not reset the receive timeout
	flagSuppressed                     // a suppressed dead letter if it is not delivered
	flagResent                         // its sender keeps it and will resend it: never a dead letter
	flagTry                            // its sender tries again if the mailbox is full
	flagAgain                          // its turn has failed before
	flagDue                            // Due is set: from then on nobody waits for an answer
	flagPromised                       // its sender is an ask from Go, the only one that waits for an answer
	flagLasting                        // it is handled although nobody waits any more
	flagIncarnation                    // Due is the incarnation that it is for
	flagOurs                           // an answer that the host itself gives: it needs no permission
	flagForGood                        // with flagPoison: it is an order, whatever the actor's lifetime
	flagIfIdle                         // with flagPoison: only if the actor is idle, see Passivate

	flagControl = flagPoison | flagKill | flagIdentify                     // the host's own, no messages
	flagMortal  = flagDue | flagPromised | flagIncarnation                 // it is checked whether somebody still waits
	flagSpecial = flagControl | flagMortal                                 // what is checked before the turn
	flagsKept   = flagNoInfluence | flagSuppressed | flagDue | flagLasting // what a copy and a forwarded message keep
)

// Mark is a special property of a message; see [Marked].
type Mark uint16

// The marks.
const (
	// NoInfluence: the message does not restart the receiver's receive timeout.
	NoInfluence = Mark(flagNoInfluence)
	// Suppressed: it does not matter if the message is not delivered. It is neither kept nor
	// counted as a dead letter, and its event is EventSuppressed.
	Suppressed = Mark(flagSuppressed)
	// Lasting: a question is handled even if the asker has given up. It is for questions that ask
	// for an action, not only for information.
	Lasting = Mark(flagLasting)
)

// Marked is a message with marks: Tell(to, host.Marked{Value: v, Marks: host.Suppressed}).
type Marked struct {
	Value any
	Marks Mark
}

// suppressed reports whether an undelivered message needs no report: its sender has said so by a mark, or
// by a header. A header, which guests can write, does not hide that they were denied something.
func suppressed(e *mailbox.Envelope, reason DeadReason) bool {
	if e.Flags&flagSuppressed != 0 {
		return true
	}
	return reason != DeadDenied && reason != DeadForged && hasHeader(e.Headers, abi.HeaderSuppressed)
}

// fill puts v into an envelope as its message.
func fill(e *mailbox.Envelope, v any) error {
	if _, plain := v.(Raw); !plain {
		var err error
		if v, err = unwrap(e, v); err != nil {
			return err
		}
		if own, ok := v.(ownEncoder); ok {
			return fillOwn(e, own)
		}
	}
	payload, err := Encode(v)
	if err != nil {
		return err
	}
	e.SetPayload(payload)
	return nil
}

// unwrap applies the marks, headers and other wrappers of a message and returns its value.
func unwrap(e *mailbox.Envelope, v any) (any, error) {
	for range 5 {
		switch m := v.(type) {
		case Headed:
			if err := m.put(e); err != nil {
				return nil, err
			}
			v = m.Value
		case Marked:
			e.Flags |= uint16(m.Marks & (NoInfluence | Suppressed | Lasting))
			v = m.Value
		case OnBehalf:
			e.Attached = onBehalf(e.Attached, m.Of)
			v = m.Value
		case addressed:
			e.Attached = below(e.Attached, m.name)
			v = m.value
		case Failure:
			reason, err := m.put(e)
			if err != nil {
				return nil, err
			}
			v = reason
		case Bound:
			e.Value, v = boundMark{}, m.Value
		case traced:
			_, m.bound = e.Value.(boundMark)
			e.Value, v = m, m.value
		}
	}
	return v, nil
}

// envelope makes an envelope with this message.
func envelope(v any) (*mailbox.Envelope, error) {
	e := mailbox.New()
	if err := fill(e, v); err != nil {
		e.Free()
		return nil, err
	}
	return e, nil
}
