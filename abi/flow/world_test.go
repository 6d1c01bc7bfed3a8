package flow

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"
)

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// bench runs a graph in virtual time.
type bench struct {
	t   testing.TB
	g   *Graph
	now time.Time
}

func start(t testing.TB, s Stream) *bench {
	t.Helper()
	b := &bench{t: t, g: s.Start(nil, epoch), now: epoch}
	b.run()
	return b
}

func (b *bench) run() {
	b.t.Helper()
	for range 10000 {
		if !b.g.Run(b.now, 100) {
			return
		}
	}
	b.t.Fatal("a stream without an end")
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	for end := b.now.Add(d); ; {
		next, ok := b.g.Next()
		if !ok || next.After(end) {
			b.now = end
			b.run()
			return
		}
		b.now = next
		b.run()
	}
}

// all are the elements of a source, for an hour at most.
func all[T any](t testing.TB, src Source[T]) ([]T, error) {
	t.Helper()
	var got []T
	var failure error
	ended := false
	b := start(t, To(src, Drain(func(*Graph) (func(T) error, func(error)) {
		return func(v T) error { got = append(got, v); return nil }, func(err error) { ended, failure = true, err }
	})))
	b.pass(time.Hour)
	over, err := b.g.Over()
	if !ended || !over {
		t.Fatalf("not over (%v, %v): %d links are open; got %v", ended, over, b.g.live, got)
	}
	if err != failure {
		t.Errorf("the graph failed with %v, the sink with %v", err, failure)
	}
	if _, left := b.g.Next(); left {
		t.Error("a timer is left")
	}
	return got, failure
}

func gives[T any](t testing.TB, src Source[T], want ...T) {
	t.Helper()
	got, err := all(t, src)
	if err != nil {
		t.Errorf("failed: %v; got %v", err, got)
	}
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func fails[T any](t testing.TB, src Source[T], with error, want ...T) {
	t.Helper()
	got, err := all(t, src)
	if !errors.Is(err, with) {
		t.Errorf("failed with %v, want %v", err, with)
	}
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// hand is a source that the test plays.
type hand[T any] struct {
	b      *bench
	out    *link[T]
	asked  int
	gone   bool
	opened int
}

func (h *hand[T]) demand()    { h.asked++ }
func (h *hand[T]) cancelled() { h.gone = true }

func (h *hand[T]) source() Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		h.opened++
		h.out = newLink[T](g, h)
		return h.out
	}}
}

// send pushes an element, which must have been asked for.
func (h *hand[T]) send(vs ...T) {
	h.b.t.Helper()
	for _, v := range vs {
		if h.asked == 0 {
			h.b.t.Fatalf("%v was not asked for", v)
		}
		h.asked--
		h.out.push(v)
		h.b.run()
	}
}

func (h *hand[T]) wants(n int) {
	h.b.t.Helper()
	if h.asked != n {
		h.b.t.Errorf("%d elements are asked for, want %d", h.asked, n)
	}
}

func (h *hand[T]) end()           { h.out.complete(); h.b.run() }
func (h *hand[T]) fail(err error) { h.out.fail(err); h.b.run() }

// cup is a sink that the test plays.
type cup[T any] struct {
	b    *bench
	in   *link[T]
	got  []T
	over bool
	err  error
}

func (c *cup[T]) element(v T)      { c.got = append(c.got, v) }
func (c *cup[T]) ended()           { c.over = true }
func (c *cup[T]) failed(err error) { c.over, c.err = true, err }

func (c *cup[T]) sink() Sink[T] {
	return Sink[T]{func(_ *Graph, in *link[T]) { c.in, in.in = in, c }}
}

// ask asks for an element.
func (c *cup[T]) ask() *cup[T] { c.in.pull(); c.b.run(); return c }

func (c *cup[T]) cancel() { c.in.cancel(); c.b.run() }

// has takes what came.
func (c *cup[T]) has(want ...T) {
	c.b.t.Helper()
	if fmt.Sprint(c.got) != fmt.Sprint(want) {
		c.b.t.Errorf("came %v, want %v", c.got, want)
	}
	c.got = nil
}

// ends expects the end.
func (c *cup[T]) ends(with error) {
	c.b.t.Helper()
	if !c.over || !errors.Is(c.err, with) {
		c.b.t.Errorf("over: %v, with %v, want %v", c.over, c.err, with)
	}
}

// between is a flow with both ends in the test's hands.
func between[A, B any](t testing.TB, flow func(Source[A]) Source[B]) (*hand[A], *cup[B], *bench) {
	h, c := &hand[A]{}, &cup[B]{}
	b := start(t, To(flow(h.source()), c.sink()))
	h.b, c.b = b, b
	return h, c, b
}

// over checks that nothing is left.
func (b *bench) over() {
	b.t.Helper()
	if over, _ := b.g.Over(); !over {
		b.t.Errorf("%d links are open", b.g.live)
	}
	if _, left := b.g.Next(); left {
		b.t.Error("a timer is left")
	}
}
