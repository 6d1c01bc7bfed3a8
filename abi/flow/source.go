package flow

import "time"

// Source is a blueprint with an open end that elements leave from. It is immutable, and may be a part of any number of streams. The
// zero value is empty.
type Source[T any] struct{ build func(g *Graph) *link[T] }

func (s Source[T]) open(g *Graph) *link[T] {
	if s.build == nil {
		return Empty[T]().build(g)
	}
	return s.build(g)
}

// openLater is open for a stage that runs, with the decider that held when it was built.
func (s Source[T]) openLater(g *Graph, d Decider) (l *link[T]) {
	g.deciding(d, func() { l = s.open(g) })
	return l
}

// generator gives what next returns.
type generator[T any] struct {
	out  *link[T]
	next func() (T, bool, error)
	stop func()
}

func (x *generator[T]) demand() {
	v, ok, err := x.next()
	if ok && err == nil {
		x.out.push(v)
		return
	}
	x.cancelled()
	if err != nil {
		x.out.fail(err)
	} else {
		x.out.complete()
	}
}

func (x *generator[T]) cancelled() {
	if x.stop != nil {
		x.stop()
		x.stop = nil
	}
}

// Resource opens something when the stream starts, reads one element for each demand until ok is false, and closes it at the end: behind
// the last element, after a failure, and when nothing more is wanted. close may be nil.
func Resource[R, T any](open func() (R, error), read func(R) (v T, ok bool, err error), close func(R)) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		r, err := open()
		x := &generator[T]{next: func() (v T, ok bool, _ error) {
			if err != nil {
				return v, false, err
			}
			return read(r)
		}}
		if close != nil && err == nil {
			x.stop = func() { close(r) }
		}
		x.out = newLink[T](g, x)
		return x.out
	}}
}

// Generate makes elements with the function that begin returns for each stream, until ok is false.
func Generate[T any](begin func() func() (v T, ok bool)) Source[T] {
	return Resource(func() (func() (T, bool), error) { return begin(), nil },
		func(next func() (T, bool)) (T, bool, error) { v, ok := next(); return v, ok, nil }, nil)
}

// Unfold makes elements from a state: f returns the next state and an element, until ok is false.
func Unfold[S, T any](first S, f func(S) (next S, v T, ok bool)) Source[T] {
	return Generate(func() func() (T, bool) {
		s := first
		return func() (v T, ok bool) {
			s, v, ok = f(s)
			return v, ok
		}
	})
}

// From is a source of values.
func From[T any](vs ...T) Source[T] {
	return Unfold(0, func(i int) (int, T, bool) {
		if i < len(vs) {
			return i + 1, vs[i], true
		}
		var none T
		return i, none, false
	})
}

// Range is the integers from first to last.
func Range(first, last int) Source[int] {
	return Unfold(first, func(i int) (int, int, bool) { return i + 1, i, i <= last })
}

// Repeat is one value again and again.
func Repeat[T any](v T) Source[T] {
	return Generate(func() func() (T, bool) { return func() (T, bool) { return v, true } })
}

// Cycle is some values again and again; it fails with ErrEmpty if there are none.
func Cycle[T any](vs ...T) Source[T] {
	if len(vs) == 0 {
		return Failed[T](ErrEmpty)
	}
	return Unfold(0, func(i int) (int, T, bool) { return (i + 1) % len(vs), vs[i], true })
}

// Failed fails at once.
func Failed[T any](err error) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		l := newLink[T](g, silent{})
		l.fail(err)
		return l
	}}
}

// Empty ends at once.
func Empty[T any]() Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		l := newLink[T](g, silent{})
		l.complete()
		return l
	}}
}

// Never neither gives an element nor ends.
func Never[T any]() Source[T] {
	return Source[T]{func(g *Graph) *link[T] { return newLink[T](g, silent{}) }}
}

type silent struct{}

func (silent) demand()    {}
func (silent) cancelled() {}

// Lazily makes the source when the stream starts, for the graph that it is a part of.
func Lazily[T any](make func(g *Graph) Source[T]) Source[T] {
	return Source[T]{func(g *Graph) *link[T] { return make(g).open(g) }}
}

// Tick gives v after a delay, and then in each period that has passed. A tick that nobody wants is left out.
func Tick[T any](delay, period time.Duration, v T) Source[T] {
	return Via(Never[T](), func() Stage[T, T] { return &ticker[T]{delay: delay, period: max(period, 1), v: v} })
}

type ticker[T any] struct {
	Plain[T, T]
	delay, period time.Duration
	v             T
}

func (s *ticker[T]) OnStart(p *Pipe[T, T]) error        { p.After(0, s.delay); return nil }
func (s *ticker[T]) OnElement(p *Pipe[T, T], v T) error { return nil }
func (s *ticker[T]) OnTimer(p *Pipe[T, T], _ int) error {
	if p.Wanted() {
		p.Push(s.v)
	}
	p.After(0, s.period)
	return nil
}
