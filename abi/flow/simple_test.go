package flow

import (
	"errors"
	"fmt"
	"testing"
)

var errBad = errors.New("bad")

func double(n int) int { return 2 * n }
func even(n int) bool  { return n%2 == 0 }

func add(s, n int) (int, error) {
	if n < 0 {
		return 0, errBad
	}
	return s + n, nil
}

func always(d Directive) Decider { return func(error) Directive { return d } }

// N08.
func TestN08_Sources(t *testing.T) {
	gives(t, From(1, 2, 3), 1, 2, 3)
	gives(t, From[int]())
	gives(t, Source[int]{})
	gives(t, Range(3, 5), 3, 4, 5)
	gives(t, Range(5, 3))
	gives(t, Take(Repeat("x"), 2), "x", "x")
	gives(t, Take(Cycle(1, 2), 5), 1, 2, 1, 2, 1)
	fails(t, Cycle[int](), ErrEmpty)
	fails(t, Failed[int](errBad), errBad)
	gives(t, Empty[int]())
	gives(t, Unfold(1, func(n int) (int, int, bool) { return 2 * n, n, n < 20 }), 1, 2, 4, 8, 16)
	made := 0
	lazy := Lazily(func(*Graph) Source[int] { made++; return From(made) })
	gives(t, lazy, 1)
	gives(t, lazy, 2)
	gives(t, ZipWith(From(1, 2), From("a", "b", "c"), func(n int, s string) (string, error) { return fmt.Sprint(n, s), nil }), "1a", "2b")
	gives(t, Later(func(g *Graph, done func(int, error)) func() { done(7, nil); return nil }), 7)
	fails(t, Later(func(g *Graph, done func(int, error)) func() { done(0, errBad); return nil }), errBad)
	pages := func(g *Graph, from int, done func(Page[int, int], error)) func() {
		p := Page[int, int]{Next: from + 2, Last: from >= 4}
		for i := from; i < min(from+2, 5); i++ {
			p.Items = append(p.Items, i)
		}
		done(p, nil)
		return nil
	}
	gives(t, Pages(0, pages), 0, 1, 2, 3, 4)
	gives(t, Pages(0, pages), 0, 1, 2, 3, 4) // again

	_, c, b := between(t, func(Source[int]) Source[int] { return Never[int]() })
	c.ask().has()
	if over, _ := b.g.Over(); over || c.over {
		t.Error("it ends")
	}
	c.cancel()
}

// A resource is closed once: at the end, after a failure, when nothing more is wanted.
func TestN08_Resources(t *testing.T) {
	for _, c := range []struct {
		name string
		flow func(Source[int]) Source[int]
		err  error
		want []int
	}{
		{"end", func(s Source[int]) Source[int] { return s }, nil, []int{0, 1, 2}},
		{"failure", func(s Source[int]) Source[int] { return s }, errBad, []int{0, 1, 2}},
		{"cancelled", func(s Source[int]) Source[int] { return Take(s, 2) }, nil, []int{0, 1}},
		{"failure behind it", func(s Source[int]) Source[int] { return Try(s, func(n int) (int, error) { return n, errBad }) }, errBad, nil},
	} {
		open, closed := 0, 0
		src := Resource(func() (*int, error) { open++; return new(int), nil }, func(n *int) (int, bool, error) {
			*n++
			if *n > 3 {
				return 0, false, c.err
			}
			return *n - 1, true, nil
		}, func(*int) { closed++ })
		got, err := all(t, c.flow(src))
		if fmt.Sprint(got) != fmt.Sprint(c.want) || !errors.Is(err, c.err) || open != 1 || closed != 1 {
			t.Errorf("%s: %v %v, opened %d, closed %d", c.name, got, err, open, closed)
		}
	}
	fails(t, Resource(func() (int, error) { return 0, errBad }, func(int) (int, bool, error) { t.Error("read"); return 0, false, nil },
		func(int) { t.Error("closed") }), errBad)
}

