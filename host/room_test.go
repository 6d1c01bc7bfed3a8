package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// halfAMinute has guests sleep when they were idle for half a minute.
func halfAMinute(c Config) Config { return c.WithIdleAfter(30 * time.Second) }

// fill sends to a paused actor, which keeps it all, until that is refused.
func (l *lab) fill(ref Ref) {
	l.t.Helper()
	_ = l.Operate().Pause(ref, false)
	l.run()
	for range 100_000 {
		if l.Tell(ref, Raw(append([]byte{0x59, 0x10, 0x00}, make([]byte, 4096)...))) != nil {
			return
		}
	}
	l.t.Fatal("it is never full")
}

// Who sleeps in a tree that holds all it may wakes when there is room in the tree. No guest of another tree is
// put to sleep for it, which would not help, and it tries less and less often.
func TestTreeWithoutRoomLeavesOthersAwake(t *testing.T) {
	const others = 20
	l := newCrowdedLab(t, 0, supervision.Default(), halfAMinute)
	p := puppet(t)
	memory := 2*int64(sandbox.Weight(p.module.Image())) + 200_000
	top := l.spawn("top", newCounter().WithLimits(Limits{Tree: TreeLimits{Memory: memory}}))
	parent := l.table.Get(top.UID())
	spawn := func(name string) Ref {
		k := must(parent.spawn(nil, name, &p, parent.nextHostRef()))(t)
		l.run()
		return k.ref()
	}
	waits, full := spawn("waits"), spawn("full")
	for range 61 {
		l.pass(time.Second)
	}
	l.fill(full)
	for i := range others {
		l.spawn(fmt.Sprint("g", i), puppet(t))
	}
	l.seen()
	l.tell(waits, script())
	if i := l.info(waits); i.State != StateStarved {
		t.Fatalf("%+v", i)
	}
	tries := 0
	for range 2000 {
		l.clock.Advance(5 * time.Millisecond)
		for l.Step() {
			tries++
		}
	}
	if n := l.awakeGuests(); n != others {
		t.Errorf("%d are awake, not %d", n, others)
	}
	if tries < 15 || tries > 20 { // 5 ms, 10 ms, ... 640 ms, and then once a second
		t.Errorf("%d tries in 10 s", tries)
	}
	if n := len(l.seen(EventRefused)); n != 1 {
		t.Errorf("told %d times", n)
	}
	l.Stop(full)
	l.run()
	l.pass(instance.MostRetry)
	if i := l.info(waits); i.State != StateRunning || i.Mailbox != 0 {
		t.Errorf("%+v", i)
	}
	if n := guestOf(l.table.Get(waits.UID())).inst.Waited; n != 0 {
		t.Errorf("it would wait as after %d tries the next time", n)
	}
}

// Who starts where all instances are in use gets that of one that is idle, as who wakes does.
func TestStartsTakeInstancesOfIdleGuests(t *testing.T) {
	engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(2)))(t)
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	image := load(t, engine, "testdata/puppet.wasm")
	p := puppet(t)
	l := newCrowdedLab(t, 0, supervision.Default(), halfAMinute)
	var all []Ref
	for i := range 10 {
		ref := l.spawn(fmt.Sprint("g", i), Guest(image, "puppet").WithArgs(p.args).WithCapabilities(p.caps))
		l.tell(ref, script(rec(recAdd, byte(i+1), nil)))
		all = append(all, ref)
	}
	if n := len(l.seen(EventRefused, EventFailed)); n != 0 {
		t.Errorf("%d starts were refused", n)
	}
	for i, ref := range all {
		if got := answer(t, l.System, ref, script(rec(recReport, 0, nil))); fmt.Sprint(got) != fmt.Sprint(i+1) {
			t.Errorf("%v holds %v, want %d", ref, got, i+1)
		}
	}
}

// Where it is the system that holds all it may, who wakes or starts gets what an idle guest gives back.
func TestSystemWithoutRoomPutsIdleGuestsAway(t *testing.T) {
	p := puppet(t)
	memory := 4*int64(sandbox.Weight(p.module.Image())) + 300_000
	l := newCrowdedLab(t, 0, supervision.Default(), func(c Config) Config { return halfAMinute(c).WithMemory(memory) })
	var all []Ref
	for i := range 10 {
		ref := l.spawn(fmt.Sprint("g", i), p)
		l.tell(ref, script(rec(recAdd, byte(i+1), nil)))
		all = append(all, ref)
	}
	for i, ref := range all {
		if got := answer(t, l.System, ref, script(rec(recReport, 0, nil))); fmt.Sprint(got) != fmt.Sprint(i+1) {
			t.Errorf("%v holds %v, want %d", ref, got, i+1)
		}
	}
	if n := l.awakeGuests(); n < 2 || n > 5 || l.pool.Held() > memory {
		t.Errorf("%d are awake, %d of %d bytes are held", n, l.pool.Held(), memory)
	}
}

