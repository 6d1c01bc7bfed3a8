package observe

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// crowd is a real system of 100,000 actors in pools of a thousand, observed without sharing.
func crowd(b testing.TB, message func(*host.Context, host.Message) error) (*host.System, *Observer) {
	b.Helper()
	s, err := host.New(host.NewConfig("crowd"))
	if err != nil {
		b.Fatal(err)
	}
	o := New(s, Options{}.WithSharing(-1))
	b.Cleanup(func() {
		o.Close()
		_ = s.Close(b.Context())
	})
	member := host.Func(message)
	for p := range 100 {
		var kids []host.Child
		for i := range 999 {
			kids = append(kids, host.Child{Name: fmt.Sprint("w-", i), Props: member})
		}
		if _, err := s.Spawn(fmt.Sprint("pool-", p), quietActor().WithChildren(kids...)); err != nil {
			b.Fatal(err)
		}
	}
	for o.System().States[Running] != 100_000 {
		time.Sleep(10 * time.Millisecond)
	}
	return s, o
}

// What a look at 100,000 actors takes, each with a walk of its own.
func BenchmarkLooks(b *testing.B) {
	_, o := crowd(b, func(*host.Context, host.Message) error { return nil })
	for _, c := range []struct {
		name string
		look func() error
	}{
		{"walk", func() error { o.view(func(*snapshot) {}); return nil }},
		{"system", func() error { o.System(); return nil }},
		{"top 50", func() error { _, err := o.Actors(Query{Sort: "turns", Desc: true, Limit: 50}); return err }},
		{"first 50", func() error { _, err := o.Actors(Query{Limit: 50}); return err }},
		{"search", func() error { _, err := o.Actors(Query{Search: "w-99", Limit: 50}); return err }},
		{"tree", func() error { _, err := o.Tree(TreeQuery{}); return err }},
		{"detail", func() error { _, err := o.Actor("/user/pool-1/w-1"); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			least := time.Hour
			for b.Loop() {
				began := time.Now()
				if err := c.look(); err != nil {
					b.Fatal(err)
				}
				least = min(least, time.Since(began))
			}
			b.ReportMetric(float64(least)/1e6, "least-ms")
		})
	}
}

// How much slower messages flow while somebody looks: a ring of tokens goes through all
// actors as fast as it can, in windows with and without a look each second, one after the other.
func BenchmarkFlowWhileLooking(b *testing.B) {
	var done atomic.Uint64
	var refs []host.Ref
	s, o := crowd(b, func(ctx *host.Context, m host.Message) error {
		done.Add(1)
		var n int
		if err := m.Decode(&n); err != nil {
			return err
		}
		return ctx.Tell(refs[n%len(refs)], n+1)
	})
	p, err := o.Actors(Query{Limit: 1})
	if err != nil || p.Total != 100_000 {
		b.Fatal(err, p.Total)
	}
	o.view(func(v *snapshot) {
		for i := range v.infos {
			if v.infos[i].Type == "native" && topLevel(&v.infos[i]) == false && !v.infos[i].Parent.IsZero() {
				refs = append(refs, v.infos[i].Ref)
			}
		}
	})
	for i := range 64 {
		if err := s.Tell(refs[i*1000], i*1000+1); err != nil {
			b.Fatal(err)
		}
	}
	window := func(look bool) float64 {
		began, before := time.Now(), done.Load()
		if look {
			o.System()
			_, _ = o.Actors(Query{Sort: "turns", Desc: true, Limit: 50})
			_, _ = o.Tree(TreeQuery{})
		}
		time.Sleep(time.Second - time.Since(began))
		return float64(done.Load()-before) / time.Since(began).Seconds()
	}
	var ratios []float64
	var rate float64
	for b.Loop() {
		plain, looked := window(false), window(true)
		rate += plain
		ratios = append(ratios, looked/plain)
	}
	slices.Sort(ratios)
	b.ReportMetric(rate/float64(len(ratios)), "messages/s")
	b.ReportMetric(100*(1-ratios[len(ratios)/2]), "%slower")
}