// N09.
func TestN09_Sinks(t *testing.T) {
	var got []string
	note := func(v any, err error) { got = append(got, fmt.Sprint(v, " ", err)) }
	run := func(s Stream) { start(t, s).over() }
	run(To(Range(1, 3), Head(func(n int, err error) { note(n, err) })))
	run(To(Empty[int](), Head(func(n int, err error) { note(n, err) })))
	run(To(Range(1, 3), Last(func(n int, err error) { note(n, err) })))
	run(To(Failed[int](errBad), Last(func(n int, err error) { note(n, err) })))
	run(To(Range(1, 3), Seq(3, func(n []int, err error) { note(n, err) })))
	run(To(Range(1, 4), Seq(3, func(n []int, err error) { note(n, err) })))
	run(To(Range(1, 3), Result(10, add, func(n int, err error) { note(n, err) })))
	run(To(From(1, -1, 2), Result(10, add, func(n int, err error) { note(n, err) })))
	run(SuperviseAll(To(From(1, -1, 2), Result(10, add, func(n int, err error) { note(n, err) })), always(Resume)))
	run(To(Range(1, 3), OnEnd[int](func(err error) { note("end", err) })))
	run(To(Range(1, 3), Ignore[int]()))
	run(To(Range(1, 3), Sink[int]{}))
	sum := 0
	run(To(Range(1, 3), ForEach(func(n int) error { sum += n; return nil })))
	run(To(Range(1, 9), ForEach(func(n int) error { sum += n; return ErrEnough })))
	note(sum, nil)
	want := []string{
		"1 <nil>", "0 " + ErrEmpty.Error(), "3 <nil>", "0 bad", "[1 2 3] <nil>", "[1 2 3] " + ErrLimit.Error(), "16 <nil>", "11 bad",
		"13 <nil>", "end <nil>", "7 <nil>",
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("%d: got %q\nwant %q", i, got, want)
		}
	}
	h, _, b := between(t, func(s Source[int]) Source[int] { return s })
	_ = h
	h.gone = false
	_ = b
	h2 := &hand[int]{}
	b2 := start(t, To(h2.source(), Cancelled[int]()))
	if !h2.gone || h2.asked != 0 {
		t.Error("not cancelled")
	}
	b2.over()
}

// N10.
func TestN10_SimpleStages(t *testing.T) {
	gives(t, Map(Range(1, 3), double), 2, 4, 6)
	gives(t, Filter(Range(1, 5), even), 2, 4)
	gives(t, Collect(Range(1, 4), func(n int) (string, bool) { return fmt.Sprint(n), even(n) }), "2", "4")
	gives(t, Each(Range(1, 3), func(n int) []int { return make([]int, n-1) }), 0, 0, 0)
	gives(t, Stateful(Range(1, 3), func() func(int) ([]int, error) {
		sum := 0
		return func(n int) ([]int, error) { sum += n; return []int{n, sum}, nil }
	}), 1, 1, 2, 3, 3, 6)
	gives(t, Grouped(Range(1, 5), 2), []int{1, 2}, []int{3, 4}, []int{5})
	gives(t, Grouped(Range(1, 4), 2), []int{1, 2}, []int{3, 4})
	gives(t, Sliding(Range(1, 4), 2, 1), []int{1, 2}, []int{2, 3}, []int{3, 4})
	gives(t, Sliding(Range(1, 1), 2, 1), []int{1})
	gives(t, Sliding(Range(1, 7), 2, 3), []int{1, 2}, []int{4, 5}, []int{7})
	gives(t, Sliding(Range(1, 5), 3, 2), []int{1, 2, 3}, []int{3, 4, 5})
	gives(t, Sliding(Range(1, 6), 3, 2), []int{1, 2, 3}, []int{3, 4, 5}, []int{5, 6})
	gives(t, Scan(From(1, 3), 0, add), 0, 1, 4)
	gives(t, Scan(Empty[int](), 5, add), 5)
	gives(t, Fold(Range(1, 4), 0, add), 10)
	gives(t, Fold(Empty[int](), 3, add), 3)
	fails(t, Fold(From(1, -1), 0, add), errBad)
	gives(t, Reduce(Range(1, 4), add), 10)
	gives(t, Reduce(Range(7, 7), add), 7)
	fails(t, Reduce(Empty[int](), add), ErrEmpty)
	gives(t, Take(Range(1, 9), 3), 1, 2, 3)
	gives(t, Take(Range(1, 2), 3), 1, 2)
	gives(t, Take(Range(1, 2), 0))
	gives(t, TakeWhile(Range(1, 9), func(n int) bool { return n < 3 }), 1, 2)
	drop := Drop(Range(1, 5), 3)
	gives(t, drop, 4, 5)
	gives(t, drop, 4, 5) // each stream counts for itself
	gives(t, Drop(Range(1, 2), 0), 1, 2)
	gives(t, DropWhile(From(1, 2, 3, 1), func(n int) bool { return n < 3 }), 3, 1)
	gives(t, Limit(Range(1, 3), 3), 1, 2, 3)
	fails(t, Limit(Range(1, 4), 3), ErrLimit, 1, 2, 3)
}

