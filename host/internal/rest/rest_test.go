package rest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// crowd are actors that pass on what they are told: mail from outside, and for each piece a chain of system messages.
type crowd struct {
	disp *dispatch.Dispatcher
	rest *Rest[*member]
	all  []*member

	runs    atomic.Int64 // that go on
	changes atomic.Int64
	sent    atomic.Int64
	handled atomic.Int64
}

type member struct {
	dispatch.Task
	in   *crowd
	n    uint64
	told sysmail.Queue
	mail atomic.Int64
	held bool
	wait atomic.Bool // the recorder has not answered
	dice *rand.Rand
}

func newCrowd(n int) *crowd {
	c := &crowd{disp: dispatch.New(dispatch.Config{Workers: 4})}
	c.rest = New(func(m *member) { c.disp.Schedule(&m.Task, nil) })
	for i := range n {
		m := &member{in: c, n: uint64(i), dice: rand.New(rand.NewPCG(uint64(i), 1))}
		m.told.Init()
		m.Init(m)
		c.all = append(c.all, m)
	}
	return c
}

// post sends a system message that leads to so many others.
func (m *member) post(w *dispatch.Worker, hops uint64) {
	r := m.in.rest
	r.Owe(1)
	if _, first := m.told.Push(&sysmail.Msg{Kind: sysmail.Decide, Kin: sysmail.Kin{Orders: hops}}); !first {
		r.Owe(-1)
	}
	m.in.disp.Schedule(&m.Task, w)
}

func (m *member) tell() {
	m.in.sent.Add(1)
	m.mail.Add(1)
	m.in.disp.Schedule(&m.Task, nil)
}

// Run implements dispatch.Runnable.
func (m *member) Run(w *dispatch.Worker) (more bool) {
	c, r := m.in, m.in.rest
	if !r.Begin(m, m.n, m.told.Waiting() || m.held) {
		return false
	}
	defer r.End(m.n)
	c.runs.Add(1)
	defer c.runs.Add(-1)
	still := r.Still(m)
	if m.held {
		if m.wait.Load() {
			return false
		}
		m.held = false
		r.Hold(-1)
	}
	for m.told.Waiting() {
		items := m.told.Take()
		for _, x := range items {
			c.changes.Add(1)
			if x.Orders > 0 {
				c.all[m.dice.IntN(len(c.all))].post(w, x.Orders-1)
			}
		}
		r.Owe(m.told.Done(items))
	}
	if !still && m.mail.Load() > 0 {
		m.mail.Add(-1)
		c.changes.Add(1)
		c.handled.Add(1)
		c.all[m.dice.IntN(len(c.all))].post(w, 4)
		if m.dice.IntN(4) == 0 { // its turn waits for the recorder, which answers from elsewhere
			m.held = true
			r.Hold(1)
			m.wait.Store(true)
			go func() {
				m.wait.Store(false)
				c.disp.Schedule(&m.Task, nil)
			}()
			return false
		}
	}
	return !still && m.mail.Load() > 0
}

