package flow

import (
	"fmt"
	"sort"
	"testing"
)

func sorted[T any](t *testing.T, src Source[T]) string {
	t.Helper()
	got, err := all(t, src)
	var texts []string
	for _, v := range got {
		texts = append(texts, fmt.Sprint(v))
	}
	sort.Strings(texts)
	return fmt.Sprint(texts, err)
}

// N15.
func TestN15_FanIn(t *testing.T) {
	less := func(a, b int) bool { return a < b }
	if got := sorted(t, Merge(From(1, 4), From(2), Empty[int](), From(3))); got != "[1 2 3 4]<nil>" && got != "[1 2 3 4] <nil>" {
		t.Error(got)
	}
	gives(t, Merge[int]())
	fails(t, Merge(Never[int](), Failed[int](errBad)), errBad)
	gives(t, Concat(From(1, 2), Empty[int](), From(3)), 1, 2, 3)
	gives(t, Prepend(From(1), From(0)), 0, 1)
	gives(t, MergeSorted(less, From(1, 4, 6), From(2, 3, 9), From[int]()), 1, 2, 3, 4, 6, 9)
	gives(t, Interleave(2, Range(1, 5), From(10, 20, 30)), 1, 2, 10, 20, 3, 4, 30, 5)
	gives(t, Interleave(1, Empty[int](), Range(1, 2)), 1, 2)
	gives(t, Zip(Range(1, 3), From("a", "b")), Pair[int, string]{1, "a"}, Pair[int, string]{2, "b"})
	gives(t, ZipN(Range(1, 3), Range(11, 12), Repeat(0)), []int{1, 11, 0}, []int{2, 12, 0})
	gives(t, ZipN[int]())
	fails(t, Zip(Never[int](), Failed[int](errBad)), errBad)

	// A source that has ended early ends a zip only when its last element was used.
	h, k, b := between(t, func(s Source[int]) Source[Pair[int, int]] { return Zip(From(1), s) })
	k.ask()
	if k.over {
		t.Error("it has ended with an element of the first source")
	}
	h.send(2)
	k.has(Pair[int, int]{1, 2})
	k.ends(nil)
	if !h.gone {
		t.Error("the other source was not cancelled")
	}
	b.over()
	_, k2, b := between(t, func(s Source[int]) Source[int] { return MergePreferred(s, Repeat(7)) })
	k2.ask().ask().has(7, 7)
	k2.cancel()
	b.over()
	h, k2, _ = between(t, func(s Source[int]) Source[int] { return MergePreferred(s, Repeat(7)) })
	h.send(1)
	k2.ask().has(1)
	h.send(2)
	k2.ask().ask().has(2, 7)
	// Sorting waits for all.
	h, k2, _ = between(t, func(s Source[int]) Source[int] { return MergeSorted(less, s, From(5)) })
	k2.ask().has()
	h.send(9)
	k2.has(5)
}

// fanned is a source in the test's hands before sinks in the test's hands.
func fanned(t *testing.T, n int, how func(...Sink[int]) Sink[int]) (*hand[int], []*cup[int], *bench) {
	h := &hand[int]{}
	var cups []*cup[int]
	var sinks []Sink[int]
	for range n {
		c := &cup[int]{}
		cups, sinks = append(cups, c), append(sinks, c.sink())
	}
	b := start(t, To(h.source(), how(sinks...)))
	h.b = b
	for _, c := range cups {
		c.b = b
	}
	return h, cups, b
}

// N15.
func TestN15_Broadcast(t *testing.T) {
	h, c, b := fanned(t, 2, Broadcast[int])
	c[0].ask()
	h.wants(0) // as fast as the slowest
	c[1].ask()
	h.send(1)
	c[0].has(1)
	c[1].has(1)
	c[0].ask()
	c[1].cancel() // the rest goes on
	h.send(2)
	c[0].has(2)
	c[0].cancel()
	if !h.gone {
		t.Error("not cancelled")
	}
	b.over()
	h, c, b = fanned(t, 2, Broadcast[int])
	h.fail(errBad)
	c[0].ends(errBad)
	c[1].ends(errBad)
	b.over()
}

// N15.
func TestN15_Balance(t *testing.T) {
	h, c, b := fanned(t, 3, Balance[int])
	c[1].ask()
	h.send(1)
	c[1].has(1)
	c[0].ask()
	c[2].ask()
	h.send(2, 3)
	c[0].ask()
	c[1].cancel()
	h.send(4)
	if got := len(c[0].got) + len(c[2].got); got != 3 {
		t.Errorf("%d elements", got)
	}
	h.end()
	c[0].ends(nil)
	c[2].ends(nil)
	b.over()
}

