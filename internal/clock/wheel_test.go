package clock

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A wheel over a virtual clock does what the virtual clock itself does: the same functions, at the
// same times, in the same order.
func TestWheelModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model, below := NewVirtual(epoch), NewVirtual(epoch)
		wheel := NewWheel(below)
		var want, got []string
		var timers [][2]Timer
		made := 0
		span := rapid.SampledFrom([]time.Duration{10, time.Millisecond, 100 * time.Millisecond, time.Minute, 100 * time.Hour, 3000 * time.Hour})
		t.Repeat(map[string]func(*rapid.T){
			"after": func(t *rapid.T) {
				made++
				id := made
				d := time.Duration(rapid.Int64Range(-1, int64(span.Draw(t, "span"))).Draw(t, "d"))
				again := rapid.IntRange(0, 3).Draw(t, "again") == 0
				note := func(c Clock, to *[]string) func() {
					return func() {
						*to = append(*to, fmt.Sprint(id, "@", c.Now().Sub(epoch)))
						if again {
							c.AfterFunc(d, func() { *to = append(*to, fmt.Sprint(-id, "@", c.Now().Sub(epoch))) })
						}
					}
				}
				timers = append(timers, [2]Timer{model.AfterFunc(d, note(model, &want)), wheel.AfterFunc(d, note(wheel, &got))})
			},
			"stop": func(t *rapid.T) {
				if len(timers) == 0 {
					t.Skip()
				}
				x := timers[rapid.IntRange(0, len(timers)-1).Draw(t, "which")]
				if a, b := x[0].Stop(), x[1].Stop(); a != b {
					t.Fatalf("stopped: %v, want %v", b, a)
				}
			},
			"pass": func(t *rapid.T) {
				d := time.Duration(rapid.Int64Range(0, int64(span.Draw(t, "span"))).Draw(t, "d"))
				model.Advance(d)
				below.Advance(d)
			},
			"": func(t *rapid.T) {
				if !slices.Equal(got, want) || wheel.Pending() != model.Pending() {
					t.Fatalf("%v,\nwant %v; %d pending, want %d", got, want, wheel.Pending(), model.Pending())
				}
				if below.Pending() > 1 {
					t.Fatalf("%d timers of the clock below", below.Pending())
				}
			},
		})
	})
}

// Every timer fires or is stopped, and never early, on the machine's clock and several goroutines.
func TestWheelConcurrent(t *testing.T) {
	w := NewWheel(Real())
	var mu sync.Mutex
	fired, stopped, early := 0, 0, 0
	var wg sync.WaitGroup
	const each = 2000
	var all sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range each {
				d := time.Duration(r.IntN(int(20 * time.Millisecond)))
				due := time.Now().Add(d)
				all.Add(1)
				timer := w.AfterFunc(d, func() {
					mu.Lock()
					fired++
					if time.Now().Before(due) {
						early++
					}
					mu.Unlock()
					all.Done()
				})
				if r.IntN(3) == 0 && timer.Stop() {
					mu.Lock()
					stopped++
					mu.Unlock()
					all.Done()
				}
			}
		})
	}
	wg.Wait()
	all.Wait()
	if fired+stopped != 4*each || early > 0 || w.Pending() != 0 {
		t.Errorf("%d fired, %d stopped, %d early, %d pending", fired, stopped, early, w.Pending())
	}
}

// crowded is a clock with so many timers that are due between one and two hours from now.
func crowded(c Clock, n int) []Timer {
	r := rand.New(rand.NewPCG(1, 1))
	held := make([]Timer, n)
	for i := range held {
		held[i] = c.AfterFunc(far(r), func() {})
	}
	return held
}

func far(r *rand.Rand) time.Duration { return time.Hour + time.Duration(r.Int64N(int64(time.Hour))) }

var clocks = []struct {
	name string
	make func() Clock
}{
	{"AfterFunc", Real},
	{"heap", func() Clock { return NewVirtual(time.Now()) }},
	{"wheel", func() Clock { return NewWheel(Real()) }},
}

// BenchmarkTimers sets, stops and fires among a million others.
func BenchmarkTimers(b *testing.B) {
	const crowd = 1_000_000
	for _, c := range clocks {
		b.Run(c.name, func(b *testing.B) {
			clock := c.make()
			r := rand.New(rand.NewPCG(3, 3))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			held := crowded(clock, crowd)
			set := time.Since(start)
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ResetTimer()
			for b.Loop() {
				clock.AfterFunc(far(r), func() {}).Stop()
			}
			b.StopTimer()
			start = time.Now()
			for _, i := range r.Perm(crowd) {
				held[i].Stop()
			}
			stop := time.Since(start)
			const n = 100_000
			var wg sync.WaitGroup
			wg.Add(n)
			for range n {
				clock.AfterFunc(time.Until(start.Add(stop+2*time.Second)), wg.Done)
			}
			time.Sleep(time.Until(start.Add(stop + 2*time.Second)))
			due := time.Now()
			if v, ok := clock.(*Virtual); ok {
				v.Advance(time.Hour)
			}
			wg.Wait()
			b.ReportMetric(float64(time.Since(due))/n, "ns/fire")
			b.ReportMetric(float64(set)/crowd, "ns/set")
			b.ReportMetric(float64(stop)/crowd, "ns/stop")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc-16*crowd)/crowd, "B/timer")
		})
	}
}