// A start that its tree has no room for takes that of the tree's own idle guests, however many others are awake, and of
// nobody else; so does who wakes.
func TestATreeMakesRoomOfItsOwn(t *testing.T) {
	for name, deep := range map[string]bool{"its own bound": false, "that of an ancestor": true} {
		t.Run(name, func(t *testing.T) {
			const crowd, kids = 1000, 12
			engine := newEngine(t)
			sys, _ := manual(t, func(c Config) Config { return c.WithIdleAfter(time.Hour) })
			guest := echo(t, engine)
			var others []Ref
			for i := range crowd {
				others = append(others, must(sys.Spawn(fmt.Sprint("other", i), guest))(t))
			}
			bound := Limits{Tree: TreeLimits{Memory: 4*int64(sandbox.Weight(guest.module.Image())) + 200_000}}
			parent := Func(func(ctx *Context, m Message) error {
				_, err := ctx.Spawn("", guest)
				return err
			})
			top, path := parent, "/user/top"
			if deep {
				top, path = Func(func(*Context, Message) error { return nil }).WithChildren(Child{"below", parent.WithLimits(Limits{Tree: TreeLimits{Actors: 100}})}), path+"/below"
			}
			must(sys.Spawn("top", top.WithLimits(bound)))(t)
			sys.RunUntilIdle(1 << 20)
			failed := sys.Subscribe(100, func(e *Event) bool { return e.Kind == EventFailed || e.Kind == EventRefused })
			spawner := lookup(t, sys, path)
			for range kids {
				must(0, sys.Tell(spawner, 1))(t)
				sys.RunUntilIdle(1 << 20)
			}
			all := sys.Select(path + "/*")
			if len(all) != kids {
				t.Fatalf("%d have been started", len(all))
			}
			for range 3 {
				for i, r := range all {
					if got := answer(t, sys, r, i+1); fmt.Sprint(got) != fmt.Sprint(i+1) {
						t.Errorf("%v, not %d", got, i+1)
					}
				}
			}
			select {
			case e := <-failed.C():
				t.Errorf("%v: %v %v", e.Ref, e.Failure, e.Refused)
			default:
			}
			for _, r := range others {
				if !guestOf(sys.table.Get(r.UID())).inst.Awake() {
					t.Errorf("%v sleeps", r)
				}
			}
			if n := sys.View().Stats().Asleep; n < kids-6 || n == kids {
				t.Errorf("%d of %d are asleep", n, kids)
			}
		})
	}
}

// Guests that have something to do, but may not do it, are asked to sleep in vain or give their
// instances back: either way a newcomer finds room, with sweeps as without them.
func TestSweptGuestsMakeRoom(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Minute} {
		for _, how := range []string{"paused", "failed"} {
			t.Run(fmt.Sprint(how, idle), func(t *testing.T) {
				const most = 4
				l := newCrowdedLab(t, most, supervision.Default().WithOtherwise(supervision.Suspend), func(c Config) Config { return c.WithIdleAfter(idle) })
				for i := range most {
					ref := l.spawn(fmt.Sprint("p", i), puppet(t))
					if how == "paused" {
						must(0, l.Operate().Pause(ref, false))(t)
						must(0, l.Tell(ref, script()))(t)
					} else {
						must(0, l.Tell(ref, script(trap())))(t)
					}
					l.run()
				}
				l.pass(2 * time.Minute)
				l.pass(2 * time.Minute)
				ref := l.spawn("new", puppet(t))
				for range 3 {
					must(0, l.Tell(ref, script()))(t)
					l.run()
					if !l.table.Get(ref.UID()).hasInstance() {
						t.Fatal("a guest that works is put away for those that do not")
					}
				}
			})
		}
	}
}

// The same where no more instances exist than those that others have.
func TestSweptGuestsGiveInstances(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Minute} {
		engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(4)))(t)
		t.Cleanup(func() { _ = engine.Close(t.Context()) })
		sys, clock := manual(t, func(c Config) Config { return c.WithMostAwake(100).WithIdleAfter(idle) })
		for i := range 4 {
			ref := must(sys.Spawn(fmt.Sprint("g", i), echo(t, engine)))(t)
			sys.RunUntilIdle(1 << 20)
			must(0, sys.Operate().Pause(ref, false))(t)
			must(0, sys.Tell(ref, 1))(t)
			sys.RunUntilIdle(1 << 20)
		}
		for range 4 {
			clock.Advance(time.Minute)
			sys.RunUntilIdle(1 << 20)
		}
		ref := must(sys.Spawn("new", echo(t, engine)))(t)
		sys.RunUntilIdle(1 << 20)
		if a := sys.table.Get(ref.UID()); a == nil || !a.hasInstance() {
			t.Errorf("idle after %v: a newcomer gets no instance", idle)
		}
	}
}
