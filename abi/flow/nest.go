package flow

// FlatMerge turns each element into a source, and gives what these give, as it comes. At most breadth are open, 1 at least.
func FlatMerge[A, B any](src Source[A], breadth int, f func(A) Source[B]) Source[B] {
	return Source[B]{func(g *Graph) *link[B] {
		x := &flat[A, B]{breadth: max(breadth, 1), f: f, decide: g.decide}
		x.out = newLink[B](g, x)
		x.in = src.open(g)
		x.in.in = x
		x.in.pull()
		return x.out
	}}
}

// FlatConcat turns each element into a source, and gives all of one before it makes the next.
func FlatConcat[A, B any](src Source[A], f func(A) Source[B]) Source[B] { return FlatMerge(src, 1, f) }

type flat[A, B any] struct {
	in      *link[A]
	out     *link[B]
	breadth int
	f       func(A) Source[B]
	decide  Decider
	legs    []*leg[A, B]
	ready   fifo[*leg[A, B]]
}

// leg is a source that is open. It asks for one element ahead.
type leg[A, B any] struct {
	x    *flat[A, B]
	in   *link[B]
	v    B
	has  bool
	over bool
}

func (x *flat[A, B]) element(v A) {
	l := &leg[A, B]{x: x}
	l.in = x.f(v).openLater(x.out.g, x.decide)
	l.in.in = l
	x.legs = append(x.legs, l)
	l.in.pull()
	x.more()
}

func (x *flat[A, B]) more() {
	if len(x.legs) < x.breadth {
		x.in.pull()
	}
	if len(x.legs) == 0 && !x.in.open() {
		x.out.complete()
	}
}

func (x *flat[A, B]) ended() { x.more() }

func (x *flat[A, B]) failed(err error) {
	x.cancelled()
	x.out.fail(err)
}

func (x *flat[A, B]) cancelled() {
	x.in.cancel()
	for _, l := range x.legs {
		l.in.cancel()
	}
	x.legs = nil
	x.ready.clear()
}

func (x *flat[A, B]) demand() {
	if x.ready.n == 0 {
		return
	}
	l := x.ready.pop()
	v := l.v
	var zero B
	l.v, l.has = zero, false
	x.out.push(v)
	if l.over {
		l.ended()
	} else {
		l.in.pull()
	}
}

func (l *leg[A, B]) element(v B) {
	if l.x.out.wanted() {
		l.x.out.push(v)
		l.in.pull()
		return
	}
	l.v, l.has = v, true
	l.x.ready.push(l)
}

func (l *leg[A, B]) ended() {
	if l.has {
		l.over = true
		return
	}
	for i, o := range l.x.legs {
		if o == l {
			l.x.legs = append(l.x.legs[:i], l.x.legs[i+1:]...)
			l.x.more()
			return
		}
	}
}

func (l *leg[A, B]) failed(err error) { l.x.failed(err) }

// Group is the elements of one key, see [Groups]. Its Source can be used once, in the stream that it came from.
type Group[K comparable, T any] struct {
	Key    K
	Source Source[T]
}

// GroupBy sends the elements of each key through a stream of their own, and merges what these give. The stream fails with ErrLimit if
// there are more than most keys.
func GroupBy[K comparable, A, B any](src Source[A], most int, key func(A) K, sub func(K, Source[A]) Source[B]) Source[B] {
	return FlatMerge(Groups(src, most, key), most, func(g Group[K, A]) Source[B] { return sub(g.Key, g.Source) })
}

// Groups gives a source for each key. All must be taken from at the same time: an element for one of them waits until it is
// wanted, and all behind it wait, too.
func Groups[K comparable, T any](src Source[T], most int, key func(T) K) Source[Group[K, T]] {
	return groups(src, most, func(v T) (K, bool) { return key(v), false }, false)
}

// SplitWhen begins a new source with each element for which f is true.
func SplitWhen[A, B any](src Source[A], f func(A) bool, sub func(Source[A]) Source[B]) Source[B] {
	return split(src, sub, func(n *int, v A) (int, bool) {
		if f(v) {
			*n++
		}
		return *n, false
	})
}

// SplitAfter begins a new source behind each element for which f is true.
func SplitAfter[A, B any](src Source[A], f func(A) bool, sub func(Source[A]) Source[B]) Source[B] {
	return split(src, sub, func(n *int, v A) (int, bool) {
		if f(v) {
			*n++
			return *n - 1, true
		}
		return *n, false
	})
}

func split[A, B any](src Source[A], sub func(Source[A]) Source[B], key func(*int, A) (int, bool)) Source[B] {
	return Lazily(func(*Graph) Source[B] {
		n := 0
		parts := groups(src, 1, func(v A) (int, bool) { return key(&n, v) }, true)
		return FlatConcat(parts, func(g Group[int, A]) Source[B] { return sub(g.Source) })
	})
}

// groups is Groups. key reports, too, whether the element is the last one of its group; single ends a group when another
// begins.
func groups[K comparable, T any](src Source[T], most int, key func(T) (K, bool), single bool) Source[Group[K, T]] {
	return Source[Group[K, T]]{func(g *Graph) *link[Group[K, T]] {
		x := &grouper[K, T]{most: most, key: key, single: single, parts: map[K]*part[K, T]{}}
		x.out = newLink[Group[K, T]](g, x)
		x.in = src.open(g)
		x.in.in = x
		x.in.pull()
		return x.out
	}}
}

