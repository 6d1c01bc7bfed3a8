package flow

// taker is the side of a stage that elements arrive at.
type taker[T any] interface {
	element(v T)
	ended()
	failed(err error)
}

// giver is the side of a stage that elements leave from.
type giver interface {
	demand()
	cancelled()
}

// link connects two stages of a graph. The taker pulls, the giver answers with one element, or ends. The taker may cancel at
// any time. Demand goes up the graph by calls; everything else is an event, so that no stage is called while it runs.
type link[T any] struct {
	g    *Graph
	in   taker[T]
	out  giver
	self runner // the link
	slot T
	err  error
	is   state
}

// state is what has happened on a link.
type state uint8

const (
	queued  state = 1 << iota // it waits in the ring
	pulled                    // the taker wants an element
	pushed                    // an element is under way
	ending                    // the giver has ended, and the taker does not know yet
	leaving                   // the taker has cancelled, and the giver does not know yet
	done                      // the giver has ended, or the taker cancelled
	closed                    // and the other side knows
)

func newLink[T any](g *Graph, out giver) *link[T] {
	g.live++
	l := &link[T]{g: g, out: out}
	l.self = l
	return l
}

func (l *link[T]) queue() {
	if l.is&queued == 0 {
		l.is |= queued
		if l.g.next == nil {
			l.g.next = l.self
		} else {
			l.g.put(l.self)
		}
	}
}

// pull asks for the next element. It does nothing while one is asked for, or under way.
func (l *link[T]) pull() {
	if l.is&(pulled|pushed|done) == 0 {
		l.is |= pulled
		l.out.demand()
	}
}

// cancel says that the taker wants nothing more.
func (l *link[T]) cancel() {
	var zero T
	switch {
	case l.is&(closed|leaving) != 0:
	case l.is&done != 0: // it has ended, too
		l.is = l.is&queued | done
		l.slot = zero
		l.close()
	default:
		l.is = l.is&queued | done | leaving
		l.slot = zero
		l.queue()
	}
}

// wanted reports whether an element may be pushed.
func (l *link[T]) wanted() bool { return l.is&(pulled|done) == pulled }

// push answers a demand. Nothing happens once the taker has cancelled.
func (l *link[T]) push(v T) {
	switch {
	case l.is&pulled != 0:
		l.slot = v
		l.is = l.is&^pulled | pushed
		l.queue()
	case l.is&done == 0:
		l.fail(ErrNoDemand)
		l.out.cancelled()
	}
}

// complete ends the link behind the element that is under way.
func (l *link[T]) complete() {
	if l.is&done == 0 {
		l.is = l.is&^pulled | done | ending
		l.queue()
	}
}

// fail ends the link with an error, which overtakes the element that is under way.
func (l *link[T]) fail(err error) {
	if l.is&done == 0 {
		var zero T
		l.slot, l.err = zero, err
		l.is = l.is&queued | done | ending
		l.queue()
	}
}

// open reports whether the taker can still get something.
func (l *link[T]) open() bool { return l.is&closed == 0 && l.is&leaving == 0 }

func (l *link[T]) close() {
	l.is |= closed
	l.g.live--
}

// asSource is the link as a source that may be used once. Until then nothing arrives.
func (l *link[T]) asSource() Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		switch {
		case l.in != nil || l.is&closed != 0 && l.err == nil:
			return Empty[T]().open(g)
		case l.is&closed != 0:
			return Failed[T](l.err).open(g)
		}
		l.queue()
		return l
	}}
}

// drop cancels a link that has no taker.
func (l *link[T]) drop() {
	l.in = nothing[T]{}
	l.cancel()
}

// run implements runner.
func (l *link[T]) run() {
	l.is &^= queued
	if l.in == nil && l.is&(pushed|ending) != 0 {
		return // until it is used
	}
	switch {
	case l.is&pushed != 0:
		v := l.slot
		var zero T
		l.slot = zero
		l.is &^= pushed
		if l.is&ending != 0 {
			l.queue()
		}
		l.in.element(v)
	case l.is&leaving != 0:
		l.is &^= leaving
		l.close()
		l.out.cancelled()
	case l.is&ending != 0:
		l.is &^= ending
		l.close()
		if l.err != nil {
			l.in.failed(l.err)
		} else {
			l.in.ended()
		}
	}
}
