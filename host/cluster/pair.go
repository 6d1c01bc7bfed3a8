package cluster

import (
	"encoding/binary"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// A pair is this node and another: a stream of units to the other, each sent again until it is confirmed, and one from it, of
// which each unit counts once and in order. Links may lose, double and reorder packets.

const (
	linger    = 50 * time.Microsecond // before a packet that is not full leaves
	resend    = 200 * time.Millisecond
	window    = 1 << 20 // bytes under way
	full      = 32 << 10
	pings     = 250 * time.Millisecond
	silence   = 750 * time.Millisecond // of a node that is to answer asks, after which they end
	maxParts  = 64 << 10               // bytes of a part of a large frame
	mostUnits = 1 << 17                // that wait, however small
)

// DefaultCredit is how many bytes may wait for another node.
const DefaultCredit = 16 << 20

type pair struct {
	node *Node
	peer Member
	tables
	asks int // open ones that it is to answer
	link Link

	session   uint64
	out       []unit // not confirmed
	bytes     int    // of them
	base      uint64 // the number of the first of them
	sent      int    // how many of them are under way
	under     int    // their bytes
	owes      bool   // something is to be confirmed
	flushing  bool   // a flush is due
	flushed   time.Duration
	resending bool

	inSession uint64
	expect    uint64
	partial   []byte
	partialTo abi.Ref

	heard     time.Duration
	listening bool

	arrivals []delivery // for the engine
}

// delivery is a frame for the engine.
type delivery struct {
	to    abi.Ref
	frame []byte
}

func newPair(n *Node, m Member) *pair {
	return &pair{node: n, peer: m, tables: newTables(), session: 1, base: 1, heard: n.brisk(), flushed: -linger}
}

// queue takes a frame for the other node; false if there is no room.
func (p *pair) queue(to abi.Ref, frame []byte, credit int) bool {
	if p.bytes+len(frame) > credit && p.bytes > 0 || len(p.out) > mostUnits {
		return false
	}
	p.link.Sent++
	p.link.SentBytes += uint64(len(frame))
	size := min(maxParts, p.node.links.MaxPacket()-headBytes-2*unitBytes)
	for more := true; more; {
		part := frame[:min(size, len(frame))]
		frame = frame[len(part):]
		more = len(frame) > 0
		p.out = append(p.out, unit{to, more, part})
		p.bytes += len(part) + unitBytes
	}
	now := p.node.brisk()
	if p.bytes-p.under >= full || now-p.flushed >= linger {
		p.flush()
	} else {
		p.flushSoon()
	}
	return true
}

// queueSignal queues a signal of this node's own making.
func (p *pair) queueSignal(to abi.Ref, g signal.Signal) {
	p.queue(to, network.AppendSignal(nil, &g), 2*p.node.cfg.Credit)
}

func (p *pair) flushSoon() {
	if !p.flushing {
		p.flushing = true
		p.node.after(linger, p, func() { p.flushing = false; p.flush() })
	}
}

// flush sends what may be sent, and what is to be confirmed.
func (p *pair) flush() {
	n := p.node
	if !n.acting() || n.port == nil {
		p.resendLater()
		return
	}
	p.flushed = n.brisk()
	most := n.links.MaxPacket()
	for {
		b := p.head(0, min(p.bytes-p.under, full))
		units := 0
		for p.sent < len(p.out) && (p.under < window || p.sent == 0) {
			u := &p.out[p.sent]
			if units > 0 && len(b)+len(u.part)+unitBytes > min(most, full+maxParts) {
				break
			}
			b = appendUnit(b, u)
			p.sent++
			p.under += len(u.part) + unitBytes
			units++
		}
		if units == 0 && !p.owes {
			break
		}
		p.owes = false
		n.links.Send(p.peer.Number, b)
		if units == 0 {
			break
		}
	}
	if p.sent > 0 {
		p.resendLater()
	}
}

func (p *pair) resendLater() {
	if !p.resending {
		p.resending = true
		base := p.base
		p.node.after(resend, p, func() { p.resend(base) })
	}
}

// head is the beginning of a packet whose first unit is the next one, with room for so many bytes of units.
func (p *pair) head(flags byte, room int) []byte {
	return appendHead(make([]byte, 0, headBytes+binary.MaxVarintLen64+room), &packet{
		flags: flags, born: p.node.self.Born, receiver: p.peer.Born, session: p.session, confirms: p.expect, of: p.inSession, first: p.base + uint64(p.sent),
	})
}

// resend sends again what was under way when base was the first unit, unless some of it was confirmed.
func (p *pair) resend(base uint64) {
	p.resending = false
	if p.base == base {
		p.link.Again += uint64(p.sent)
		p.sent, p.under = 0, 0
	}
	if len(p.out) > 0 {
		p.flush()
	}
}

// listen asks the other node for signs of life while asks wait for it.
func (p *pair) listen() {
	if p.listening {
		return
	}
	p.listening = true
	p.heard = p.node.brisk()
	p.node.after(pings, p, p.ping)
}

func (p *pair) ping() {
	n := p.node
	p.listening = false
	n.sweep(n.since())
	if p.asks == 0 || !n.acting() {
		return
	}
	if n.brisk()-p.heard > silence {
		p.deliver(p.unanswered("host: the node of the actor is lost: it does not answer"))
		return
	}
	if n.port != nil {
		n.links.Send(p.peer.Number, p.head(flagAnswer, 0))
	}
	p.listening = true
	n.after(pings, p, p.ping)
}

// receive takes a packet of the other node's present life.
func (p *pair) receive(k *packet) {
	n := p.node
	p.heard = n.brisk()
	if k.of == p.session && k.confirms > p.base && k.confirms <= p.base+uint64(len(p.out)) {
		done := int(k.confirms - p.base)
		for _, u := range p.out[:done] {
			p.bytes -= len(u.part) + unitBytes
		}
		for _, u := range p.out[:min(done, p.sent)] {
			p.under -= len(u.part) + unitBytes
		}
		clear(p.out[:done])
		if p.out = p.out[done:]; len(p.out) == 0 {
			p.out = nil
		}
		p.base, p.sent = k.confirms, max(0, p.sent-done)
		if p.sent < len(p.out) {
			p.flushSoon()
		}
	}
	if k.session < p.inSession || k.session == 0 {
		return
	}
	if k.session > p.inSession {
		if p.inSession != 0 {
			n.broken(p.peer.Number, 0, "it has begun anew: what was under way is lost")
			p.deliver(p.lost())
		}
		p.inSession, p.expect, p.partial = k.session, 1, nil
	}
	for i := range k.units {
		number := k.first + uint64(i)
		if number > p.expect {
			n.gap(p.peer.Number, number-p.expect)
			break
		}
		if number < p.expect {
			continue
		}
		p.expect++
		p.take(&k.units[i])
	}
	if len(k.units) > 0 || k.flags&flagAnswer != 0 {
		p.owes = true
		p.flushSoon()
	}
}

// take takes the next unit.
func (p *pair) take(u *unit) {
	frame := u.part
	if u.more || p.partial != nil {
		if p.partial != nil && p.partialTo != u.to || len(p.partial)+len(u.part) > maxFrame {
			p.partial = nil
			p.node.refuse(p.peer.Number, "a frame in parts that do not belong together, or are too many")
			return
		}
		p.partial, p.partialTo = append(p.partial, u.part...), u.to
		if u.more {
			return
		}
		frame, p.partial = p.partial, nil
	}
	p.link.Received++
	p.link.ReceivedBytes += uint64(len(frame))
	out, why := p.arrived(u.to, frame)
	if why != "" {
		p.node.refuse(p.peer.Number, string(why))
	}
	for i := range out { // the packet's memory is the link's
		out[i].frame = append([]byte(nil), out[i].frame...)
	}
	p.deliver(out)
}

// frames is how many frames end in units.
func frames(all []unit) (n uint64) {
	for i := range all {
		if !all[i].more {
			n++
		}
	}
	return n
}

// deliver has the engine get frames after those before.
func (p *pair) deliver(out []delivery) {
	p.arrivals = append(p.arrivals, out...)
	p.node.draining = append(p.node.draining, p)
}
