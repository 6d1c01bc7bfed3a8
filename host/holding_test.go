package host

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/race"
)

// heap is what lives on the heap.
func heap() int64 {
	var m runtime.MemStats
	for range 3 { // what is pooled goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What the host holds of many small things is on the account: the heap grows by at most 1.3 times as much, also when
// the envelopes have had large messages before.
func TestSmallThingsAreWhatTheyCount(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes everything larger")
	}
	const n = 20_000
	large := Raw(encoded(bytes.Repeat([]byte{7}, 4000)))
	limits := Limits{Timers: 2 * n, Stash: 2 * n, Asks: 2 * n, Mailbox: 4 * n, Held: 1 << 30}
	handles := func(do func(ctx *Context, k int) error) Props {
		k := 0
		return Func(func(ctx *Context, m Message) error {
			if len(m.Payload) > 1000 {
				return nil
			}
			k++
			return do(ctx, k)
		})
	}
	quiet := Func(func(*Context, Message) error { return nil })
	for _, c := range []struct {
		name string
		make func(s *System) (holds []Ref, each func(i int))
	}{
		{"timers", func(s *System) ([]Ref, func(int)) {
			a := must(s.Spawn("a", handles(func(ctx *Context, k int) error { return ctx.After(uint64(k), time.Hour, 0, nil) }).WithLimits(limits)))(t)
			return []Ref{a}, func(int) { _, _ = s.Tell(a, large), s.Tell(a, 1) }
		}},
		{"periodic timers", func(s *System) ([]Ref, func(int)) {
			a := must(s.Spawn("a", handles(func(ctx *Context, k int) error { return ctx.AtRate(uint64(k), time.Hour, time.Hour, "x") }).WithLimits(limits)))(t)
			return []Ref{a}, func(int) { _ = s.Tell(a, 1) }
		}},
		{"stash", func(s *System) ([]Ref, func(int)) {
			a := must(s.Spawn("a", handles(func(ctx *Context, _ int) error { return ctx.Stash() }).WithLimits(limits)))(t)
			return []Ref{a}, func(int) { _, _ = s.Tell(a, large), s.Tell(a, 1) }
		}},
		{"mailbox", func(s *System) ([]Ref, func(int)) {
			a, b := must(s.Spawn("a", quiet.WithLimits(limits)))(t), must(s.Spawn("b", quiet.WithLimits(limits)))(t)
			s.table.Get(a.UID()).post(nil, sysmail.Msg{Kind: sysmail.Pause})
			return []Ref{a}, func(int) { _, _ = s.Tell(b, large), s.Tell(a, 1) }
		}},
		{"asks", func(s *System) ([]Ref, func(int)) {
			silent := must(s.Spawn("silent", quiet))(t)
			a := must(s.Spawn("a", handles(func(ctx *Context, k int) error { return ctx.Ask(silent, 1, uint64(k), time.Hour) }).WithLimits(limits)))(t)
			return []Ref{a}, func(int) { _ = s.Tell(a, 1) }
		}},
	} {
		s, _ := manual(t, nil)
		refs, each := c.make(s)
		s.RunUntilIdle(1000)
		count := func() (n int64) {
			for _, r := range refs {
				h := must(s.View().Held(r))(t)
				n += h.Total()
			}
			return n
		}
		was, counted := heap(), count()
		for i := range n {
			each(i)
			s.RunUntilIdle(100)
		}
		added, counts := heap()-was, count()-counted
		t.Logf("%s: %d bytes each on the heap, %d on the account", c.name, added/n, counts/n)
		if float64(added) > 1.3*float64(counts) {
			t.Errorf("%s: %d bytes each on the heap, %d on the account", c.name, added/n, counts/n)
		}
		runtime.KeepAlive(s)
	}
}
