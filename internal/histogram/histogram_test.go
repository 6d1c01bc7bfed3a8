package histogram

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/race"
)

func TestADurationCountsInItsBucket(t *testing.T) {
	if !slices.IsSorted(Bounds()) {
		t.Fatal("bounds are not in order")
	}
	for i, b := range Bounds() {
		var h Histogram
		h.Observe(b)
		h.Observe(b + 1)
		c := h.Counts()
		if c.Buckets[i] != 1 || c.Buckets[i+1] != 1 || c.Sum != 2*b+1 || c.N() != 2 {
			t.Errorf("%v: %+v", b, c)
		}
	}
	var h Histogram
	h.Observe(-time.Second)
	if c := h.Counts(); c.Buckets[0] != 1 || c.Sum != 0 {
		t.Errorf("below 0: %+v", c)
	}
}

func TestManyObserve(t *testing.T) {
	var h Histogram
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 1000 {
				h.Observe(time.Duration(i*n) * time.Microsecond)
			}
		})
	}
	all.Wait()
	var sum Counts
	sum.Add(h.Counts())
	sum.Add(h.Counts())
	if sum.N() != 8000 || sum.Sum != 2*time.Duration(h.sum.Load()) {
		t.Errorf("%+v", sum)
	}
	if !race.Enabled {
		if n := testing.AllocsPerRun(100, func() { h.Observe(time.Millisecond) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
