package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/host"
	wart "github.com/wasmactors/wasmactors/runtime"
)

// spinners loop forever on two processors, while another actor is asked: so many.
var spinnerCounts = []int{10, 1000, 5000}

// throng is a system in which spinners spin.
type throng struct {
	asks int
	ask  func() error
	quit func() error
}

// fair measures how long a well-behaved actor's answers take, and how long a
// garbage collection must wait for the processors, with more spinning actors than
// processors. Baselines, in the same rounds: goroutines that spin in Go, which the
// scheduler can preempt anywhere; and guests of wazero with WithCloseOnContextDone,
// each in a goroutine (without that they would never give a processor back).
func fair(l *lab) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, spinners := range spinnerCounts {
		if err := fairAmong(l, spinners); err != nil {
			return err
		}
	}
	return nil
}

// fairAmong has baselines only with few spinners: among 1000 goroutines an answer takes
// five seconds.
func fairAmong(l *lab, spinners int) error {
	sides := []func(*lab, int) (*throng, error){productCrowd, nativeCrowd, naiveCrowd}
	if spinners > 10 {
		sides = sides[:1]
	}
	samples := make([][4][]float64, len(sides)) // ask p50, ask p99, wait p50, wait p99
	for range l.rounds {
		for side, open := range sides {
			c, err := open(l, spinners)
			if err != nil {
				return err
			}
			got, err := c.measure(l)
			if err != nil {
				return err
			}
			if err := c.quit(); err != nil {
				return err
			}
			for i, v := range got {
				samples[side][i] = append(samples[side][i], v)
			}
		}
	}
	figure := func(side, i int) float64 { return median(samples[side][i]) }
	crowded := fmt.Sprintf("%d spinning actors on 2 processors: ", spinners)
	for _, f := range []struct {
		i, baseline int
		name, note  string
	}{
		{0, 1, "ask, p50", "a request every half millisecond, timed from when it was due; baseline: spinning goroutines"},
		{1, 1, "ask, p99", "baseline: spinning goroutines"},
		{1, 2, "ask, p99, against wazero's CloseOnContextDone", "baseline: spinning guests of wazero with CloseOnContextDone"},
		{2, 1, "a garbage collection's wait for the processors, p50", "a quantum is 0.1 to 0.2 ms; baseline: spinning goroutines, which can be preempted anywhere"},
		{3, 1, "a garbage collection's wait for the processors, p99", "the baseline shows what the machine adds when others use it"},
	} {
		if len(sides) == 1 {
			if f.baseline == 1 {
				if err := l.report.alone(crowded+f.name, "ms", figure(0, f.i), ""); err != nil {
					return err
				}
			}
			continue
		}
		if err := l.report.compare(crowded+f.name, "ms", figure(0, f.i), figure(f.baseline, f.i), f.note); err != nil {
			return err
		}
	}
	return nil
}

// measure returns figures in milliseconds, of one round.
func (c *throng) measure(l *lab) (figures [4]float64, err error) {
	// Where an answer takes as long as a slice of Go's time, fewer tell as much.
	took := make([]float64, max(20, l.scale(c.asks)))
	due := time.Now()
	for i := range took {
		due = due.Add(500 * time.Microsecond)
		if late := time.Since(due); late > 0 {
			due = due.Add(late) // a slow answer delays the next question
		}
		time.Sleep(time.Until(due))
		if err := c.ask(); err != nil {
			return figures, err
		}
		took[i] = time.Since(due).Seconds() * 1e3
	}
	slices.Sort(took)
	stops := newPauses("/sched/pauses/stopping/gc:seconds")
	for range max(5, l.scale(30)) {
		runtime.GC()
	}
	return [4]float64{took[len(took)/2], took[len(took)*99/100], stops.quantile(0.5) * 1e3, stops.quantile(0.99) * 1e3}, nil
}

// pauses watches one of Go's histograms.
type pauses struct {
	name   string
	before []uint64
}

func newPauses(name string) *pauses { return &pauses{name, slices.Clone(readPauses(name).Counts)} }

func readPauses(name string) *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// quantile is the upper bound of the bucket, in seconds.
func (p *pauses) quantile(q float64) float64 {
	h := readPauses(p.name)
	var all, below uint64
	for i, n := range h.Counts {
		all += n - p.before[i]
	}
	for i, n := range h.Counts {
		if below += n - p.before[i]; float64(below) >= q*float64(all) && below > 0 {
			return min(h.Buckets[i+1], math.MaxFloat64)
		}
	}
	return 0
}

func productCrowd(l *lab, spinners int) (*throng, error) {
	p, err := newProduct(l.ctx, pingWAT, 2)
	if err != nil {
		return nil, err
	}
	image, err := p.engine.Load(l.ctx, spinWAT, wart.ImageConfig{Name: "spin"})
	if err != nil {
		return nil, err
	}
	good, err := p.sys.Spawn("", p.props)
	if err != nil {
		return nil, err
	}
	for range spinners {
		ref, err := p.sys.Spawn("", host.Guest(image, "spin").WithLimits(host.Limits{Fuel: math.MaxInt64}))
		if err == nil {
			err = p.sys.Tell(ref, number(0))
		}
		if err != nil {
			return nil, err
		}
	}
	return &throng{
		asks: max(20, 3000/spinners),
		ask: func() error {
			ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
			defer cancel()
			_, err := p.sys.Ask(ctx, good, number(1))
			return err
		},
		quit: func() error { return p.close(l.ctx) },
	}, nil
}

func naiveCrowd(l *lab, spinners int) (*throng, error) {
	ctx, cancel := context.WithCancel(l.ctx)
	h, err := newNaiveHostWith(ctx, naiveWAT, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	if err != nil {
		cancel()
		return nil, err
	}
	var done sync.WaitGroup
	for range spinners {
		a, err := h.spawn()
		if err != nil {
			cancel()
			return nil, err
		}
		done.Go(func() { _, _ = a.mod.ExportedFunction("spin").Call(ctx) }) // ends with the context
	}
	good, err := h.spawn()
	if err != nil {
		cancel()
		return nil, err
	}
	in, out := make(chan naiveMessage), make(chan error)
	done.Go(func() {
		for m := range in {
			err := h.deliver(h.context(good), good, m)
			h.queue, h.head = h.queue[:0], 0
			out <- err
		}
	})
	return &throng{
		asks: 40,
		ask: func() error {
			in <- naiveMessage{payload: number(1)}
			return <-out
		},
		quit: func() error {
			close(in)
			cancel()
			done.Wait()
			return h.runtime.Close(l.ctx)
		},
	}, nil
}

func nativeCrowd(_ *lab, spinners int) (*throng, error) {
	var stop atomic.Bool
	var done sync.WaitGroup
	for range spinners {
		done.Go(func() {
			for !stop.Load() {
			}
		})
	}
	in, out := make(chan int), make(chan int)
	done.Go(func() {
		for n := range in {
			out <- n
		}
	})
	return &throng{
		asks: 40,
		ask: func() error {
			in <- 1
			<-out
			return nil
		},
		quit: func() error {
			close(in)
			stop.Store(true)
			done.Wait()
			return nil
		},
	}, nil
}
