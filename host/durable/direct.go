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

// Accept implements record.Direct.
func (s *Store) Accept(by abi.Ref, at int64, e *record.Envelope, must bool) error {
	switch {
	case s.idle.Load():
		if s.frozen.Load() || must {
			return nil
		}
		return s.Admit(0)
	case !must && (len(e.Headers)+len(e.Payload)+4096 > largestRecord || s.full() || s.log.Pending() > fullPending):
		if err := s.Admit(len(e.Headers) + len(e.Payload)); err != nil {
			return err
		}
	}
	plain := isPlain(e)
	to, first, err := s.log.Begin(sizeOf(e, plain))
	if err != nil {
		_ = s.fail(err)
		return nil
	}
	s.beginsOne(first)
	s.touched.add(by)
	n := len(to)
	to = s.shared.appendAccepted(to, by, at, e, plain)
	s.count(len(to)-n, 0)
	s.log.End(to)
	return nil
}

// beginsOne is begins, which it calls only at the first record of a batch.
func (s *Store) beginsOne(first bool) {
	if first {
		s.begins(first)
	}
	s.spans.mixed = true
}

// Handled implements record.Direct.
func (s *Store) Handled(h *record.Handled) (after uint64, ok bool) {
	if s.idle.Load() || s.behind() {
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
	s.beginsOne(first)
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
	s.beginsOne(first)
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

// isPlain reports whether a message has only a sender and a payload.
func isPlain(e *record.Envelope) bool {
	return e.Kind == abi.KindMessage && uint64(e.Flags)|e.Correlation|uint64(e.Due) == 0 && len(e.Headers) == 0
}

// sizeOf is messageSize of a message in its envelope.
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
	from, k := c.at(e.Sender)
	if !plain || !c.is(p, by) || !c.is(from, e.Sender) || e.Position != p.position+1 || !from.sender || from.path != e.SenderPath {
		return c.appendAny(to, by, time, e)
	}
	d := time - c.time
	p.position, c.time = e.Position, time
	const tag = compact | byte(record.Accepted)<<4 | knownActor | nextOne | another
	if d == 0 { // of the turn that has sent it
		to = append(to, tag, i, 0, k)
	} else {
		to = append(appendInt(append(to, tag, i), d), k)
	}
	return append(to, e.Payload...)
}

// appendAny is appendAccepted for any message.
//
//go:noinline
func (c *shared) appendAny(to []byte, by abi.Ref, time int64, e *record.Envelope) []byte {
	var m record.Message
	m.Set(e)
	return c.appendMessage(to, by, time, &m)
}

// handledBytes is the most that appendHandled writes besides the checksums, and that appendAlone writes.
const handledBytes = entryBytes + binary.MaxVarintLen64 + 1 + 4

// appendAlone is appendHandled for a turn of one command, and its end.
func (c *shared) appendAlone(to []byte, h *record.Handled, sum uint32) []byte {
	p, i := c.at(h.Actor)
	if !c.is(p, h.Actor) || h.First != p.turn || h.Incarnation != p.incarnation || h.First == 0 || h.Position != p.taken+1 {
		return c.appendHandled(to, h, []uint32{sum, 0})
	}
	d := h.Time - c.time
	p.turn, p.taken, c.time = h.First+1, h.Position, h.Time
	to = append(to, compact|byte(record.Turned)<<4|knownActor|nextOne|another, i)
	if d = d<<1 ^ d>>63; uint64(d) < 0x80 {
		to = append(to, byte(d))
	} else {
		to = appendUint(to, uint64(d))
	}
	return append(to, 1, 1<<1|1, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
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
