package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// counting is a puppet of a module whose image can change.
func counting(t testing.TB, m *Module) Props {
	p := puppet(t)
	return GuestOf(m, "puppet").WithArgs(p.args).WithCapabilities(p.caps)
}

// Whatever state an actor is in, another image is under it at once: it keeps its ref, and
// gets what has waited for it.
func TestRenewInEveryState(t *testing.T) {
	engine := newEngine(t)
	before, after := load(t, engine, "testdata/puppet.wasm"), load(t, engine, "testdata/puppet_batching.wasm")
	crash := func(l *lab, g Ref) { l.tell(g, script(trap())) }
	for _, c := range []struct {
		name     string
		guardian supervision.Strategy
		config   func(Config) Config
		bring    func(l *lab, g Ref)
		state    string
	}{
		{"running", supervision.Default(), nil, func(l *lab, g Ref) { l.tell(g, script(rec(recAdd, 3, nil))) }, "running"},
		{"fresh", supervision.Default(), nil, func(l *lab, g Ref) {}, "running"},
		{"delayed", delayed(t, supervision.Backoff{}), nil, crash, "restarting"},
		{"suspended", otherwise(supervision.Suspend), nil, crash, "failed"},
		{"failed", supervision.Default(), nil, func(l *lab, g Ref) { l.fails("g") }, "failed"},
		{"asleep", supervision.Default(), func(c Config) Config { return c.WithIdleAfter(time.Second) }, func(l *lab, g Ref) {
			l.tell(g, script(rec(recAdd, 3, nil)))
			l.pass(time.Minute)
			if x := guestOf(l.table.Get(g.UID())); x.inst.Awake() {
				l.t.Fatal("it is awake")
			}
		}, "running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, clock := manual(t, func(cfg Config) Config {
				if cfg = cfg.WithGuardian(c.guardian); c.config != nil {
					cfg = c.config(cfg)
				}
				return cfg
			})
			l := &lab{s, t, clock, s.Subscribe(1000, nil)}
			m := NewModule(before)
			g := l.spawn("g", counting(t, m))
			c.bring(l, g)
			if got := l.state("g"); got != c.state {
				t.Fatalf("it is %s, not %s", got, c.state)
			}
			old := l.table.Get(g.UID()).Incarnation()
			waits := must(l.Request(g, script(rec(recReport, 0, nil))))(t)
			if err := m.Replace(after); err != nil {
				t.Fatal(err)
			}
			if told := l.Operate().RenewModule(m); !slices.Equal(told, []Ref{g}) {
				t.Fatalf("told: %v", told)
			}
			l.Step()
			l.Step() // whoever had work, and the guardian, which tells the actor
			comes := must(l.Request(g, script(rec(recReport, 0, nil))))(t)
			l.run()
			a := l.table.Get(g.UID())
			if a == nil || l.state("g") != "running" || a.Incarnation() <= old || guestOf(a).inst.Image != after {
				t.Fatalf("%s, incarnation %d after %d", l.state("g"), a.Incarnation(), old)
			}
			for _, p := range []*Pending{waits, comes} {
				select {
				case answer := <-p.Answer():
					if got := describe(answer); got != "reply 0" && p == comes {
						t.Errorf("what came then was answered by %q", got)
					}
				default:
					t.Error("what had waited is lost")
				}
			}
			if _, dead := l.DeadLetters(); dead != 0 {
				t.Errorf("%d dead letters", dead)
			}
		})
	}
}

// The delay that would have come next is the first one again.
func TestRenewCountsFailuresAnew(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{}))
	m := NewModule(load(t, newEngine(t), "testdata/puppet.wasm"))
	g := l.spawn("g", counting(t, m))
	for range 3 {
		l.tell(g, script(trap()))
		l.pass(10 * time.Second)
	}
	l.Operate().RenewModule(m)
	l.run()
	l.seen()
	l.tell(g, script(trap()))
	if e := l.next(EventFailed); e.Delay != 200*time.Millisecond || e.Failures != 1 {
		t.Errorf("a delay of %v after %d failures", e.Delay, e.Failures)
	}
}

