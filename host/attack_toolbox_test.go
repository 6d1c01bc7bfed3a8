package host

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/supervision"
)

// Taking watches back by a pattern looks at all that the guest watches, wherever the pattern leads: it is
// paid for, and a flood of it fails.
func TestUnwatchingByPatternsIsPaid(t *testing.T) {
	if race.Enabled {
		t.Skip("one goroutine, and slow")
	}
	const watched, orders = 1000, 500
	l := newStage(t, nil)
	for i := range watched {
		l.spawn(fmt.Sprintf("a%d", i), newCounter())
	}
	nowhere := bytes.Repeat(abi.AppendUnwatch(nil, 0, "./x*"), orders)
	g := l.spawn("guest", puppet(t))
	l.say(g, script(now(abi.AppendWatch(nil, 0, "/user/a*"))))
	before := must(l.View().Info(g))(t)
	began := time.Now()
	l.say(g, script(now(nowhere)))
	took := time.Since(began)
	cost := must(l.View().Info(g))(t).Fuel - before.Fuel
	t.Logf("%d orders, %d watched: %v, %d units", orders, watched, took, cost)
	if least := uint64(watched * orders * 500); cost < least {
		t.Errorf("it costs %d, at least %d", cost, least)
	}

	// All in one turn: what is watched there counts, too.
	poor := l.spawn("poor", puppet(t).WithLimits(Limits{Fuel: 10_000_000}))
	l.say(poor, script(now(abi.AppendWatch(nil, 0, "/user/a*"), nowhere)))
	if f := l.failures(); len(f) != 1 || f[0] != abi.FailureFuel {
		t.Errorf("%v", f)
	}
}

// failures are the kinds of all failures so far.
func (l *stage) failures() (kinds []abi.FailureKind) {
	for {
		select {
		case e := <-l.log.C():
			if e.Kind == EventFailed {
				kinds = append(kinds, e.Failure.Kind)
			}
		default:
			return kinds
		}
	}
}

// A message from nobody is one from outside. A guest cannot send any: what the host has told it, with the
// bytes that it has given to a timer, goes on in its own name.
func TestForwardedNewsHaveASender(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		to := abi.AppendForward(nil, l.probe.UID(), "")
		g := l.spawn("guest", puppet(t, on(abi.KindStart, to, abi.AppendTimer(nil, 7, 1, 0, encoded("order")), abi.AppendReceiveTimeout(nil, uint64(time.Second)),
			abi.AppendAsk(nil, l.probe.UID(), "", 7, abi.MinAskTimeout, nil, encoded("question"))),
			on(abi.KindTimer, to), on(abi.KindReceiveTimeout, to, abi.AppendReceiveTimeout(nil, 0)), on(abi.KindAskTimeout, to), on(abi.KindStop, to)))
		l.pass(time.Second)
		l.pass(time.Second)
		l.Stop(g)
		l.run()
		if len(l.mail) != 6 { // start, timer, receive timeout, the question and its end, stop
			t.Errorf("%q, %v", l.got, l.failures())
		}
		for _, m := range l.mail {
			if m.Sender != g {
				t.Errorf("%s is from %v", describe(m), m.Sender)
			}
		}
	})
}

// Asks that are over, and are taken back before the guest has come to that, leave the host's news behind:
// it counts for the guest, and is bounded by what the guest may hold, and by twice its mailbox for what is
// refused to it then.
func TestAFloodOfCancelledAsks(t *testing.T) {
	if race.Enabled {
		t.Skip("one goroutine, and slow")
	}
	const asks, turns, held = 200, 100, 2 << 20
	l := newStage(t, nil)
	mute := l.spawn("mute", Func(func(*Context, Message) error { return nil }))
	var out [][]byte
	for c := range uint64(asks) {
		out = append(out, abi.AppendCancelAsk(nil, c+1), abi.AppendAsk(nil, mute.UID(), "", c+1, abi.MinAskTimeout, nil, nullPayload))
	}
	g := l.spawn("guest", puppet(t, on(abi.KindAskTimeout)).WithLimits(Limits{Held: held}))
	order := script(now(slices.Concat(out...)))
	for range turns { // they wait, and what is over comes behind them
		l.post(g, order)
	}
	a := l.table.Get(g.UID())
	a.throughput = 1
	var most int64
	longest := 0
	for range turns {
		for before := a.tally.Turns.Load(); a.tally.Turns.Load() == before && l.Step(); {
		}
		l.clock.Advance(time.Duration(abi.MinAskTimeout))
		most = max(most, must(l.View().Held(g))(t).Total())
		longest = max(longest, a.box.Len())
	}
	l.run()
	l.pass(time.Second)
	h := must(l.View().Held(g))(t)
	t.Logf("at the most %d bytes, %d messages; %+v at the end; %d turns, %v", most, longest, h, a.tally.Turns.Load(), l.failures())
	if most > held+2*DefaultMailbox*(box.EnvelopeBytes+100) || h.Asks != 0 || longest < asks {
		t.Errorf("at the most %d, %d messages, at the end %+v", most, longest, h)
	}
}

