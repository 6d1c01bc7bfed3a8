package host

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/supervision"
)

// silentPuppet is a puppet with hooks that tell the probe, of a module that says which types are silent.
func silentPuppet(t *testing.T, e *sandbox.Engine, silent ...string) Props {
	t.Helper()
	m := must(wasm.Decode(must(os.ReadFile("testdata/puppet.wasm"))(t)))(t)
	about := abi.AppendDescription(nil, &abi.Description{ABI: abi.Version, SDK: "wat/1", Types: []string{"puppet"}, Silent: silent})
	m.Customs = append(m.Customs, wasm.Custom{Name: abi.Section, Data: about})
	image := must(e.Load(t.Context(), m.Encode(), sandbox.ImageConfig{Name: "puppet"}))(t)
	hooks := puppetHooks(t)
	return Guest(image, "puppet").WithArgs(hooks.args).WithCapabilities(hooks.caps)
}

// Who says that it has nothing to say at its end is not told of it, awake or asleep; everybody else is.
func TestSilentTypesAreNotTold(t *testing.T) {
	e := newEngine(t)
	for _, silent := range [][]string{nil, {"puppet"}, {"other"}} {
		for _, asleep := range []bool{false, true} {
			for what, c := range map[string]struct {
				do    func(l *stage, a, top Ref)
				heard []string
			}{
				"stop":                   {func(l *stage, a, _ Ref) { l.Stop(a) }, []string{"message stop"}},
				"the parent's stop":      {func(l *stage, _, top Ref) { l.Stop(top) }, []string{"message stop"}},
				"the parent's restart":   {func(l *stage, _, top Ref) { must(0, l.Operate().Restart(top))(l.t) }, []string{"message stop", "message start"}},
				"restart by an operator": {func(l *stage, a, _ Ref) { must(0, l.Operate().Restart(a))(l.t) }, []string{"message pre_restart", "message start"}},
			} {
				t.Run(fmt.Sprint(silent, what, " asleep: ", asleep), func(t *testing.T) {
					l := newStage(t, func(c Config) Config { return c.WithIdleAfter(time.Minute) })
					p := silentPuppet(t, e, silent...)
					top := l.spawn("top", parentOf(supervision.Default(), Child{"a", p}))
					a := lookup(t, l.System, "/user/top/a")
					if asleep {
						l.pass(2 * time.Minute)
					}
					if g := guestOf(l.table.Get(a.UID())); g.inst.Awake() == asleep {
						t.Fatal("it is not as it should be")
					}
					l.got = nil
					c.do(l, a, top)
					l.run()
					want := c.heard
					if len(silent) > 0 && silent[0] == "puppet" {
						want = want[1:]
					}
					l.wants(want...)
				})
			}
		}
	}
}

// Silent guests that sleep need no room at the end of their tree, and nobody is missed.
func TestSilentSleepersEndWithoutAnInstance(t *testing.T) {
	e := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(1)))(t)
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	for _, silent := range []bool{false, true} {
		types := []string{"puppet"}
		if !silent {
			types = nil
		}
		l := newStage(t, func(c Config) Config { return c.WithIdleAfter(time.Minute) })
		p := silentPuppet(t, e, types...)
		var kids []Child
		for i := range 5 {
			kids = append(kids, Child{fmt.Sprint("kid", i), p})
		}
		top := l.spawn("top", parentOf(supervision.Default(), kids...))
		for range 10 {
			l.pass(time.Minute)
		}
		if n := l.View().Stats().Asleep; n != 5 {
			t.Fatalf("%d are asleep", n)
		}
		x := must(sandbox.Get(p.module.Image()))(t) // the only one
		l.got = nil
		l.raw()
		l.Stop(top)
		l.run()
		x.Put()
		if n := len(l.raw(EventLog)); n == 0 != silent || len(l.got) != 0 || l.alive(top) {
			t.Errorf("silent: %v; %d lines are logged, the probe was told %v", silent, n, l.got)
		}
	}
}
