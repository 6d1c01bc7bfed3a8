package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// A start without room waits, with its mailbox and for as long as it takes, whatever the strategy: nothing has failed.
// It tries less and less often, and says once what the bound is.
func TestStartsWaitForRoom(t *testing.T) {
	for name, c := range map[string]struct {
		instances int
		memory    bool
		key       string
	}{
		"instances": {1, false, "modules.NAME.limits.instances"},
		"memory":    {10, true, "limits.tree.memory"},
	} {
		t.Run(name, func(t *testing.T) {
			engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(c.instances)))(t)
			t.Cleanup(func() { _ = engine.Close(t.Context()) })
			p := puppet(t)
			guest := Guest(load(t, engine, "testdata/puppet.wasm"), "puppet").WithArgs(p.args).WithCapabilities(p.caps)
			l := newLab(t, supervision.Default())
			tree := TreeLimits{}
			if c.memory {
				tree.Memory = sandbox.Weight(guest.module.Image()) + 100_000
			}
			top := l.spawn("top", newCounter().WithSupervision(otherwise(supervision.Stop)).WithLimits(Limits{Tree: tree}))
			parent := l.table.Get(top.UID())
			spawn := func(name string) Ref {
				k := must(parent.spawn(nil, name, &guest, parent.nextHostRef()))(t)
				l.run()
				return k.ref()
			}
			first := spawn("first")
			l.seen()
			second := spawn("second")
			for i := range byte(3) {
				l.tell(second, script(rec(recAdd, i+1, nil)))
			}
			waits, _ := l.Request(second, script(rec(recReport, 0, nil)))
			tries := 0
			for range 2000 {
				l.clock.Advance(5 * time.Millisecond)
				for l.Step() {
					tries++
				}
			}
			if tries < 15 || tries > 20 { // 5 ms, 10 ms, ... 640 ms, and then once a second
				t.Errorf("%d tries in 10 s", tries)
			}
			refused := l.seen(EventRefused, EventFailed, EventStopped)
			if len(refused) != 1 || refused[0].Kind != EventRefused || refused[0].Refused.What != "start" || refused[0].Refused.Key != c.key {
				t.Errorf("%+v", refused)
			}
			if i := l.info(second); i.State != StateStarved || i.Mailbox != 4 || must(l.View().Held(second))(t).Memory != 0 {
				t.Errorf("%+v", i)
			}
			l.Stop(first)
			l.run()
			l.pass(instance.MostRetry)
			m := ended(t, waits)
			if got := must(l.View().Info(second))(t); m != nil || got.State != StateRunning || got.Incarnation != 0 {
				t.Errorf("%v, %+v", m, got)
			}
		})
	}
}

// What ends the wait for room ends it for good: nothing of it is left to begin the actor later.
func TestAStartThatWaitsCanBeOverruled(t *testing.T) {
	for name, c := range map[string]struct {
		act   func(l *lab, ref Ref)
		state string
		begun bool // once there is room
	}{
		"a stop":    {func(l *lab, ref Ref) { l.Stop(ref) }, "gone", false},
		"a restart": {func(l *lab, ref Ref) { must(0, l.Operate().Renew(ref, *l.table.Get(ref.UID()).props))(l.t) }, "running", true},
		"a crash":   {func(l *lab, ref Ref) { must(0, l.Operate().Crash(ref, 0, ""))(l.t) }, "running", true},
	} {
		t.Run(name, func(t *testing.T) {
			engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(1)))(t)
			t.Cleanup(func() { _ = engine.Close(t.Context()) })
			p := puppet(t)
			guest := Guest(load(t, engine, "testdata/puppet.wasm"), "puppet").WithArgs(p.args).WithCapabilities(p.caps)
			l := newLab(t, otherwise(supervision.Suspend))
			first := l.spawn("first", guest)
			second := l.spawn("second", guest)
			a := l.table.Get(second.UID())
			for range 100 {
				c.act(l, second)
				l.run()
				if n := a.alarms.Pending(); n > 1 || n > 0 && c.state == "gone" {
					t.Fatalf("%d alarms", n)
				}
			}
			if got := l.state("second"); got != c.state {
				t.Errorf("it is %s", got)
			}
			l.Stop(first)
			l.run()
			l.pass(instance.MostRetry)
			if got := l.state("second"); got != c.state || a.life.Begun.Load() != c.begun {
				t.Errorf("it is %s, begun: %v", got, a.life.Begun.Load())
			}
		})
	}
}

