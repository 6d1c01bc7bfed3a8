package host

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// spreading is an actor that starts three like it as soon as it begins.
type spreading struct{ begun *int }

func (s spreading) Started(ctx *Context) error {
	*s.begun++
	for range 3 {
		if _, err := ctx.Spawn("", Native(func() Actor { return s })); err != nil && !errors.Is(err, ErrStopped) {
			return err
		}
	}
	return nil
}

func (s spreading) Receive(*Context, Message) error { return nil }

// Actors that start others faster than they can be stopped end all the same: below an actor that stops nobody begins
// any more.
func TestAForkBombEndsAtOnce(t *testing.T) {
	l := newStage(t, nil)
	begun := 0
	top := must(l.Spawn("top", Native(func() Actor { return spreading{&begun} })))(t)
	l.RunUntilIdle(500)
	l.Stop(top)
	for l.alive(top) && !l.table.Get(top.UID()).life.State().Ending() {
		l.Step()
	}
	before := begun
	if l.RunUntilIdle(20_000); l.alive(top) || begun != before || before < 100 {
		t.Errorf("%d have begun, %d of them after the stop; alive: %v", begun, begun-before, l.alive(top))
	}

}

// What waits for actors below one that stops is not handled any more, although the news of the end takes many steps to
// come down to an actor that goes on and on by sending to itself. Siblings keep the news waiting at each level.
func TestTheEndOfATreeMakesNoTurns(t *testing.T) {
	l := newStage(t, nil)
	turns := 0
	props := Func(func(ctx *Context, _ Message) error { turns++; return ctx.Tell(ctx.Self(), 1) })
	path := ""
	for _, name := range []string{"f", "e", "d", "c", "b", "a"} {
		props, path = parentOf(otherwise(supervision.Stop), Child{"before", newCounter()}, Child{name, props}, Child{"behind", newCounter()}), "/"+name+path
	}
	top := l.spawn("top", props)
	leaf := lookup(t, l.System, "/user/top"+path)
	if err := l.Tell(leaf, 1); err != nil {
		t.Fatal(err)
	}
	l.RunUntilIdle(50)
	l.Stop(top)
	for !l.table.Get(top.UID()).life.State().Ending() {
		l.Step()
	}
	before := turns
	if l.RunUntilIdle(10_000); turns != before || turns == 0 || l.alive(leaf) {
		t.Errorf("%d turns, %d of them after the end had begun; the last actor lives: %v", turns, turns-before, l.alive(leaf))
	}
	l.equal("dead letters", len(l.letters()), 1)
}

// Last turns below an actor that stops begin within half of the stop grace. Later ones are left out, and it is said how
// many, once.
func TestLastTurnsHaveATime(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		for _, late := range []bool{false, true} {
			l := newStage(t, func(c Config) Config { return c.WithStopGrace(2 * time.Second) })
			top := l.spawn("top", parentOf(otherwise(supervision.Stop), Child{"a", puppetHooks(t)}, Child{"b", puppetHooks(t)}))
			l.raw()
			l.got = nil
			l.Stop(top)
			for !l.table.Get(top.UID()).life.State().Ending() {
				l.Step()
			}
			if late {
				l.clock.Advance(time.Second + time.Millisecond)
			}
			l.run()
			said := 0
			for _, e := range l.raw(EventLog) {
				if e.Level == abi.LogWarn && strings.Contains(e.Text, "2 actors below it have ended without a last turn") {
					said++
				}
			}
			want, told := []string{"message stop", "message stop"}, 0
			if late {
				want, told = nil, 1
			}
			if said != told || l.alive(top) {
				t.Errorf("late: %v; said %d times; alive: %v", late, said, l.alive(top))
			}
			l.wants(want...)
		}
	})
}

// An actor that is stopped itself has its last turn, however long ago it was told, and so has one whose parent restarts.
func TestOnlyThoseBelowAreLate(t *testing.T) {
	l := newStage(t, nil)
	g := l.spawn("g", puppetHooks(t))
	l.got = nil
	l.Stop(g)
	l.clock.Advance(time.Hour)
	l.run()
	l.wants("message stop")
}

