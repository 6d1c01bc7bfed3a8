package flow

import "github.com/wasmactors/wasmactors/abi"

// offer is a stream that waits to be taken.
type offer struct {
	name string
	to   abi.Ref // that may take it; 0: anyone
	take func(peer abi.Ref, m message) error
	give interface{ gone(err error) } // see GiveTo; nil: see Serve
}

// Serve gives the stream of a source to each actor that takes it by the name: the source is started for each taker anew, as many at a time
// as a graph has connections. It ends when the graph's switch is turned; those that are under way go on.
func Serve[T any](name string, src Source[T], c Codec[T]) Stream {
	return Stream{func(g *Graph) {
		o := &offer{name: name}
		d := g.decide
		o.take = func(peer abi.Ref, m message) error {
			x := &giving[T]{end: end{g: g}, codec: c, served: true}
			if err := x.begin(peer, m); err != nil {
				return err
			}
			x.in = src.openLater(g, d)
			x.in.in = x
			x.more(m)
			return nil
		}
		g.live++ // it can be taken again
		g.ports.offers = append(g.ports.offers, o)
		s := serving{g, o}
		if g.own.off {
			s.kill(nil)
		} else {
			g.own.nodes = append(g.own.nodes, s)
		}
	}}
}

type serving struct {
	g *Graph
	o *offer
}

func (s serving) kill(error) {
	s.g.live--
	s.g.ports.withdraw(s.o)
}

// GiveTo is a sink from which one other actor takes the elements, by a name that no other GiveTo or Serve of the graph has. With
// to, that actor alone may, and it is sent an offer; see [Offers]. Until the stream is taken the source waits.
func GiveTo[T any](to abi.Ref, name string, c Codec[T]) Sink[T] {
	return Sink[T]{func(g *Graph, in *link[T]) {
		x := &giving[T]{end: end{g: g, peer: to}, in: in, codec: c}
		in.in = x
		if g.mail == nil {
			x.gone(ErrAlone)
			return
		}
		x.offer = &offer{name: name, to: to, give: x}
		x.offer.take = func(peer abi.Ref, m message) error {
			if err := x.begin(peer, m); err != nil {
				return err
			}
			g.ports.withdraw(x.offer)
			x.more(m)
			if x.over {
				x.stop(x.err)
			}
			return nil
		}
		g.live++
		g.ports.offers = append(g.ports.offers, x.offer)
		if to != 0 {
			if err := g.mail.Watch(to); err != nil {
				x.gone(err)
				return
			}
			g.send(to, opOffer, 0, func(w *abi.Writer) { w.Text(name) })
		}
	}}
}

// giving is the end of a stream from which elements leave to another actor.
type giving[T any] struct {
	end
	in      *link[T]
	codec   Codec[T]
	offer   *offer
	served  bool
	begun   bool
	over    bool // before it was taken
	err     error
	granted uint64
	sent    uint64
	room    uint64 // bytes that were granted; 0: any number
	filled  uint64 // of them
	batch   abi.Writer
	n       uint64 // elements in it
}

// begin starts for a taker.
func (x *giving[T]) begin(peer abi.Ref, m message) error {
	x.peer, x.id = peer, m.id
	if err := x.open(x, x.again); err != nil {
		return err
	}
	x.begun = true
	if !x.served {
		x.g.live--
	}
	return nil
}

// again repeats how many elements were sent.
func (x *giving[T]) again() { x.sendBatch() }

func (x *giving[T]) message(m message) {
	switch m.op {
	case opMore:
		x.more(m)
	case opCancel:
		x.close()
		x.begun = false
		x.in.cancel()
	}
}

// more takes the taker's credit in all.
func (x *giving[T]) more(m message) {
	if m.count > x.sent && m.count-x.sent > MaxCredit {
		x.broken(ErrCredit)
		return
	}
	x.granted, x.room = max(x.granted, m.count), max(x.room, m.bytes)
	x.pull()
}

// pull asks for an element if there is credit for it.
func (x *giving[T]) pull() {
	if x.granted > x.sent && (x.room == 0 || x.filled < x.room) {
		x.in.pull()
	}
}

func (x *giving[T]) element(v T) {
	if !x.begun {
		return
	}
	if x.n == 0 {
		x.g.ports.dirty = append(x.g.ports.dirty, x)
	}
	before := x.batch.Len()
	x.codec.Put(&x.batch, v)
	x.filled += uint64(x.batch.Len() - before)
	if before > 0 && x.batch.Len() > MaxBatch { // this one travels alone
		last := append([]byte(nil), x.batch.Bytes()[before:]...)
		x.batch.Reset(x.batch.Bytes()[:before])
		x.flush()
		x.batch.Encoded(string(last))
	}
	x.n++
	x.sent++
	x.g.moved.Given++
	x.pull()
}

func (x *giving[T]) flush() {
	if x.n > 0 && x.begun {
		x.sendBatch()
	}
	x.n = 0
	if cap(x.batch.Bytes()) > MaxBatch {
		x.batch.Reset(nil)
	} else {
		x.batch.Reset(x.batch.Bytes()[:0])
	}
}

func (x *giving[T]) sendBatch() {
	x.send(opElements, func(w *abi.Writer) {
		w.Array(int(x.n) + 1)
		w.Uint(x.sent - x.n)
		if x.n > 0 {
			w.Encoded(string(x.batch.Bytes()))
		}
	})
}

func (x *giving[T]) ended()           { x.stop(nil) }
func (x *giving[T]) failed(err error) { x.stop(err) }

// stop tells the taker of the end.
func (x *giving[T]) stop(err error) {
	if !x.begun {
		x.over, x.err = true, err
		return
	}
	x.flush()
	reason := ""
	if err != nil {
		reason = err.Error()
		if !x.served {
			x.g.failed(err)
		}
	}
	x.g.sendReason(x.peer, opEnd, x.id, reason)
	x.finish(x.granted)
	x.begun = false
}

func (x *giving[T]) broken(err error) {
	x.in.cancel()
	x.stop(err)
}

// gone implements port: nobody takes any more.
func (x *giving[T]) gone(err error) {
	if x.begun {
		x.close()
	} else if x.offer != nil {
		x.g.ports.withdraw(x.offer)
		x.close()
		x.g.live--
	}
	x.begun = false
	x.in.cancel()
	if !x.served {
		x.g.failed(err)
	}
}

func (ps *ports) withdraw(o *offer) {
	for i, other := range ps.offers {
		if other == o {
			ps.offers = append(ps.offers[:i], ps.offers[i+1:]...)
			return
		}
	}
}

// taken starts a stream that is offered for a taker.
func (ps *ports) taken(g *Graph, peer abi.Ref, m message) error {
	for _, p := range append([]port(nil), ps.all...) {
		e := p.ends()
		if e.peer != peer || e.takes {
			continue
		}
		if e.id == m.id {
			return ErrUnknown // it has taken that one
		}
		if e.id>>32 < m.id>>32 {
			p.gone(ErrRestarted)
		}
	}
	err := ErrUnknown
	for _, o := range ps.offers {
		if o.name == m.name && (o.to == 0 || o.to == peer) {
			if err = o.take(peer, m); err == nil {
				return nil
			}
			break
		}
	}
	g.sendReason(peer, opEnd, m.id, err.Error())
	return err
}

// refused ends an offer that its receiver does not want.
func (ps *ports) refused(peer abi.Ref, name string) error {
	for _, o := range ps.offers {
		if o.to == peer && o.name == name && o.give != nil {
			o.give.gone(&PeerError{peer, "the offer was refused"})
			return nil
		}
	}
	return ErrUnknown
}
