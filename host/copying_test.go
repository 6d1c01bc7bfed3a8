package host

import (
	"bytes"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// striding is a clock by which whatever lies between two looks takes ten milliseconds.
type striding struct {
	Clock
	looks atomic.Int64
}

func (c *striding) Now() time.Time {
	return c.Clock.Now().Add(time.Duration(c.looks.Add(1)) * 10 * time.Millisecond)
}

// refusing is a mailbox that is always full.
type refusing struct {
	plainBox
	came func()
}

func (b *refusing) Push(*Envelope) error { b.came(); return ErrMailboxFull }
func (b *refusing) Empty() bool          { return true }

// inTree is a system where copying takes long, with an actor whose tree has room for four guests.
func inTree(t *testing.T) (sys *System, spawn func(name string, p Props) Ref) {
	sys = newSystem(t, NewConfig("test").WithWorkers(1).WithIdleAfter(time.Hour).WithClock(&striding{Clock: RealClock()}))
	bound := TreeLimits{Memory: 4*sandbox.Weight(puppetImage(t)) + 200_000}
	top := must(sys.Spawn("top", Func(func(*Context, Message) error { return nil }).WithLimits(Limits{Tree: bound})))(t)
	return sys, func(name string, p Props) Ref {
		ref := must(sys.SpawnBelow(top, name, p))(t)
		waitFor(t, "the start", func() bool { a := sys.table.Get(ref.UID()); return a.life.Begun.Load() && !a.place.Running() })
		return ref
	}
}

// What the host copies to wake a guest counts as what the guest computes: its run ends when it has
// spent its slice, and the rest of its mail waits behind others.
func TestWakingCountsForTheRun(t *testing.T) {
	const messages = 10
	sys, spawn := inTree(t)
	g := spawn("g", puppet(t))
	waitFor(t, "it sleeps", func() bool { return guestOf(sys.table.Get(g.UID())).inst.PutAway() })
	seen := make(chan uint64, messages) // turns in the runs before, when the guest sends
	must(sys.Spawn("probe", Func(func(*Context, Message) error { return nil }).WithMailbox(func(MailboxLimits) Mailbox {
		return &refusing{came: func() { seen <- sys.table.Get(g.UID()).tally.Turns.Load() }}
	})))(t)
	before := sys.table.Get(g.UID()).tally.Turns.Load()
	// A turn in Go sends everything at once, on the worker that the guest then runs on.
	all := must(sys.Spawn("all", Func(func(ctx *Context, _ Message) error {
		for i := range messages {
			if err := ctx.Tell(g, script(now(toProbe(i)))); err != nil {
				return err
			}
		}
		return nil
	})))(t)
	must(0, sys.Tell(all, 1))(t)
	for i := range uint64(2) {
		if n := <-seen - before; n != i {
			t.Errorf("turn %d comes after %d in runs before: the run that has woken the guest goes on", i, n)
		}
	}
	for range messages - 2 {
		<-seen
	}
}

// So does what it copies to put others to sleep, for a child of a guest to have room.
func TestRoomForAChildCountsForTheRun(t *testing.T) {
	sys, spawn := inTree(t)
	idle, full := spawn("idle", puppet(t)), spawn("full", Func(func(*Context, Message) error { return nil }))
	parent := sys.table.Get(spawn("g", puppet(t)).UID())
	must(0, sys.Operate().Pause(full, false))(t)
	waitFor(t, "the pause", func() bool { return !sys.table.Get(full.UID()).life.Open() })
	for sys.Tell(full, Raw(append([]byte{0x59, 0x04, 0x00}, make([]byte, 1024)...))) == nil {
	}
	spent := make(chan [2]bool, 1)
	ref := must(sys.Spawn("", Func(func(ctx *Context, _ Message) error {
		before := ctx.scr.w.Spent()
		_, err := parent.spawn(ctx.scr, "", &Props{make: parent.props.make, typ: parent.props.typ}, parent.nextHostRef())
		spent <- [2]bool{before, ctx.scr.w.Spent()}
		return err
	})))(t)
	must(0, sys.Tell(ref, 1))(t)
	if got := <-spent; got != [2]bool{false, true} || sys.table.Get(idle.UID()).hasInstance() {
		t.Errorf("spent before and after: %v", got)
	}
}

// A run that is about to copy a large memory lets others run before, by no clock: those behind it in its lane do not wait.
func TestRunsYieldBeforeLargeCopies(t *testing.T) {
	const pages = 2 * instance.LargeCopy / 65536
	image := load(t, newEngine(t), "testdata/brute.wasm")
	sys := newSystem(t, NewConfig("test").WithWorkers(1).WithIdleAfter(time.Hour).WithClock(NewVirtualClock(time.Unix(0, 0))))
	for name, c := range map[string]struct {
		props Props
		fill  any
		want  bool
	}{
		"large": {Guest(image, "brute"), order(verbGrow, pages, nil), true},
		"small": {puppet(t), script(), false},
	} {
		ref := must(sys.Spawn(name, c.props))(t)
		a := sys.table.Get(ref.UID())
		must(0, sys.Tell(ref, c.fill))(t)
		waitFor(t, "it is idle", func() bool { return a.tally.Turns.Load() == 2 && !a.place.Running() })
		g := guestOf(a)
		within := func(what string, want bool, f func(ctx *Context)) {
			t.Helper()
			if got := spends(t, sys, f); got != want {
				t.Errorf("%s, %s: it yields: %v", name, what, got)
			}
		}
		g.inst.States = &instance.States{}
		within("is saved", false, func(ctx *Context) { g.inst.Checkpoint(ctx.scr.w) }) // it is not known yet how large that is
		within("is saved again", c.want, func(ctx *Context) { g.inst.Checkpoint(ctx.scr.w) })
		within("goes back", c.want, func(ctx *Context) { g.inst.GoBack(ctx.scr.w) })
		g.inst.ForgetStates()
		within("falls asleep", c.want, func(ctx *Context) { sys.awake.Hold(&g.inst.Node); g.inst.Sleep(ctx.scr.w) })
		if g.inst.Snapshot == nil {
			t.Errorf("%s: it does not sleep", name)
		}
		within("wakes", c.want, func(ctx *Context) { _, _ = g.inst.Get(ctx.scr.w) })
		if g.inst.Snapshot != nil {
			t.Errorf("%s: it does not wake", name)
		}
		within("is reset", c.want, func(ctx *Context) { g.End(ctx, End{}) })
		within("ends", c.want, func(ctx *Context) { g.End(ctx, End{Last: true}) })
	}
}

// spends reports whether f, within a turn of an actor of its own, lets others run or notes that it has worked for long.
func spends(t *testing.T, sys *System, f func(ctx *Context)) bool {
	t.Helper()
	spent := make(chan bool, 1)
	ref := must(sys.Spawn("", Func(func(ctx *Context, _ Message) error {
		before := ctx.scr.w.Spent()
		f(ctx)
		spent <- !before && ctx.scr.w.Spent()
		return nil
	})))(t)
	must(0, sys.Tell(ref, 1))(t)
	return <-spent
}

// What the host copies to be able to resume a guest, and to go back, counts as what the guest computes. By this
// clock all of it takes long.
func TestSavingCountsForTheRun(t *testing.T) {
	sys := newSystem(t, NewConfig("test").WithWorkers(1).WithIdleAfter(time.Hour).WithClock(&striding{Clock: RealClock()}))
	a := sys.table.Get(must(sys.Spawn("small", puppet(t)))(t).UID()) // a large one would let others run before
	waitFor(t, "it is idle", func() bool { return a.life.Begun.Load() && !a.place.Running() })
	g := guestOf(a)
	g.inst.States = &instance.States{}
	if !spends(t, sys, func(ctx *Context) { g.inst.Checkpoint(ctx.scr.w) }) {
		t.Error("that it is saved does not count")
	}
	if !spends(t, sys, func(ctx *Context) { g.inst.GoBack(ctx.scr.w) }) {
		t.Error("that it goes back does not count")
	}
	g.inst.ForgetStates()
}

// So do turns that are repeated to resume it, each of them too short to let others run.
func TestRepeatedTurnsCountForTheRun(t *testing.T) {
	image := load(t, newEngine(t), "testdata/brute.wasm")
	sys := newSystem(t, NewConfig("test").WithWorkers(1).WithIdleAfter(time.Hour).WithClock(NewVirtualClock(time.Unix(0, 0))))
	top := must(sys.Spawn("top", Func(func(*Context, Message) error { return nil }).WithSupervision(otherwise(supervision.Resume))))(t)
	ref := must(sys.SpawnBelow(top, "g", Guest(image, "brute")))(t)
	a := sys.table.Get(ref.UID())
	waitFor(t, "the start", func() bool { return a.life.Begun.Load() && !a.place.Running() })
	const turns = instance.CheckpointTurns - 2
	for range turns {
		must(0, sys.Tell(ref, order(verbSpin, 100_000, nil)))(t)
	}
	waitFor(t, "it is idle", func() bool { return a.tally.Turns.Load() == turns+1 && !a.place.Running() })
	g := guestOf(a)
	if len(g.inst.States.Log) != turns {
		t.Fatal(len(g.inst.States.Log), " turns to repeat")
	}
	repeat := func(n int) (spent bool) {
		all := g.inst.States.Log
		defer func() { g.inst.States.Log = all }()
		g.inst.States.Log = all[:n]
		return spends(t, sys, func(ctx *Context) {
			if !g.repeat(ctx.scr) {
				t.Error("they fail")
			}
		})
	}
	if repeat(1) {
		t.Skip("the machine is too slow: one of them lets others run")
	}
	if !repeat(turns) {
		t.Error("they do not count")
	}
}

// To put a memory back counts as what the guest computes, too, from 1 MiB on. By this clock all of it takes long.
func TestResetsCountForTheRun(t *testing.T) {
	small, err := os.ReadFile("testdata/puppet.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const pages = instance.LargeCopy / 65536
	memory := func(pages byte) []byte { return []byte{5, 3, 1, 0, pages} } // the section: one of so many, without a bound
	sys := newSystem(t, NewConfig("test").WithWorkers(1).WithIdleAfter(time.Hour).WithClock(&striding{Clock: RealClock()}))
	for _, n := range []byte{pages - 1, pages} { // below what is large enough to let others run before
		code := bytes.Replace(small, memory(2), memory(n), 1)
		image, err := newEngine(t).Load(t.Context(), code, sandbox.ImageConfig{Name: "puppet"})
		if err != nil {
			t.Fatal(err)
		}
		a := sys.table.Get(must(sys.Spawn("", Guest(image, "puppet").WithArgs(script())))(t).UID())
		waitFor(t, "it is idle", func() bool { return a.life.Begun.Load() && !a.place.Running() })
		g := guestOf(a)
		if size := g.inst.Load().MemoryBytes(); size != uint64(n)*65536 {
			t.Fatalf("its memory has %d bytes", size)
		}
		for _, end := range []End{{}, {Last: true}} {
			if got := spends(t, sys, func(ctx *Context) { g.End(ctx, end) }); got != (n == pages) {
				t.Errorf("%d pages, %+v: it counts: %v", n, end, got)
			}
		}
	}
}
