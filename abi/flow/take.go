package flow

import "github.com/wasmactors/wasmactors/abi"

// Window is how many elements a taker asks for ahead: First at the beginning, twice as many whenever it had to wait for more, and
// Most in the end. Those that wait have at most Bytes, and one element more. Zeros are the defaults.
type Window struct{ First, Most, Bytes int }

// The default window.
const (
	DefaultFirst = 4
	DefaultMost  = 16
	DefaultBytes = 256 << 10
)

func (w Window) checked() Window {
	if w.Most <= 0 {
		w.Most = DefaultMost
	}
	if w.First <= 0 {
		w.First = DefaultFirst
	}
	if w.Bytes <= 0 {
		w.Bytes = DefaultBytes
	}
	w.Most = min(w.Most, MaxCredit)
	w.First = min(w.First, w.Most)
	return w
}

// TakeFrom is the stream that another actor has under a name; see [Serve] and [GiveTo].
func TakeFrom[T any](from abi.Ref, name string, c Codec[T], w Window) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		if g.mail == nil {
			return Failed[T](ErrAlone).open(g)
		}
		w := w.checked()
		x := &taking[T]{end: end{g: g, peer: from, id: g.ports.number(g), takes: true}, codec: c, window: w.First, most: w.Most, bytes: uint64(w.Bytes)}
		x.out = newLink[T](g, x)
		if err := x.open(x, x.more); err != nil {
			x.out.fail(err)
			return x.out
		}
		x.granted, x.room = uint64(x.window), x.bytes
		x.send(opTake, func(w *abi.Writer) {
			w.Array(2)
			credit(w, x.granted, x.room)
			w.Text(name)
		})
		return x.out
	}}
}

// taking is the end of a stream at which elements arrive from another actor.
type taking[T any] struct {
	end
	out      *link[T]
	codec    Codec[T]
	q        fifo[sized[T]]
	window   int
	most     int
	bytes    uint64 // of the window
	granted  uint64
	received uint64
	room     uint64 // bytes that were granted
	filled   uint64 // of them
	freed    uint64 // of them
	over     bool
}

// sized is an element and its bytes.
type sized[T any] struct {
	v T
	n uint64
}

func (x *taking[T]) flush() {}

// more sends the credit.
func (x *taking[T]) more() {
	x.send(opMore, func(w *abi.Writer) { credit(w, x.granted, x.room) })
}

func (x *taking[T]) message(m message) {
	if m.op == opEnd {
		x.close()
		x.over = true
		switch {
		case m.failed: // it overtakes what waits
			x.fail(&PeerError{x.peer, m.reason})
		case x.q.n == 0:
			x.out.complete()
		}
		return
	}
	switch {
	case m.count != x.received:
		x.broken(ErrLost)
		return
	case uint64(m.n) > x.granted-x.received:
		x.broken(ErrNoCredit)
		return
	}
	if m.n > 0 && x.q.n == 0 && x.out.wanted() && x.window < x.most {
		x.window = min(2*x.window, x.most)
	}
	for i := 0; i < m.n; i++ {
		if x.filled >= x.room {
			x.broken(ErrNoCredit)
			return
		}
		from := m.r.Offset()
		v := x.codec.Get(m.r)
		if m.r.Err() != nil {
			break
		}
		n := uint64(m.r.Offset() - from)
		x.filled += n
		x.q.push(sized[T]{v, n})
	}
	if m.r.Done() != nil {
		x.broken(ErrElement)
		return
	}
	x.received += uint64(m.n)
	x.g.moved.Taken += uint64(m.n)
	if m.n > 0 && x.out.wanted() {
		x.demand()
	}
}

func (x *taking[T]) demand() {
	if x.q.n > 0 {
		e := x.q.pop()
		x.freed += e.n
		x.out.push(e.v)
	}
	switch {
	case !x.over:
		want := max(x.window-x.q.n-int(x.granted-x.received), 0)
		if 2*want >= x.window || 2*(x.freed+x.bytes-x.room) >= x.bytes {
			x.granted += uint64(want)
			x.room = x.freed + x.bytes
			x.more()
		}
	case x.q.n == 0:
		x.out.complete()
	}
}

func (x *taking[T]) cancelled() {
	x.q.clear()
	if !x.over {
		x.g.sendReason(x.peer, opCancel, x.id, "")
		x.finish(0)
	}
}

func (x *taking[T]) fail(err error) {
	x.q.clear()
	x.out.fail(err)
}

// broken ends the stream for both sides: the peer has broken the rules.
func (x *taking[T]) broken(err error) {
	x.g.sendReason(x.peer, opCancel, x.id, err.Error())
	x.gone(err)
}

func (x *taking[T]) gone(err error) {
	x.close()
	x.over = true
	x.fail(err)
}

// Offer is a stream that another actor wants to give; see [GiveTo].
type Offer struct {
	From abi.Ref
	Name string
}

type offers interface{ offered(o Offer) bool }

// Offers are the streams that other actors offer to this one, to be taken by [TakeFrom]. An offer is refused if size of them
// wait already.
func Offers(size int) Source[Offer] {
	return Source[Offer]{func(g *Graph) *link[Offer] {
		x := &hearing{g: g, size: max(size, 1)}
		x.out = newLink[Offer](g, x)
		g.ports.hearing = append(g.ports.hearing, x)
		return Killable(x.out.asSource(), nil).open(g)
	}}
}

type hearing struct {
	g    *Graph
	out  *link[Offer]
	q    fifo[Offer]
	size int
}

func (x *hearing) offered(o Offer) bool {
	if x.q.n >= x.size {
		return false
	}
	x.q.push(o)
	if x.out.wanted() {
		x.demand()
	}
	return true
}

func (x *hearing) demand() {
	if x.q.n > 0 {
		x.out.push(x.q.pop())
	}
}

func (x *hearing) cancelled() {
	for x.q.n > 0 {
		o := x.q.pop()
		x.g.sendReason(o.From, opCancel, 0, o.Name)
	}
	ps := &x.g.ports
	for i, o := range ps.hearing {
		if o == offers(x) {
			ps.hearing = append(ps.hearing[:i], ps.hearing[i+1:]...)
			return
		}
	}
}

func (ps *ports) heard(g *Graph, from abi.Ref, name string) error {
	for _, h := range ps.hearing {
		if h.offered(Offer{from, name}) {
			return nil
		}
	}
	g.sendReason(from, opCancel, 0, name)
	return ErrUnknown
}
