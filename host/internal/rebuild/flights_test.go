package rebuild

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Of several that are meant the first one lands, wherever it is; what an actor has sent is dropped; the rest keeps its order.
func TestFlights(t *testing.T) {
	var f Flights[string]
	var all []*mailbox.Envelope
	for i, by := range []string{"a", "b", "a", "c", ""} {
		e := mailbox.New()
		e.Correlation = uint64(i)
		all = append(all, e)
		f.Begin(Flight[string]{To: "x", By: by, E: e})
	}
	from := func(by string) func(*Flight[string]) bool {
		return func(x *Flight[string]) bool { return x.By == by }
	}
	for i, c := range []struct {
		by   string
		want *mailbox.Envelope
	}{{"a", all[0]}, {"c", all[3]}, {"c", nil}} {
		if got := f.Land(from(c.by)); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
	f.Drop("a")
	var left []uint64
	for _, x := range f.End() {
		left = append(left, x.E.Correlation)
	}
	if !slices.Equal(left, []uint64{1, 4}) {
		t.Errorf("%v are left", left)
	}
}

// What begins while all end is among them, or is told that it has not begun.
func TestFlightsEndOnce(t *testing.T) {
	for range 200 {
		var (
			f     Flights[int]
			begun atomic.Int64
			all   sync.WaitGroup
		)
		for by := range 4 {
			all.Go(func() {
				for range 20 {
					if f.Begin(Flight[int]{By: by}) {
						begun.Add(1)
					}
				}
			})
		}
		ended := len(f.End())
		all.Wait()
		if n := begun.Load(); n != int64(ended) || f.Begin(Flight[int]{}) || len(f.End()) != 0 {
			t.Fatalf("%d have begun, %d were there", n, ended)
		}
	}
}
