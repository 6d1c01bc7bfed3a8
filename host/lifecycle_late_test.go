package host

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/supervision"
)

// A permanent actor that says twice in a turn that it stops is begun again all the same: the second time adds nothing.
func TestAPermanentActorThatStopsItselfTwice(t *testing.T) {
	for name, p := range map[string]Props{
		"native": Func(func(ctx *Context, _ Message) error {
			ctx.Stop(ctx.Self())
			ctx.Stop(ctx.Self())
			return nil
		}),
		"guest": puppet(t),
	} {
		l := newLab(t, otherwise(supervision.Restart))
		g := l.spawn("g", p.WithLifetime(supervision.Permanent))
		stop := abi.AppendStop(nil, g.UID(), "")
		l.tell(g, script(now(stop, stop)))
		if i := l.info(g); l.state("g") != "running" || i.Incarnation != 1 {
			t.Errorf("%s: it is %s, in incarnation %d", name, l.state("g"), i.Incarnation)
		}
	}
}

// The actor's own stop is for the incarnation that has said so, while it runs: one that waits for what its supervisor
// says about a child's failure, or for its restart, goes on waiting.
func TestAStopOfItsOwnThatComesLate(t *testing.T) {
	quits := func(l *lab, name, want string) {
		t.Helper()
		if s := l.state(name); s != want {
			t.Fatalf("%s is %s, not %s", name, s, want)
		}
		l.table.Get(l.at(name).UID()).post(nil, sysmail.Msg{Kind: sysmail.Quit, Kin: sysmail.Kin{Reason: "stopped"}})
		l.run()
		if s := l.state(name); s != want {
			t.Errorf("%s is %s, not %s any more", name, s, want)
		}
	}
	l := newLab(t, otherwise(supervision.Suspend))
	l.spawn("p", parentOf(otherwise(supervision.Escalate), Child{"kid", boom()}))
	l.tell(l.at("p/kid"), "crash")
	quits(l, "p", "failed")

	l = newLab(t, delayed(t, supervision.Backoff{}))
	l.tell(l.spawn("p", boom()), "crash")
	quits(l, "p", "restarting")
	l.pass(time.Second)
	if s := l.state("p"); s != "running" {
		t.Errorf("after its delay it is %s", s)
	}
}

// An order to restart that comes to an actor which is about to end changes nothing: it has one last turn.
func TestARestartOfWhatStops(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart))
	var last []string
	p := l.spawn("p", Native(func() Actor {
		return &parting{func(ctx *Context) { last = append(last, ctx.Self().Name()) }}
	}).WithChildren(Child{"kid", boom()}))
	a := l.table.Get(p.UID())
	a.stopNow(nil, "", life.Ordered)
	a.prepareRestart(nil, &sysmail.Msg{Kind: sysmail.Restart})
	if s := l.state("p"); s != "stopping" || len(last) != 0 {
		t.Errorf("it is %s, last turns: %q", s, last)
	}
	l.run()
	if s := l.state("p"); s != "gone" || !slices.Equal(last, []string{"p"}) {
		t.Errorf("it is %s, last turns: %q", s, last)
	}
}

// The timers of an incarnation are neither there nor on the account when it has ended, also before the next one begins.
func TestTimersEndWithTheirIncarnation(t *testing.T) {
	for _, p := range []Props{puppet(t), Func(func(ctx *Context, _ Message) error { return ctx.After(7, time.Hour, 0, "something") })} {
		l := newLab(t, delayed(t, supervision.Backoff{}))
		g := l.spawn("g", p)
		a := l.table.Get(g.UID())
		l.tell(g, script(now(abi.AppendTimer(nil, 7, uint64(time.Hour), 0, encoded("something")))))
		if a.account.Held().Timers == 0 {
			t.Fatal("nothing is on the account")
		}
		l.fails("g")
		l.run()
		if s := l.state("g"); s != "restarting" || a.account.Held().Timers != 0 || a.work.Timers.Len() != 0 {
			t.Errorf("it is %s, with %d timers, %d bytes on its account", s, a.work.Timers.Len(), a.account.Held().Timers)
		}
	}
}

// The children of an actor that is renewed begin anew once, and those that it lacks afterwards stop without beginning
// again.
func TestARenewalRestartsChildrenOnce(t *testing.T) {
	for _, keep := range []bool{true, false} {
		l := newLab(t, supervision.Default().WithKeepChildren(keep))
		m := NewModule(puppetImage(t))
		kid := counting(t, m)
		p := l.spawn("p", counting(t, m).WithChildren(Child{"stays", kid}, Child{"goes", kid}))
		stays, goes := l.at("p/stays"), l.at("p/goes")
		l.seen()
		must(0, l.Operate().Renew(p, counting(t, m).WithChildren(Child{"stays", kid})))(t)
		l.run()
		if i := l.info(stays); i.Incarnation != 1 {
			t.Errorf("keeps children %v: the child is in incarnation %d", keep, i.Incarnation)
		}
		for _, e := range l.seen(EventRestarted) {
			if e.Ref == goes {
				t.Errorf("keeps children %v: who goes has begun again", keep)
			}
		}
	}
}
