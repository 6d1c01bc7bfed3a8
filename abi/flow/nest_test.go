package flow

import (
	"fmt"
	"math/rand"
	"testing"
)

func sum(src Source[int]) Source[int] { return Fold(src, 0, add) }

// N13.
func TestN13_FlatConcatAndMerge(t *testing.T) {
	upTo := func(n int) Source[int] { return Range(1, n) }
	gives(t, FlatConcat(Range(0, 3), upTo), 1, 1, 2, 1, 2, 3)
	if got := sorted(t, FlatMerge(Range(0, 3), 2, upTo)); got != "[1 1 1 2 2 3]<nil>" && got != "[1 1 1 2 2 3] <nil>" {
		t.Error(got)
	}
	fails(t, FlatConcat(Range(0, 3), func(n int) Source[int] { return Failed[int](errBad) }), errBad)
	fails(t, FlatConcat(Failed[int](errBad), upTo), errBad)
	gives(t, Take(FlatMerge(Repeat(5), 3, upTo), 1), 1)
	hands := map[int]*hand[int]{}
	h, k, b := between(t, func(s Source[int]) Source[int] {
		return FlatMerge(s, 2, func(n int) Source[int] { hands[n] = &hand[int]{}; return hands[n].source() })
	})
	h.send(1, 2)
	h.wants(0) // two are open
	for _, x := range hands {
		x.b = b
	}
	k.ask()
	hands[2].send(20)
	hands[1].send(10)
	hands[2].send(21)
	k.has(20)
	k.ask().ask().has(10, 21)
	hands[1].end()
	h.wants(1)
	h.end()
	hands[2].end()
	k.ends(nil)
	b.over()
}

// N13.
func TestN13_GroupBy(t *testing.T) {
	key := func(n int) int { return n % 3 }
	sums := GroupBy(Range(1, 9), 3, key, func(_ int, s Source[int]) Source[int] { return sum(s) })
	if got := sorted(t, sums); got != "[12 15 18]<nil>" && got != "[12 15 18] <nil>" {
		t.Error(got)
	}
	if _, err := all(t, GroupBy(Range(1, 9), 2, key, func(_ int, s Source[int]) Source[int] { return s })); err != ErrLimit {
		t.Errorf("more groups than allowed: %v", err)
	}
	if _, err := all(t, GroupBy(Concat(Range(1, 4), Failed[int](errBad)), 3, key, func(_ int, s Source[int]) Source[int] { return s })); err != errBad {
		t.Errorf("a failure: %v", err)
	}
	// A group that was cancelled drops what comes for it.
	first := GroupBy(Range(1, 9), 3, key, func(_ int, s Source[int]) Source[int] { return Take(s, 1) })
	if got := sorted(t, first); got != "[1 2 3]<nil>" && got != "[1 2 3] <nil>" {
		t.Error(got)
	}
	gives(t, Take(GroupBy(Range(1, 9), 3, key, func(_ int, s Source[int]) Source[int] { return s }), 1), 1)
	gives(t, Map(Take(Groups(Range(1, 9), 3, key), 1), func(g Group[int, int]) int { return g.Key }), 1)
}

// N13.
func TestN13_Split(t *testing.T) {
	third := func(n int) bool { return n%3 == 0 }
	gives(t, SplitWhen(Range(1, 7), third, sum), 1+2, 3+4+5, 6+7)
	gives(t, SplitAfter(Range(1, 7), third, sum), 1+2+3, 4+5+6, 7)
	gives(t, SplitAfter(Range(1, 6), third, sum), 1+2+3, 4+5+6)
	gives(t, SplitWhen(Empty[int](), third, sum))
	gives(t, SplitWhen(Range(1, 7), third, func(s Source[int]) Source[int] { return Take(s, 1) }), 1, 3, 6)
	fails(t, SplitAfter(Concat(Range(1, 4), Failed[int](errBad)), third, sum), errBad, 6)
	// A part that ends behind an element is over before the next one comes.
	h, k, _ := between(t, func(s Source[int]) Source[int] { return SplitAfter(s, third, sum) })
	k.ask()
	h.send(1, 2, 3)
	k.has(6)
}

