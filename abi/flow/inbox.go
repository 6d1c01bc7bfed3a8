package flow

import "github.com/wasmactors/wasmactors/abi"

// MaxInbox is how many bytes may wait in an [Inbox], or one element.
const MaxInbox = 1 << 20

// Inbox are the messages that the actor receives and that belong to no connection: anyone can send elements to it. size of
// them wait, 1 at least, with MaxInbox bytes; o says what happens to more. A sender has no credit, so Block refuses more. A question is
// answered when its element is taken from the inbox, or with an error when it is dropped: a sender that asks, and waits, goes at the
// stream's pace. [EndOf] ends the inbox, and so does a message that stands for a failure. A graph uses its first one.
func Inbox[T any](size int, o Overflow, c Codec[T]) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		x := &inbox[T]{g: g, size: max(size, 1), o: o, codec: c}
		x.out = newLink[T](g, x)
		g.ports.inbox = append(g.ports.inbox, x)
		return Killable(x.out.asSource(), nil).open(g)
	}}
}

// Feed is what gives elements to a [Fed] source. After either function the runner calls Run.
type Feed[T any] struct {
	// Put gives an element of so many bytes, and reports ErrFull if it was refused. ack is called when it was taken, or lost;
	// nil: nobody needs to know.
	Put func(v T, bytes int, ack func(error)) error
	// End ends the source behind what waits, or with a failure at once.
	End func(err error)
}

// Fed is a source of elements that come by themselves, such as those of a subscription; size and o are as of [Inbox]. begin is
// called when the stream starts, and the function that it returns when nothing more is wanted; it may be nil.
func Fed[T any](size int, o Overflow, begin func(g *Graph, f Feed[T]) (close func())) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		x := &inbox[T]{g: g, size: max(size, 1), o: o}
		x.out = newLink[T](g, x)
		x.close = begin(g, Feed[T]{func(v T, bytes int, ack func(error)) error {
			if x.over {
				return ErrUnknown
			}
			return x.put(posted[T]{v, bytes, ack})
		}, func(err error) {
			if !x.over {
				x.end(err)
			}
		}})
		return x.out
	}}
}

type letters interface {
	letter(l Letter) error
	end(err error)
}

type inbox[T any] struct {
	g     *Graph
	out   *link[T]
	size  int
	o     Overflow
	codec Codec[T]
	q     fifo[posted[T]]
	bytes int // in q
	over  bool
	close func() // of a Fed
}

type posted[T any] struct {
	v     T
	bytes int
	ack   func(error)
}

func (p *posted[T]) answer(err error) {
	if p.ack != nil {
		p.ack(err)
	}
}

func (x *inbox[T]) letter(l Letter) error {
	if l.Failed {
		x.end(&PeerError{l.From, clip(text(l.Payload))})
		return nil
	}
	r := abi.NewReader(l.Payload)
	p := posted[T]{x.codec.Get(r), len(l.Payload), l.Ack}
	if r.Done() != nil {
		p.answer(ErrElement)
		return ErrElement
	}
	return x.put(p)
}

func (x *inbox[T]) put(p posted[T]) error {
	full := func() bool { return x.q.n >= x.size || x.q.n > 0 && x.bytes+p.bytes > MaxInbox }
	if full() {
		switch x.o {
		case DropOldest:
			for full() {
				x.lose(x.q.pop())
			}
		case DropLast:
			for full() {
				x.lose(x.q.cut())
			}
		case DropAll:
			x.loseAll()
		default:
			p.answer(ErrFull)
			if x.o == Overrun {
				x.end(ErrFull)
			}
			if x.o == DropNewest {
				return nil
			}
			return ErrFull
		}
	}
	x.q.push(p)
	x.bytes += p.bytes
	if x.out.wanted() {
		x.demand()
	}
	return nil
}

func (x *inbox[T]) lose(p posted[T]) {
	x.bytes -= p.bytes
	p.answer(ErrFull)
}

func (x *inbox[T]) loseAll() {
	for x.q.n > 0 {
		x.lose(x.q.pop())
	}
}

func (x *inbox[T]) demand() {
	if x.q.n > 0 {
		p := x.q.pop()
		x.bytes -= p.bytes
		x.out.push(p.v)
		p.answer(nil)
	}
	if x.over && x.q.n == 0 {
		x.out.complete()
	}
}

// end ends it behind what waits; a failure overtakes that.
func (x *inbox[T]) end(err error) {
	x.leave()
	x.over = true
	if err != nil {
		x.loseAll()
		x.out.fail(err)
	} else if x.q.n == 0 {
		x.out.complete()
	}
}

func (x *inbox[T]) cancelled() {
	x.leave()
	x.over = true
	if x.close != nil {
		x.close()
	}
	x.loseAll()
}

func (x *inbox[T]) leave() {
	for i, o := range x.g.ports.inbox {
		if o == letters(x) {
			x.g.ports.inbox = append(x.g.ports.inbox[:i], x.g.ports.inbox[i+1:]...)
			return
		}
	}
}

func (ps *ports) letter(l Letter) error {
	if len(ps.inbox) == 0 {
		return ErrUnknown
	}
	return ps.inbox[0].letter(l)
}

func (ps *ports) letterEnd(from abi.Ref, m message) error {
	if len(ps.inbox) == 0 {
		return ErrUnknown
	}
	var err error
	if m.failed {
		err = &PeerError{from, m.reason}
	}
	ps.inbox[0].end(err)
	return nil
}

// text is a payload that is a text.
func text(payload []byte) string {
	r := abi.NewReader(payload)
	if s := r.Text(); r.Done() == nil {
		return s
	}
	return "a failure without a reason"
}
