package host

import (
	"testing"

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
	g := l.spawn("g", puppet(t))
	x := guestOf(l.table.Get(g.uid))
	x.inst.Load().Kill("too early")
	l.tell(g, script(rec(recAdd, 3, nil)))
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
