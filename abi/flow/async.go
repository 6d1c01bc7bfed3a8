package flow

// Call begins something that is not over when it returns, such as an ask, and calls done once, then or in a later turn of the graph's
// runner. The function that it returns gives it up, and may be nil.
type Call[A, B any] func(g *Graph, v A, done func(B, error)) (cancel func())

// MapAsync turns each element into another one by a call, of which n are under way at most. Results keep the order of the elements. An
// error goes to the decider; Restart is as Resume.
func MapAsync[A, B any](src Source[A], n int, call Call[A, B]) Source[B] {
	return calling(src, n, true, call)
}

// MapAsyncUnordered is MapAsync that gives results as they come.
func MapAsyncUnordered[A, B any](src Source[A], n int, call Call[A, B]) Source[B] {
	return calling(src, n, false, call)
}

func calling[A, B any](src Source[A], n int, ordered bool, call Call[A, B]) Source[B] {
	return Via(src, func() Stage[A, B] { return &calls[A, B]{most: max(n, 1), ordered: ordered, call: call} })
}

type calls[A, B any] struct {
	Plain[A, B]
	most    int
	ordered bool
	call    Call[A, B]
	open    fifo[*called[B]] // unordered: those that are done
	under   []*called[B]     // way
	inside  bool             // OnElement
	over    bool
}

type called[B any] struct {
	v      B
	err    error
	done   bool
	cancel func()
}

func (s *calls[A, B]) OnElement(p *Pipe[A, B], v A) error {
	c := &called[B]{}
	s.under = append(s.under, c)
	if s.ordered {
		s.open.push(c)
	}
	s.inside = true
	c.cancel = s.call(p.g, v, func(b B, err error) {
		if s.over || c.done {
			return
		}
		c.v, c.err, c.done = b, err, true
		for i, x := range s.under {
			if x == c {
				s.under = append(s.under[:i], s.under[i+1:]...)
				break
			}
		}
		if !s.ordered {
			s.open.push(c)
		}
		if !s.inside {
			_ = s.OnDemand(p)
		}
	})
	s.inside = false
	return s.OnDemand(p)
}

// OnDemand implements Stage: it gives what is ready.
func (s *calls[A, B]) OnDemand(p *Pipe[A, B]) error {
	for s.open.n > 0 && s.open.ring[s.open.at].done {
		c := s.open.ring[s.open.at]
		if c.err != nil {
			s.open.pop()
			if d := p.g.directive(p.decide, c.err); d != Resume && d != Restart {
				p.Fail(c.err)
				return nil
			}
			continue
		}
		if !p.Wanted() {
			break
		}
		p.Push(s.open.pop().v)
	}
	waiting := s.open.n
	if !s.ordered {
		waiting += len(s.under)
	}
	switch {
	case p.Ended() && waiting == 0:
		p.Complete()
	case waiting < s.most:
		p.Pull()
	}
	return nil
}

func (s *calls[A, B]) OnEnd(p *Pipe[A, B]) error { return s.OnDemand(p) }

func (s *calls[A, B]) OnClose() {
	s.over = true
	for _, c := range s.under {
		if c.cancel != nil {
			c.cancel()
		}
	}
	s.under = nil
}

// Later is a source of one element that a call gives.
func Later[T any](call func(g *Graph, done func(T, error)) (cancel func())) Source[T] {
	return MapAsync(From(struct{}{}), 1, func(g *Graph, _ struct{}, done func(T, error)) func() { return call(g, done) })
}

// Page is a part of what [Pages] gives, and where the next one begins.
type Page[S, T any] struct {
	Items []T
	Next  S
	Last  bool
}

// Pages gives what calls return page by page, each of which is begun when all of the page before was taken: a list of a service,
// or the parts of its stream.
func Pages[S, T any](first S, call Call[S, Page[S, T]]) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		at, last := first, false
		starts := Unfold(0, func(int) (int, S, bool) { return 0, at, !last })
		pages := MapAsync(starts, 1, func(g *Graph, s S, done func(Page[S, T], error)) func() {
			return call(g, s, func(p Page[S, T], err error) {
				if err == nil {
					at, last = p.Next, p.Last
				}
				done(p, err)
			})
		})
		return Each(pages, func(p Page[S, T]) []T { return p.Items }).open(g)
	}}
}
