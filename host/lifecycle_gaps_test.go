package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// A parent restarts and keeps its children while a delay is decided for them: whichever of them has been told
// of it by then, each begins again when the delay has passed, and not before.
func TestARestartOfTheParentLeavesTheDelaysOfItsChildren(t *testing.T) {
	const delay, part = 200 * time.Millisecond, 50 * time.Millisecond
	names := strings.Split("abcdefgh", "")
	var children []Child
	for _, name := range names {
		children = append(children, Child{name, boom()})
	}
	for _, kind := range []supervision.Kind{supervision.OneForOne, supervision.AllForOne, supervision.RestForOne} {
		for seed := range uint64(12) {
			for _, waited := range []time.Duration{0, part} {
				where := fmt.Sprintf("%v, seed %d, %v later", kind, seed, waited)
				s, clock := manual(t, func(c Config) Config {
					return c.WithShuffle(seed).WithGuardian(otherwise(supervision.Restart).WithKeepChildren(true))
				})
				l := &lab{s, t, clock, s.Subscribe(1000, nil)}
				p := l.spawn("p", parentOf(delayed(t, supervision.Backoff{}).WithKind(kind), children...))
				failed := l.at("p/a")
				l.seen()
				must(0, l.Tell(failed, "crash"))(t)
				for len(l.seen(EventFailed)) == 0 {
					if !l.Step() {
						t.Fatal("nothing is decided")
					}
				}
				if waited > 0 {
					l.run()
					l.pass(waited)
				}
				must(0, l.Operate().Restart(p))(t)
				l.run()
				if n := l.info(p).Incarnation; n != 1 {
					t.Fatalf("%s: incarnation %d of the parent", where, n)
				}
				delayedOnes := names
				if kind == supervision.OneForOne {
					delayedOnes = names[:1]
				}
				for _, name := range delayedOnes {
					if i := l.info(l.at("p/" + name)); i.State != StateDelayed || i.Due != delay-waited {
						t.Errorf("%s: %s is %v for %v", where, name, i.State, i.Due)
					}
				}
				l.pass(delay - waited - 1)
				for _, name := range delayedOnes {
					if s := l.state("p/" + name); s != "restarting" {
						t.Errorf("%s: %s is %s too early", where, name, s)
					}
				}
				l.pass(1)
				for _, name := range names {
					if i := l.info(l.at("p/" + name)); i.State != StateRunning || i.Incarnation == 0 {
						t.Errorf("%s: %s is %v in incarnation %d", where, name, i.State, i.Incarnation)
					}
				}
			}
		}
	}
}

// A delay that an operator has ended is over: nothing of it shows in a later restart that waits for something else.
func TestNoDelayIsLeftInALaterRestart(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{}))
	p := l.spawn("p", Func(func(*Context, Message) error { return nil }).WithChildren(Child{"kid", boom()}))
	l.fails("p")
	l.run()
	if i := l.info(p); i.State != StateDelayed || i.Due != 200*time.Millisecond {
		t.Fatalf("%+v", i)
	}
	must(0, l.Operate().Restart(p))(t)
	l.run()
	must(0, l.Operate().Restart(p))(t)
	for l.state("p") != "restarting" {
		if !l.Step() {
			t.Fatal("it is not restarted")
		}
	}
	i := (*shown)(l.table.Get(p.UID())).Info()
	if i.State != StateDelayed || i.Due != 0 {
		t.Errorf("%v for %v", i.State, i.Due)
	}
}

