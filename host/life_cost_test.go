package host

import (
	"testing"
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/supervision"
)

// TestAllocationsOfALife pins what a crash with its restart allocates, and what an actor from its
// start to its end does. Half of those of a guest's crash are wazero's, which writes a stack trace.
func TestAllocationsOfALife(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	s, _ := manual(t, func(c Config) Config { return c.WithGuardian(otherwise(supervision.Restart)) })
	var poison, well any = script(trap()), script() // boxed once
	ref := must(s.Spawn("", puppet(t)))(t)
	lives := func(p Props) func() {
		var last Ref
		driver := must(s.Spawn("", Func(func(c *Context, _ Message) error {
			if last != (Ref{}) {
				c.Stop(last)
			}
			var err error
			if last, err = c.Spawn("", p); err != nil {
				return err
			}
			return c.Tell(last, well)
		})))(t)
		return func() { _ = s.Tell(driver, well) }
	}
	for _, c := range []struct {
		name string
		do   func()
		most float64
	}{
		{"crash and restart of a guest", func() { _ = s.Tell(ref, poison); _ = s.Tell(ref, well) }, 38},
		{"life of a guest", lives(puppet(t)), 7},
		{"life of a guest with capabilities", lives(puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/a/*", "/user/b"}})), 7},
		{"life of an actor in Go", lives(Func(func(*Context, Message) error { return nil })), 6},
	} {
		work := func() {
			c.do()
			s.RunUntilIdle(1000)
		}
		for range 100 {
			work()
		}
		if n := testing.AllocsPerRun(2000, work); n > c.most {
			t.Errorf("%s: %v allocations, at most %v are allowed", c.name, n, c.most)
		} else {
			t.Logf("%s: %v allocations", c.name, n)
		}
	}
	if i := must(s.View().Info(ref))(t); i.Restarts < 2000 || i.Failure == nil || i.Failure.Failure.Kind != abi.FailureTrap {
		t.Errorf("it does not crash: %+v", i)
	}
}

// TestCapabilitiesAreCompiledOnce: actors with the same props share its capabilities as they are compared with
// paths, and so do the children that a guest spawns; a renewal brings those of other props.
func TestCapabilitiesAreCompiledOnce(t *testing.T) {
	l := newStage(t, nil)
	p := puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/x"}, Spawn: []string{"*"}})
	idle := Func(func(*Context, Message) error { return nil })
	a, b := l.spawn("a", p), l.spawn("b", p)
	of := func(r Ref) *capabilities { return l.table.Get(r.UID()).rules.Load().compiled }
	child := abi.ChildRef(childKeyOf(guestOf(l.table.Get(a.UID()))), 0, 0)
	l.say(a, script(now(abi.AppendSpawn(nil, child, "puppet", "c", nullPayload, nil))))
	c := must(l.Lookup("/user/a/c"))(t)
	if of(a) != of(b) || of(a) != of(c) || len(of(a).send) != 1 {
		t.Errorf("%p %p %p", of(a), of(b), of(c))
	}
	if of(l.spawn("none", idle)) != of(l.spawn("other", idle)) {
		t.Error("none is not the same as none")
	}
	if err := l.Operate().Renew(a, p.WithCapabilities(Capabilities{Send: []string{"/user/y", "/user/z"}, Spawn: []string{"*"}})); err != nil {
		t.Fatal(err)
	}
	l.run()
	next := abi.ChildRef(childKeyOf(guestOf(l.table.Get(a.UID()))), 0, 1)
	l.say(a, script(now(abi.AppendSpawn(nil, next, "puppet", "d", nullPayload, nil))))
	if d := must(l.Lookup("/user/a/d"))(t); len(of(a).send) != 2 || of(d) != of(a) || len(of(b).send) != 1 {
		t.Errorf("renewed: %d, its child %d, another %d", len(of(a).send), len(of(d).send), len(of(b).send))
	}
}

// TestChildrenShareRules: children of one parent that were spawned with the same props in a row share what they run by,
// from the second on and whatever their args are; a renewal gives one of them others, and the rest keep theirs.
func TestChildrenShareRules(t *testing.T) {
	l := newStage(t, nil)
	p := puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/x"}})
	of := func(r Ref) *rules { return l.table.Get(r.UID()).rules.Load() }
	first := l.spawn("first", p)
	a, b, c := l.spawn("a", p), l.spawn("b", p.WithArgs(7)), l.spawn("c", p.WithLimits(Limits{Fuel: 1 << 40}))
	d := l.spawn("d", p)
	if of(a) != of(b) || of(a) == of(first) || of(a) == of(c) || of(c) == of(d) {
		t.Errorf("rules at %p and %p, %p with other args, %p with other limits, %p after these", of(first), of(a), of(b), of(c), of(d))
	}
	if got := l.table.Get(b.UID()).args; string(got) != "\x07" {
		t.Errorf("args %x", got)
	}
	spawner := l.spawn("spawner", p.WithCapabilities(Capabilities{Spawn: []string{"*"}}))
	key := childKeyOf(guestOf(l.table.Get(spawner.UID())))
	l.say(spawner, script(now(abi.AppendSpawn(nil, abi.ChildRef(key, 0, 0), "puppet", "one", nullPayload, nil)),
		now(abi.AppendSpawn(nil, abi.ChildRef(key, 0, 1), "puppet", "two", nullPayload, nil)),
		now(abi.AppendSpawn(nil, abi.ChildRef(key, 0, 2), "puppet", "three", nullPayload, nil))))
	one, two := must(l.Lookup("/user/spawner/two"))(t), must(l.Lookup("/user/spawner/three"))(t)
	if of(one) != of(two) {
		t.Error("children that a guest has spawned do not share their rules")
	}
	if err := l.Operate().Renew(a, p.WithLimits(Limits{Fuel: 1 << 41})); err != nil {
		t.Fatal(err)
	}
	l.run()
	if of(a) == of(b) || of(a).limits.Fuel != 1<<41 || of(b).limits.Fuel == 1<<41 || l.table.Get(a.UID()).props != &of(b).Props {
		t.Errorf("after a renewal: fuel %d and %d", of(a).limits.Fuel, of(b).limits.Fuel)
	}
}

// TestSizeOfAnActor: an actor fits the allocator's class of 1.5 KiB with its header of 8 bytes, and an actor with rules
// of its own that of 2 KiB; the next ones are 17 and 13 % larger. What few actors have belongs behind a pointer, what many share in their rules.
func TestSizeOfAnActor(t *testing.T) {
	if n := unsafe.Sizeof(actor{}); n > 1536-8 {
		t.Errorf("an actor takes %d bytes", n)
	}
	if n := unsafe.Sizeof(actor{}) + unsafe.Sizeof(rules{}); n > 2048-8 {
		t.Errorf("an actor with its rules takes %d bytes", n)
	}
}

// TestQueueWithRoomOfItsOwn: what is taken from a system queue stays as it was while more is
// pushed, and a queue that is used again needs no memory.
func TestQueueWithRoomOfItsOwn(t *testing.T) {
	var q sysmail.Queue
	q.Init()
	watch := &signal.Signal{Kind: signal.Watch, From: 1}
	n := testing.AllocsPerRun(100, func() {
		q.Push(&sysmail.Msg{Kind: sysmail.Signal, Signal: watch})
		q.Done(q.Take())
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	q.Push(&sysmail.Msg{Kind: sysmail.Signal, Signal: &signal.Signal{Kind: signal.Watch, From: 1}})
	items := q.Take()
	q.Push(&sysmail.Msg{Kind: sysmail.Signal, Signal: &signal.Signal{Kind: signal.Watch, From: 2}})
	q.Push(&sysmail.Msg{Kind: sysmail.Signal, Signal: &signal.Signal{Kind: signal.Watch, From: 3}})
	if len(items) != 1 || items[0].Signal.From != 1 {
		t.Fatalf("taken: %+v", items)
	}
	q.Done(items)
	if items = q.Take(); len(items) != 2 || items[0].Signal.From != 2 || items[1].Signal.From != 3 {
		t.Errorf("taken: %+v", items)
	}
}
