package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// A02: systems in one process share nothing.
func TestA02_SystemsShareNothing(t *testing.T) {
	one, two := newStage(t, nil), newStage(t, nil)
	a := one.spawn("a", newCounter())
	if err := two.Tell(a, 1); two.Name() == one.Name() && err == nil {
		// Both have the name "test" and one seed: the other system has no such actor.
		t.Error("the other system's actor was found")
	}
	two.spawn("a", newCounter())
	one.Stop(a)
	one.run()
	if _, err := two.Lookup("/user/a"); err != nil {
		t.Error(err)
	}
	one.equal("dead letters of the one", one.letters(), []string{})
}

// A03: every actor has one parent; stopping it stops all below it.
func TestA03_StoppingAParentStopsAllBelow(t *testing.T) {
	l := newStage(t, nil)
	leaf := newCounter()
	a := l.spawn("a", newCounter().WithChildren(Child{"b", newCounter().WithChildren(Child{"c", leaf}, Child{"d", leaf})}))
	c := must(l.Lookup("/user/a/b/c"))(t)
	l.raw()
	l.Stop(a)
	l.run()
	ends := l.events(EventStopped)
	slices.Sort(ends[:2]) // between siblings there is no order
	l.equal("stopped", ends, []string{"stopped c", "stopped d", "stopped b", "stopped a"})
	if l.alive(c) || l.alive(a) {
		t.Error("some live on")
	}
}

// A05: state is rebuilt from scratch by a restart; what nobody refers to is not collected.
func TestA05_StateIsRebuilt(t *testing.T) { everyManner(t, rowA05_StateIsRebuilt) }

func rowA05_StateIsRebuilt(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		l.post(a, s.add(5))
		l.post(a, s.report)
		l.post(a, s.crash)
		l.say(a, s.report)
		if got := values(l.got); got[1] != "5" || got[len(got)-1] != "0" {
			l.t.Errorf("%q", l.got)
		}
		l.pass(1 << 50)
		if !l.alive(a) {
			l.t.Error("it has gone")
		}
	})
}

// A08: /user is the parent of what Spawn makes; its strategy is the system's guardian's.
func TestA08_UserGuardian(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithGuardian(supervision.Stopping()) })
	a := l.spawn("a", newCounter())
	if n := l.View().Tree(); n.Ref.Path() != "/user" || len(n.Children) != 2 || n.Children[1].Ref != a {
		t.Errorf("%v", n)
	}
	l.say(a, "crash")
	if l.alive(a) {
		t.Error("a stopping guardian has not stopped it")
	}
	l.Stop(must(l.Lookup("/user"))(t))
	l.run()
	if l.alive(l.probe) {
		t.Error("the guardian has ended and its child lives on")
	}
}