// The child of a keeper that has been restarted after a delay is asked before it ends, as any other.
func TestPassivateAsksAfterADelayedRestart(t *testing.T) {
	l := newLab(t, supervision.Default())
	silent := l.spawn("silent", boom())
	var told []abi.Kind
	k := l.spawn("k", Func(func(ctx *Context, m Message) error {
		if m.Kind != abi.KindMessage {
			told = append(told, m.Kind)
			return nil
		}
		return ctx.Head().Passivate(ctx.Children()[0], time.Minute)
	}).WithKeeping().WithSupervision(delayed(t, supervision.Backoff{})).WithChildren(Child{"kid", Func(func(ctx *Context, m Message) error {
		var text string
		if m.Decode(&text) == nil && text == "crash" {
			return errors.New("boom")
		}
		return ctx.Ask(silent, text, 7, time.Hour)
	})}))
	kid := l.at("k/kid")
	l.tell(kid, "crash")
	l.pass(200 * time.Millisecond)
	l.tell(kid, "busy")
	if i := l.info(kid); i.State != StateRunning || i.Incarnation != 1 {
		t.Fatalf("%+v", i)
	}
	l.tell(k, "passivate")
	if s := l.state("k/kid"); s != "running" || !slices.Equal(told, []abi.Kind{abi.KindReply}) {
		t.Errorf("%s, told %v", s, told)
	}
}

// A start that has waited for room and then fails for a reason of its own is not one for lack of room.
func TestAFailureAfterAStartWithoutRoom(t *testing.T) {
	engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(1)))(t)
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	image := load(t, engine, "testdata/puppet.wasm")
	guest := func(records ...[]byte) Props {
		p := puppet(t, records...)
		return Guest(image, "puppet").WithArgs(p.args).WithCapabilities(p.caps)
	}
	l := newLab(t, otherwise(supervision.Restart).WithMaxRestarts(3, 0))
	first := l.spawn("first", guest())
	l.seen()
	second := l.spawn("second", guest(onTrap(abi.KindStart)))
	if i := l.info(second); i.State != StateStarved {
		t.Fatalf("%+v", i)
	}
	l.Stop(first)
	l.run()
	l.seen()
	l.pass(time.Second)
	es := l.seen(EventFailed)
	if len(es) == 0 {
		t.Fatal("it has started")
	}
	for _, e := range es {
		if e.Ref != second || e.Failure.Kind != abi.FailureInit || e.Delay != 0 || e.Directive == supervision.Restart && e.Note != "" {
			t.Errorf("%v, %v after %v, %q", e.Failure, e.Directive, e.Delay, e.Note)
		}
	}
}

// GetOrSpawn of a name that is none has made nothing.
func TestGetOrSpawnOfNoName(t *testing.T) {
	l := newLab(t, supervision.Default())
	before := len(l.user.kids())
	for _, name := range []string{"", "a/b"} {
		if ref, made, err := l.GetOrSpawn(t.Context(), name, boom()); !ref.IsZero() || made || !errors.Is(err, ErrBadName) {
			t.Errorf("%q: %v, made %v, %v", name, ref, made, err)
		}
	}
	if n := len(l.user.kids()); n != before {
		t.Errorf("%d children, %d before", n, before)
	}
}

