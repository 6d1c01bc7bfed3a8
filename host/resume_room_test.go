package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// failedAway is a guest that has counted to 7 and failed, whose only instance somebody else has now; give
// gives that back.
func failedAway(t *testing.T) (l *lab, ref Ref, give func()) {
	engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(1)))(t)
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	image := load(t, engine, "testdata/puppet.wasm")
	p := puppet(t)
	l = newCrowdedLab(t, 0, supervision.Default().WithOtherwise(supervision.Suspend), halfAMinute)
	ref = l.spawn("failed", Guest(image, "puppet").WithArgs(p.args).WithCapabilities(p.caps))
	l.tell(ref, script(rec(recAdd, 7, nil)))
	l.tell(ref, script(rec(recAdd, 100, nil), now(abi.AppendFail(nil, "told to"))))
	if i := l.info(ref); !i.Failed || !l.awake.MakeRoom(nil, instance.Any) {
		t.Fatalf("%+v", i)
	}
	other := must(sandbox.Get(image))(t)
	return l, ref, other.Put
}

// Who is to be resumed and has no instance waits for one, with its state. Nothing of it is lost, whoever has
// the instances and for how long.
func TestResumeWaitsForRoom(t *testing.T) {
	l, ref, give := failedAway(t)
	l.seen()
	must(0, l.Operate().Decide(ref, supervision.Resume))(t)
	l.run()
	if n := len(l.seen(EventRefused)); n != 1 {
		t.Errorf("told %d times at once that there is no room", n)
	}
	for range 100 {
		l.pass(100 * time.Millisecond)
	}
	if i := l.info(ref); !i.Failed || i.Restarts != 0 {
		t.Fatalf("%+v", i)
	}
	if n := len(l.seen(EventRefused)); n != 0 {
		t.Errorf("told %d times more that there is no room", n)
	}
	give()
	l.pass(instance.MostRetry)
	if got := answer(t, l.System, ref, script(rec(recReport, 0, nil))); fmt.Sprint(got) != "7" {
		t.Errorf("it holds %v, not 7", got)
	}
	if i := l.info(ref); i.State != StateRunning || i.Restarts != 0 || guestOf(l.table.Get(ref.UID())).inst.Waited != 0 {
		t.Errorf("%+v", i)
	}
}

// What the supervisor orders meanwhile counts, and the wait is over: a later failure is decided about anew.
func TestWaitForResumeIsOverWithTheNextOrder(t *testing.T) {
	for _, d := range []supervision.Directive{supervision.Restart, supervision.Stop, supervision.Resume} {
		t.Run(d.String(), func(t *testing.T) {
			l, ref, give := failedAway(t)
			a := l.table.Get(ref.UID())
			a.post(nil, sysmail.Msg{Kind: sysmail.Resume, Kin: sysmail.Kin{How: sysmail.Order}})
			l.run()
			for range 20 {
				l.pass(100 * time.Millisecond)
			}
			give()
			switch d { // before it tries again
			case supervision.Restart:
				a.post(nil, sysmail.Msg{Kind: sysmail.Restart, Kin: sysmail.Kin{How: sysmail.Order}})
			case supervision.Stop:
				a.post(nil, sysmail.Msg{Kind: sysmail.Stop, Kin: sysmail.Kin{How: sysmail.Order}})
			default:
				a.post(nil, sysmail.Msg{Kind: sysmail.Resume, Kin: sysmail.Kin{How: sysmail.Order}})
			}
			l.run()
			if d == supervision.Stop {
				l.pass(2 * instance.MostRetry)
				if s := l.state("failed"); s != "gone" {
					t.Error(s)
				}
				return
			}
			l.tell(ref, script(trap()))
			l.pass(2 * instance.MostRetry)
			if i := l.info(ref); !i.Failed {
				t.Errorf("nobody has decided about its failure: %+v", i)
			}
		})
	}
}

// Where the state does not go into the instance there is a restart, and no instance without a state is kept
// for a last turn.
func TestResumeIntoWhichTheStateDoesNotGo(t *testing.T) {
	l, ref, give := failedAway(t)
	give()
	g := guestOf(l.table.Get(ref.UID()))
	other := load(t, newEngine(t), "testdata/echo.wasm") // a snapshot of another image
	x := must(sandbox.Get(other))(t)
	must(0, x.Save(&g.inst.States.Snap))(t)
	x.Put()
	must(0, l.Operate().Decide(ref, supervision.Resume))(t)
	for l.Step() {
		if x := g.inst.Load(); x != nil && g.actor.life.State() == life.Failed && g.actor.life.Begun.Load() {
			t.Error("it has an instance without a state")
		}
	}
	if i := l.info(ref); i.Restarts != 1 {
		t.Errorf("%+v", i)
	}
}
