package dispatch_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// actor is a native task with a mailbox: the least that an actor is.
type actor struct {
	dispatch.Task
	d       *dispatch.Dispatcher
	box     mailbox.Mailbox
	receive func(w *dispatch.Worker, e *mailbox.Envelope)
}

// throughput is how many messages a spell handles.
const throughput = 64

func newActor(d *dispatch.Dispatcher, l mailbox.Limits, receive func(*dispatch.Worker, *mailbox.Envelope)) *actor {
	a := &actor{d: d, receive: receive}
	a.box.Init(l)
	a.Task.Init(a)
	return a
}

func (a *actor) Run(w *dispatch.Worker) bool {
	for range throughput {
		e := a.box.Pop()
		if e == nil {
			return false
		}
		a.receive(w, e)
	}
	return true
}

func (a *actor) send(e *mailbox.Envelope, from *dispatch.Worker) error {
	if err := a.box.Push(e); err != nil {
		return err
	}
	a.d.Schedule(&a.Task, from)
	return nil
}

// cacheOf is the worker's own stock of envelopes, nil outside of a run.
func cacheOf(w *dispatch.Worker) *mailbox.Cache {
	if w == nil {
		return nil
	}
	c, ok := w.Local.(*mailbox.Cache)
	if !ok {
		c = new(mailbox.Cache)
		w.Local = c
	}
	return c
}

func message(w *dispatch.Worker, payload []byte) *mailbox.Envelope {
	e := cacheOf(w).New()
	e.SetPayload(payload)
	return e
}

var payload16 = make([]byte, 16)

// BenchmarkPingPong is one message between two native tasks: push, schedule,
// pop, and a payload of 16 bytes copied.
func BenchmarkPingPong(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(map[int]string{1: "workers=1", 2: "workers=2"}[workers], func(b *testing.B) {
			d := dispatch.New(dispatch.Config{Workers: workers})
			defer closeNow(b, d)
			left := b.N
			done := make(chan struct{})
			var ping, pong *actor
			bounce := func(to **actor) func(*dispatch.Worker, *mailbox.Envelope) {
				return func(w *dispatch.Worker, e *mailbox.Envelope) {
					cacheOf(w).Free(e)
					if left--; left <= 0 {
						if left == 0 {
							close(done)
						}
						return
					}
					if err := (*to).send(message(w, payload16), w); err != nil {
						panic(err)
					}
				}
			}
			ping = newActor(d, mailbox.Limits{}, bounce(&pong))
			pong = newActor(d, mailbox.Limits{}, bounce(&ping))
			b.ReportAllocs()
			b.ResetTimer()
			if err := ping.send(message(nil, payload16), nil); err != nil {
				b.Fatal(err)
			}
			<-done
		})
	}
}

