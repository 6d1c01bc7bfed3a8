package flow

import "testing"

// stages is a source behind n stages.
func stages(n, elements int) Source[int] {
	src := Range(1, elements)
	for range n {
		src = Map(src, double)
	}
	return src
}

func runAll(tb testing.TB, src Source[int], each func(int)) {
	g := To(src, ForEach(func(n int) error { each(n); return nil })).Start(nil, epoch)
	for g.Run(epoch, 1<<20) {
	}
	if over, err := g.Over(); !over || err != nil {
		tb.Fatal(over, err)
	}
}

// BenchmarkStage is what one more stage costs an element.
func BenchmarkStage(b *testing.B) {
	const depth = 10
	sum := 0
	runAll(b, stages(depth, b.N/depth+1), func(n int) { sum += n })
}

// An element costs no allocation: a stream of many allocates as often as one of few.
func TestElementsDoNotAllocate(t *testing.T) {
	cost := func(elements int) float64 {
		return testing.AllocsPerRun(5, func() {
			runAll(t, Take(Filter(stages(3, elements), func(int) bool { return true }), elements), func(int) {})
		})
	}
	if few, many := cost(10), cost(10_000); many > few {
		t.Errorf("%v allocations for 10 elements, %v for 10000", few, many)
	}
}
