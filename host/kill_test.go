package host

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// A turn that is about to begin is killed as one that has begun: StopNow does not know which of the two it is.
func TestStopNowOfATurnAboutToBegin(t *testing.T) {
	image := load(t, newEngine(t), "testdata/hostile/loop.wasm")
	l := newLab(t, supervision.Default())
	box := &interrupted{}
	g := l.spawn("g", Guest(image, "hostile").WithLimits(Limits{Fuel: 1 << 24}).WithMailbox(func(MailboxLimits) Mailbox { return box }))
	box.during = func() { l.StopNow(g) }
	l.tell(g, 1)
	for _, e := range l.seen(EventFailed) {
		if e.Failure.Kind != abi.FailureKilled {
			t.Errorf("%v", e.Failure)
		}
	}
	if s := l.state("g"); s != "gone" || box.during != nil {
		t.Errorf("it is %s", s)
	}
}

// A kill reaches no turn but that of the run in which it came: neither one of another message nor the last.
func TestAKillIsOver(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart))
	g := l.spawn("g", Guest(load(t, newEngine(t), "testdata/brute.wasm"), "brute"))
	x := guestOf(l.table.Get(g.uid))
	x.inst.Load().Kill("too early")
	l.tell(g, order(verbSpin, 1<<20, nil)) // several quanta: a turn sees kills between them
	if es := l.seen(EventFailed); len(es) > 0 {
		t.Fatalf("%v", es[0].Failure)
	}
	x.inst.Load().Kill("too early")
	l.Stop(g)
	l.run()
	for _, e := range l.seen(EventFailed, EventLog) {
		t.Errorf("%v: %v %s", e.Kind, e.Failure, e.Text)
	}
}

// interrupted is a mailbox that calls a function once, while a message is taken out of it.
type interrupted struct {
	plainBox
	during func()
}

func (b *interrupted) Empty() bool { return len(b.es) == 0 }

func (b *interrupted) Pop() *Envelope {
	if f := b.during; f != nil {
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
	a := s.table.Get(g.uid)
	waitFor(t, "its turn", func() bool { return a.running() && a.box.Len() == 0 })
}

// A child with an endless turn is killed when its parent has been stopped for the grace, and not before.
func TestAStopOfTheParentKillsAnEndlessTurn(t *testing.T) {
	s, clock, spinning := newSpinning(t)
	events := s.Subscribe(100, func(e *Event) bool { return e.Kind == EventFailed })
	p := must(s.Spawn("p", parentOf(supervision.Default(), Child{"kid", spinning})))(t)
	kid := lookup(t, s, "/user/p/kid")
	spins(t, s, kid)
	before := clock.Pending()
	s.Stop(p)
	waitFor(t, "something that will end its turn", func() bool { return clock.Pending() > before })
	clock.Advance(graceOf - 1)
	if clock.Pending() == before || s.table.Get(kid.uid) == nil {
		t.Error("the grace was shorter")
	}
	clock.Advance(1)
	waitFor(t, "the end of the parent", func() bool { return s.table.Get(p.uid) == nil })
	if e := next(t, events); e.Ref != kid || e.Failure.Kind != abi.FailureKilled {
		t.Errorf("%v: %v", e.Ref, e.Failure)
	}
}

// However many orders wait for the end of a turn, one alarm is enough; and the turns of later incarnations are
// killed as well.
func TestEveryEndlessTurnIsKilled(t *testing.T) {
	s, clock, spinning := newSpinning(t)
	g := must(s.Spawn("g", spinning))(t)
	a := s.table.Get(g.uid)
	waitFor(t, "its start", a.begun.Load)
	for range 3 {
		last := a.incarnation()
		spins(t, s, g)
		before := clock.Pending()
		for range 10 {
			must(0, s.Restart(g))(t)
		}
		if n := clock.Pending() - before; n != 1 {
			t.Fatalf("%d alarms", n)
		}
		waitFor(t, "an order of its supervisor", a.sysq.waiting)
		clock.Advance(graceOf)
		waitFor(t, "the next incarnation", func() bool { return a.incarnation() > last && a.begun.Load() && !a.holds.has(holdRenewal) })
	}
}