// However much comes from outside, actors rest at once: none runs, none is about to tell another one something, no turn waits; and they stay as
// they are. Nobody is forgotten when they go on.
func TestAllRestAtOnce(t *testing.T) {
	c := newCrowd(40)
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for i := range 3 {
		senders.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(i), 2))
			for {
				select {
				case <-stop:
					return
				default:
				}
				if c.sent.Load()-c.handled.Load() > 1000 {
					runtime.Gosched()
					continue
				}
				c.all[dice.IntN(len(c.all))].tell()
			}
		})
	}
	for n := range 300 {
		if err := c.rest.Come(true, func() error { return c.rest.Wait(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		before := c.changes.Load()
		for range 50 {
			if c.runs.Load() > 0 {
				t.Fatalf("rest %d: a run goes on", n)
			}
			runtime.Gosched()
		}
		for _, m := range c.all {
			if m.told.Waiting() || m.held {
				t.Fatalf("rest %d: actor %d has something under way", n, m.n)
			}
		}
		if after := c.changes.Load(); after != before {
			t.Fatalf("rest %d: %d changes", n, after-before)
		}
		c.rest.Thaw()
	}
	close(stop)
	senders.Wait()
	for c.handled.Load() < c.sent.Load() {
		runtime.Gosched()
	}
	if err := c.rest.Come(false, func() error { return c.rest.Wait(t.Context()) }); err != nil {
		t.Error(err)
	}
	if err := c.disp.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What is under way when actors have to rest is waited for: runs, turns, system messages, also a run that begins after all was found at rest.
func TestWhatIsUnderWayIsWaitedFor(t *testing.T) {
	for _, x := range []struct {
		what         string
		begins, ends func(r *Rest[int])
	}{
		{"a run", func(r *Rest[int]) { r.Begin(1, 1, true) }, func(r *Rest[int]) { r.End(1) }},
		{"a turn", func(r *Rest[int]) { r.Hold(1) }, func(r *Rest[int]) { r.Hold(-1) }},
		{"a system message", func(r *Rest[int]) { r.Owe(1) }, func(r *Rest[int]) { r.Owe(-1) }},
	} {
		for _, late := range []bool{false, true} {
			if late && x.what != "a run" {
				continue // they come about in runs
			}
			for _, solid := range []bool{true, late} {
				r, waits := New(func(int) {}), 0
				if late {
					r.between = func(s step) {
						if s == looked && waits == 0 {
							r.between = nil
							x.begins(r)
						}
					}
				} else {
					x.begins(r)
				}
				err := r.Come(solid, func() error { waits++; x.ends(r); return nil })
				if now, calm := r.look(); err != nil || waits != 1 || !calm || r.Begin(1, 1, false) {
					t.Errorf("%s, late %v: %v, %d waits, %v", x.what, late, err, waits, now)
				}
			}
		}
	}
}

// An actor that is about to run when all were found at rest does not run, and is woken; so is one that is about to leave its work when all go on,
// or it does not leave it.
func TestWhoIsAboutToRun(t *testing.T) {
	woken := 0
	r := New(func(int) { woken++ })
	none := func() error { t.Error("something is under way"); return errors.New("no rest") }
	r.between = func(s step) {
		if s == begins {
			r.between = nil
			if err := r.Come(true, none); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.Begin(1, 1, true) {
		t.Error("it runs while others are copied")
	}
	if r.Thaw(); woken != 1 {
		t.Errorf("it was woken %d times", woken)
	}
	if err := r.Come(true, none); err != nil {
		t.Fatal(err)
	}
	r.between = func(s step) {
		if s == leaving {
			r.between = nil
			r.Thaw()
		}
	}
	if !r.Begin(1, 1, false) && woken == 1 {
		t.Error("it is forgotten")
	}
}

// Who does not come to rest ends the wait with its error, and all go on; frozen ones do not.
func TestNoRest(t *testing.T) {
	c := newCrowd(2)
	c.rest.Hold(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("not now")
	cancel(why)
	if err := c.rest.Come(true, func() error { return c.rest.Wait(ctx) }); !errors.Is(err, why) {
		t.Error(err)
	}
	c.all[0].tell()
	for len(leftOf(c.rest)) == 0 {
		runtime.Gosched()
	}
	c.rest.Thaw()
	for c.handled.Load() == 0 {
		runtime.Gosched()
	}
	c.rest.Hold(-1)
	if !c.rest.Freeze() || c.rest.Freeze() || !c.rest.Frozen() {
		t.Error("it is frozen once")
	}
	if c.rest.Thaw(); !c.rest.Still(c.all[0]) {
		t.Error("who is frozen goes on")
	}
	c.rest.Live(3)
	if c.rest.Live(-1); c.rest.Actors() != 2 {
		t.Error(c.rest.Actors())
	}
	if err := c.disp.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func leftOf[A comparable](r *Rest[A]) []A {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}