// N13.
func TestN13_PrefixAndTail(t *testing.T) {
	head := func(prefix []int, tail Source[int]) Source[string] {
		return Map(tail, func(n int) string { return fmt.Sprint(prefix, n) })
	}
	gives(t, PrefixAndTail(Range(1, 4), 2, head), "[1 2] 3", "[1 2] 4")
	gives(t, PrefixAndTail(Range(1, 1), 2, head))
	gives(t, PrefixAndTail(Range(1, 2), 0, head), "[] 1", "[] 2")
	fails(t, PrefixAndTail(Failed[int](errBad), 2, head), errBad)
	gives(t, PrefixAndTail(Range(1, 9), 2, func(p []int, _ Source[int]) Source[int] { return From(p...) }), 1, 2)
	gives(t, Take(PrefixAndTail(Range(1, 9), 2, head), 1), "[1 2] 3")
}

// N03: the order in which a graph handles its events changes nothing of what leaves a stream without merges; and nothing is
// ever left over, wherever the stream ends.
func TestN03_OrderOfEventsDoesNotMatter(t *testing.T) {
	flows := []func(Source[int]) Source[int]{
		func(s Source[int]) Source[int] { return Map(s, double) },
		func(s Source[int]) Source[int] { return Filter(s, even) },
		func(s Source[int]) Source[int] { return Buffer(s, 3, Block) },
		func(s Source[int]) Source[int] { return Each(s, func(n int) []int { return []int{n, n + 1} }) },
		func(s Source[int]) Source[int] { return Each(Grouped(s, 3), func(n []int) []int { return n }) },
		func(s Source[int]) Source[int] { return Scan(s, 0, add) },
		func(s Source[int]) Source[int] { return FlatConcat(s, func(n int) Source[int] { return From(n, n) }) },
		func(s Source[int]) Source[int] { return SplitWhen(s, even, sum) },
		func(s Source[int]) Source[int] { return Concat(s, From(5)) },
		func(s Source[int]) Source[int] { return Interleave(2, s, Range(1, 3)) },
		func(s Source[int]) Source[int] {
			return ZipWith(s, Range(1, 20), func(a, b int) (int, error) { return a + b, nil })
		},
		func(s Source[int]) Source[int] {
			return MapAsync(s, 2, func(_ *Graph, n int, done func(int, error)) func() { done(n, nil); return nil })
		},
		func(s Source[int]) Source[int] {
			return PrefixAndTail(s, 2, func(p []int, tail Source[int]) Source[int] { return Concat(From(p...), tail) })
		},
		func(s Source[int]) Source[int] { return Recover(s, func(error) (int, bool) { return -1, true }) },
		func(s Source[int]) Source[int] { return Killable(Take(s, 7), nil) },
		func(s Source[int]) Source[int] { return Detach(Drop(s, 1)) },
	}
	for seed := range int64(400) {
		rnd := rand.New(rand.NewSource(seed))
		src := Range(1, rnd.Intn(15))
		failing := rnd.Intn(4) == 0
		if failing {
			src = Concat(src, Failed[int](errBad))
		}
		for range 1 + rnd.Intn(5) {
			src = flows[rnd.Intn(len(flows))](src)
		}
		stop := rnd.Intn(20) // elements; often never reached
		results := ""
		for try := range 4 {
			var got []int
			end := ""
			g := To(src, Drain(func(*Graph) (func(int) error, func(error)) {
				return func(n int) error {
						if got = append(got, n); len(got) > stop {
							return ErrEnough
						}
						return nil
					}, func(err error) {
						end = fmt.Sprint(err)
					}
			})).Start(nil, epoch)
			if try > 0 {
				g.shuffle = rnd.Intn
			}
			for n := 0; g.Run(epoch, 1+rnd.Intn(9)); n++ {
				if n > 100_000 {
					t.Fatalf("seed %d: no end", seed)
				}
			}
			if over, _ := g.Over(); !over || end == "" {
				t.Fatalf("seed %d, %d: %d links are open; got %v, %q", seed, try, g.live, got, end)
			}
			result := fmt.Sprint(got, end)
			if failing { // it may overtake
				result = ""
			}
			if try == 0 {
				results = result
			} else if result != results {
				t.Fatalf("seed %d: %s, in another order %s", seed, results, result)
			}
		}
	}
}

// A stream that never ends leaves room for others.
func TestStreamsTakeTurns(t *testing.T) {
	n := 0
	g := Together(To(Repeat(1), Ignore[int]()), To(Range(1, 100), ForEach(func(int) error { n++; return nil }))).Start(nil, epoch)
	for range 100 {
		if !g.Run(epoch, 1000) {
			t.Fatal("it ends")
		}
	}
	if n != 100 {
		t.Errorf("%d elements", n)
	}
}