// A09: what fails below /system is started again, whatever the strategy of /user is, after 100 ms, then 200 ms;
// it is asked in vain until then, and its ref stays.
func TestA09_SystemRestartsWhatFails(t *testing.T) {
	clock := NewVirtualClock(time.Unix(1, 0))
	s, err := New(NewConfig("test").WithManual().WithClock(clock).WithGuardian(supervision.Stopping()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	ref, err := s.SpawnService("x", Func(func(ctx *Context, m Message) error { return ctx.Reply("here") }))
	if err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(1000)
	for i, kind := range []abi.FailureKind{abi.FailureKilled, abi.FailureInit, abi.FailureGuestError, abi.FailureNativePanic} {
		if err := s.Operate().Crash(ref, kind, "drill"); err != nil {
			t.Fatal(err)
		}
		s.RunUntilIdle(1000)
		p, err := s.Request(ref, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := <-p.Answer(); m.Err() == nil || !strings.Contains(m.Err().Error(), "unavailable: ") {
			t.Errorf("%v: %v", kind, m.Err())
		}
		clock.Advance(100*time.Millisecond<<i - 1)
		s.RunUntilIdle(1000)
		if x, err := s.View().Info(ref); err != nil || x.State != StateDelayed {
			t.Errorf("%v: %+v, %v", kind, x.State, err)
		}
		clock.Advance(1)
		s.RunUntilIdle(1000)
		p, _ = s.Request(ref, nil)
		s.RunUntilIdle(1000)
		if m := <-p.Answer(); m.Err() != nil {
			t.Errorf("%v: %v", kind, m.Err())
		}
	}
}

// A09: /system ends after /user, so that it outlives what it serves.
func TestA09_SystemEndsAfterUser(t *testing.T) {
	l := newStage(t, nil)
	l.spawn("a", newCounter())
	l.raw()
	if err := l.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	ends := l.events(EventStopped, EventTerminated)
	slices.Sort(ends[:2])
	l.equal("the end", ends, []string{"stopped a", "stopped probe", "stopped user", "stopped system", "terminated "})
}

// A11: the scopes of paths.
func TestA11_Scopes(t *testing.T) {
	l := newStage(t, nil)
	for _, path := range []string{"/user", "/system", "/user/probe"} {
		if got := must(l.Lookup(path))(t).Path(); got != path {
			t.Errorf("%s is %s", path, got)
		}
	}
	in := l.Inbox(0)
	defer in.Close()
	if in.Ref().Path() != "/temp" {
		t.Error(in.Ref())
	}
	for _, path := range []string{"/", "", "/nobody", "/user/", "/user//probe", "user", "/temp", "wasm://other/user"} {
		if _, err := l.Lookup(path); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// A12: a ref is an immutable handle; the zero one is nobody.
func TestA12_Refs(t *testing.T) {
	l := newStage(t, nil)
	if err := l.Tell(Ref{}, 1); !errors.Is(err, ErrUnknown) || !(Ref{}).IsZero() || (Ref{}).String() != "nobody" {
		t.Error(err)
	}
	a := l.spawn("a", newCounter())
	if err := l.Tell(newRef(a.UID(), ""), 1); err != nil { // the path is for people
		t.Error(err)
	}
	l.equal("dead letters", l.letters(), []string{"no sender: 1"})
}

// A13: wasm://system/user/a/b#uid; the elements are the names from the root.
func TestA13_PathGrammar(t *testing.T) {
	l := newStage(t, nil)
	l.spawn("a", newCounter().WithChildren(Child{"b", newCounter()}))
	b := must(l.Lookup("/user/a/b"))(t)
	if want := fmt.Sprintf("wasm://test/user/a/b#%d", b.UID()); b.String() != want || b.Name() != "b" {
		t.Errorf("%s, want %s", b, want)
	}
	for _, text := range []string{b.String(), "wasm://test/user/a/b", "/user/a/b", fmt.Sprintf("/user/a/b#%d", b.UID())} {
		if got := must(l.Lookup(text))(t); got != b {
			t.Errorf("%s is %v", text, got)
		}
	}
}

// A14: names are optional, not empty, unique among siblings; '$' is the host's.
func TestA14_Names(t *testing.T) { everyManner(t, rowA14_Names) }

func rowA14_Names(t *testing.T) {
	l := newStage(t, nil)
	for _, name := range []string{"$a", "a/b", "ä", "a b", "a*", "a?", string(make([]byte, 256))} {
		if _, err := l.Spawn(name, newCounter()); !errors.Is(err, ErrBadName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	l.spawn("a", newCounter())
	if _, err := l.Spawn("a", newCounter()); !errors.Is(err, ErrNameTaken) {
		t.Error(err)
	}
	x, y := l.spawn("", newCounter()), l.spawn("", newCounter())
	if x.Name() != "$0" || y.Name() != "$1" {
		t.Errorf("%v, %v", x, y)
	}
	// Of a guest the same: a name that is taken is a spawn that has failed.
	g := l.spawn("guest", puppet(t, on(abi.KindSpawnFailed, toProbe("refused"))))
	key := childKeyOf(l.table.Get(g.UID()).behaviour.(*guest))
	spawnB := func(k uint64) []byte { return abi.AppendSpawn(nil, abi.ChildRef(key, 0, k), "puppet", "b", nil, nil) }
	l.say(g, script(now(spawnB(0), spawnB(1))))
	l.wants("message refused")
	if kids := l.View().Tree().Children; len(kids[len(kids)-1].Children) != 1 {
		t.Errorf("%v", l.View().Tree())
	}
}

// A name or a type that cannot be is a spawn that has failed, with the name, and not a failure of
// the parent.
func TestBadNameOfAGuestsChild(t *testing.T) { everyManner(t, rowBadNameOfAGuestsChild) }

func rowBadNameOfAGuestsChild(t *testing.T) {
	for _, c := range []struct{ typ, name, want string }{
		{"puppet", "two words", `"two words"`},
		{"puppet", "$1", `"$1"`},
		{"puppet", "a/b", `"a/b"`},
		{"puppet", strings.Repeat("x", 300), "xxx"},
		{"no such", "b", "no such"},
		{"", "b", "type"},
	} {
		l := newStage(t, nil)
		g := l.spawn("guest", puppet(t, on(abi.KindSpawnFailed, abi.AppendForward(nil, l.probe.UID(), ""))))
		key := childKeyOf(guestOf(l.table.Get(g.UID())))
		l.say(g, script(now(abi.AppendSpawn(nil, abi.ChildRef(key, 0, 0), c.typ, c.name, nil, nil))))
		l.say(g, script(now(abi.AppendSpawn(nil, abi.ChildRef(key, 0, 1), "puppet", "good", nil, nil))))
		if len(l.got) != 1 || !strings.Contains(l.got[0], c.want) {
			t.Errorf("%q, %q: %q", c.typ, c.name, l.got)
		}
		if _, err := l.Lookup("/user/guest/good"); err != nil {
			t.Errorf("%q: %v\n%v", c.name, err, l.View().Tree())
		}
	}
}

// A15: an incarnation is path and uid. A restart keeps both; stop and create make a new
// one, and the old ref never reaches it.
func TestA15_Incarnations(t *testing.T) { everyManner(t, rowA15_Incarnations) }

func rowA15_Incarnations(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := l.spawn("a", s.props(l.t))
		l.post(a, s.crash)
		l.run()
		if again := must(l.Lookup("/user/a"))(l.t); again != a || l.incarnation(a) != 1 {
			l.t.Errorf("after a restart %v, incarnation %d", again, l.incarnation(a))
		}
		l.Stop(a)
		l.run()
		fresh := l.spawn("a", s.props(l.t))
		if fresh == a || fresh.Path() != a.Path() {
			l.t.Errorf("%v after %v", fresh, a)
		}
		l.got = nil
		if err := l.TellFrom(l.probe, a, s.report); !errors.Is(err, ErrUnknown) {
			l.t.Error(err)
		}
		if _, err := l.Lookup(a.String()); !errors.Is(err, ErrUnknown) {
			l.t.Error(err)
		}
		l.run()
		l.wants()
		if n := len(l.letters()); n != 1 {
			l.t.Errorf("%d dead letters", n)
		}
	})
}

// A16: refs are equal if path and incarnation are; paths compare without uid.
func TestA16_Equality(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	in := l.Inbox(0)
	defer in.Close()
	if err := in.Ask(a, "get", 1); err != nil {
		t.Fatal(err)
	}
	l.run()
	if m, _ := in.TryReceive(); m.Sender != a {
		t.Errorf("%v, want %v", m.Sender, a)
	}
	keys := map[Ref]bool{a: true, must(l.Lookup("/user/a"))(t): true}
	l.Stop(a)
	l.run()
	b := l.spawn("a", newCounter())
	keys[b] = true
	if len(keys) != 2 || a.Path() != b.Path() {
		t.Errorf("%v", keys)
	}
	// Whoever watched it learns of its end by the very ref.
	var ended Ref
	w := l.spawn("w", Func(func(ctx *Context, m Message) error {
		if m.Kind == abi.KindTerminated {
			ended = m.Sender
			return nil
		}
		return ctx.Watch(b)
	}))
	l.say(w, "watch")
	in.Watch(b)
	l.Stop(b)
	l.run()
	if m, _ := in.TryReceive(); m.Sender != b || ended != b {
		t.Errorf("%v and %v, want %v", m.Sender, ended, b)
	}
}

// A17: a name is free when the actor has gone, for certain in the parent's reaction to
// Terminated, and not before.
func TestA17_NameReuse(t *testing.T) {
	l := newStage(t, nil)
	var early, late error
	parent := l.spawn("parent", Func(func(ctx *Context, m Message) error {
		if m.Kind == abi.KindTerminated {
			_, late = ctx.Spawn("child", newCounter())
			return tellProbe(ctx, "again")
		}
		child, err := ctx.Spawn("child", newCounter())
		if err != nil {
			return err
		}
		if err := ctx.Watch(child); err != nil {
			return err
		}
		ctx.Stop(child)
		_, early = ctx.Spawn("child", newCounter())
		return nil
	}))
	l.say(parent, "go")
	l.wants("message again")
	if !errors.Is(early, ErrNameTaken) || late != nil {
		t.Errorf("early: %v, late: %v", early, late)
	}
}

// A19: spawning returns at once and the child is listed at once; it starts later.
func TestA19_SpawnIsAsynchronous(t *testing.T) {
	l := newStage(t, nil)
	started := false
	a := must(l.Spawn("a", Native(func() Actor { started = true; return &counter{} })))(t)
	if n := l.View().Tree().Children; started || len(n) != 2 || n[1].Ref != a || n[1].State != "new" {
		t.Errorf("started %v, %v", started, n)
	}
	l.run()
	if n := l.View().Tree().Children; !started || n[1].State != "running" {
		t.Errorf("%v", n)
	}
}

// A20: there is no hollow ref: the mailbox is the actor's own from the beginning.
func TestA20_NoHollowRef(t *testing.T) { everyManner(t, rowA20_NoHollowRef) }

func rowA20_NoHollowRef(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		a := must(l.Spawn("a", s.props(l.t)))(l.t)
		l.post(a, s.add(2))
		l.post(a, s.report)
		if n := l.View().Tree().Children[1]; n.Mailbox != 2 {
			l.t.Errorf("%d wait", n.Mailbox)
		}
		l.run()
		l.equal("told", values(l.got), []string{"start", "2"})
	})
}

// A21: what crosses an actor's border is a CBOR message, and a ref's text finds it again.
func TestA21_NothingIsShared(t *testing.T) {
	l := newStage(t, nil)
	kept := []byte{0x82, 1, 2}
	var seen []uint64
	a := l.spawn("a", Func(func(_ *Context, m Message) error {
		err := m.Decode(&seen)
		clear(m.Payload)
		return err
	}))
	l.post(a, Raw(kept))
	clear(kept)
	l.run()
	l.equal("seen", seen, []uint64{1, 2})
	// Nor on the way through actors: who has sent, answered, forwarded, stashed or asked something may
	// change it afterwards, and so may each receiver.
	spoil := Func(func(_ *Context, m Message) error { clear(m.Payload); return nil })
	spoiler := l.spawn("spoiler", spoil)
	whole := Raw{0x82, 1, 2}
	giver := l.spawn("giver", Func(func(ctx *Context, m Message) error {
		ours := append(Raw(nil), whole...)
		err := errors.Join(ctx.Reply(ours), ctx.Tell(spoiler, ours), ctx.Tell(l.probe, ours), ctx.Forward(l.probe), ctx.Forward(spoiler),
			ctx.Ask(l.probe, ours, 7, time.Second), ctx.After(1, ms, 0, ours), ctx.Stash())
		clear(ours)
		clear(m.Payload)
		return err
	}))
	l.mail = nil
	l.say(giver, whole)
	if len(l.mail) != 4 {
		t.Errorf("%d messages", len(l.mail))
	}
	for _, m := range l.mail {
		if !bytes.Equal(m.Payload, whole) {
			t.Errorf("%v %x", m.Kind, m.Payload)
		}
	}
	type box struct{ N []int }
	v := &box{[]int{1, 2}}
	var got box
	b := l.spawn("b", Func(func(_ *Context, m Message) error { return m.Decode(&got) }))
	l.post(b, v)
	v.N[0] = 9
	l.run()
	if v.N[1] = 9; !slices.Equal(got.N, []int{1, 2}) {
		t.Errorf("%v", got.N)
	}
	if err := l.Tell(a, func() {}); err == nil {
		t.Error("a function has been sent")
	}
}
