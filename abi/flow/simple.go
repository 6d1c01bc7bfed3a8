package flow

// step is a stage of one function.
type step[A, B any] struct {
	Plain[A, B]
	f func(p *Pipe[A, B], v A) error
}

func (s *step[A, B]) OnElement(p *Pipe[A, B], v A) error { return s.f(p, v) }

// each puts a stage of one function behind a source; begin makes it for each stream.
func each[A, B any](src Source[A], begin func() func(p *Pipe[A, B], v A) error) Source[B] {
	return Via(src, func() Stage[A, B] { return &step[A, B]{f: begin()} })
}

// lasting is a stage with a function for elements and one for the end.
type lasting[A, B any] struct {
	step[A, B]
	end func(p *Pipe[A, B])
}

func (s *lasting[A, B]) OnEnd(p *Pipe[A, B]) error {
	s.end(p)
	p.Complete()
	return nil
}

// Map turns each element into another one.
func Map[A, B any](src Source[A], f func(A) B) Source[B] {
	return Via(src, func() Stage[A, B] { return &mapped[A, B]{f: f} })
}

type mapped[A, B any] struct {
	Plain[A, B]
	f func(A) B
}

func (s *mapped[A, B]) OnElement(p *Pipe[A, B], v A) error { p.out.push(s.f(v)); return nil }

// Try is Map with a function that can fail.
func Try[A, B any](src Source[A], f func(A) (B, error)) Source[B] {
	return each(src, func() func(*Pipe[A, B], A) error {
		return func(p *Pipe[A, B], v A) error {
			b, err := f(v)
			if err == nil {
				p.Push(b)
			}
			return err
		}
	})
}

// Collect is Map that leaves out the elements for which ok is false.
func Collect[A, B any](src Source[A], f func(A) (v B, ok bool)) Source[B] {
	return each(src, func() func(*Pipe[A, B], A) error {
		return func(p *Pipe[A, B], v A) error {
			if b, ok := f(v); ok {
				p.Push(b)
			} else {
				p.Pull()
			}
			return nil
		}
	})
}

// Filter leaves out the elements for which f is false.
func Filter[T any](src Source[T], f func(T) bool) Source[T] {
	return Collect(src, func(v T) (T, bool) { return v, f(v) })
}

// Each turns an element into several, or none.
func Each[A, B any](src Source[A], f func(A) []B) Source[B] {
	return Stateful(src, func() func(A) ([]B, error) { return func(v A) ([]B, error) { return f(v), nil } })
}

// Stateful is Each with a function that can fail, made for each stream and at a restart.
func Stateful[A, B any](src Source[A], begin func() func(A) ([]B, error)) Source[B] {
	return each(src, func() func(*Pipe[A, B], A) error {
		f := begin()
		return func(p *Pipe[A, B], v A) error {
			all, err := f(v)
			for _, b := range all {
				p.Emit(b)
			}
			if len(all) == 0 && err == nil {
				p.Pull()
			}
			return err
		}
	})
}

// Grouped gives the elements n at a time; the last group may be smaller.
func Grouped[T any](src Source[T], n int) Source[[]T] { return Sliding(src, n, n) }

// Sliding gives windows of n elements, each of which begins by elements after the one before. The last one is smaller if the
// stream has elements that were in no window. n and by are 1 at least.
func Sliding[T any](src Source[T], n, by int) Source[[]T] {
	n, by = max(n, 1), max(by, 1)
	return Via(src, func() Stage[T, []T] {
		var window []T
		skip, unseen := 0, false
		s := &lasting[T, []T]{}
		s.f = func(p *Pipe[T, []T], v T) error {
			if skip > 0 {
				skip--
				p.Pull()
				return nil
			}
			window, unseen = append(window, v), true
			if len(window) < n {
				p.Pull()
				return nil
			}
			p.Push(window)
			skip, unseen = max(by-n, 0), false
			window = append([]T(nil), window[min(by, n):]...)
			return nil
		}
		s.end = func(p *Pipe[T, []T]) {
			if unseen {
				p.Emit(window)
			}
		}
		return s
	})
}

// Scan gives zero, and what f makes of the value before and each element.
func Scan[A, S any](src Source[A], zero S, f func(S, A) (S, error)) Source[S] {
	return Via(src, func() Stage[A, S] { return &scan[A, S]{now: zero, f: f} })
}

type scan[A, S any] struct {
	Plain[A, S]
	now   S
	begun bool
	f     func(S, A) (S, error)
}

func (s *scan[A, S]) OnDemand(p *Pipe[A, S]) error {
	if s.begun {
		p.Pull()
		return nil
	}
	s.begun = true
	p.Push(s.now)
	return nil
}

func (s *scan[A, S]) OnElement(p *Pipe[A, S], v A) (err error) {
	var next S
	if next, err = s.f(s.now, v); err == nil {
		s.now = next
		p.Push(next)
	}
	return err
}

func (s *scan[A, S]) OnEnd(p *Pipe[A, S]) error {
	if !s.begun {
		p.Emit(s.now)
	}
	p.Complete()
	return nil
}