// N05: the examples of Akka's documentation.
func TestN05_SupervisionInStreams(t *testing.T) {
	divide := func(n int) (int, error) {
		if n == 0 {
			return 0, errBad
		}
		return 100 / n, nil
	}
	sum := func(src Source[int]) Source[int] { return Fold(src, 0, add) }
	fails(t, sum(Try(Range(0, 5), divide)), errBad)
	fails(t, sum(Supervise(Try(Range(0, 5), divide), always(Stop))), errBad)
	gives(t, sum(Supervise(Try(Range(0, 5), divide), always(Resume))), 228)
	gives(t, Supervise(sum(Try(Range(0, 5), divide)), always(Resume)), 228)

	scan := Scan(From(1, 3, -1, 5, 7), 0, add)
	gives(t, Supervise(scan, always(Restart)), 0, 1, 4, 0, 5, 12)
	gives(t, Supervise(scan, always(Resume)), 0, 1, 4, 9, 16)
	fails(t, scan, errBad, 0, 1, 4)

	// The inner one counts; the outer one is for what is behind it.
	inner := Supervise(Try(Range(0, 5), divide), always(Resume))
	gives(t, Supervise(sum(inner), always(Stop)), 228)
	fails(t, Supervise(Try(Supervise(Range(0, 5), always(Resume)), divide), always(Stop)), errBad)

	// What a decider sees, and that a restart clears what a stage has gathered.
	var seen []error
	gives(t, Supervise(Grouped(Try(From(1, 0, 2), divide), 2), func(err error) Directive { seen = append(seen, err); return Resume }), []int{100, 50})
	if len(seen) != 1 || seen[0] != errBad {
		t.Errorf("%v", seen)
	}
	pairs := Supervise(Stateful(From(1, 2, -1, 3, 4), func() func(int) ([]int, error) {
		n := 0
		return func(v int) ([]int, error) {
			if n++; v < 0 {
				return nil, errBad
			}
			return []int{n}, nil
		}
	}), always(Restart))
	gives(t, pairs, 1, 2, 1, 2)

	// The last element may be the bad one.
	gives(t, Supervise(Try(From(1, 0), divide), always(Resume)), 100)
	gives(t, Supervise(Scan(From(1, -1), 0, add), always(Restart)), 0, 1, 0)

	// Junctions, and sources, ask no decider.
	fails(t, Supervise(ZipWith(Range(0, 5), Range(0, 5), func(a, _ int) (int, error) { return divide(a) }), always(Resume)), errBad)
	fails(t, Supervise(Resource(func() (int, error) { return 0, nil }, func(int) (int, bool, error) { return 0, false, errBad }, nil), always(Resume)), errBad)

	// A decider holds for what is made while the stream runs, too.
	nested := FlatConcat(Range(0, 1), func(int) Source[int] { return Try(Range(0, 2), divide) })
	gives(t, Supervise(nested, always(Resume)), 100, 50, 100, 50)
	fails(t, nested, errBad)
}

// N06.
func TestN06_Recover(t *testing.T) {
	broken := Concat(From(1, 2), Failed[int](errBad))
	gives(t, Recover(broken, func(err error) (int, bool) { return 9, err == errBad }), 1, 2, 9)
	fails(t, Recover(broken, func(error) (int, bool) { return 9, false }), errBad, 1, 2)
	gives(t, RecoverWith(broken, 1, func(error) (Source[int], bool) { return From(7, 8), true }), 1, 2, 7, 8)
	fails(t, RecoverWith(broken, 2, func(error) (Source[int], bool) { return broken, true }), errBad, 1, 2, 1, 2, 1, 2)
	fails(t, Again(broken, 1), errBad, 1, 2, 1, 2)
	other := errors.New("other")
	fails(t, MapError(broken, func(error) error { return other }), other, 1, 2)
	gives(t, MapError(From(1), func(error) error { return other }), 1)
	// A source that recovers is a bulkhead: what is beside it goes on.
	got, err := all(t, Merge(Recover(broken, func(error) (int, bool) { return 9, true }), From(5)))
	if len(got) != 4 || err != nil {
		t.Errorf("%v %v", got, err)
	}
}

