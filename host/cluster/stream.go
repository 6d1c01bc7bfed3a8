package cluster

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/network"
)

// What goes to another node is a stream of units. Senders write them straight into blocks, of which each becomes one packet,
// and is kept until the other node has confirmed it. A block is never changed after it was sent, so a packet that is sent
// again has the same units.

// block is what one packet carries.
type block struct {
	first  uint64 // the number of the first unit
	units  int
	frames int    // that end here
	b      []byte // the units
	by     []sharing
	closed bool // it was sent, or nothing more fits
}

// blockBytes is what a block costs besides its units.
const blockBytes = 256

// held is what a block costs of the credit.
func (b *block) held() int { return blockBytes + len(b.b) + sharingBytes*max(0, len(b.by)-1) }

// stream are the blocks to another node.
type stream struct {
	session uint64
	out     []*block // not confirmed
	sent    int      // how many of them are under way
	under   int      // what those hold
	bytes   int      // what all hold
	base    uint64   // the number of the first unit that is not confirmed
	next    uint64   // and of the next one
}

func newStream() stream { return stream{session: 1, base: 1, next: 1} }

// fits reports whether a frame of so many bytes fits into a credit.
func (s *stream) fits(size, credit int) bool { return s.bytes+size <= credit || s.bytes == 0 }

// waits reports whether something is to be sent that may be.
func (s *stream) waits() bool { return s.sent < len(s.out) && (s.under < window || s.sent == 0) }

// unsent is how many bytes wait that are not under way.
func (s *stream) unsent() int { return s.bytes - s.under }

// open is the block for a unit of so many bytes; it has room for them, and counts the unit. With ends a frame ends with it.
func (s *stream) open(size, most int, ends bool) *block {
	var b *block
	if n := len(s.out); n > s.sent {
		if b = s.out[n-1]; b.closed || len(b.b)+size > most {
			b.closed = true
			b = nil
		}
	}
	if b == nil {
		b = &block{first: s.next}
		s.out = append(s.out, b)
		s.bytes += blockBytes
	}
	if len(b.b)+size > cap(b.b) {
		b.grow(len(b.b) + size)
	}
	b.units++
	s.next++
	if ends {
		b.frames++
	}
	return b
}

// grow gives a block wider memory.
func (b *block) grow(need int) {
	wider := append(memory(need), b.b...)
	free(b.b)
	b.b = wider
}

// wrote counts what was written into a block that had so many bytes before.
func (s *stream) wrote(b *block, before int) {
	s.bytes += len(b.b) - before
	b.closed = b.closed || len(b.b) >= full
}

// message writes a message of so many bytes.
func (s *stream) message(to abi.Ref, m *network.Message, size, most int) {
	b := s.open(unitBytes+size, most, true)
	before := len(b.b)
	b.b = network.AppendMessage(appendUnitHead(b.b, to, false, size), m)
	s.wrote(b, before)
}

// parts writes a frame that may be too large for one unit.
func (s *stream) parts(to abi.Ref, frame []byte, most int) {
	size := min(maxParts, most-unitBytes)
	for more := true; more; {
		part := frame[:min(size, len(frame))]
		frame = frame[len(part):]
		more = len(frame) > 0
		b := s.open(unitBytes+len(part), most, !more)
		before := len(b.b)
		b.b = appendUnit(b.b, &unit{to, more, part})
		s.wrote(b, before)
	}
}

// confirm forgets what has arrived: all units before one.
func (s *stream) confirm(next uint64) {
	if next <= s.base || next > s.next {
		return
	}
	s.base = next
	done := 0
	for done < len(s.out) && s.out[done].first+uint64(s.out[done].units) <= next {
		b := s.out[done]
		s.bytes -= b.held()
		if done < s.sent {
			s.under -= b.held()
		}
		free(b.b)
		b.b = nil
		b.giveBack()
		done++
	}
	s.out = slices.Delete(s.out, 0, done)
	s.sent = max(0, s.sent-done)
	if len(s.out) == 0 {
		s.out = nil
	}
}