// BenchmarkFanIn is one of eight tasks' messages to a ninth.
func BenchmarkFanIn(b *testing.B) {
	d := dispatch.New(dispatch.Config{})
	defer closeNow(b, d)
	const senders, burst = 8, 32
	total := int64(b.N)
	received := int64(0)
	done := make(chan struct{})
	sink := newActor(d, mailbox.Limits{Messages: 10000}, func(w *dispatch.Worker, e *mailbox.Envelope) {
		cacheOf(w).Free(e)
		if received++; received == total {
			close(done)
		}
	})
	var sent atomic.Int64
	all := make([]*source, senders)
	for i := range all {
		all[i] = &source{sink: sink, sent: &sent, total: total, burst: burst}
		all[i].Init(all[i])
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, s := range all {
		d.Schedule(&s.Task, nil)
	}
	<-done
}

type source struct {
	dispatch.Task
	sink  *actor
	sent  *atomic.Int64
	total int64
	burst int
}

func (s *source) Run(w *dispatch.Worker) bool {
	for range s.burst {
		if s.sent.Add(1) > s.total {
			return false
		}
		e := message(w, payload16)
		for s.sink.send(e, w) != nil {
			// Full: give the sink a chance to catch up.
			s.sent.Add(-1)
			cacheOf(w).Free(e)
			return true
		}
	}
	return true
}

// BenchmarkInject is a message from outside to an idle dispatcher and the answer
// over a channel.
func BenchmarkInject(b *testing.B) {
	d := dispatch.New(dispatch.Config{})
	defer closeNow(b, d)
	reply := make(chan struct{}, 1)
	echo := newActor(d, mailbox.Limits{}, func(w *dispatch.Worker, e *mailbox.Envelope) {
		cacheOf(w).Free(e)
		reply <- struct{}{}
	})
	b.ReportAllocs()
	for b.Loop() {
		if err := echo.send(message(nil, payload16), nil); err != nil {
			b.Fatal(err)
		}
		<-reply
	}
}

// spinner is a guest in an endless loop: it computes for 100 us, yields, and
// goes on until it is told to stop.
type spinner struct {
	dispatch.Task
	stop   *atomic.Bool
	quanta *atomic.Int64
}

func (s *spinner) Run(w *dispatch.Worker) bool {
	for !s.stop.Load() {
		for end := time.Now().Add(100 * time.Microsecond); time.Now().Before(end); {
		}
		s.quanta.Add(1)
		w.Yield()
	}
	return false
}

// BenchmarkFairness asks a well-behaved task from outside while spinners take
// all the processor time they can get, and reports the quantiles of its answers.
func BenchmarkFairness(b *testing.B) {
	for _, spinners := range []int{10, 1000, 5000} {
		b.Run(fmt.Sprintf("spinners=%d", spinners), func(b *testing.B) {
			d := dispatch.New(dispatch.Config{Workers: 2})
			defer closeNow(b, d)
			var stop atomic.Bool
			var quanta atomic.Int64
			for range spinners {
				s := &spinner{stop: &stop, quanta: &quanta}
				s.Init(s)
				d.Schedule(&s.Task, nil)
			}
			for d.Stats().Detached < spinners {
				runtime.Gosched()
			}
			reply := make(chan struct{}, 1)
			echo := newActor(d, mailbox.Limits{}, func(w *dispatch.Worker, e *mailbox.Envelope) {
				cacheOf(w).Free(e)
				reply <- struct{}{}
			})
			var took []time.Duration
			quanta.Store(0)
			for b.Loop() {
				// The answer counts from when the question was due: what the asker
				// waits for a processor is part of what the spinners cost.
				start := time.Now().Add(200 * time.Microsecond)
				time.Sleep(200 * time.Microsecond)
				if err := echo.send(message(nil, payload16), nil); err != nil {
					b.Fatal(err)
				}
				<-reply
				took = append(took, time.Since(start))
			}
			stop.Store(true)
			b.ReportMetric(float64(quanta.Load())/b.Elapsed().Seconds(), "quanta/s")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-us")
		})
	}
}

// toucher is one of two that wake each other, and computes for a while in between.
type toucher struct {
	dispatch.Task
	d     *dispatch.Dispatcher
	other *toucher
	takes time.Duration
	stop  *atomic.Bool
	had   *atomic.Int64 // nanoseconds of computing, of all
}

func (t *toucher) Run(w *dispatch.Worker) bool {
	for end := time.Now().Add(t.takes); time.Now().Before(end); {
	}
	t.had.Add(int64(t.takes))
	w.Spend(int64(t.takes))
	if !t.stop.Load() {
		t.d.Schedule(&t.other.Task, w)
	}
	return false
}

// BenchmarkShares has lanes that are always busy compete with a hundred endless runs, and reports what part of the
// computing these have; with a goroutine outside that asks, or without.
func BenchmarkShares(b *testing.B) {
	for _, takes := range []time.Duration{time.Microsecond, 10 * time.Microsecond, 40 * time.Microsecond} {
		for _, asks := range []bool{false, true} {
			b.Run(fmt.Sprintf("turns=%v/asks=%v", takes, asks), func(b *testing.B) {
				d := dispatch.New(dispatch.Config{Workers: 2})
				defer closeNow(b, d)
				var stop atomic.Bool
				var quanta, had atomic.Int64
				for range 100 {
					s := &spinner{stop: &stop, quanta: &quanta}
					s.Init(s)
					s.Join(new(dispatch.Group))
					d.Schedule(&s.Task, nil)
				}
				for d.Stats().Detached < 100 {
					runtime.Gosched()
				}
				for range 20 {
					x := &toucher{d: d, takes: takes, stop: &stop, had: &had}
					y := &toucher{d: d, takes: takes, stop: &stop, had: &had, other: x}
					x.other = y
					g := new(dispatch.Group)
					for _, t := range []*toucher{x, y} {
						t.Init(t)
						t.Join(g)
					}
					d.Schedule(&x.Task, nil)
				}
				reply := make(chan struct{}, 1)
				echo := newActor(d, mailbox.Limits{}, func(w *dispatch.Worker, e *mailbox.Envelope) {
					cacheOf(w).Free(e)
					reply <- struct{}{}
				})
				var took []time.Duration
				quanta.Store(0)
				had.Store(0)
				for b.Loop() {
					start := time.Now().Add(500 * time.Microsecond)
					time.Sleep(500 * time.Microsecond)
					if !asks {
						continue
					}
					if err := echo.send(message(nil, payload16), nil); err != nil {
						b.Fatal(err)
					}
					<-reply
					took = append(took, time.Since(start))
				}
				long, lanes := quanta.Load()*100_000, had.Load()
				stop.Store(true)
				b.ReportMetric(100*float64(long)/float64(long+lanes), "long-%")
				b.ReportMetric(100*float64(lanes)/float64(2*b.Elapsed()), "lanes-%")
				if asks {
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
					b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
				}
			})
		}
	}
}
