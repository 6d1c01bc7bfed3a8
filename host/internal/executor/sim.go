package executor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// Sim is a clock whose timers, and the goroutines that are started with it, are tasks of a simulation. They run
// while Rest is called, one at a time: first those that wait and can go on, in the order in which they
// began to wait, then new ones, in the order in which they were started. It is safe for concurrent use;
// Rest is called by one goroutine, which is no task.
type Sim struct {
	inner clock.Clock

	mu      sync.Mutex
	tasks   map[uint64]*task // by goroutine
	fresh   []func()
	waiting []*waiter
	running int
	begun   uint64
	away    int     // tasks that go on by themselves: in Outside, or for longer than the patience
	back    []*task // that have come back from Outside
	free    bool    // it is over: everything runs by itself
	news    chan struct{}

	patience time.Duration // longest, but in tests
}

// task is a goroutine of the simulation.
type task struct {
	n     uint64 // in the order in which they began
	f     func()
	state state
	wake  chan struct{}
}

// state is where a task stands.
type state uint8

const (
	running state = iota
	waits
	outside
	slow // it has had its turn for longer than the patience
)

// waiter is a task that waits, or one that begins when its time has come.
type waiter struct {
	try   func() bool
	task  *task           // nil: it has not begun
	ctx   context.Context // of one that has not begun
	begin func()
	over  bool        // the simulation has ended before try was true
	stop  func() bool // of one that has not begun by then
}

// longest is how long, in real time, a task may run before others go on beside it: it may wait for them by means that
// nobody knows of. This is the one case in which the machine's speed decides about an order.
const longest = time.Second

// look is how often those that wait are looked at while something goes on by itself.
const look = time.Millisecond

// NewSim is a simulation in the time of a clock.
func NewSim(inner clock.Clock) *Sim {
	return &Sim{inner: inner, tasks: map[uint64]*task{}, news: make(chan struct{}, 1), patience: longest}
}

// Now implements clock.Clock.
func (s *Sim) Now() time.Time { return s.inner.Now() }

// AfterFunc implements clock.Clock: f is a task.
func (s *Sim) AfterFunc(d time.Duration, f func()) clock.Timer {
	return s.inner.AfterFunc(d, func() { s.run(f) })
}

// run starts a task.
func (s *Sim) run(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free {
		go f()
		return
	}
	s.fresh = append(s.fresh, f)
	s.ring()
}

// ring makes Rest look again.
func (s *Sim) ring() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// self is the task of the goroutine, nil if it is none, or one that is outside; the caller holds the lock.
func (s *Sim) self() *task {
	if t := s.tasks[goroutine()]; t != nil && t.state != outside {
		return t
	}
	return nil
}

// goroutine is the number of the goroutine. The runtime has no other way to tell two apart, and code of libraries,
// which calls back in goroutines of tasks and of its own, passes on nothing.
func goroutine() uint64 {
	var room [40]byte
	_, text, _ := bytes.Cut(room[:runtime.Stack(room[:], false)], []byte(" "))
	text, _, _ = bytes.Cut(text, []byte(" "))
	n, _ := strconv.ParseUint(string(text), 10, 64)
	return n
}

// await waits until try is true. It is false when the caller has to wait by itself: it is no task, or
// the simulation is over.
func (s *Sim) await(try func() bool) bool {
	s.mu.Lock()
	t := s.self()
	if s.free || t == nil {
		s.mu.Unlock()
		return false
	}
	s.mu.Unlock()
	if try() {
		return true
	}
	w := &waiter{try: try, task: t}
	s.mu.Lock()
	if s.free {
		s.mu.Unlock()
		return false
	}
	s.stop(t)
	t.state = waits
	s.waiting = append(s.waiting, w)
	s.ring()
	s.mu.Unlock()
	<-t.wake
	return !w.over
}

// stop takes its turn from a task; the caller holds the lock.
func (s *Sim) stop(t *task) {
	if t.state == outside || t.state == slow {
		s.away--
	} else {
		s.running--
	}
}

// grant gives a task its turn; the caller holds the lock.
func (s *Sim) grant(t *task) {
	t.state = running
	s.running++
	t.wake <- struct{}{}
}

// begin starts the goroutine of a task; the caller holds the lock.
func (s *Sim) begin(f func()) {
	s.begun++
	t := &task{n: s.begun, f: f, wake: make(chan struct{}, 1)}
	s.running++
	go func() {
		id := goroutine()
		s.mu.Lock()
		s.tasks[id] = t
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.tasks, id)
			s.stop(t)
			s.ring()
		}()
		f()
	}()
}

