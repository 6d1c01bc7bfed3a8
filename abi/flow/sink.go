package flow

// Sink is a blueprint with an open end that elements arrive at.
type Sink[T any] struct {
	attach func(g *Graph, in *link[T])
}

// To is the stream from a source to a sink.
func To[T any](src Source[T], sink Sink[T]) Stream {
	return Stream{func(g *Graph) { sink.connect(g, src.open(g)) }}
}

func (s Sink[T]) connect(g *Graph, in *link[T]) {
	if s.attach == nil {
		s = Ignore[T]()
	}
	s.attach(g, in)
}

// drain calls a function for each element.
type drain[T any] struct {
	g      *Graph
	in     *link[T]
	each   func(T) error
	end    func(error)
	decide Decider
}

// Drain is a sink of functions, which begin makes for each stream. each is called for all elements; its errors go to the
// decider, except for ErrEnough, which ends the stream without a failure. end is called once, with the failure or nil. Both
// may be nil.
func Drain[T any](begin func(g *Graph) (each func(T) error, end func(error))) Sink[T] {
	return Sink[T]{func(g *Graph, in *link[T]) {
		d := &drain[T]{g: g, in: in, decide: g.decide}
		d.each, d.end = begin(g)
		in.in = d
		in.pull()
	}}
}

func (d *drain[T]) element(v T) {
	if d.each != nil {
		if err := d.each(v); err == ErrEnough {
			d.in.cancel()
			d.finish(nil)
			return
		} else if err != nil && d.g.directive(d.decide, err) != Resume && d.g.directive(d.decide, err) != Restart {
			d.in.cancel()
			d.failed(err)
			return
		}
	}
	d.in.pull()
}

func (d *drain[T]) ended() { d.finish(nil) }

func (d *drain[T]) failed(err error) {
	d.g.failed(err)
	d.finish(err)
}

func (d *drain[T]) finish(err error) {
	if d.end != nil {
		d.end(err)
		d.end = nil
	}
}

// ForEach calls f for each element.
func ForEach[T any](f func(T) error) Sink[T] {
	return Drain(func(*Graph) (func(T) error, func(error)) { return f, nil })
}

// Ignore takes all elements and drops them.
func Ignore[T any]() Sink[T] { return OnEnd[T](nil) }

// OnEnd drops all elements and calls f at the end, with the failure or nil.
func OnEnd[T any](f func(error)) Sink[T] {
	return Drain(func(*Graph) (func(T) error, func(error)) { return nil, f })
}

// Cancelled takes nothing.
func Cancelled[T any]() Sink[T] {
	return Sink[T]{func(_ *Graph, in *link[T]) { in.in = nothing[T]{}; in.cancel() }}
}

type nothing[T any] struct{}

func (nothing[T]) element(T)    {}
func (nothing[T]) ended()       {}
func (nothing[T]) failed(error) {}

// Result calls then once with what f made of the elements, from zero on. f may return ErrEnough.
func Result[S, T any](zero S, f func(S, T) (S, error), then func(S, error)) Sink[T] {
	return Drain(func(*Graph) (func(T) error, func(error)) {
		s := zero
		return func(v T) error {
			next, err := f(s, v)
			if err == nil || err == ErrEnough {
				s = next
			}
			return err
		}, func(err error) { then(s, err) }
	})
}

// Head calls then with the first element, and takes no more; ErrEmpty if there is none.
func Head[T any](then func(T, error)) Sink[T] { return some(ErrEnough, then) }

// Last calls then with the last element; ErrEmpty if there is none.
func Last[T any](then func(T, error)) Sink[T] { return some(nil, then) }

func some[T any](behind error, then func(T, error)) Sink[T] {
	return Drain(func(*Graph) (func(T) error, func(error)) {
		var kept T
		any := false
		return func(v T) error { kept, any = v, true; return behind }, func(err error) {
			if err == nil && !any {
				err = ErrEmpty
			}
			then(kept, err)
		}
	})
}

// Seq calls then with all elements. The stream fails with ErrLimit if there are more than limit.
func Seq[T any](limit int, then func([]T, error)) Sink[T] {
	return Drain(func(*Graph) (func(T) error, func(error)) {
		var all []T
		return func(v T) error {
				if len(all) >= limit {
					return ErrLimit
				}
				all = append(all, v)
				return nil
			}, func(err error) {
				then(all, err)
			}
	})
}
