package blackbox

import (
	"encoding/binary"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Entries and envelopes are written at each message. So room for all of one is made at once, and numbers below 128, which
// are most, are written in line.

const (
	// mostHead is the most that an entry has besides texts, mostMail an envelope.
	mostHead = 1 + 8 + 8*binary.MaxVarintLen64 + 2
	mostMail = 1 + 8 + 3*binary.MaxVarintLen64
	// mostPlain is that of an entry with one envelope, see flagPlain.
	mostPlain = 2 + 8 + 8 + 5*binary.MaxVarintLen64
)

// room is b with a capacity for n bytes more.
func room(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		return slices.Grow(b, n)
	}
	return b
}

// The short form of an entry, which nearly all have: fuel takes two bytes, each other number one, and there are no headers.
const (
	shortHead = 18 + 2 + 4
	mostShort = shortHead + 2*0x7f
)

// Turn writes down an entry of a single turn that has ended well, and says whether a snapshot is due: Begin, Mail and Done in
// one, for that is what nearly all entries are. It allocates nothing once the box has grown.
func (b *Box) Turn(now int64, fuel uint64, outbox []byte, e *mailbox.Envelope) (due bool) {
	n, payload := len(b.log), e.Payload
	if cap(b.log)-n < mostShort || !b.follows || len(e.Headers) > 0 || fuel-0x80 >= 1<<14-0x80 ||
		e.Correlation|uint64(len(outbox)|len(payload)) >= 0x80 {
		return b.turn(now, fuel, outbox, e)
	}
	to := (*[mostShort]byte)(b.log[n : n+mostShort])
	binary.LittleEndian.PutUint16(to[:], uint16(flagPlain)|uint16(e.Kind)<<8)
	binary.LittleEndian.PutUint64(to[2:], uint64(now))
	binary.LittleEndian.PutUint64(to[10:], uint64(e.Sender))
	binary.LittleEndian.PutUint16(to[18:], uint16(fuel&0x7f|0x80|fuel<<1&0x7f00))
	binary.LittleEndian.PutUint32(to[20:], uint32(e.Correlation)|uint32(len(outbox))<<8|uint32(len(payload))<<24)
	// Two copies of a fixed size, which overlap, take half of what a call takes that copies any number of bytes.
	at := shortHead + len(outbox)
	if n := len(outbox); n >= 32 && n <= 64 {
		*(*[32]byte)(to[shortHead:]) = *(*[32]byte)(outbox)
		*(*[32]byte)(to[at-32:]) = *(*[32]byte)(outbox[n-32:])
	} else {
		copy(to[shortHead:], outbox)
	}
	if n := len(payload); n >= 16 && n <= 32 {
		*(*[16]byte)(to[at:]) = *(*[16]byte)(payload)
		*(*[16]byte)(to[at+n-16:]) = *(*[16]byte)(payload[n-16:])
	} else {
		copy(to[at:], payload)
	}
	at += len(payload)
	b.failing, b.log = n, b.log[:n+at]
	b.next++
	b.worth += fuel + costTurn
	if n+at <= b.quiet && b.worth < longest {
		return false
	}
	return b.Done()
}

// turn is Turn of any entry.
func (b *Box) turn(now int64, fuel uint64, outbox []byte, e *mailbox.Envelope) (due bool) {
	if !b.follows || len(outbox) > wholeOutbox {
		b.Begin(&Run{Now: now, Pushed: 1, Done: 1, Fuel: fuel, Outbox: outbox})
		b.Mail(e.Kind, e.Sender, e.Correlation, e.Headers, e.Payload)
		return b.Done()
	}
	headers, payload := e.Headers, e.Payload
	need := mostPlain + len(outbox) + len(headers) + len(payload)
	n := len(b.log)
	if cap(b.log)-n < need {
		b.log = slices.Grow(b.log, need)
		b.quiet = 0
	}
	b.failing = n
	to := b.log[n : n+need]
	to[0], to[1] = flagPlain, byte(e.Kind)
	binary.LittleEndian.PutUint64(to[2:], uint64(now))
	binary.LittleEndian.PutUint64(to[10:], uint64(e.Sender))
	at := putNumber(to, 18, fuel)
	at = putNumber(to, putNumber(to, at, e.Correlation), uint64(len(outbox)))
	at = putNumber(to, putNumber(to, at, uint64(len(headers))), uint64(len(payload)))
	at += copy(to[at:], outbox)
	at += copy(to[at:], headers)
	at += copy(to[at:], payload)
	b.log = b.log[:n+at]
	b.next++
	b.worth += fuel + costTurn
	if n+at <= b.quiet && b.worth < longest {
		return false
	}
	return b.Done()
}

// putNumber writes a number at a place, and returns the place behind it.
func putNumber(b []byte, at int, n uint64) int {
	if n < 0x80 {
		b[at] = byte(n)
		return at + 1
	}
	return putLong(b, at, n)
}

func putLong(b []byte, at int, n uint64) int {
	for ; n >= 0x80; n >>= 7 {
		b[at] = byte(n) | 0x80
		at++
	}
	b[at] = byte(n)
	return at + 1
}

// appendEntry writes the head of an entry; its envelopes follow.
func appendEntry(b []byte, e *Entry) []byte {
	need := mostHead + len(e.Outbox)
	flags := byte(0)
	if e.Failed {
		flags = flagFailed
	}
	if e.Hashed {
		flags |= flagHashed
	}
	if e.Ended {
		flags |= flagEnded
	}
	if e.Cut != nil {
		flags |= flagCut
		need += len(e.Cut.Reason)
	}
	b = room(b, need)
	n := len(b)
	to := b[n : n+need]
	to[0] = flags
	binary.LittleEndian.PutUint64(to[1:], uint64(e.Now))
	at := putNumber(to, 9, e.First)
	at = putNumber(to, at, uint64(e.Pushed))
	at = putNumber(to, at, uint64(e.Done))
	at = putNumber(to, at, e.Fuel)
	at = putNumber(to, at, uint64(len(e.Outbox)))
	at += copy(to[at:], e.Outbox)
	if c := e.Cut; c != nil {
		to[at], to[at+1] = byte(c.Stage), byte(c.Kind)
		at = putNumber(to, putNumber(to, at+2, c.Phase), c.At)
		at = putNumber(to, at, uint64(len(c.Reason)))
		at += copy(to[at:], c.Reason)
	}
	return b[:n+at]
}

// appendMail writes an envelope.
func appendMail(b []byte, kind abi.Kind, sender abi.Ref, correlation uint64, headers, payload []byte) []byte {
	need := mostMail + len(headers) + len(payload)
	b = room(b, need)
	n := len(b)
	to := b[n : n+need]
	to[0] = byte(kind)
	binary.LittleEndian.PutUint64(to[1:], uint64(sender))
	at := putNumber(to, 9, correlation)
	at = putNumber(to, at, uint64(len(headers)))
	at += copy(to[at:], headers)
	at = putNumber(to, at, uint64(len(payload)))
	at += copy(to[at:], payload)
	return b[:n+at]
}