// Children of the props stay, with their refs and their mail; those that it lacks stop,
// new ones start, and what an actor has spawned itself goes, as after any restart.
func TestRenewChangesTheTree(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint("keep-children ", keep), func(t *testing.T) {
			l := newLab(t, supervision.Default().WithKeepChildren(keep))
			image, err := familyImage()
			if err != nil {
				t.Fatal(err)
			}
			m := NewModule(image)
			worker := GuestOf(m, "worker")
			boss := GuestOf(m, "boss").WithCapabilities(Capabilities{Spawn: []string{"*"}})
			native := Func(func(*Context, Message) error { return nil })
			l.spawn("b", boss.WithArgs(1).WithChildren(Child{"stays", worker}, Child{"goes", worker}, Child{"turns", native}))
			l.tell(l.at("b"), "spawned")
			b, stays, turns := l.at("b"), l.at("b/stays"), l.at("b/turns")
			l.tell(stays, 5)
			if err := l.Operate().Renew(b, boss.WithArgs(7).WithLimits(Limits{Fuel: 1 << 40, Mailbox: 3}).WithChildren(Child{"stays", worker.WithArgs("new")}, Child{"turns", worker}, Child{"comes", worker})); err != nil {
				t.Fatal(err)
			}
			for range 3 { // it waits for its supervisor, which tells it, and it tells its children
				l.Step()
			}
			mail := must(l.Request(stays, "get"))(t)
			l.run()
			if l.at("b") != b || l.at("b/stays") != stays || l.at("b/turns") == turns {
				t.Error("the refs are not what they should be")
			}
			if answer := <-mail.Answer(); describe(answer) != "reply 0" {
				t.Errorf("the mail of a child: %s", describe(answer))
			}
			want := map[string]string{"b/stays": "running", "b/goes": "gone", "b/comes": "running", "b/turns": "running", "b/spawned": "gone"}
			if keep {
				want["b/spawned"] = "running"
			}
			for path, state := range want {
				if got := l.state(path); got != state {
					t.Errorf("%s is %s, not %s", path, got, state)
				}
			}
			a := l.table.Get(b.UID())
			if string(a.args) != "\x07" || a.rules.Load().limits.Fuel != 1<<40 || a.rules.Load().limits.Mailbox != DefaultMailbox || string(l.table.Get(stays.UID()).args) != "\x63new" {
				t.Errorf("args %x, limits %+v", a.args, a.rules.Load().limits)
			}
			l.tell(b, "fail") // the new props are what restarts use
			if got := l.state("b/goes"); got != "gone" || l.state("b/comes") != "running" {
				t.Error("after a restart the old children are there again")
			}
		})
	}
}

// A renewal in the middle of a restart of a group neither stops it nor is lost.
func TestRenewWithinAGroup(t *testing.T) {
	for _, first := range []string{"a", "b", "c"} {
		for _, renewed := range []string{"a", "b", "c"} {
			for steps := range 12 {
				l := newLab(t, supervision.Default().WithKind(supervision.RestForOne).WithOtherwise(supervision.Restart))
				images := load(t, newEngine(t), "testdata/puppet.wasm")
				modules := map[string]*Module{}
				for _, n := range []string{"a", "b", "c"} {
					modules[n] = NewModule(images)
					l.spawn(n, counting(t, modules[n]))
				}
				l.fails(first)
				for range steps {
					l.Step()
				}
				l.Operate().RenewModule(modules[renewed])
				l.run()
				for _, n := range []string{"a", "b", "c"} {
					if got := l.state(n); got != "running" {
						t.Errorf("%s fails, %s is renewed after %d steps: %s is %s", first, renewed, steps, n, got)
					}
				}
				if l.table.Get(l.at(renewed).UID()).Incarnation() == 0 {
					t.Errorf("%s was not renewed after %d steps", renewed, steps)
				}
			}
		}
	}
}

// The child of a resender is begun anew, with what it had not confirmed.
func TestRenewBehindAResender(t *testing.T) {
	l := newLab(t, supervision.Default())
	image, err := familyImage()
	if err != nil {
		t.Fatal(err)
	}
	m := NewModule(image)
	r := l.spawn("r", Resender(GuestOf(m, "carrier"), Resend{}))
	l.tell(r, 4)
	old := l.at("r/child")
	if told := l.Operate().RenewModule(m, Ref{}); !slices.Equal(told, []Ref{old}) {
		t.Fatalf("told: %v", told)
	}
	l.run()
	l.pass(time.Minute)
	if now := l.at("r/child"); now == old || l.at("r") != r {
		t.Error("the child is the old one")
	}
}