// Thousands that start within a small bound all begin, each handles what it was sent, in order, however
// the starts and what they are sent overlap.
func TestNoStartIsLost(t *testing.T) {
	if race.Enabled {
		t.Skip("one goroutine, for minutes; with workers it runs below")
	}
	const many = 3000
	for _, apart := range []int{1, 7, many} { // are spawned before anybody runs
		t.Run(fmt.Sprint(apart), func(t *testing.T) {
			guest := puppet(t)
			memory := (int64(many*2*account.Step) + 6*sandbox.Weight(guest.module.Image())) * 16 / 15
			l := newCrowdedLab(t, 0, otherwise(supervision.Stop), func(c Config) Config { return halfAMinute(c).WithMemory(memory) })
			lost := l.Subscribe(eventRoom, func(e *Event) bool { return e.Kind == EventFailed || e.Kind == EventStopped })
			// Who is busy with mail that it may not handle is no help to others.
			var blocked []Ref
			for i := range 4 {
				ref := l.spawn(fmt.Sprint("blocked", i), guest)
				blocked = append(blocked, ref)
			}
			for _, ref := range blocked {
				must(0, l.Operate().Pause(ref, false))(t)
			}
			var all []Ref
			for i := range many {
				ref := must(l.Spawn("", guest))(t)
				for k := range byte(2) {
					must(0, l.Tell(ref, script(rec(recAdd, k+1, nil))))(t)
				}
				if all = append(all, ref); i%apart == apart-1 {
					l.run()
				}
			}
			l.run()
			for range 60 {
				l.pass(instance.MostRetry)
			}
			if n := l.pool.Held(); n > memory {
				t.Errorf("%d of %d bytes are held", n, memory)
			}
			for i, ref := range all {
				if got := answer(t, l.System, ref, script(rec(recReport, 0, nil))); fmt.Sprint(got) != "3" {
					t.Fatalf("number %d holds %v", i, got)
				}
			}
			if n := len(lost.C()); n != 0 {
				t.Errorf("%d have failed", n)
			}
		})
	}
}

// The same with workers, where a start finds all those busy that could make room for it.
func TestNoStartIsLostOnWorkers(t *testing.T) {
	const many = 2000
	guest := puppet(t)
	memory := (int64(many*3*account.Step) + 3*sandbox.Weight(guest.module.Image())) * 16 / 15
	s := must(New(NewConfig("test").WithWorkers(4).WithIdleAfter(time.Hour).WithMemory(memory).WithGuardian(otherwise(supervision.Stop))))(t)
	t.Cleanup(func() { must(0, s.Close(context.Background()))(t) })
	lost := s.Subscribe(1000, func(e *Event) bool { return e.Kind == EventFailed || e.Kind == EventStopped })
	var answered atomic.Int64
	for range many {
		var ref Ref
		waitFor(t, "room for one more", func() (ok bool) { // what is refused has never been there
			var err error
			ref, err = s.Spawn("", guest)
			return err == nil
		})
		go func() {
			if _, err := s.Ask(context.Background(), ref, script(rec(recReport, 0, nil))); err == nil {
				answered.Add(1)
			}
		}()
	}
	waitFor(t, "all answers", func() bool { return answered.Load() == many })
	select {
	case e := <-lost.C():
		t.Errorf("%v %v: %v", e.Ref, e.Kind, e.Failure)
	default:
	}
}

// slowPuppet is a puppet that computes a million times instead of 300,000 for flagSpin: for more than the ten slices that
// every turn has.
func slowPuppet(t *testing.T) *sandbox.Image {
	t.Helper()
	code, err := os.ReadFile("testdata/puppet.wasm")
	if err != nil {
		t.Fatal(err)
	}
	quick, slow := []byte{0x41, 0xe0, 0xa7, 0x12}, []byte{0x41, 0xc0, 0x84, 0x3d} // i32.const
	if bytes.Count(code, quick) != 1 {
		t.Fatal("the puppet does not compute 300,000 times")
	}
	engine, err := sandbox.New(t.Context(), sandbox.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(0, engine.Close(context.Background()))(t) })
	return must(engine.Load(t.Context(), bytes.Replace(code, quick, slow, 1), sandbox.ImageConfig{Name: "slow"}))(t)
}

// Where more long turns are in progress than may be, the oldest are ended. For a start that is no failure: it begins
// again in a while, so a machine that is busy loses nobody.
func TestLongStartsBeginAgain(t *testing.T) {
	const many = 60
	guest := Guest(slowPuppet(t), "puppet").WithArgs(script(rec(byte(abi.KindStart), flagSpin, nil))).WithCapabilities(Capabilities{Send: []string{"/**"}})
	s := must(New(func() Config {
		c := NewConfig("test").WithWorkers(2).WithGuardian(otherwise(supervision.Stop))
		partsOf(&c).LongTurns = 2
		return c
	}()))(t)
	t.Cleanup(func() { must(0, s.Close(context.Background()))(t) })
	seen := s.Subscribe(10_000, func(e *Event) bool {
		return e.Kind == EventFailed || e.Kind == EventStopped || e.Kind == EventRefused
	})
	var answered atomic.Int64
	for range many {
		ref := must(s.Spawn("", guest))(t)
		go func() {
			if _, err := s.Ask(context.Background(), ref, script(rec(recReport, 0, nil))); err == nil {
				answered.Add(1)
			}
		}()
	}
	waitFor(t, "all answers", func() bool { return answered.Load() == many })
	waits := 0
	for len(seen.C()) > 0 {
		e := <-seen.C()
		if e.Kind != EventRefused {
			t.Fatalf("%v %v: %v", e.Ref, e.Kind, e.Failure)
		}
		waits++
	}
	if waits == 0 {
		t.Error("no start was ended: this tests nothing")
	}
}
