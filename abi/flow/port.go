package flow

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// patience is after how long of silence one side of a connection repeats what it has sent last: the other side may have been restarted,
// or a message got lost.
const patience = 10 * time.Second

// ports are the connections of a graph with other actors.
type ports struct {
	all     []port // in the order in which they were opened
	offers  []*offer
	inbox   []letters
	hearing []offers
	last    uint64 // number of a stream
	dirty   []port // with elements to send
	past    [64]past
	ended   int // entries of past that were made
	w       abi.Writer
}

// past is a stream that this side has ended: what the peer has sent before it knows is no mistake.
type past struct {
	peer    abi.Ref
	id      uint64
	takes   bool
	granted uint64
}

// port is one end of a stream between actors.
type port interface {
	ends() *end
	message(m message)
	gone(err error) // the peer has ended, or was restarted
	flush()
}

// end is what both ends have in common.
type end struct {
	g     *Graph
	peer  abi.Ref
	id    uint64
	takes bool
	quiet *timer
}

func (e *end) ends() *end { return e }

// open enters a port.
func (e *end) open(p port, again func()) error {
	ps := &e.g.ports
	n := 0
	for _, o := range ps.all {
		if o.ends().peer == e.peer {
			n++
		}
	}
	if len(ps.all) >= MaxPorts || n >= MaxPeer {
		return ErrCrowded
	}
	if n == 0 {
		if err := e.g.mail.Watch(e.peer); err != nil {
			return err
		}
	}
	ps.all = append(ps.all, p)
	e.quiet = newTimer(func() { again(); e.g.set(e.quiet, patience) })
	e.g.set(e.quiet, patience)
	return nil
}

// close removes it.
func (e *end) close() {
	ps := &e.g.ports
	others := false
	for i := 0; i < len(ps.all); i++ {
		if o := ps.all[i].ends(); o == e {
			ps.all = append(ps.all[:i], ps.all[i+1:]...)
			i--
		} else if o.peer == e.peer {
			others = true
		}
	}
	if e.peer != 0 && !others {
		e.g.mail.Unwatch(e.peer)
	}
	e.g.unset(e.quiet)
	e.quiet = nil
}

// finish is close by this side; granted is the credit that the peer is known to have given.
func (e *end) finish(granted uint64) {
	e.close()
	ps := &e.g.ports
	ps.past[ps.ended%len(ps.past)] = past{e.peer, e.id, e.takes, granted}
	ps.ended++
}

// late reports whether a message for no stream was on the way when its stream ended. One that is sent again is answered: the peer
// does not know of the end.
func (ps *ports) late(from abi.Ref, m message, takes bool) (known, again bool) {
	for i := range ps.past {
		if p := &ps.past[i]; p.peer == from && p.id == m.id && p.takes == takes && from != 0 {
			again = m.op == opMore && m.count <= p.granted || m.op == opElements && m.n == 0
			p.granted = max(p.granted, m.count)
			return true, again
		}
	}
	return false, true
}

// send sends a message of this stream; put writes its last item.
func (e *end) send(op uint64, put func(w *abi.Writer)) { e.g.send(e.peer, op, e.id, put) }

func (g *Graph) send(to abi.Ref, op, id uint64, put func(w *abi.Writer)) {
	w := &g.ports.w
	w.Reset(w.Bytes()[:0])
	begin(w, op, id)
	put(w)
	g.mail.Send(to, w.Bytes())
}

func (g *Graph) sendReason(to abi.Ref, op, id uint64, reason string) {
	g.send(to, op, id, func(w *abi.Writer) { reasoned(w, reason) })
}

// number is the next number of a stream: other incarnations use others.
func (ps *ports) number(g *Graph) uint64 {
	ps.last++
	return g.mail.Incarnation()<<32 | ps.last&(1<<32-1)
}

func (ps *ports) flush() {
	for i, p := range ps.dirty {
		p.flush()
		ps.dirty[i] = nil
	}
	ps.dirty = ps.dirty[:0]
}

func (ps *ports) find(peer abi.Ref, id uint64, takes bool) port {
	for _, p := range ps.all {
		if e := p.ends(); e.id == id && e.peer == peer && e.takes == takes {
			return p
		}
	}
	return nil
}

// Letter is a message that the runner has received.
type Letter struct {
	From    abi.Ref // 0: nobody
	Payload []byte  // valid until Receive returns
	Failed  bool    // it stands for a failure, whose reason is the payload
	// Ack answers a question; nil: it is none.
	Ack func(err error)
	// Parent says that the sender may turn the switch.
	Parent bool
}

// Receive handles a message. After it the runner calls Run. ErrUnknown says that it was for no stream, or from an actor that the stream
// does not belong to; it had no effect.
func (g *Graph) Receive(l Letter) error {
	if l.Failed || !IsMessage(l.Payload) {
		return g.ports.letter(l)
	}
	m, err := decode(l.Payload)
	if err != nil {
		return err
	}
	switch m.op {
	case opStop:
		switch {
		case !l.Parent:
			return ErrForbidden
		case m.failed:
			g.own.Abort(&PeerError{l.From, m.reason})
		default:
			g.own.Shutdown()
		}
		return nil
	case opEnd:
		if m.id == 0 {
			return g.ports.letterEnd(l.From, m)
		}
	}
	if l.From == 0 || g.mail == nil {
		return ErrUnknown
	}
	switch m.op {
	case opOffer:
		return g.ports.heard(g, l.From, m.name)
	case opTake:
		return g.ports.taken(g, l.From, m)
	case opCancel:
		if m.id == 0 {
			return g.ports.refused(l.From, m.reason)
		}
	}
	takes := m.op == opElements || m.op == opEnd
	p := g.ports.find(l.From, m.id, takes)
	if p == nil {
		known, again := g.ports.late(l.From, m, takes)
		switch { // the others are answers, which are not answered
		case again && m.op == opMore:
			g.sendReason(l.From, opEnd, m.id, ErrUnknown.Error())
		case again && m.op == opElements:
			g.sendReason(l.From, opCancel, m.id, ErrUnknown.Error())
		}
		if known {
			return nil
		}
		return ErrUnknown
	}
	g.set(p.ends().quiet, patience)
	p.message(m)
	return nil
}

// Terminated handles the end of an actor that the graph watches.
func (g *Graph) Terminated(ref abi.Ref, reason string) {
	err := &PeerError{ref, "the actor has stopped: " + reason}
	for _, p := range append([]port(nil), g.ports.all...) {
		if p.ends().peer == ref {
			p.gone(err)
		}
	}
	for _, o := range append([]*offer(nil), g.ports.offers...) {
		if o.to == ref {
			o.give.gone(err)
		}
	}
}

// Close ends all connections: the actor stops. The others are told why.
func (g *Graph) Close(reason string) {
	for _, p := range append([]port(nil), g.ports.all...) {
		e := p.ends()
		op := uint64(opEnd)
		if e.takes {
			op = opCancel
		}
		g.sendReason(e.peer, op, e.id, reason)
		e.close()
	}
}
