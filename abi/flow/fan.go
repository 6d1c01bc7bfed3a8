package flow

// The junctions with several sources. A function of a junction that fails, fails the stream: no decider is asked.

// Merge gives the elements of several sources as they come, and ends when all have ended.
func Merge[T any](srcs ...Source[T]) Source[T] {
	return fanIn(srcs, func() func(*fan[T]) int {
		turn := -1
		return func(x *fan[T]) int {
			i := x.from((turn+1)%len(x.legs), func(l *inlet[T]) bool { return l.has })
			if i >= 0 {
				turn = i
			}
			return i
		}
	})
}

// Concat gives all elements of one source after those of another. A source starts when the one before has ended.
func Concat[T any](srcs ...Source[T]) Source[T] {
	return FlatConcat(From(srcs...), func(s Source[T]) Source[T] { return s })
}

// Prepend gives the elements of first before those of src.
func Prepend[T any](src, first Source[T]) Source[T] { return Concat(first, src) }

// MergePreferred is Merge that takes an element of an earlier source before one of a later source.
func MergePreferred[T any](srcs ...Source[T]) Source[T] {
	return fanIn(srcs, func() func(*fan[T]) int {
		return func(x *fan[T]) int { return x.from(0, func(l *inlet[T]) bool { return l.has }) }
	})
}

// MergeSorted merges sources whose elements are in the order of less into one in that order.
func MergeSorted[T any](less func(a, b T) bool, srcs ...Source[T]) Source[T] {
	return fanIn(srcs, func() func(*fan[T]) int {
		return func(x *fan[T]) int {
			least := -1
			for i := range x.legs {
				switch l := &x.legs[i]; {
				case !l.has && !l.over:
					return -1
				case l.has && (least < 0 || less(l.v, x.legs[least].v)):
					least = i
				}
			}
			return least
		}
	})
}

// Interleave gives n elements of each source in turn, and leaves out those that have ended.
func Interleave[T any](n int, srcs ...Source[T]) Source[T] {
	return fanIn(srcs, func() func(*fan[T]) int {
		turn, left := 0, max(n, 1)
		return func(x *fan[T]) int {
			i := x.from(turn, func(l *inlet[T]) bool { return l.has || !l.over })
			if i < 0 {
				return -1
			}
			if i != turn {
				turn, left = i, max(n, 1)
			}
			if !x.legs[i].has {
				return -1
			}
			if left--; left == 0 {
				turn, left = (i+1)%len(x.legs), max(n, 1)
			}
			return i
		}
	})
}

// fan gives elements of several sources, of each of which it asks for one ahead, in the order that choose says.
type fan[T any] struct {
	out    *link[T]
	legs   []inlet[T]
	choose func(*fan[T]) int // the leg whose element is next; -1: it must wait
}

type inlet[T any] struct {
	x    *fan[T]
	in   *link[T]
	v    T
	has  bool
	over bool
}

func fanIn[T any](srcs []Source[T], choose func() func(*fan[T]) int) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		x := &fan[T]{legs: make([]inlet[T], len(srcs)), choose: choose()}
		x.out = newLink[T](g, x)
		for i, s := range srcs {
			l := &x.legs[i]
			l.x, l.in = x, s.open(g)
			l.in.in = l
			l.in.pull()
		}
		x.end()
		return x.out
	}}
}

// from is the first leg from i on, around the end, for which f is true; -1 if there is none.
func (x *fan[T]) from(i int, f func(*inlet[T]) bool) int {
	for range x.legs {
		if f(&x.legs[i]) {
			return i
		}
		i = (i + 1) % len(x.legs)
	}
	return -1
}

func (x *fan[T]) demand() {
	i := -1
	if x.out.wanted() && len(x.legs) > 0 {
		i = x.choose(x)
	}
	if i < 0 {
		return
	}
	l := &x.legs[i]
	v := l.v
	var zero T
	l.v, l.has = zero, false
	x.out.push(v)
	l.in.pull()
	x.end()
}

// end completes when nothing is left.
func (x *fan[T]) end() {
	for i := range x.legs {
		if l := &x.legs[i]; l.has || !l.over {
			return
		}
	}
	x.out.complete()
}

func (x *fan[T]) cancelled() {
	for i := range x.legs {
		x.legs[i].in.cancel()
	}
}

func (l *inlet[T]) element(v T) { l.v, l.has = v, true; l.x.demand() }
func (l *inlet[T]) ended()      { l.over = true; l.x.demand(); l.x.end() }

func (l *inlet[T]) failed(err error) {
	l.x.cancelled()
	l.x.out.fail(err)
}

// Pair is an element of each of two sources.
type Pair[A, B any] struct {
	First  A
	Second B
}

// Zip gives an element of each source at a time, and ends with the first source that ends.
func Zip[A, B any](a Source[A], b Source[B]) Source[Pair[A, B]] {
	return ZipWith(a, b, func(a A, b B) (Pair[A, B], error) { return Pair[A, B]{a, b}, nil })
}

// ZipWith is Zip with a function that makes one element of two.
func ZipWith[A, B, C any](a Source[A], b Source[B], f func(A, B) (C, error)) Source[C] {
	pairs := ZipN(Map(a, func(v A) any { return v }), Map(b, func(v B) any { return v }))
	return strict(pairs, func(all []any) (C, error) {
		first, _ := all[0].(A)
		second, _ := all[1].(B)
		return f(first, second)
	})
}

// strict is Try without a decider.
func strict[A, B any](src Source[A], f func(A) (B, error)) Source[B] {
	return each(src, func() func(*Pipe[A, B], A) error {
		return func(p *Pipe[A, B], v A) error {
			b, err := f(v)
			if err != nil {
				p.Fail(err)
			} else {
				p.Push(b)
			}
			return nil
		}
	})
}

// ZipN is Zip for any number of sources of one type.
func ZipN[T any](srcs ...Source[T]) Source[[]T] {
	return Source[[]T]{func(g *Graph) *link[[]T] {
		x := &zip[T]{legs: make([]zipped[T], len(srcs))}
		x.out = newLink[[]T](g, x)
		for i, s := range srcs {
			l := &x.legs[i]
			l.x, l.in = x, s.open(g)
			l.in.in = l
			l.in.pull()
		}
		if len(srcs) == 0 {
			x.out.complete()
		}
		return x.out
	}}
}

type zip[T any] struct {
	out  *link[[]T]
	legs []zipped[T]
}

type zipped[T any] struct {
	x   *zip[T]
	in  *link[T]
	v   T
	has bool
}

func (x *zip[T]) demand() {
	if !x.out.wanted() {
		return
	}
	for i := range x.legs {
		if !x.legs[i].has {
			return
		}
	}
	all := make([]T, len(x.legs))
	for i := range x.legs {
		l := &x.legs[i]
		all[i] = l.v
		var zero T
		l.v, l.has = zero, false
		l.in.pull()
	}
	x.out.push(all)
	for i := range x.legs {
		if !x.legs[i].in.open() {
			x.end()
		}
	}
}

func (x *zip[T]) end() {
	x.cancelled()
	x.out.complete()
}

func (x *zip[T]) cancelled() {
	for i := range x.legs {
		x.legs[i].in.cancel()
	}
}

func (l *zipped[T]) element(v T) { l.v, l.has = v, true; l.x.demand() }

func (l *zipped[T]) ended() {
	if !l.has {
		l.x.end()
	}
}

func (l *zipped[T]) failed(err error) {
	l.x.cancelled()
	l.x.out.fail(err)
}