type grouper[K comparable, T any] struct {
	in     *link[T]
	out    *link[Group[K, T]]
	most   int
	key    func(T) (K, bool)
	single bool
	parts  map[K]*part[K, T]
	order  []*part[K, T]
	v      T // waits for its part, or the part to be taken
	to     *part[K, T]
	last   bool // of its part
	over   bool
}

type part[K comparable, T any] struct {
	x   *grouper[K, T]
	key K
	out *link[T]
	new bool // its source was not given yet
}

func (x *grouper[K, T]) element(v T) {
	k, last := x.key(v)
	p := x.parts[k]
	if p == nil {
		if x.single {
			x.drop()
		}
		if len(x.parts) >= x.most {
			x.in.cancel()
			x.failed(ErrLimit)
			return
		}
		p = &part[K, T]{x: x, key: k, new: true}
		p.out = newLink[T](x.out.g, p)
		x.parts[k] = p
		x.order = append(x.order, p)
	}
	x.v, x.to, x.last = v, p, last
	x.give()
}

// drop ends the present part.
func (x *grouper[K, T]) drop() {
	for _, p := range x.order {
		p.out.complete()
		delete(x.parts, p.key)
	}
	x.order = nil
}

// give hands the waiting element on if it is wanted, and asks for the next.
func (x *grouper[K, T]) give() {
	p := x.to
	switch {
	case p == nil:
		return
	case p.new && x.out.is&done != 0: // nobody takes new parts
		p.new = false
		p.out.drop()
	case p.new && x.out.wanted():
		p.new = false
		x.out.push(Group[K, T]{p.key, p.out.asSource()})
		return
	case p.new:
		return
	}
	switch {
	case p.out.wanted():
		p.out.push(x.v)
	case p.out.is&done == 0:
		return
	}
	var none T
	x.v, x.to = none, nil
	if x.last && x.single {
		x.drop()
	}
	if x.over {
		x.finish(nil)
	}
	x.in.pull()
}

func (x *grouper[K, T]) ended() {
	if x.over = true; x.to == nil {
		x.finish(nil)
	}
}

func (x *grouper[K, T]) failed(err error) { x.to = nil; x.finish(err) }

func (x *grouper[K, T]) finish(err error) {
	for _, p := range x.order {
		if err != nil {
			p.out.fail(err)
		} else {
			p.out.complete()
		}
		if err != nil && p.out.in == nil {
			p.out.drop() // its group is lost
		}
	}
	if err != nil {
		x.out.fail(err)
	} else {
		x.out.complete()
	}
}

func (x *grouper[K, T]) demand() { x.give() }

// cancelled implements giver: the parts that were given go on.
func (x *grouper[K, T]) cancelled() { x.idle(); x.give() }

// idle cancels when nobody wants anything.
func (x *grouper[K, T]) idle() {
	if x.out.is&done == 0 {
		return
	}
	open := false
	for _, p := range x.order {
		if p.out.in == nil && !p.new {
			p.out.drop()
		}
		open = open || p.out.is&done == 0 && !p.new
	}
	if !open {
		x.in.cancel()
	}
}

func (p *part[K, T]) demand()    { p.x.give() }
func (p *part[K, T]) cancelled() { p.x.idle(); p.x.give() }

// PrefixAndTail takes up to n elements, and goes on with the source that f makes of them and of what is left, which f's source
// uses once at most.
func PrefixAndTail[A, B any](src Source[A], n int, f func(prefix []A, tail Source[A]) Source[B]) Source[B] {
	return Source[B]{func(g *Graph) *link[B] {
		x := &prefix[A, B]{relay: newRelay[B](g), n: n, f: f, decide: g.decide}
		x.out.out = x
		x.from = src.open(g)
		x.from.in = prefixed[A, B]{x}
		if n <= 0 {
			x.tail(x.from.asSource())
		}
		return x.out
	}}
}

type prefix[A, B any] struct {
	relay[B]
	from   *link[A]
	n      int
	all    []A
	f      func([]A, Source[A]) Source[B]
	decide Decider
}

type prefixed[A, B any] struct{ x *prefix[A, B] }

func (p prefixed[A, B]) element(v A) {
	x := p.x
	if x.all = append(x.all, v); len(x.all) < x.n {
		x.from.pull()
		return
	}
	x.tail(x.from.asSource())
}

func (p prefixed[A, B]) ended()           { p.x.tail(Empty[A]()) }
func (p prefixed[A, B]) failed(err error) { p.x.out.fail(err) }

func (x *prefix[A, B]) tail(rest Source[A]) {
	x.from.in = nil
	src := x.f(x.all, rest).openLater(x.out.g, x.decide)
	if x.all = nil; x.from.in == nil {
		x.from.drop()
	}
	x.follow(src, x)
}

func (x *prefix[A, B]) demand() {
	if x.in != nil {
		x.in.pull()
	} else {
		x.from.pull()
	}
}

func (x *prefix[A, B]) cancelled() {
	if x.in != nil {
		x.in.cancel()
	} else {
		x.from.cancel()
	}
}
