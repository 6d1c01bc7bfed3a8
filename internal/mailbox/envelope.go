package mailbox

import (
	"bytes"
	"context"
	"sync"
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/buffers"
)

// What a freed envelope keeps for its next life. Larger payloads are lent by package
// buffers: a rare large message must not pin its memory for good.
const (
	maxKeptPayload = 4 << 10
	maxKeptHeaders = 1 << 10
)

// Envelope is a message on its way: a node of a [Mailbox] that owns the memory of its payload and headers. It has one owner
// at a time: the caller of [New] until a Push succeeds, then the mailbox, then the caller of Pop, and that one frees it.
type Envelope struct {
	next  *Envelope
	freed bool

	// Kind says what the message is: an ordinary one, a reply, a timer, ...
	Kind abi.Kind
	// Flags is the host's; the mailbox does not look at it.
	Flags uint16
	lent  uint32 // which buffer SetPayload has borrowed, see mark; 0: none
	// Due is when the asker gives up, in nanoseconds since 1970 (UTC) by the host's clock. It
	// counts only where the host's flags say so.
	Due int64
	// Sender is 0 when no answer is expected. SenderPath is its path, as far as it is known.
	Sender     abi.Ref
	SenderPath string
	// Correlation ties a reply to its ask; 0 means none.
	Correlation uint64
	// Headers is the encoded header map; empty means no headers.
	Headers []byte
	// Payload is the encoded message.
	Payload []byte
	// Position is the number of the message in the receiver's log, from 1; 0 where nobody counts.
	Position uint64
	// Origin is the command that the message is of, where its sender is recorded (recorder.Origin), and 0 otherwise. Sender,
	// payload, correlation and kind are that command's.
	Origin uint64
	// Value travels beside the payload, for what never leaves the host: the
	// promise of an ask, a native actor's Go value. It does not count as bytes.
	Value any
	// Attached is what the host states about the message; nil: nothing. It is shared, and
	// not to be changed.
	Attached *Attached
}

// Attached travels with messages inside the host, and no guest sees it.
type Attached struct {
	// Grants are what the sender may use of services.
	Grants []Grant
	// Context has values of the Go caller whose message has led to this one; nil: none.
	Context context.Context
	// Below is the child of the receiver, which keeps it, that the message is for; empty:
	// the receiver itself.
	Below string
	// Kept is the name under which the receiver, a keeper, has stashed the message; empty: under none.
	Kept string
	// Behalf is the path of the actor because of which Go code has sent the message; empty: of none.
	Behalf string
	// Via is the actor that has forwarded the message to another node, for which it may be a guess; 0: its sender.
	Via abi.Ref
	// Effect is the identity of a request of a durable actor to a service; nil: it has none.
	Effect *Effect
}

// Grant is what an actor may use of a service.
type Grant struct {
	Service string
	Value   any
}

var envelopes sync.Pool

// New is an empty envelope from the pool. Free gives it back.
func New() *Envelope {
	e, _ := envelopes.Get().(*Envelope)
	if e == nil {
		// What went through caches comes back by the batch.
		if e, _ = batches.Get().(*Envelope); e == nil {
			return new(Envelope)
		}
		for rest := e.next; rest != nil; {
			next := rest.next
			rest.next = nil
			envelopes.Put(rest)
			rest = next
		}
		e.next = nil
	}
	e.freed = false
	return e
}

// Free gives the envelope back to the pool; its payload and headers must not be
// used afterwards. Freeing an envelope twice would hand one message to two
// actors, so it panics.
func (e *Envelope) Free() {
	e.clear()
	envelopes.Put(e)
}

// clear empties the envelope for its next life.
func (e *Envelope) clear() {
	if e.freed {
		panic("mailbox: envelope freed twice")
	}
	// Field by field, and pointers only if they are set: a third of the time.
	e.freed = true
	e.Kind, e.Flags, e.Due, e.Sender, e.Correlation = 0, 0, 0, 0, 0
	e.Position, e.Origin = 0, 0
	if e.SenderPath != "" {
		e.SenderPath = ""
	}
	if e.next != nil {
		e.next = nil
	}
	if e.Value != nil {
		e.Value = nil
	}
	if e.Attached != nil {
		e.Attached = nil
	}
	if e.Payload = e.Payload[:0]; cap(e.Payload) > maxKeptPayload {
		e.giveBack()
		e.Payload = nil
	}
	if e.Headers = e.Headers[:0]; cap(e.Headers) > maxKeptHeaders {
		e.Headers = nil
	}
}

// spareBytes is how much more than its payload and headers an envelope that waits may hold.
const spareBytes = 64

// spareWaiting is the unused space that an envelope in a mailbox may hold.
const spareWaiting = 320

// Fit makes an envelope that will wait give up the buffers of earlier lives if they are much larger than what
// they hold now: no account pays for more than that.
func (e *Envelope) Fit() {
	if n := e.Size(); cap(e.Payload)+cap(e.Headers) > n+n/4+spareBytes {
		payload := bytes.Clone(e.Payload)
		e.giveBack()
		e.Payload, e.Headers = payload, bytes.Clone(e.Headers)
	}
}

// SetPayload copies p into the envelope's own buffer.
func (e *Envelope) SetPayload(p []byte) {
	if len(p) > maxKeptPayload {
		e.borrow(p)
		return
	}
	e.Payload = append(e.Payload[:0], p...)
}

// borrow is SetPayload for a large one.
func (e *Envelope) borrow(p []byte) {
	b := buffers.Get(len(p))
	copy(b, p) // first: p may be what was borrowed before
	e.giveBack()
	e.Payload, e.lent = b, mark(b)
}

// mark tells buffers apart by their addresses. It takes half the room of a pointer, which an envelope has to spare.
func mark(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))>>4) | 1 }

// giveBack returns what was borrowed, unless the payload is another buffer by now: then somebody may have kept what was
// borrowed.
func (e *Envelope) giveBack() {
	if e.lent != 0 && e.lent == mark(e.Payload) {
		buffers.Put(e.Payload)
	}
	e.lent = 0
}

// SetHeaders copies h, an encoded header map, into the envelope's own buffer.
func (e *Envelope) SetHeaders(h []byte) { e.Headers = append(e.Headers[:0], h...) }

// Size is what the envelope counts against a mailbox's byte bound: the bytes of
// its payload and of its headers.
func (e *Envelope) Size() int { return len(e.Payload) + len(e.Headers) }