// again has all that is under way sent once more, and says how many units that are.
func (s *stream) again() (units uint64) {
	for _, b := range s.out[:s.sent] {
		units += uint64(b.units)
	}
	s.sent, s.under = 0, 0
	return units
}

// renew begins the next session, without what waits.
func (s *stream) renew() {
	for _, b := range s.out {
		b.giveBack()
	}
	*s = stream{session: s.session + 1, base: 1, next: 1}
}

// units and frames are how many wait, or are under way.
func (s *stream) units() uint64 { return s.next - s.base }

func (s *stream) frames() (n uint64) {
	for _, b := range s.out {
		n += uint64(b.frames)
	}
	return n
}

// packet is the packet of a block, or of none.
func (p *pair) packet(flags byte, of *block) []byte {
	first, units := p.next, []byte(nil)
	if of != nil {
		first, units = of.first, of.b
	}
	size := headBytes + binary.MaxVarintLen64 + len(units)
	var b []byte
	if size > someBlock {
		b = memory(size)
	} else {
		b = make([]byte, 0, size)
	}
	b = appendHead(b, &packet{
		flags: flags, born: p.node.self.Born, receiver: p.peer.Born, session: p.session, confirms: p.expect, of: p.inSession, first: first,
	})
	return append(b, units...)
}

// most is how many bytes of units a packet has at most.
func (p *pair) most() int {
	return min(p.node.links.MaxPacket()-headBytes-binary.MaxVarintLen64, full+maxParts)
}

// flush sends what may be sent, and what is to be confirmed.
func (p *pair) flush() {
	n := p.node
	if !n.acting() || n.port == nil {
		p.resendLater()
		return
	}
	p.flushed = n.brisk()
	for p.waits() {
		b := p.out[p.sent]
		b.closed = true
		p.sent++
		p.under += b.held()
		flags := byte(0)
		if !p.waits() && (p.under >= window || p.bytes > n.cfg.Credit/2) { // what comes next may wait for the confirmation
			flags = flagAnswer
		}
		n.links.Send(p.peer.Number, p.packet(flags, b))
		p.confirmed()
	}
	if p.owes > 0 {
		n.links.Send(p.peer.Number, p.packet(0, nil))
		p.confirmed()
	}
	if p.sent > 0 {
		p.resendLater()
	}
}

// confirmed notes that all that has come is confirmed.
func (p *pair) confirmed() { p.owes, p.owed = 0, 0 }

func (p *pair) flushSoon() {
	if !p.flushing {
		p.flushing = true
		p.node.after(linger, p, func() { p.flushing = false; p.flush() })
	}
}

// flushNow sends what waits if it is much, or nothing has left for a while, and soon otherwise.
func (p *pair) flushNow() {
	switch {
	case !p.waits(): // a confirmation has more sent
	case p.unsent() >= full:
		p.flush()
	case p.flushing:
	case p.node.brisk()-p.flushed >= linger:
		p.flush()
	default:
		p.flushSoon()
	}
}

func (p *pair) resendLater() {
	if !p.resending {
		p.resending = true
		base := p.base
		p.node.after(resend, p, func() { p.resend(base) })
	}
}

// resend sends again what was under way when base was the first unit, unless some of it was confirmed.
func (p *pair) resend(base uint64) {
	p.resending = false
	if p.base == base {
		p.link.Again += p.again()
	}
	if len(p.out) > 0 {
		p.flush()
	}
}

// owe has what has come confirmed: with what goes to the other node, or after some time or bytes.
func (p *pair) owe(bytes int) {
	p.owes++
	if p.owed += bytes; p.owed >= window/4 {
		p.flush()
		return
	}
	if !p.owing {
		p.owing = true
		p.node.after(confirmAfter, p, func() {
			if p.owing = false; p.owes > 0 {
				p.flush()
			}
		})
	}
}

// The pace of a pair.
const (
	linger       = 50 * time.Microsecond // before a packet that is not full leaves
	confirmAfter = 20 * time.Millisecond
	resend       = 200 * time.Millisecond
	window       = 1 << 20 // bytes under way
	full         = 32 << 10
	maxParts     = 64 << 10 // bytes of a part of a large frame
)
