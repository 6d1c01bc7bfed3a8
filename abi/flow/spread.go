package flow

// The junctions with several sinks.

// Broadcast gives each element to all sinks, as fast as the slowest. A sink that has cancelled is left out; when all
// have, the source is cancelled.
func Broadcast[T any](sinks ...Sink[T]) Sink[T] {
	return spread(sinks, toAll, nil)
}

// Balance gives each element to a sink that wants one.
func Balance[T any](sinks ...Sink[T]) Sink[T] { return spread[T](sinks, toAny, nil) }

// Partition gives each element to the sink whose number by returns. What is for a sink that has cancelled is dropped, and so is
// what is for none.
func Partition[T any](by func(T) int, sinks ...Sink[T]) Sink[T] { return spread(sinks, toOne, by) }

// Unzip gives two sinks what f makes of each element.
func Unzip[T, A, B any](f func(T) (A, B), a Sink[A], b Sink[B]) Sink[T] {
	return Broadcast(
		Through(func(s Source[T]) Source[A] { return Map(s, func(v T) A { a, _ := f(v); return a }) }, a),
		Through(func(s Source[T]) Source[B] { return Map(s, func(v T) B { _, b := f(v); return b }) }, b))
}

// Through is a sink with stages in front of it. flow uses its source once.
func Through[A, B any](flow func(Source[A]) Source[B], sink Sink[B]) Sink[A] {
	return Sink[A]{func(g *Graph, in *link[A]) {
		sink.connect(g, flow(in.asSource()).open(g))
		if in.in == nil {
			in.drop()
		}
	}}
}

// Branches spreads a source over several flows, and merges what they give. split is one of Broadcast, Balance and the like; each
// flow uses its source once.
func Branches[A, B any](src Source[A], split func(...Sink[A]) Sink[A], flows ...func(Source[A]) Source[B]) Source[B] {
	return Source[B]{func(g *Graph) *link[B] {
		var ins []*link[A]
		var parts []Source[B]
		var sinks []Sink[A]
		for _, f := range flows {
			sinks = append(sinks, Sink[A]{func(_ *Graph, in *link[A]) { ins, parts = append(ins, in), append(parts, f(in.asSource())) }})
		}
		split(sinks...).connect(g, src.open(g))
		out := Merge(parts...).open(g)
		for _, in := range ins {
			if in.in == nil {
				in.drop()
			}
		}
		return out
	}}
}

// route says which sinks an element is for.
type route uint8

const (
	toAll route = iota
	toAny
	toOne
)

// splitter gives elements to several links.
type splitter[T any] struct {
	in    *link[T]
	outs  []outlet[T]
	route route
	by    func(T) int
	to    int // toOne: the sink of v; toAny: that of the element before
	v     T
	has   bool
	over  bool
}

type outlet[T any] struct {
	x   *splitter[T]
	out *link[T]
}

func spread[T any](sinks []Sink[T], r route, by func(T) int) Sink[T] {
	return Sink[T]{func(g *Graph, in *link[T]) {
		x := &splitter[T]{in: in, outs: make([]outlet[T], len(sinks)), route: r, by: by}
		in.in = x
		for i := range x.outs {
			o := &x.outs[i]
			o.x = x
			o.out = newLink[T](g, o)
		}
		for i, s := range sinks {
			s.connect(g, x.outs[i].out)
		}
		x.give()
	}}
}

func (x *splitter[T]) element(v T) {
	x.v, x.has = v, true
	if x.route == toOne {
		x.to = x.by(v)
	}
	x.give()
}

// give hands the element on if it is wanted, and asks for the next one.
func (x *splitter[T]) give() {
	open, wanted := 0, 0
	for i := range x.outs {
		if o := x.outs[i].out; o.is&done == 0 {
			open++
			if o.wanted() {
				wanted++
			}
		}
	}
	switch {
	case open == 0:
		x.in.cancel()
	case !x.has:
		if wanted == open || x.route != toAll && wanted > 0 {
			x.in.pull()
		}
	case x.push(open, wanted):
		var zero T
		x.v, x.has = zero, false
		if x.over {
			x.finish(nil)
		}
		x.give()
	}
}

// push hands the element on, or drops it if it is for nobody; false if it must wait.
func (x *splitter[T]) push(open, wanted int) bool {
	switch x.route {
	case toAll:
		if wanted < open {
			return false
		}
		for i := range x.outs {
			x.outs[i].out.push(x.v)
		}
		return true
	case toAny:
		if wanted == 0 {
			return false
		}
		for x.to = (x.to + 1) % len(x.outs); !x.outs[x.to].out.wanted(); {
			x.to = (x.to + 1) % len(x.outs)
		}
	}
	if x.to < 0 || x.to >= len(x.outs) || x.outs[x.to].out.is&done != 0 {
		return true
	}
	if !x.outs[x.to].out.wanted() {
		return false
	}
	x.outs[x.to].out.push(x.v)
	return true
}

func (x *splitter[T]) ended() {
	if x.over = true; !x.has {
		x.finish(nil)
	}
}

func (x *splitter[T]) failed(err error) { x.finish(err) }

func (x *splitter[T]) finish(err error) {
	for i := range x.outs {
		if err != nil {
			x.outs[i].out.fail(err)
		} else {
			x.outs[i].out.complete()
		}
	}
}

func (o *outlet[T]) demand()    { o.x.give() }
func (o *outlet[T]) cancelled() { o.x.give() }