// outside is [Outside].
func (s *Sim) outside(f func()) {
	s.mu.Lock()
	t := s.self()
	if s.free || t == nil {
		s.mu.Unlock()
		f()
		return
	}
	s.stop(t)
	s.away++
	t.state = outside
	s.ring()
	s.mu.Unlock()
	f()
	s.mu.Lock()
	if s.free {
		s.mu.Unlock()
		return
	}
	s.stop(t)
	t.state = waits
	s.back = append(s.back, t)
	s.ring()
	s.mu.Unlock()
	<-t.wake
}

func (s *Sim) afterDone(ctx context.Context, f func()) (stop func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free {
		return context.AfterFunc(ctx, f)
	}
	w := &waiter{try: func() bool { return ctx.Err() != nil }, ctx: ctx, begin: f}
	s.waiting = append(s.waiting, w)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.waiting, w); i >= 0 {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return true
		}
		return w.stop != nil && w.stop()
	}
}

// Rest lets the tasks go on until each has ended, or waits for time to pass, for a message, for whatever is
// not a task's. Its error is the cause with which ctx ends, and says who was at work.
func (s *Sim) Rest(ctx context.Context) error {
	alone := time.Time{} // when only those who are away had something to do
	for {
		if err := s.settle(ctx); err != nil {
			return err
		}
		if s.wakeOne() || s.beginOne() {
			alone = time.Time{}
			continue
		}
		s.mu.Lock()
		away, back := s.away, len(s.back)
		if back > 0 && (away == 0 || !alone.IsZero() && time.Since(alone) > s.patience) {
			slices.SortFunc(s.back, func(a, b *task) int { return cmp.Compare(a.n, b.n) })
			s.grant(s.back[0])
			s.back = s.back[1:]
			s.mu.Unlock()
			alone = time.Time{}
			continue
		}
		s.mu.Unlock()
		if away == 0 {
			return nil
		}
		if alone.IsZero() {
			alone = time.Now()
		}
		if err := s.pause(ctx, look); err != nil {
			return err
		}
	}
}

// settle waits until no task holds a turn.
func (s *Sim) settle(ctx context.Context) error {
	began := time.Time{}
	for {
		s.mu.Lock()
		n := s.running
		if n > 0 && !began.IsZero() && time.Since(began) > s.patience {
			for _, t := range s.tasks {
				if t.state == running {
					t.state = slow
					s.running--
					s.away++
				}
			}
			n = s.running
		}
		s.mu.Unlock()
		if n == 0 {
			return nil
		}
		if began.IsZero() {
			began = time.Now()
		}
		if err := s.pause(ctx, s.patience/4); err != nil {
			return err
		}
	}
}

// pause waits for news.
func (s *Sim) pause(ctx context.Context, most time.Duration) error {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-s.news:
	case <-t.C:
	case <-ctx.Done():
		return fmt.Errorf("%w: a service is at work: %s", context.Cause(ctx), s.who())
	}
	return nil
}

// who names tasks that go on.
func (s *Sim) who() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, t := range s.tasks {
		if t.state != waits && t.f != nil {
			names = append(names, runtime.FuncForPC(reflect.ValueOf(t.f).Pointer()).Name())
		}
	}
	slices.Sort(names)
	return fmt.Sprint(slices.Compact(names))
}

// wakeOne lets the first one that waits and can go on do so.
func (s *Sim) wakeOne() bool {
	s.mu.Lock()
	all := slices.Clone(s.waiting)
	s.mu.Unlock()
	for _, w := range all {
		if !w.try() {
			continue
		}
		s.mu.Lock()
		i := slices.Index(s.waiting, w)
		if i < 0 { // it was stopped
			s.mu.Unlock()
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		if w.task != nil {
			s.grant(w.task)
		} else {
			s.begin(w.begin)
		}
		s.mu.Unlock()
		return true
	}
	return false
}

// beginOne begins the first new task.
func (s *Sim) beginOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fresh) == 0 {
		return false
	}
	f := s.fresh[0]
	s.fresh = s.fresh[1:]
	s.begin(f)
	return true
}

// Release ends the simulation: from now on its goroutines run by themselves.
func (s *Sim) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = true
	for _, w := range s.waiting {
		if w.over = true; w.task != nil {
			s.grant(w.task)
		} else {
			w.stop = context.AfterFunc(w.ctx, w.begin)
		}
	}
	for _, t := range s.back {
		s.grant(t)
	}
	for _, f := range s.fresh {
		go f()
	}
	s.waiting, s.back, s.fresh = nil, nil, nil
}