// N15.
func TestN15_Partition(t *testing.T) {
	h, c, b := fanned(t, 2, func(s ...Sink[int]) Sink[int] { return Partition(func(n int) int { return n % 4 }, s...) })
	c[0].ask()
	h.send(1)
	c[0].has()
	h.wants(0) // it waits for its sink
	h.end()
	c[1].ask().has(1)
	c[1].ends(nil)
	b.over()
	h, c, _ = fanned(t, 2, func(s ...Sink[int]) Sink[int] { return Partition(func(n int) int { return n % 4 }, s...) })
	c[0].ask()
	h.send(2, 3) // for none
	h.send(4)
	c[0].has(4)
	c[0].ask()
	c[1].cancel()
	h.send(1, 8)
	c[0].has(8)
}

// N15.
func TestN15_UnzipAndBranches(t *testing.T) {
	var names []string
	var lengths []int
	start(t, To(From("a", "bcd"), Unzip(func(s string) (string, int) { return s + "!", len(s) },
		ForEach(func(s string) error { names = append(names, s); return nil }),
		ForEach(func(n int) error { lengths = append(lengths, n); return nil })))).over()
	if fmt.Sprint(names, lengths) != "[a! bcd!] [1 3]" {
		t.Error(names, lengths)
	}
	id := func(s Source[int]) Source[int] { return s }
	twice := func(s Source[int]) Source[int] { return Map(s, double) }
	if got := sorted(t, Branches(Range(1, 3), Broadcast[int], id, twice)); got != "[1 2 2 3 4 6]<nil>" && got != "[1 2 2 3 4 6] <nil>" {
		t.Error(got)
	}
	if got := sorted(t, Branches(Range(1, 3), Balance[int], id, id)); got != "[1 2 3]<nil>" && got != "[1 2 3] <nil>" {
		t.Error(got)
	}
	gives(t, Take(Branches(Range(1, 3), Broadcast[int], id, id), 1), 1)
	// A flow that does not use its source.
	gives(t, Branches(Range(1, 2), Broadcast[int], id, func(Source[int]) Source[int] { return Empty[int]() }), 1, 2)
	start(t, To(Range(1, 3), Through(func(Source[int]) Source[int] { return From(9) }, Ignore[int]()))).over()
}

// N15.
func TestN15_Watch(t *testing.T) {
	seen := &Seen{}
	var ends []error
	end := func(err error) { ends = append(ends, err) }
	gives(t, Watch(Range(1, 3), seen, end), 1, 2, 3)
	if seen.Elements != 3 || !seen.Over || seen.Err != nil || !seen.At.Equal(epoch) {
		t.Errorf("%+v", seen)
	}
	fails(t, Watch(Failed[int](errBad), nil, end), errBad)
	gives(t, Take(Watch(Range(1, 3), nil, end), 1), 1)
	if fmt.Sprint(ends) != fmt.Sprint([]error{nil, errBad, ErrCancelled}) {
		t.Error(ends)
	}
}

// N16.
func TestN16_KillSwitch(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, abort := range []bool{false, true} {
			s := &Switch{}
			if !shared {
				s = nil
			}
			h, k := []*hand[int]{{}, {}}, []*cup[int]{{}, {}}
			b := start(t, Together(To(Killable(h[0].source(), s), k[0].sink()), To(Killable(h[1].source(), s), k[1].sink())))
			h[0].b, h[1].b, k[0].b, k[1].b = b, b, b, b
			k[0].ask()
			h[0].send(1)
			k[0].has(1)
			if s == nil {
				s = b.g.Switch()
			}
			var want error
			if abort {
				want = errBad
				s.Abort(errBad)
				s.Shutdown() // the first call counts
			} else {
				s.Shutdown()
				s.Abort(errBad)
			}
			b.run()
			for i := range k {
				k[i].ends(want)
				if !h[i].gone {
					t.Error("not cancelled")
				}
			}
			b.over()
			if !shared {
				continue
			}
			_, k2, b2 := between(t, func(src Source[int]) Source[int] { return Killable(src, s) })
			k2.ends(want) // a switch stays used
			b2.over()
		}
	}
	s := &Switch{}
	gives(t, Killable(Range(1, 3), s), 1, 2, 3)
	gives(t, Take(Killable(Range(1, 3), s), 1), 1)
	fails(t, Killable(Failed[int](errBad), s), errBad)
	if len(s.nodes) != 0 {
		t.Error("streams that have ended are kept")
	}
	s.Abort(nil)
	fails(t, Killable(Range(1, 3), s), ErrAborted)
}
