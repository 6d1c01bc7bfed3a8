package record

import "github.com/wasmactors/wasmactors/abi"

// Direct is a recorder that also takes what nearly all messages lead to, without a value in between, and answers at once.
type Direct interface {
	Recorder
	// Accept is Admit of a [Gate], if the recorder is one, and Note of a message that the mailbox of an actor accepts at a time if there
	// is no error. must says that it accepts the message in any case. e is read until Accept returns.
	Accept(by abi.Ref, time int64, e *Envelope, must bool) error
	// Handled is Turn, and an answer without an error. Where that answer cannot be given, now or at all, ok is false: then nothing
	// was recorded, and Turn is called. after is Turn.After. h is read until Handled returns.
	Handled(h *Handled) (after uint64, ok bool)
}

// Handled is the entry of a guest of one turn, about a message that was accepted, which has ended well and could spend what its actor's
// limits say.
type Handled struct {
	Actor       abi.Ref
	Incarnation uint64
	First       uint64 // number of the turn in the actor's life
	Position    uint64 // of the message
	Time        int64  // in the header, ns since 1970
	Worth       int64  // about how long the turn has computed, ns

	Outbox []byte // its commands, as the guest has written them
	Alone  bool   // Outbox is one command, and the marker behind it
}

// Checksums adds those of what the turn has led to, see Entry.Outbox.
func (h *Handled) Checksums(to []uint32) []uint32 {
	if h.Alone {
		return append(to, h.Checksum(), 0)
	}
	return checksums(to, h.Outbox)
}

// Checksum is that of the only command, if it is Alone.
func (h *Handled) Checksum() uint32 { return sum(h.Outbox[:len(h.Outbox)-1]) }
