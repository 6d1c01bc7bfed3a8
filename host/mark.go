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
	flagSuppressed                     // is no news if it is not delivered
	flagResent                         // its sender has it, too, and will send it again: never a dead letter
	flagTry                            // its sender tries again if the mailbox is full
	flagAgain                          // its turn has failed before
	flagDue                            // Due counts: then nobody waits for an answer any more
	flagPromised                       // only the ask from Go that its sender is waits for an answer
	flagLasting                        // it is handled although nobody waits any more
	flagIncarnation                    // Due is the incarnation that it is for

	flagControl = flagPoison | flagKill | flagIdentify                     // the host's own, no messages
	flagMortal  = flagDue | flagPromised | flagIncarnation                 // whether somebody still waits is looked at
	flagSpecial = flagControl | flagMortal                                 // what is looked at before the turn
	flagsKept   = flagNoInfluence | flagSuppressed | flagDue | flagLasting // by a copy, and when it goes on to another
)

// Mark says what is special about a message; see [Marked].
type Mark uint16

// The marks.
const (
	// NoInfluence: the message does not begin the receiver's receive timeout anew.
	NoInfluence = Mark(flagNoInfluence)
	// Suppressed: nobody needs to hear if the message is not delivered. It is
	// neither kept nor counted as a dead letter, and its event is EventSuppressed.
	Suppressed = Mark(flagSuppressed)
	// Lasting: a question is handled even if nobody waits for the answer any more. What is
	// asked to be done, and not only to be known, wants that.
	Lasting = Mark(flagLasting)
)

// Marked is a message with marks: Tell(to, host.Marked{Value: v, Marks: host.Suppressed}).
type Marked struct {
	Value any
	Marks Mark
}

// suppressed reports whether nobody needs to hear that a message was not delivered: its sender has said so by
// a mark, or by a header. A header, which guests can write, does not hide what they may not do.
func suppressed(e *mailbox.Envelope, reason DeadReason) bool {
	if e.Flags&flagSuppressed != 0 {
		return true
	}
	return reason != DeadDenied && reason != DeadForged && hasHeader(e.Headers, abi.HeaderSuppressed)
}

// fill makes v the message of an envelope.
func fill(e *mailbox.Envelope, v any) error {
	if _, plain := v.(Raw); !plain {
		var err error
		if v, err = unwrap(e, v); err != nil {
			return err
		}
	}
	payload, err := Encode(v)
	if err != nil {
		return err
	}
	e.SetPayload(payload)
	return nil
}

// unwrap notes what is said about a message besides its value.
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

// envelope is a new one with this message.
func envelope(v any) (*mailbox.Envelope, error) {
	e := mailbox.New()
	if err := fill(e, v); err != nil {
		e.Free()
		return nil, err
	}
	return e, nil
}