// Names that mean something in a path are no names.
func TestDotsAreNoNames(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		for _, name := range []string{".", ".."} {
			l := newStage(t, nil)
			if _, err := l.Spawn(name, newCounter()); !errors.Is(err, ErrBadName) {
				t.Errorf("%q from Go: %v", name, err)
			}
			if _, err := l.SpawnService(name, newCounter()); !errors.Is(err, ErrBadName) {
				t.Errorf("a service %q: %v", name, err)
			}
			if _, err := New(NewConfig(name)); !errors.Is(err, ErrBadName) {
				t.Errorf("a system %q: %v", name, err)
			}
			g := l.spawn("g", puppet(t, on(abi.KindSpawnFailed, toProbe("refused"))))
			key := childKeyOf(l.table.Get(g.UID()).behaviour.(*guest))
			l.say(g, script(now(abi.AppendSpawn(nil, abi.ChildRef(key, 0, 0), "puppet", name, script(), nil))))
			l.wants("message refused")
			if kids := l.table.Get(g.UID()).kids(); len(kids) != 0 {
				t.Errorf("%q is the child %s", name, kids[0].path)
			}
		}
	})
}

// Who sleeps below an actor that stops, and has no room to wake, ends without a last turn. That is said once for all of
// them, and is no error of any.
func TestSleepersWithoutRoomEndQuietly(t *testing.T) {
	const many = 20
	l := newCrowdedLab(t, 0, supervision.Default(), halfAMinute)
	p := puppet(t)
	memory := 2*int64(sandbox.Weight(p.module.Image())) + 400_000
	top := l.spawn("top", newCounter().WithLimits(Limits{Tree: TreeLimits{Memory: memory}}))
	parent := l.table.Get(top.UID())
	spawn := func(name string) Ref {
		k := must(parent.spawn(nil, name, &p, parent.nextHostRef()))(t)
		l.run()
		return k.ref()
	}
	full := spawn("full")
	for i := range many {
		spawn(fmt.Sprint("sleeps", i))
	}
	for range 61 {
		l.pass(time.Second)
	}
	l.fill(full)
	l.seen()
	l.Stop(top)
	l.run()
	alive, said := l.table.Get(top.UID()) != nil, 0
	for _, e := range l.seen(EventLog) {
		switch {
		case e.Level >= abi.LogError:
			t.Errorf("an error is logged: %s", e.Text)
		case strings.Contains(e.Text, "actors below it have ended without a last turn"):
			said++
		}
	}
	if alive || said != 1 {
		t.Errorf("alive: %v, said %d times", alive, said)
	}
}

// A start that waits for room does not go on below an actor that stops, although there is room now.
func TestStartsThatWaitAreNotBegunAtTheEnd(t *testing.T) {
	engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(1)))(t)
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	p := puppet(t)
	guest := Guest(load(t, engine, "testdata/puppet.wasm"), "puppet").WithArgs(p.args).WithCapabilities(p.caps)
	l := newLab(t, supervision.Default())
	first := l.spawn("first", guest)
	top := l.spawn("top", parentOf(supervision.Default(), Child{"mid", parentOf(supervision.Default(), Child{"kid", guest})}))
	kid := l.table.Get(lookup(t, l.System, "/user/top/mid/kid").UID())
	if i := l.info(kid.ref()); i.State != StateStarved {
		t.Fatalf("%+v", i)
	}
	l.Stop(first)
	l.run()
	l.Stop(top)
	for !l.table.Get(top.UID()).life.State().Ending() {
		l.Step()
	}
	l.clock.Advance(instance.MostRetry)
	l.run()
	if kid.life.Begun.Load() || l.table.Get(top.UID()) != nil {
		t.Errorf("begun: %v; the top is there: %v", kid.life.Begun.Load(), l.table.Get(top.UID()) != nil)
	}
}
