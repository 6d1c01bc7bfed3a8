package cluster

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// A pair is this node and another: a stream of units to the other, each sent again until it is confirmed, and one from it, of
// which each unit counts once and in order. Links may lose, double and reorder packets.

const (
	pings   = 250 * time.Millisecond
	silence = 750 * time.Millisecond // of a node that is to answer asks, after which they end
)

// DefaultCredit is how many bytes may wait for another node.
const DefaultCredit = 16 << 20

type pair struct {
	node *Node
	peer Member
	tables
	stream
	shares map[any]*share
	asks   int // open ones that it is to answer
	link   Link

	owes      int  // packets that are not confirmed
	owed      int  // their bytes
	owing     bool // a confirmation is due
	flushing  bool // a flush is due
	flushed   time.Duration
	resending bool

	inSession uint64
	expect    uint64
	partial   []byte
	partialTo abi.Ref

	heard     time.Duration // of it, or since it is listened to
	sign      time.Duration // when the last packet has come
	listening bool
}

func newPair(n *Node, m Member) *pair {
	return &pair{node: n, peer: m, tables: newTables(), stream: newStream(), shares: map[any]*share{}, heard: n.brisk(), flushed: -linger}
}

// carry takes a message, or else a signal, for the other node.
func (p *pair) carry(to abi.Ref, m *network.Message, g *signal.Signal, tree any) error {
	by := p.shareOf(tree)
	if m == nil {
		return p.carrySignal(to, g, by)
	}
	size, most, before := m.Size(), p.most(), p.bytes
	fits := p.mayWait(by, size)
	by.bytes += size // until it is known what has been written
	fits = fits && p.leaving(to, m, nil, by)
	by.bytes -= size
	if !fits {
		by.forget()
		p.link.Refused++
		return errCredit
	}
	if size+unitBytes <= min(most, maxParts) {
		p.message(to, m, size, most)
	} else {
		p.parts(to, network.AppendMessage(make([]byte, 0, size), m), most)
	}
	p.charge(by, p.bytes-before)
	p.carried(size)
	return nil
}

// mayWait reports whether so many bytes more of a share may wait for the other node.
func (p *pair) mayWait(by *share, size int) bool {
	credit := p.node.cfg.Credit
	return p.fits(size, credit) && (p.bytes == 0 || within(by.bytes, size, p.bytes, credit))
}

// carrySignal takes a signal: one must not be lost alone, so that beyond twice the credit the pair begins anew. Only a watch may be refused. As
// each is given up once at most, whoever watches and gives up without end does not come to that.
func (p *pair) carrySignal(to abi.Ref, g *signal.Signal, by *share) error {
	defer func() { by.forget() }() // if it has nothing
	if g.Kind == signal.Unwatch && p.watches[bond{g.From, to}] == nil {
		return nil // the other node knows of none
	}
	if g.Path != "" && p.peer.Newest < namesFailed {
		g.Path = "" // Outlet.Signal has made it for this call
	}
	frame := network.AppendSignal(nil, g)
	fits := g.Kind != signal.Watch || p.mayWait(by, len(frame))
	if fits && !p.fits(len(frame), 2*p.node.cfg.Credit) {
		p.begin("too much waits for it")
		by = p.shareOf(by.tree)
	}
	by.bytes += len(frame) // until it is known what has been written
	fits = fits && p.leaving(to, nil, g, by)
	by.bytes -= len(frame)
	if !fits {
		p.link.Refused++
		return errCredit
	}
	before := p.bytes
	p.parts(to, frame, p.most())
	if g.Kind == signal.Watch || g.Kind == signal.Unwatch {
		p.charge(by, p.bytes-before)
	}
	p.carried(len(frame))
	return nil
}

// carried counts a frame, and has it sent.
func (p *pair) carried(size int) {
	p.link.Sent++
	p.link.SentBytes += uint64(size)
	p.flushNow()
}

// queueSignal queues a signal of this node's own making, if there is room.
func (p *pair) queueSignal(to abi.Ref, g signal.Signal) {
	frame := network.AppendSignal(nil, &g)
	if p.fits(len(frame), 2*p.node.cfg.Credit) {
		p.parts(to, frame, p.most())
		p.carried(len(frame))
	}
}

// begin gives up what waits for the other node, and begins anew: to both, the other was lost for a moment.
func (p *pair) begin(why string) {
	p.node.broken(p.peer.Number, p.units(), why)
	p.node.counts.Lost += p.frames()
	p.renew()
	p.lost()
}

// errCredit says that too much waits for a node.
var errCredit error = &creditError{}

type creditError struct{}

func (*creditError) Error() string       { return "cluster: too much waits for the node of the actor" }
func (*creditError) Unwrap() error       { return host.ErrMailboxFull }
func (*creditError) ManifestKey() string { return "cluster.credit" }

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
	if p.asks == 0 {
		return
	}
	if n.acting() { // else a late confirmation of the lease may come, and the asks still wait
		if n.brisk()-p.heard > silence {
			p.unanswered("host: the node of the actor is lost: it does not answer")
			return
		}
		if n.port != nil {
			n.links.Send(p.peer.Number, p.packet(flagAnswer, nil))
			p.confirmed()
		}
	}
	p.listening = true
	n.after(pings, p, p.ping)
}

// receive takes a packet of the other node's present life, of so many bytes.
func (p *pair) receive(k *packet, bytes int) {
	n := p.node
	p.heard = n.brisk()
	p.sign = p.heard
	if k.of == p.session {
		if p.confirm(k.confirms); p.waits() {
			p.flushSoon()
		}
	}
	if k.session < p.inSession || k.session == 0 {
		return
	}
	if k.session > p.inSession {
		if p.inSession != 0 {
			n.broken(p.peer.Number, 0, "it has begun anew: what was under way is lost")
			p.lost()
		}
		p.inSession, p.expect, p.partial = k.session, 1, nil
	}
	fresh, number := false, k.first
	for rest := k.units; len(rest) > 0; number++ {
		var u unit
		u, rest, _ = nextUnit(rest)
		if number > p.expect {
			n.gap(p.peer.Number, number-p.expect)
			break
		}
		if number == p.expect {
			fresh = true
			p.expect++
			p.take(&u)
		}
	}
	switch {
	case fresh && k.flags&flagAnswer == 0:
		p.owe(bytes)
	case len(k.units) > 0 || k.flags&flagAnswer != 0: // what it knows of this node is old
		p.owes++
		p.flushSoon()
	}
}

// take takes the next unit.
func (p *pair) take(u *unit) {
	frame, whole := u.part, true
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
		frame, whole, p.partial = p.partial, false, nil
	}
	p.link.Received++
	p.link.ReceivedBytes += uint64(len(frame))
	before := len(p.node.arrivals)
	if why := p.arrived(u.to, frame); why != "" {
		p.node.refuse(p.peer.Number, string(why))
	}
	if !whole { // it has memory of its own
		p.node.pinned(cap(frame), before)
	}
}
