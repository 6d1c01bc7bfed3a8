package durable

import (
	"encoding/binary"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
)

// What nearly all messages lead to is written straight to the log's buffer: the message that a mailbox has accepted, and the turn that has
// handled it. Usually all about them but a few bytes is known from the records before them in the batch. What is written is the same as
// if they had come as values.

// Accepted implements record.Direct.
func (s *Store) Accepted(by abi.Ref, at int64, e *record.Envelope) {
	if s.frozen.Load() || s.failing.Load() {
		return
	}
	plain := isPlain(e)
	to, first, err := s.log.Begin(sizeOf(e, plain))
	if err != nil {
		_ = s.fail(err)
		return
	}
	s.begins(first)
	s.touched.add(by)
	n := len(to)
	to = s.shared.appendAccepted(to, by, at, e, plain)
	s.count(len(to)-n, 0)
	s.log.End(to)
}

// Handled implements record.Direct.
func (s *Store) Handled(h *record.Handled) (after uint64, ok bool) {
	if s.frozen.Load() || s.failing.Load() || s.behind() {
		return 0, false
	}
	if !h.Alone {
		return s.handled(h)
	}
	sum := h.Checksum()
	to, first, err := s.log.Begin(handledBytes)
	if err != nil {
		return 0, false // Turn says so
	}
	s.begins(first)
	s.touched.add(h.Actor)
	n := len(to)
	to = s.shared.appendAlone(to, h, sum)
	s.count(len(to)-n, time.Duration(h.Worth))
	return uint64(s.log.End(to)), true
}

// handled is Handled for any number of commands.
func (s *Store) handled(h *record.Handled) (after uint64, ok bool) {
	var room [16]uint32
	sums := h.Checksums(room[:0])
	if len(sums) == 0 || len(sums) > mostSums || !ends(sums) {
		return 0, false
	}
	to, first, err := s.log.Begin(handledBytes + 4*len(sums))
	if err != nil {
		return 0, false
	}
	s.begins(first)
	s.touched.add(h.Actor)
	n := len(to)
	to = s.shared.appendHandled(to, h, sums)
	s.count(len(to)-n, time.Duration(h.Worth))
	return uint64(s.log.End(to)), true
}

// mostSums is how many checksums the entry of a turn has of which the number of commands takes one byte.
const mostSums = 31

// ends reports whether the first end of a turn is the last one of the checksums, or there is none.
func ends(sums []uint32) bool {
	for _, sum := range sums[:len(sums)-1] {
		if sum == 0 {
			return false
		}
	}
	return true
}

// at is the place of a ref, which may be another's.
func (c *shared) at(ref abi.Ref) (p *place, i byte) {
	i = placeNumber(ref)
	return &c.known[i], i
}

// is reports whether the place is the ref's.
func (c *shared) is(p *place, ref abi.Ref) bool { return p.ref == ref && p.batch == c.batch }

// soon is a time as it is written if it takes one byte.
func (c *shared) soon(time int64) (b byte, ok bool) {
	d := time - c.time
	d = d<<1 ^ d>>63
	return byte(d), uint64(d) < 0x80
}

// isPlain reports whether a message has only a sender and a payload.
func isPlain(e *record.Envelope) bool {
	return e.Kind == abi.KindMessage && uint64(e.Flags)|e.Correlation|uint64(e.Due) == 0 && len(e.Headers) == 0
}

// sizeOf is messageSize.
func sizeOf(e *record.Envelope, plain bool) int {
	n := messageBytes + len(e.SenderPath) + len(e.Headers) + len(e.Payload)
	if !plain {
		n += moreBytes
	}
	return n
}

// appendAccepted is appendMessage. It writes the same.
func (c *shared) appendAccepted(to []byte, by abi.Ref, time int64, e *record.Envelope, plain bool) []byte {
	p, i := c.at(by)
	s, k := c.at(e.Sender)
	t, soon := c.soon(time)
	if !plain || !soon || !c.is(p, by) || !c.is(s, e.Sender) || e.Position != p.position+1 || !s.sender || s.path != e.SenderPath {
		var m record.Message
		m.Set(e)
		return c.appendMessage(to, by, time, &m)
	}
	p.position, c.time = e.Position, time
	to = append(to, compact|byte(record.Accepted)<<4|knownActor|nextOne|another, i, t, k)
	return append(to, e.Payload...)
}

// handledBytes is the most that appendHandled writes besides the checksums, and that appendAlone writes.
const handledBytes = entryBytes + binary.MaxVarintLen64 + 1 + 4

// appendAlone is appendHandled for a turn of one command, and its end.
func (c *shared) appendAlone(to []byte, h *record.Handled, sum uint32) []byte {
	p, i := c.at(h.Actor)
	t, soon := c.soon(h.Time)
	if !soon || !c.is(p, h.Actor) || h.First != p.turn || h.Incarnation != p.incarnation || h.First == 0 || h.Position != p.taken+1 {
		return c.appendHandled(to, h, []uint32{sum, 0})
	}
	p.turn, p.taken, c.time = h.First+1, h.Position, h.Time
	return append(to, compact|byte(record.Turned)<<4|knownActor|nextOne|another, i, t, 1, 1<<1|1, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
}

// appendHandled is appendEntry for a turn of one message that has ended well. It writes the same.
func (c *shared) appendHandled(to []byte, h *record.Handled, sums []uint32) []byte {
	at := len(to)
	to, p := c.appendHead(to, record.Turned, h.Actor, h.Time)
	if h.First == p.turn && h.Incarnation == p.incarnation && p.turn != 0 {
		to[at] |= nextOne
	} else {
		to = appendUint(appendUint(to, h.Incarnation), h.First)
	}
	p.incarnation, p.turn = h.Incarnation, h.First+1
	to = append(to, 1)
	if h.Position == p.taken+1 {
		to[at] |= another
	} else {
		to = appendInt(to, int64(h.Position-p.taken))
	}
	p.taken = h.Position
	if n := len(sums) - 1; sums[n] == 0 {
		to = append(to, byte(n<<1|1))
		sums = sums[:n]
	} else {
		to = append(to, byte(n+1)<<1)
	}
	for _, sum := range sums {
		to = binary.LittleEndian.AppendUint32(to, sum)
	}
	return to
}