// A renewal that comes while a restart waits for children is part of it: the next incarnation has the props of the
// last renewal, and only the children of that.
func TestARenewalWhileAnotherOneWaits(t *testing.T) {
	for first, keep := range map[string]bool{"a renewal": false, "a renewal that keeps": true, "a restart": false, "a restart that keeps": true} {
		t.Run(first, func(t *testing.T) {
			strategy := supervision.Default()
			if first == "a restart that keeps" {
				strategy = delayed(t, supervision.Backoff{})
			}
			joined := 0
			for seed := range uint64(12) {
				s, clock := manual(t, func(c Config) Config {
					return c.WithShuffle(seed).WithGuardian(strategy.WithKeepChildren(keep))
				})
				l := &lab{s, t, clock, s.Subscribe(1000, nil)}
				image := must(familyImage())(t)
				m := NewModule(image)
				worker, boss := GuestOf(m, "worker"), GuestOf(m, "boss").WithCapabilities(Capabilities{Spawn: []string{"*"}})
				deep := boom()
				for range 6 {
					deep = parentOf(supervision.Default(), Child{"deeper", deep})
				}
				slow := Child{"slow", worker.WithChildren(Child{"deeper", deep})}
				b := l.spawn("b", boss.WithArgs(1).WithChildren(Child{"deep", deep}, slow, Child{"both", worker}, Child{"once", worker}, Child{"turns", worker}))
				both, turns := l.at("b/both"), l.at("b/turns")
				renew := func(p Props) { must(0, l.Operate().Renew(b, p))(t) }
				if first == "a renewal" || first == "a renewal that keeps" {
					renew(boss.WithArgs(2).WithChildren(slow, Child{"both", worker.WithArgs("second")}, Child{"once", worker}, Child{"turns", worker}))
				} else {
					l.fails("b")
				}
				for l.state("b") != "restarting" {
					if !l.Step() {
						t.Fatal("it is not restarted")
					}
				}
				renew(boss.WithArgs(3).WithChildren(slow, Child{"both", worker.WithArgs("third")}, Child{"comes", worker}, Child{"turns", deep}))
				l.run()
				if l.at("b") != b || l.at("b/turns") == turns || first != "a restart" && l.at("b/both") != both {
					t.Errorf("seed %d: the refs are not what they should be", seed)
				}
				want := map[string]string{"b": "running", "b/deep": "gone", "b/slow": "running", "b/both": "running", "b/once": "gone", "b/comes": "running", "b/turns": "running"}
				for path, state := range want {
					if got := l.state(path); got != state {
						t.Errorf("seed %d: %s is %s, not %s", seed, path, got, state)
					}
				}
				if l.info(b).Incarnation == 1 {
					joined++
				}
				if es := l.seen(EventFailed); len(es) != 0 && es[len(es)-1].Failure.Kind == abi.FailureInit {
					t.Errorf("seed %d: %v", seed, es[len(es)-1].Failure)
				}
				if args, kid := l.table.Get(b.UID()).args, l.table.Get(l.at("b/both").UID()).args; string(args) != "\x03" || string(kid) != "\x65third" {
					t.Errorf("seed %d: args %x, of the child %x", seed, args, kid)
				}
			}
			if joined == 0 {
				t.Error("the renewal has never come while the other one waited")
			}
		})
	}
}

// Why an actor is restarted instead of resumed.
func TestWhyAResumeIsNotPossible(t *testing.T) {
	const prefix = "resume is not possible, restarting: "
	escalates := supervision.Default().WithRules(supervision.Rule{Type: "puppet", Directive: supervision.Escalate})
	for why, c := range map[string]struct {
		parent supervision.Strategy
		spoil  func(g *guest)
	}{
		"its states were not kept": {escalates, nil},
		"no more room":             {otherwise(supervision.Resume), func(g *guest) { g.inst.States.Why = "no more room" }},
		"the state from before the turn could not be brought back": {otherwise(supervision.Resume), func(g *guest) {
			other := must(sandbox.Get(load(t, newEngine(t), "testdata/echo.wasm")))(t)
			must(0, other.Save(&g.inst.States.Snap))(t) // a snapshot of another image
			other.Put()
		}},
	} {
		l := newLab(t, otherwise(supervision.Resume))
		l.spawn("p", parentOf(c.parent, Child{"kid", puppet(t)}))
		kid := l.at("p/kid")
		if c.spoil != nil {
			c.spoil(guestOf(l.table.Get(kid.UID())))
		}
		l.seen()
		l.tell(kid, script(trap()))
		var notes []string
		for _, e := range l.seen(EventFailed) {
			if e.Ref == kid && e.Directive == supervision.Restart {
				notes = append(notes, e.Note)
			}
		}
		if i := l.info(kid); !slices.Equal(notes, []string{prefix + why}) || i.Incarnation != 1 || i.State != StateRunning {
			t.Errorf("%s: %q, %v, incarnation %d", why, notes, i.State, i.Incarnation)
		}
	}
}