// Fold gives one element at the end: what f made of zero and all elements.
func Fold[A, S any](src Source[A], zero S, f func(S, A) (S, error)) Source[S] {
	return Via(src, func() Stage[A, S] {
		now := zero
		s := &lasting[A, S]{end: func(p *Pipe[A, S]) { p.Emit(now) }}
		s.f = func(p *Pipe[A, S], v A) error {
			next, err := f(now, v)
			if err == nil {
				now = next
				p.Pull()
			}
			return err
		}
		return s
	})
}

// Reduce is Fold that begins with the first element; it fails with ErrEmpty without one.
func Reduce[T any](src Source[T], f func(T, T) (T, error)) Source[T] {
	type sum struct {
		v   T
		any bool
	}
	all := Fold(src, sum{}, func(s sum, v T) (_ sum, err error) {
		if s.any {
			v, err = f(s.v, v)
		}
		return sum{v, true}, err
	})
	return Try(all, func(s sum) (T, error) {
		if !s.any {
			return s.v, ErrEmpty
		}
		return s.v, nil
	})
}

// Take gives the first n elements.
func Take[T any](src Source[T], n int) Source[T] {
	if n <= 0 {
		return Empty[T]()
	}
	return each(src, func() func(*Pipe[T, T], T) error {
		left := n
		return func(p *Pipe[T, T], v T) error {
			p.Push(v)
			if left--; left == 0 {
				p.Complete()
			}
			return nil
		}
	})
}

// TakeWhile gives elements until f is false for one.
func TakeWhile[T any](src Source[T], f func(T) bool) Source[T] {
	return each(src, func() func(*Pipe[T, T], T) error {
		return func(p *Pipe[T, T], v T) error {
			if f(v) {
				p.Push(v)
			} else {
				p.Complete()
			}
			return nil
		}
	})
}

// Drop leaves out the first n elements.
func Drop[T any](src Source[T], n int) Source[T] {
	return Lazily(func(*Graph) Source[T] {
		left := n
		return DropWhile(src, func(T) bool { left--; return left >= 0 })
	})
}

// DropWhile leaves out elements until f is false for one.
func DropWhile[T any](src Source[T], f func(T) bool) Source[T] {
	return each(src, func() func(*Pipe[T, T], T) error {
		dropping := true
		return func(p *Pipe[T, T], v T) error {
			if dropping = dropping && f(v); dropping {
				p.Pull()
			} else {
				p.Push(v)
			}
			return nil
		}
	})
}

// Limit fails with ErrLimit behind n elements.
func Limit[T any](src Source[T], n int) Source[T] {
	return Stateful(src, func() func(T) ([]T, error) {
		left := n
		return func(v T) ([]T, error) {
			if left--; left < 0 {
				return nil, ErrLimit
			}
			return []T{v}, nil
		}
	})
}

// Recover gives one last element instead of a failure, if ok.
func Recover[T any](src Source[T], f func(error) (v T, ok bool)) Source[T] {
	return RecoverWith(src, 1, func(err error) (Source[T], bool) {
		v, ok := f(err)
		return From(v), ok
	})
}

// MapError turns a failure into another one.
func MapError[T any](src Source[T], f func(error) error) Source[T] {
	return RecoverWith(src, 1, func(err error) (Source[T], bool) { return Failed[T](f(err)), true })
}

// Again starts the source once more when it has failed, at most times in all: with a source that can give its elements again, such as
// one that takes them from another actor, a stream outlives failures in front of it. Elements that it had given come again.
func Again[T any](src Source[T], times int) Source[T] {
	return RecoverWith(src, times, func(error) (Source[T], bool) { return src, true })
}

// RecoverWith goes on with another source instead of a failure, if ok, up to times times.
func RecoverWith[T any](src Source[T], times int, f func(error) (src Source[T], ok bool)) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		x := &recoverer[T]{relay: newRelay[T](g), left: times, f: f, decide: g.decide}
		x.follow(src.open(g), x)
		return x.out
	}}
}

type recoverer[T any] struct {
	relay[T]
	left   int
	f      func(error) (Source[T], bool)
	decide Decider
}

func (x *recoverer[T]) failed(err error) {
	if x.left > 0 && x.out.is&done == 0 {
		x.left--
		if src, ok := x.f(err); ok {
			x.follow(src.openLater(x.out.g, x.decide), x)
			return
		}
	}
	x.out.fail(err)
}

// relay passes on what comes from one link after the other. It is the giver of out.
type relay[T any] struct {
	out *link[T]
	in  *link[T]
}

func newRelay[T any](g *Graph) relay[T] { return relay[T]{out: newLink[T](g, nil)} }

// follow goes on with another link; self is the stage that has the relay.
func (r *relay[T]) follow(in *link[T], self interface {
	taker[T]
	giver
}) {
	r.in, r.out.out, in.in = in, self, self
	if r.out.wanted() {
		in.pull()
	}
}

func (r *relay[T]) element(v T)      { r.out.push(v) }
func (r *relay[T]) ended()           { r.out.complete() }
func (r *relay[T]) failed(err error) { r.out.fail(err) }
func (r *relay[T]) demand()          { r.in.pull() }
func (r *relay[T]) cancelled()       { r.in.cancel() }