// N06: a failure overtakes elements that wait in buffers.
func TestN06_FailuresOvertake(t *testing.T) {
	h, c, b := between(t, func(s Source[int]) Source[int] { return Buffer(s, 8, Block) })
	h.send(1, 2, 3)
	h.fail(errBad)
	c.ask().has()
	c.ends(errBad)
	b.over()
	h, c, b = between(t, func(s Source[int]) Source[int] { return Buffer(s, 8, Block) })
	h.send(1, 2, 3)
	h.end() // an end does not
	c.ask().ask().ask().has(1, 2, 3)
	c.ends(nil)
	b.over()
}

// N02: an element moves only when it was asked for, and a stage that pushes without demand fails the stream.
func TestN02_NothingMovesWithoutDemand(t *testing.T) {
	h, c, b := between(t, func(s Source[int]) Source[int] { return Filter(Map(s, double), func(n int) bool { return n > 2 }) })
	h.wants(0)
	c.ask()
	h.wants(1)
	h.send(1)
	c.has()
	h.wants(1) // the filter has asked again
	h.send(2)
	c.has(4)
	h.wants(0)
	c.ask()
	h.send(3)
	c.has(6)
	c.cancel()
	if !h.gone {
		t.Error("the source was not cancelled")
	}
	b.over()

	h, c, _ = between(t, func(s Source[int]) Source[int] {
		return each(s, func() func(*Pipe[int, int], int) error {
			return func(p *Pipe[int, int], v int) error { p.Push(v); p.Push(v); return nil }
		})
	})
	c.ask()
	h.send(1)
	c.ends(ErrNoDemand)
	if !h.gone {
		t.Error("the source was not cancelled")
	}
}

// What is emitted waits for demand, in order, before anything else; the end waits for it, too.
func TestEmitted(t *testing.T) {
	h, c, b := between(t, func(s Source[int]) Source[int] { return Each(s, func(n int) []int { return []int{n, n + 1, n + 2} }) })
	c.ask()
	h.send(1)
	c.has(1)
	c.ask().has(2)
	h.wants(0)
	h.end()
	if c.over {
		t.Error("the end has overtaken an element")
	}
	c.ask().has(3)
	c.ends(nil)
	b.over()
}

// stepped has every handler of a stage.
type stepped struct{ log *[]string }

func (s stepped) note(text string) { *s.log = append(*s.log, text) }

func (s stepped) OnStart(p *Pipe[int, int]) error { s.note("start"); return nil }
func (s stepped) OnElement(p *Pipe[int, int], v int) error {
	s.note(fmt.Sprint("element ", v))
	if v < 0 {
		return errBad
	}
	p.Push(v)
	return nil
}
func (s stepped) OnDemand(p *Pipe[int, int]) error { s.note("demand"); p.Pull(); return nil }
func (s stepped) OnEnd(p *Pipe[int, int]) error    { s.note("end"); p.Complete(); return nil }
func (s stepped) OnFailure(p *Pipe[int, int], err error) error {
	s.note("failure")
	return err
}
func (s stepped) OnTimer(p *Pipe[int, int], key int) error {
	s.note(fmt.Sprint("timer ", key))
	return nil
}
func (s stepped) OnClose() { s.note("close") }

func TestHandlersOfAStage(t *testing.T) {
	for _, c := range []struct {
		name string
		src  Source[int]
		d    Directive
		want string
	}{
		{"end", From(1), Stop, "[start demand element 1 demand end close]"},
		{"failure", Failed[int](errBad), Stop, "[start demand failure close]"},
		{"own failure", From(-1), Stop, "[start demand element -1 close]"},
		{"resume", From(-1, 2), Resume, "[start demand element -1 demand element 2 demand end close]"},
		{"restart", From(-1, 2), Restart, "[start demand element -1 close start demand element 2 demand end close]"},
	} {
		var log []string
		_, _ = all(t, Supervise(Via(c.src, func() Stage[int, int] { return stepped{&log} }), always(c.d)))
		if fmt.Sprint(log) != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.name, log, c.want)
		}
	}
	var log []string
	_, c, b := between(t, func(s Source[int]) Source[int] { return Via(s, func() Stage[int, int] { return stepped{&log} }) })
	c.cancel()
	if fmt.Sprint(log) != "[start close]" {
		t.Errorf("cancelled: %v", log)
	}
	b.over()
}
