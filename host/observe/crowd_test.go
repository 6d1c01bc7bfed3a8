//go:build unix

package observe

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// crowd is a real system of 100,000 actors in pools of a thousand, observed.
func crowd(b testing.TB, sharing time.Duration, message func(*host.Context, host.Message) error) (*host.System, *Observer) {
	b.Helper()
	s, err := host.New(host.NewConfig("crowd"))
	if err != nil {
		b.Fatal(err)
	}
	o := New(s, Options{}.WithSharing(sharing))
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

// cpuTime is what the process has computed, on any processor.
func cpuTime(b testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What a look at 100,000 actors takes, each with a walk of its own.
func BenchmarkLooks(b *testing.B) {
	_, o := crowd(b, -1, func(*host.Context, host.Message) error { return nil })
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

// How much slower messages flow while somebody looks: tokens go through all actors as fast as
// they can, in windows with and without a look of each kind each second, one after the other.
// What is measured is the processor time that a message takes without looks, and what is left
// of the windows with one when the messages are paid: a machine that does other things changes
// that less than messages a second. The slowdown is that of a machine that does nothing else,
// with all of its processors busy with messages.
func BenchmarkFlowWhileLooking(b *testing.B) {
	var done atomic.Uint64
	var refs []host.Ref
	s, o := crowd(b, 0, func(ctx *host.Context, m host.Message) error {
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
			if v.infos[i].Type == "native" && !topLevel(&v.infos[i]) && !v.infos[i].Parent.IsZero() {
				refs = append(refs, v.infos[i].Ref)
			}
		}
	})
	for i := range 64 {
		if err := s.Tell(refs[i*1000], i*1000+1); err != nil {
			b.Fatal(err)
		}
	}
	window := func(look bool) (messages float64, cpu time.Duration) {
		began, before, spent := time.Now(), done.Load(), cpuTime(b)
		if look {
			o.System()
			_, _ = o.Actors(Query{Sort: "turns", Desc: true, Limit: 50})
			_, _ = o.Tree(TreeQuery{})
		}
		time.Sleep(time.Second - time.Since(began))
		return float64(done.Load() - before), cpuTime(b) - spent
	}
	var costs, rates []float64
	for b.Loop() {
		plain, cpu := window(false)
		rate := plain / cpu.Seconds()
		looked, cpu := window(true)
		rates = append(rates, rate)
		costs = append(costs, 1e3*(cpu.Seconds()-looked/rate)) // what the messages have not taken
	}
	slices.Sort(costs)
	slices.Sort(rates)
	cost := costs[len(costs)/2]
	b.ReportMetric(rates[len(rates)/2], "messages/cpu-s")
	b.ReportMetric(cost, "cpu-ms/look")
	b.ReportMetric(cost/10/float64(runtime.GOMAXPROCS(0)), "%slower")
}

// The same with a hundred messages each millisecond to actors all over the tree: how many of
// those that were due have been handled, and how long each took, with a look of each kind each
// second and without.
func BenchmarkPacedFlowWhileLooking(b *testing.B) {
	var done, waited atomic.Int64
	s, o := crowd(b, 0, func(_ *host.Context, m host.Message) error {
		var sent int64
		if err := m.Decode(&sent); err != nil {
			return err
		}
		done.Add(1)
		waited.Add(time.Now().UnixNano() - sent)
		return nil
	})
	var refs []host.Ref
	o.view(func(v *snapshot) {
		for i := range v.infos {
			refs = append(refs, v.infos[i].Ref)
		}
	})
	end := make(chan bool)
	defer close(end)
	go func() {
		began, sent := time.Now(), 0
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
			}
			for due := int(time.Since(began).Milliseconds()) * 100; sent < due; sent++ {
				_ = s.Tell(refs[sent*7919%len(refs)], time.Now().UnixNano())
			}
		}
	}()
	window := func(look bool) (rate, delay float64) {
		began, n, w := time.Now(), done.Load(), waited.Load()
		if look {
			o.System()
			_, _ = o.Actors(Query{Sort: "turns", Desc: true, Limit: 50})
			_, _ = o.Tree(TreeQuery{})
		}
		time.Sleep(time.Second - time.Since(began))
		n = done.Load() - n
		return float64(n) / time.Since(began).Seconds(), float64(waited.Load()-w) / float64(max(n, 1)) / 1e3
	}
	var ratios, plain, looked, rates []float64
	for b.Loop() {
		r, d := window(false)
		rates, plain = append(rates, r), append(plain, d)
		x, d := window(true)
		ratios, looked = append(ratios, x/r), append(looked, d)
	}
	for _, l := range [][]float64{ratios, plain, looked, rates} {
		slices.Sort(l)
	}
	middle := len(ratios) / 2
	b.ReportMetric(rates[middle], "messages/s")
	b.ReportMetric(100*(1-ratios[middle]), "%slower")
	b.ReportMetric(plain[middle], "us-plain")
	b.ReportMetric(looked[middle], "us-looked")
}
