package host

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/supervision"
)

// A turn that is about to begin is killed as one that has begun: StopNow does not know which of the two it is.
func TestStopNowOfATurnAboutToBegin(t *testing.T) {
	killable(t, func(t *testing.T) {
		for _, earlier := range []int{0, 1} { // messages that are taken before
			l := newStage(t, nil)
			box := &interrupted{}
			g := l.spawn("g", puppet(t).WithMailbox(func(MailboxLimits) Mailbox { return box }))
			for range earlier + 1 {
				l.post(g, script(rec(recNow, flagSpin, toProbe("said"))))
			}
			box.after, box.during = earlier, func() { l.StopNow(g) }
			l.run()
			failed := l.raw(EventFailed)
			if len(failed) != 1 || failed[0].Failure.Kind != abi.FailureKilled || l.alive(g) || box.during != nil {
				t.Errorf("%v, it is there: %v", failed, l.alive(g))
			}
			if manner == inBatches {
				earlier = 0 // they were of the batch
			}
			if len(l.got) != earlier {
				t.Errorf("%q", l.got)
			}
		}
	})
}

// A system message that comes while messages are taken ends their batch, and no later one.
func TestTheEndOfABatchIsOver(t *testing.T) {
	inBatches.run(t, "in batches", func(t *testing.T) {
		l := newStage(t, nil)
		box := &interrupted{}
		g := l.spawn("g", puppet(t).WithMailbox(func(MailboxLimits) Mailbox { return box }))
		a := l.table.Get(g.UID())
		ended := func() bool { return guestOf(a).inst.Load().Ended() }
		within := false
		for range 2 {
			l.post(g, script(rec(recNow, 0, toProbe("said"))))
			box.after, box.during = 0, func() {
				a.post(nil, sysmail.Msg{Kind: sysmail.ResetBackoff})
				within = ended()
			}
			l.run()
			if !within || box.during != nil {
				t.Fatal("the batch goes on")
			}
		}
		l.post(g, script(rec(recNow, 0, toProbe("said"))))
		if l.run(); ended() {
			t.Error("later batches are ended, too")
		}
		l.wants("message said", "message said", "message said")
	})
}

// killable runs a test for guests whose turns are kills' to end.
func killable(t *testing.T, f func(t *testing.T)) {
	oneByOne.run(t, "one by one", f)
	inBatches.run(t, "in batches", f)
}

// A kill reaches no turn but that of the run in which it came: neither one of another message, nor the last one of
// an incarnation, nor that of the end. All of them take several quanta: a turn sees kills between these.
func TestAKillIsOver(t *testing.T) {
	killable(t, func(t *testing.T) {
		long := func(k abi.Kind) []byte { return rec(byte(k), flagSpin, toProbe("turn")) }
		l := newStage(t, nil)
		g := l.spawn("g", puppet(t, long(abi.KindPreRestart), long(abi.KindStop)))
		for _, begin := range []func(){
			func() { l.post(g, script(long(recNow))) },
			func() { must(0, l.Operate().Restart(g))(t) },
			func() { l.Stop(g) },
		} {
			guestOf(l.table.Get(g.UID())).inst.Load().Kill("too early")
			begin()
			l.run()
			l.wants("message turn")
		}
		for _, e := range l.raw(EventFailed, EventLog) {
			t.Errorf("%v: %v %s", e.Kind, e.Failure, e.Text)
		}
	})
}

// interrupted is a mailbox that calls a function once, while a message is taken out of it, after so many others.
type interrupted struct {
	plainBox
	after  int
	during func()
}

func (b *interrupted) Empty() bool { return len(b.es) == 0 }

func (b *interrupted) Pop() *Envelope {
	if b.after--; b.after < 0 && b.during != nil {
		f := b.during
		b.during = nil
		f()
	}
	return b.plainBox.Pop()
}

// graceOf is the grace of the systems of newSpinning.
const graceOf = time.Second

// newSpinning is a system with a virtual clock that still has workers, for guests whose turns never end.
func newSpinning(t *testing.T) (s *System, clock *VirtualClock, spinning Props) {
	clock = NewVirtualClock(time.Unix(1_700_000_000, 0))
	s = newSystem(t, NewConfig("test").WithClock(clock).WithIdleAfter(0).WithStopGrace(graceOf).WithGuardian(otherwise(supervision.Restart)))
	t.Cleanup(s.killAll) // where the grace has not
	return s, clock, Guest(load(t, newEngine(t), "testdata/hostile/loop.wasm"), "hostile").WithLimits(Limits{Fuel: 1 << 62})
}

// spins has a guest begin a turn that never ends.
func spins(t *testing.T, s *System, g Ref) {
	t.Helper()
	must(0, s.Tell(g, 1))(t)
	a := s.table.Get(g.UID())
	waitFor(t, "its turn", func() bool { return a.place.Running() && a.box.Len() == 0 })
}

// An actor with an endless turn is killed when it, or its parent, has been stopped for the grace, and not before.
func TestAStopKillsAnEndlessTurn(t *testing.T) {
	for _, stopped := range []string{"/user/p", "/user/p/kid"} {
		s, clock, spinning := newSpinning(t)
		events := s.Subscribe(100, func(e *Event) bool { return e.Kind == EventFailed })
		must(s.Spawn("p", parentOf(supervision.Default(), Child{"kid", spinning})))(t)
		kid := lookup(t, s, "/user/p/kid")
		spins(t, s, kid)
		before := clock.Pending()
		s.Stop(lookup(t, s, stopped))
		waitFor(t, "something that will end its turn", func() bool { return clock.Pending() > before })
		clock.Advance(graceOf - 1)
		if clock.Pending() == before || s.table.Get(kid.UID()) == nil {
			t.Error("the grace was shorter")
		}
		clock.Advance(1)
		waitFor(t, "its end", func() bool { return s.table.Get(kid.UID()) == nil })
		if e := next(t, events); e.Ref != kid || e.Failure.Kind != abi.FailureKilled {
			t.Errorf("%v: %v", e.Ref, e.Failure)
		}
	}
}

// However many orders wait for the end of a turn, one alarm is enough; and the turns of later incarnations are
// killed as well.
func TestEveryEndlessTurnIsKilled(t *testing.T) {
	s, clock, spinning := newSpinning(t)
	g := must(s.Spawn("g", spinning))(t)
	a := s.table.Get(g.UID())
	waitFor(t, "its start", a.life.Begun.Load)
	for range 3 {
		last := a.Incarnation()
		spins(t, s, g)
		before := clock.Pending()
		for range 10 {
			must(0, s.Operate().Restart(g))(t)
		}
		if n := clock.Pending() - before; n != 1 {
			t.Fatalf("%d alarms", n)
		}
		waitFor(t, "an order of its supervisor", a.sysq.Waiting)
		clock.Advance(graceOf)
		waitFor(t, "the next incarnation", func() bool { return a.Incarnation() > last && a.life.Begun.Load() && !a.life.Held(life.Renewed) })
	}
}