func TestRenewRefuses(t *testing.T) {
	l := newLab(t, supervision.Default())
	m := NewModule(load(t, newEngine(t), "testdata/puppet.wasm"))
	g := l.spawn("g", counting(t, m))
	n := l.spawn("n", Func(func(*Context, Message) error { return nil }))
	for name, c := range map[string]struct {
		ref  Ref
		p    Props
		err  error
		says string
	}{
		"a native actor": {n, counting(t, m), ErrBadProps, "are not for that type"},
		"another module": {g, puppet(t), ErrBadProps, "are not for that type"},
		"arguments":      {g, counting(t, m).WithArgs(func() {}), ErrBadProps, "the arguments"},
		"of a child":     {g, counting(t, m).WithChildren(Child{"c", counting(t, m).WithArgs(make(chan int))}), ErrBadProps, `child "c"`},
		"nobody":         {Ref{}, counting(t, m), ErrUnknown, ""},
		"the guardian":   {l.user.ref(), counting(t, m), ErrUnknown, ""},
	} {
		if err := l.Operate().Renew(c.ref, c.p); !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.Stop(g)
	l.run()
	if err := l.Operate().Renew(g, counting(t, m)); !errors.Is(err, ErrUnknown) {
		t.Errorf("one that has gone: %v", err)
	}
	if told := l.Operate().RenewModule(m); len(told) != 0 {
		t.Errorf("told: %v", told)
	}
}

// An actor that stops is left alone, and one whose parent restarts it anew is begun under
// the new image anyway.
func TestRenewOfWhatEnds(t *testing.T) {
	l := newLab(t, supervision.Default())
	m := NewModule(load(t, newEngine(t), "testdata/puppet.wasm"))
	p := parentOf(supervision.Default(), Child{"kid", counting(t, m)})
	l.spawn("p", p)
	kid := l.at("p/kid")
	l.fails("p")
	l.Step() // the guardian has ordered the restart, and the parent stops its child
	l.Operate().RenewModule(m)
	l.run()
	if now := l.at("p/kid"); now == kid || l.state("p/kid") != "running" {
		t.Error("the child of a restarted parent was not begun anew")
	}
}

// The highest actors of a module are told, in the order of their paths; what is below them, or excluded, or below one
// that is excluded, is not.
func TestRenewModuleTellsTheHighest(t *testing.T) {
	l := newLab(t, supervision.Default())
	m := NewModule(load(t, newEngine(t), "testdata/puppet.wasm"))
	var all []Ref
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all = append(all, l.spawn(name, counting(t, m).WithChildren(Child{"kid", counting(t, m)})))
	}
	slices.SortFunc(all, func(a, b Ref) int { return strings.Compare(a.Path(), b.Path()) })
	if told := l.Operate().RenewModule(m); !slices.Equal(told, all) {
		t.Errorf("told %v", told)
	}
	l.run()
	if told := l.Operate().RenewModule(m, all[1:]...); !slices.Equal(told, all[:1]) {
		t.Errorf("told %v, all but one excluded", told)
	}
	l.run()
	for i, a := range all {
		for _, ref := range []Ref{a, l.at(a.Name() + "/kid")} {
			if n := l.info(ref).Incarnation; n != uint64(2-min(i, 1)) {
				t.Errorf("%s is in incarnation %d", ref.Path(), n)
			}
		}
	}
}

// What a renewal changes of a guest is on its account, and goes with its messages.
func TestRenewIsAccountedFor(t *testing.T) {
	l := newLab(t, supervision.Default())
	m := NewModule(load(t, newEngine(t), "testdata/puppet.wasm"))
	g := l.spawn("g", counting(t, m).WithGrant("x", 1))
	a := l.table.Get(g.UID())
	for _, p := range []Props{counting(t, m).WithGrant("x", 2).WithArgs(script(rec(recAdd, 3, make([]byte, 200)))), counting(t, m)} {
		must(0, l.Operate().Renew(g, p))(t)
		l.run()
		if got, want := a.account.Held(), a.expected(); got.Base != want.Base {
			t.Errorf("%d bytes are accounted for, there are %d", got.Base, want.Base)
		}
		if got := a.rules.Load().attached; (got == nil) != (len(p.grants) == 0) || got != nil && got.Grants[0] != p.grants[0] {
			t.Errorf("its messages have %+v, not %+v", got, p.grants)
		}
	}
}

// Who has gone since it was found is not renewed.
func TestRenewOfWhatHasGone(t *testing.T) {
	l := newLab(t, supervision.Default())
	a := l.table.Get(l.spawn("a", newCounter()).UID())
	l.Stop(a.ref())
	l.run()
	if a.renew(renewedByHand, nil) {
		t.Error("it is renewed")
	}
}

// A parent that watches a child which its new recipe lacks hears nothing of its end: it does not know it.
func TestRenewUnwatchesWhatGoes(t *testing.T) {
	for _, keep := range []bool{true, false} {
		l := newStage(t, func(c Config) Config { return c.WithGuardian(supervision.Default().WithKeepChildren(keep)) })
		m := NewModule(puppetImage(t))
		hears := counting(t, m).WithArgs(script(on(abi.KindTerminated, toProbe("heard"))))
		p := l.spawn("p", hears.WithChildren(Child{"kid", counting(t, m)}))
		kid := must(l.Lookup("/user/p/kid"))(t)
		l.say(p, script(now(abi.AppendWatch(nil, kid.UID(), ""))))
		must(0, l.Operate().Renew(p, hears))(t)
		l.run()
		l.wants()
		if i := l.incarnation(p); i != 1 || l.alive(kid) {
			t.Errorf("incarnation %d, the child is there: %v", i, l.alive(kid))
		}
	}
}