// Patterns that take long to compare with names that do: they are refused, and who starts actors under such
// names pays for those that its own tree has. How many others there are does not show in what it pays.
func TestStartsPayForLookouts(t *testing.T) {
	name := strings.Repeat("a", abi.MaxName)
	for _, c := range []struct {
		behind int
		own    bool
	}{{lookouts.MostBehindStar - 1, true}, {lookouts.MostBehindStar - 1, false}, {abi.MaxName / 2, true}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			l := newStage(t, nil)
			kids := []Child{{"guest", puppet(t)}}
			for i := range lookouts.MostOfTree / lookouts.Most {
				kids = append(kids, Child{fmt.Sprint("watcher", i), puppet(t)})
			}
			top := Func(func(*Context, Message) error { return nil })
			l.spawn("top", top.WithChildren(kids...))
			l.spawn("others", top.WithChildren(kids...))
			g := lookup(t, l.System, "/user/top/guest")
			spawn := func(number uint64, name string) (cost uint64, took time.Duration) {
				t.Helper()
				before, began := must(l.View().Info(g))(t).Fuel, time.Now()
				l.say(g, script(now(abi.AppendSpawn(nil, abi.ChildRef(childKeyOf(guestOf(l.table.Get(g.UID()))), g.UID().Node(), number), "puppet", name, nullPayload, nil))))
				took, cost = time.Since(began), must(l.View().Info(g))(t).Fuel-before
				if !l.has(g.Path() + "/" + name) {
					t.Fatal("it is not started")
				}
				return cost, took
			}
			where := "others"
			if c.own {
				where = "top"
			}
			before, usual := spawn(0, name)
			for _, k := range kids[1:] {
				var orders [][]byte
				for j := range lookouts.Most {
					orders = append(orders, abi.AppendWatch(nil, 0, fmt.Sprint("+/user/top/guest/*", strings.Repeat("a", c.behind-1), j)))
				}
				l.say(lookup(t, l.System, "/user/"+where+"/"+k.Name), script(now(orders...)))
			}
			n := l.lookouts.Len()
			after, took := spawn(1, "b"+name[:abi.MaxName-1])
			t.Logf("%d patterns: %d units, %v; before %d, %v", n, after, took, before, usual)
			switch {
			case c.behind > lookouts.MostBehindStar && n != 0:
				t.Error("they are not refused")
			case c.behind <= lookouts.MostBehindStar && n != lookouts.MostOfTree:
				t.Errorf("%d patterns, there are to be %d", n, lookouts.MostOfTree)
			case c.behind <= lookouts.MostBehindStar && c.own && after < before+uint64(n)*uint64(len(name)*c.behind):
				t.Error("they are not paid for")
			case !c.own && after != before:
				t.Errorf("what others look out for costs %d units", int64(after-before))
			}
		})
	}
}

func (l *stage) has(path string) bool { _, err := l.Lookup(path); return err == nil }

// A child has its failures counted anew, again and again, while its parent is busy: what waits there does not
// grow, and what the parent's decisions depend on is kept.
func TestAFloodOfResets(t *testing.T) {
	const turns, orders = 50, 4000
	s := newSystem(t, NewConfig("test"))
	busy, free := make(chan struct{}), make(chan struct{})
	parent := must(s.Spawn("parent", Func(func(*Context, Message) error {
		close(busy)
		<-free
		return nil
	}).WithChildren(Child{"g", puppet(t)})))(t)
	g := lookup(t, s, "/user/parent/g")
	must(0, s.Idle(t.Context()))(t)
	must(0, s.Tell(parent, 1))(t)
	<-busy
	p, c := s.table.Get(parent.UID()), s.table.Get(g.UID())
	before, done := must(s.View().Info(g))(t).Fuel, c.tally.Turns.Load()
	order := script(now(bytes.Repeat(abi.AppendResetBackoff(nil), orders)))
	for range turns {
		must(0, s.Tell(g, order))(t)
	}
	waitFor(t, "its turns", func() bool { return c.tally.Turns.Load() >= done+turns })
	longest := int(p.sysq.N.Load())
	t.Logf("%d messages wait of %d; %d units each", longest, turns*orders, (must(s.View().Info(g))(t).Fuel-before)/(turns*orders))
	if longest > 2*sysmail.FirstThin {
		t.Errorf("%d messages wait", longest)
	}
	close(free)

	var q sysmail.Queue
	q.Init()
	for range sysmail.FirstThin {
		q.Push(&sysmail.Msg{Kind: sysmail.ResetBackoff, Kin: sysmail.Kin{Ref: g.UID()}})
	}
	q.Push(&sysmail.Msg{Kind: sysmail.ChildFailed, Kin: sysmail.Kin{Ref: g.UID(), Child: c}})
	for range 2 * sysmail.FirstThin {
		q.Push(&sysmail.Msg{Kind: sysmail.ResetBackoff, Kin: sysmail.Kin{Ref: g.UID()}})
	}
	q.Thin()
	var kinds []sysmail.Kind
	for _, m := range q.Take() {
		kinds = append(kinds, m.Kind)
	}
	if !slices.Equal(kinds, []sysmail.Kind{sysmail.ResetBackoff, sysmail.ChildFailed, sysmail.ResetBackoff}) {
		t.Errorf("%v", kinds)
	}
}

