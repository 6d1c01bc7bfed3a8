package host

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// A failure that waits for a supervisor which stops instead is published, as one about which nothing was decided.
func TestAStopPublishesWhatWasNotDecided(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{}).WithKeepChildren(true))
	p := l.spawn("p", parentOf(otherwise(supervision.Restart), Child{"kid", boom()}))
	kid := l.at("p/kid")
	l.fails("p")
	l.run()
	l.tell(kid, "crash")
	before := l.View().Stats().Crashes
	l.seen()
	l.Stop(p)
	l.run()
	if e := l.next(EventFailed); e.Ref != kid || e.Failure.Reason != "boom" || e.Directive != 0 || e.Note == "" {
		t.Errorf("%+v", e)
	}
	if n := l.View().Stats().Crashes; n != before+1 {
		t.Errorf("%d crashes, %d before", n, before)
	}
}

// The end of an actor that has failed is told with the failure, any other without.
func TestTheEndIsToldWithItsFailure(t *testing.T) {
	for directive, want := range map[supervision.Directive]bool{supervision.Stop: true, supervision.Restart: false} {
		l := newLab(t, otherwise(directive))
		a := l.spawn("a", boom())
		l.tell(a, "crash")
		l.Stop(a)
		l.run()
		if e := l.next(EventStopped); e.Ref != a || (e.Failure != nil) != want {
			t.Errorf("%v: %+v", directive, e)
		}
	}
}

// What comes to an actor in its last turn is told that it has gone.
func TestWhoComesInTheLastTurnIsTold(t *testing.T) {
	l := newLab(t, supervision.Default())
	var ended <-chan struct{}
	a := l.spawn("a", Native(func() Actor {
		return &parting{func(ctx *Context) { ended = must(l.Ended(ctx.Self()))(t) }}
	}))
	l.Stop(a)
	l.run()
	select {
	case <-ended:
	default:
		t.Error("nobody tells")
	}
}

// parting does something in its last turn.
type parting struct{ do func(*Context) }

func (p *parting) Receive(*Context, Message) error { return nil }
func (p *parting) Stopped(ctx *Context)            { p.do(ctx) }

// A permanent guest that has stopped itself has no state to go on with: instead of being resumed it is to be restarted,
// as far as its limit allows, because it has ended.
func TestResumeOfWhatHasStoppedItself(t *testing.T) {
	l := newLab(t, supervision.Default().WithMaxRestarts(1, time.Hour).WithExceeded(supervision.Suspend))
	g := l.spawn("g", puppet(t).WithLifetime(supervision.Permanent))
	for range 2 {
		l.tell(g, script(now(abi.AppendStop(nil, g.UID(), ""))))
	}
	if i := l.info(g); i.Incarnation != 1 || l.state("g") != "failed" {
		t.Fatalf("%+v", i)
	}
	l.seen()
	must(0, l.Operate().Decide(g, supervision.Resume))(t)
	l.run()
	if e := l.next(EventFailed); e.Failure.Kind != abi.FailureExit || e.Failure.Reason != "the actor has ended" || e.Directive != supervision.Suspend || e.Note != "more restarts than allowed" {
		t.Errorf("%v, %v, %q", e.Failure, e.Directive, e.Note)
	}
}

// A renewal of the parent abandons a restart of its children in order: none of them waits for it any longer. The delay
// of those that were not told of it yet is still to pass; that of the others is over.
func TestARenewalOfTheParentAndTheDelaysOfItsChildren(t *testing.T) {
	const delay = 200 * time.Millisecond
	names := strings.Split("abcdefgh", "")
	m := NewModule(load(t, newEngine(t), "testdata/puppet.wasm"))
	waited := 0
	for seed := range uint64(24) {
		for _, late := range []bool{false, true} {
			s, clock := manual(t, func(c Config) Config { return c.WithShuffle(seed) })
			l := &lab{s, t, clock, s.Subscribe(1000, nil)}
			var children []Child
			for _, name := range names {
				children = append(children, Child{name, counting(t, m)})
			}
			top := counting(t, m).WithSupervision(delayed(t, supervision.Backoff{}).WithKind(supervision.RestForOne)).WithChildren(children...)
			p := l.spawn("p", top)
			l.seen()
			must(0, l.Tell(l.at("p/a"), script(trap())))(t)
			for len(l.seen(EventFailed)) == 0 {
				if !l.Step() {
					t.Fatal("nothing is decided")
				}
			}
			if late {
				l.run() // all of them wait
			}
			must(0, l.Operate().Renew(p, top))(t)
			l.run()
			var states []ActorState
			for _, name := range names {
				i := l.info(l.at("p/" + name))
				states = append(states, i.State)
				if i.State == StateDelayed && (late || i.Due != delay) || i.State == StateRunning && i.Incarnation == 0 {
					t.Errorf("seed %d, late %v: %s is %v for %v in incarnation %d", seed, late, name, i.State, i.Due, i.Incarnation)
				}
			}
			if slices.Contains(states, StateDelayed) {
				waited++
			}
			l.pass(delay)
			for _, name := range names {
				if i := l.info(l.at("p/" + name)); i.State != StateRunning || i.Incarnation == 0 {
					t.Errorf("seed %d, late %v: %s is %v in incarnation %d", seed, late, name, i.State, i.Incarnation)
				}
			}
		}
	}
	if waited == 0 {
		t.Error("no renewal has come before all were told")
	}
}