// The paths of actors that were watched by a pattern, and have ended, are held until the watcher has been told:
// they are on its account.
func TestPathsOfWatchesArePaid(t *testing.T) {
	const deep, watched = 14, 300
	l := newStage(t, nil)
	name := strings.Repeat("n", abi.MaxName)
	p := Func(func(*Context, Message) error { return nil })
	kids := make([]Child, watched)
	for i := range kids {
		kids[i] = Child{fmt.Sprint(i), p}
	}
	for range deep {
		p = p.WithChildren(kids...)
		kids = []Child{{name, p}}
	}
	top := l.spawn(name, p)
	path := strings.Repeat("/"+name, deep-1)
	g := l.spawn("guest", puppet(t))
	before := must(l.View().Held(g))(t).Watches
	l.say(g, script(now(abi.AppendWatch(nil, 0, top.Path()+path+"/*"))))
	held := must(l.View().Held(g))(t).Watches - before
	t.Logf("%d watches of paths of %d bytes: %d bytes", watched, len(top.Path()+path), held)
	if least := int64(watched * (len(top.Path()+path) + work.WatchBytes)); held < least {
		t.Errorf("%d bytes, at least %d", held, least)
	}
	must(0, l.Operate().Pause(g, false))(t)
	l.Stop(top)
	l.run()
	if h := must(l.View().Held(g))(t).Watches - before; h != held {
		t.Errorf("after the end %d bytes", h)
	}
	must(0, l.Operate().Unpause(g, false))(t)
	l.run()
	if h := must(l.View().Held(g))(t).Watches; h != before {
		t.Errorf("when it was told %d bytes", h)
	}
}

// A restart that is asked for while the supervisor is busy holds its child back until that has acted, and no
// longer; nothing is lost, whatever comes of the supervisor.
func TestARestartWaitsForABusySupervisor(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(l *lab, parent, kid Ref)
		want string // what has become of the question; "": it is answered
	}{
		{"it acts", func(*lab, Ref, Ref) {}, ""},
		{"it is suspended", func(l *lab, parent, _ Ref) { must(0, l.Operate().Crash(parent, 0, ""))(l.t) }, "stopped"},
		{"it is paused", func(l *lab, parent, _ Ref) { must(0, l.Operate().Pause(parent, false))(l.t) }, ""},
		{"it restarts", func(l *lab, parent, _ Ref) { must(0, l.Operate().Restart(parent))(l.t) }, ""},
		{"it stops", func(l *lab, parent, _ Ref) { l.Stop(parent) }, "stopped"},
		{"the child stops", func(l *lab, _, kid Ref) { l.Stop(kid) }, "stopped"},
		{"the child fails", func(l *lab, _, kid Ref) { must(0, l.Operate().Crash(kid, 0, ""))(l.t) }, ""},
		{"many more", func(l *lab, _, kid Ref) {
			for range 1000 {
				must(0, l.Operate().Restart(kid))(l.t)
			}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, supervision.Default().WithOtherwise(supervision.Restart))
			kid := Native(func() Actor { return &counter{} })
			parent := l.spawn("parent", Func(func(*Context, Message) error { return nil }).WithSupervision(supervision.Default().WithOtherwise(supervision.Restart)).WithChildren(Child{"kid", kid}))
			k := l.at("parent/kid")
			must(0, l.Operate().Restart(k))(t)
			p := must(l.Request(k, "get"))(t)
			c.then(l, parent, k)
			l.run()
			select {
			case m := <-p.Answer():
				if err := m.Err(); (err != nil) != (c.want != "") {
					t.Errorf("%v, want %q", err, c.want)
				}
			default:
				t.Errorf("no answer; %v", l.View().Tree())
			}
			l.table.Each(func(a *actor) {
				if a.life.Held(life.Renewed) {
					t.Errorf("%s waits", a.path)
				}
			})
		})
	}
}
