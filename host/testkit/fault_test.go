package testkit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/testkit"
)

// An actor crashes on its n-th message, once: what the turn was to send is not sent.
func TestCrashOnNthMessage(t *testing.T) {
	k := testkit.New(t)
	a := k.Spawn("a", host.Native(func() host.Actor { return &tally{} }))
	f := k.Fault("/user/a").Nth(3).Crash()
	p := k.Probe("p")
	got := k.ExpectEvents(1, testkit.Crash().From("/user/a").Kind(abi.FailureTrap).Text("trap: a fault of the test"), func() {
		for range 5 {
			p.Ask(a, "x")
		}
	})
	if m := got[0].Mail; m == nil || m.Correlation != 3 {
		t.Errorf("%+v", m)
	}
	for i, want := range []any{1, 2, testkit.OfKind(abi.KindReplyError), 1, 2} {
		if m := p.Expect(want); m.Correlation != uint64(i+1) {
			t.Errorf("%+v", m)
		}
	}
	if f.Hits() != 1 {
		t.Error(f.Hits())
	}
	k.ExpectEvents(1, testkit.Crash().Kind(abi.FailureFuel), func() {
		k.Fault("/user/*").From("/user/p").Matching("y").CrashWith(abi.Failure{Kind: abi.FailureFuel})
		k.Tell(a, "y")
		p.Tell(a, "x")
		p.Tell(a, "y")
	})
}

// sendTexts sends texts to a probe through the fault that make makes, and returns what comes at once,
// what in a minute, and the dead letters.
func sendTexts(t *testing.T, make func(k *testkit.Kit), options ...testkit.Option) (now, later string, dead uint64) {
	t.Helper()
	k := testkit.New(t, options...)
	p := k.Probe("p")
	relay := k.Spawn("relay", host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Forward(p.Ref()) }))
	make(k)
	for i := range 6 {
		if err := k.System().Tell(relay, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	now = texts(p.ReceiveWhile(testkit.While{Idle: 1}, nil))
	later = texts(p.ReceiveWhile(testkit.While{Most: time.Minute}, nil))
	_, dead = k.System().DeadLetters()
	return now, later, dead
}

func TestFaultsOfMessages(t *testing.T) {
	for _, c := range []struct {
		name       string
		make       func(f *testkit.Fault)
		now, later string
	}{
		{"none", func(f *testkit.Fault) { f.Nth(7).Drop() }, "0 1 2 3 4 5", ""},
		{"drop the second", func(f *testkit.Fault) { f.Nth(2).Drop() }, "0 2 3 4 5", ""},
		{"drop every third", func(f *testkit.Fault) { f.Every(3).Drop() }, "0 1 3 4", ""},
		{"drop all", func(f *testkit.Fault) { f.Drop() }, "", ""},
		{"drop some", func(f *testkit.Fault) { f.Matching(testkit.Text("[135]")).Nth(2).Drop() }, "0 1 2 4 5", ""},
		{"delay", func(f *testkit.Fault) { f.Matching("1").Delay(time.Second) }, "0 2 3 4 5", "1"},
		{"duplicate", func(f *testkit.Fault) { f.Nth(4).Duplicate() }, "0 1 2 3 3 4 5", ""},
		{"reorder", func(f *testkit.Fault) { f.Every(3).Reorder() }, "0 1 3 2 4 5", ""},
		{"reorder two", func(f *testkit.Fault) { f.Matching(testkit.Text("[12]")).Reorder() }, "0 3 1 2 4 5", ""},
		{"from others", func(f *testkit.Fault) { f.From("/user/relay").Drop() }, "0 1 2 3 4 5", ""},
		{"ended", func(f *testkit.Fault) { f.Drop().End() }, "0 1 2 3 4 5", ""},
	} {
		now, later, dead := sendTexts(t, func(k *testkit.Kit) { c.make(k.Fault("/user/relay")) })
		if now != c.now || later != c.later || dead != 0 {
			t.Errorf("%s: %q, later %q, %d dead letters; want %q and %q", c.name, now, later, dead, c.now, c.later)
		}
	}
	fails(t, func(t testing.TB) { testkit.New(t).Fault("/user/a").Chance(2).Drop() }, "a chance is from 0 to 1")
	fails(t, func(t testing.TB) { testkit.New(t).Fault("/user/a").Drop().Delay(1) }, "one fault does one thing")
}

// A chance is the seed's: the same run each time, another with another seed.
func TestFaultsBySeed(t *testing.T) {
	run := func(seed uint64) string {
		now, _, _ := sendTexts(t, func(k *testkit.Kit) {
			k.Fault("/user/relay").Chance(0.3).Drop()
			k.Fault("/user/relay").Chance(0.5).Reorder()
		}, testkit.Seed(seed))
		return now
	}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		if a, b := run(seed), run(seed); a != b {
			t.Errorf("seed %d: %q and %q", seed, a, b)
		}
		seen[run(seed)] = true
	}
	if len(seen) < 15 {
		t.Errorf("twenty seeds are %d runs", len(seen))
	}
}

// What is nobody's message is not lost: a poison pill, the end of a watched actor, a timer.
func TestFaultsAreAboutMail(t *testing.T) {
	k := testkit.New(t)
	a, p := k.Spawn("a", echo), k.Probe("p")
	var heard []abi.Kind
	b := k.Spawn("b", host.Func(func(ctx *host.Context, m host.Message) error {
		heard = append(heard, m.Kind)
		if m.Kind == abi.KindMessage {
			return errors.Join(ctx.Watch(a), ctx.After(1, time.Second, 0, nil))
		}
		return nil
	}))
	k.Tell(b, "watch")
	k.Fault("/user/*").Drop()
	p.Watch(a)
	if err := k.System().PoisonPill(a); err != nil {
		t.Fatal(err)
	}
	p.ExpectTerminated(a)
	k.Advance(time.Second)
	k.Tell(b, "lost")
	if want := []abi.Kind{abi.KindMessage, abi.KindTerminated, abi.KindTimer}; !slices.Equal(heard, want) {
		t.Errorf("%v", heard)
	}
}

// What is held back becomes dead letters when the actor ends, and is in a report.
func TestFaultsHoldBack(t *testing.T) {
	k := testkit.New(t)
	a := k.Spawn("a", echo)
	k.Fault("/user/a").Delay(time.Hour)
	k.Mute(testkit.DeadLetter())
	k.Tell(a, "x")
	k.ExpectEvents(1, testkit.DeadLetter().From("/user/a").Reason(host.DeadStopped).Mail("x"), func() { k.Stop(a) })
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		a := k.Spawn("a", echo)
		k.Fault("/user/a").Delay(time.Hour)
		k.Ask(a, "x")
	}, `has not answered "x" within 3s`, "1 message held back by faults")
}

// A mailbox that the actor has chosen keeps what it does, and so do those who wait for room.
func TestFaultsBeforeOtherMailboxes(t *testing.T) {
	k := testkit.New(t, testkit.RealTime())
	block := make(chan struct{})
	p := k.Probe("p")
	a := k.Spawn("a", host.Func(func(ctx *host.Context, m host.Message) error {
		ctx.Block()
		<-block
		return ctx.Forward(p.Ref())
	}).WithMailbox(mailbox.New(mailbox.Block).Make).WithLimits(host.Limits{Mailbox: 1}))
	k.Fault("/user/a").Matching("lost").Drop()
	k.Tell(a, 0)
	k.Await(0, "the turn to begin", func() bool { l, _ := k.System().Load(a); return l.Waiting == 0 })
	k.Tell(a, 1)
	if err := k.System().Tell(a, 2); err == nil {
		t.Error("the mailbox is full, and takes more")
	}
	k.Tell(a, "lost") // before the door
	offered := make(chan error, 1)
	go func() { offered <- k.System().Offer(t.Context(), a, 3) }()
	close(block)
	p.Expect(0)
	p.Expect(1)
	p.Expect(3)
	if err := <-offered; err != nil {
		t.Error(err)
	}
	k.Mute(testkit.DeadLetter())

	// A mailbox that is not one of ours is left alone.
	v := testkit.New(t)
	own := v.Spawn("own", echo.WithMailbox(func(l host.MailboxLimits) host.Mailbox { return bare{mailbox.New(mailbox.Bounded).Make(l)} }))
	v.Fault("/user/own").Drop()
	if !testkit.Equal("x").Match(v.Ask(own, "x")) {
		t.Error("not answered")
	}
}

type bare struct{ host.Mailbox }

// In real time everything is as in virtual time, but for the time.
func TestRealTime(t *testing.T) {
	k := testkit.New(t, testkit.RealTime())
	a := k.Spawn("a", echo)
	p, q := k.Probe("p"), k.Probe("q")
	p.Ask(a, "x")
	p.Expect("x")
	p.Ask(q.Ref(), "y")
	q.Expect("y")
	q.Forward(a)
	p.Expect("y")
	p.ExpectNone(5 * ms)
	k.Fault("/user/a").Matching(testkit.Text("r")).Nth(1).Reorder()
	p.Ask(a, "r1")
	p.Expect("r1") // nothing overtakes it
	k.ExpectEvents(1, testkit.Crash().From("/user/a"), func() { k.Tell(a, "fail") })
	later(k, p.Ref(), 5*ms, "soon")
	p.Within(1*ms, time.Minute, func() { p.Expect("soon") })
	k.AwaitAssert(0, func(t testing.TB) {
		if k.Ask(a, "z").Err() != nil {
			t.Error("no answer")
		}
	})
	p.Watch(a)
	k.Stop(a)
	p.ExpectTerminated(a)
	fails(t, func(t testing.TB) {
		testkit.New(t, testkit.RealTime(), testkit.ExpectFor(5*ms)).Probe("p").Expect("never")
	}, "nothing within 5ms", "nothing waits")
}

func TestKitReports(t *testing.T) {
	fails(t, func(t testing.TB) { testkit.New(t).At("/user/nobody") }, "/user/nobody")
	fails(t, func(t testing.TB) { k := testkit.New(t); k.Tell(host.Ref{}, 1) }, "is not delivered")
	fails(t, func(t testing.TB) { testkit.New(t).Spawn("a/b", echo) }, "cannot be started")
	fails(t, func(t testing.TB) {
		k := testkit.New(t, testkit.Spells(1000))
		k.Spawn("a", host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Tell(ctx.Self(), 1) }))
		_ = k.System().Tell(k.At("/user/a"), 1)
		k.Run()
	}, "does not come to rest")
	fails(t, func(t testing.TB) { // one that waits for its supervisor's delay
		k := testkit.New(t)
		a := k.Spawn("a", echo)
		k.Mute(testkit.Crash())
		k.Tell(a, "fail")
		_ = k.System().Operate().Pause(a, false)
		_ = k.System().Tell(a, "x")
		k.Probe("p").Expect(1)
	}, "/user/a is paused, 1 message in its mailbox, has failed: guest_error: told to")
	fails(t, func(t testing.TB) {
		k := testkit.New(t, testkit.Spells(1000))
		later(k, k.Spawn("a", echo), 1, strings.Split(strings.Repeat("x", 2000), "")...)
		k.Advance(time.Hour)
	}, "1000 timers before")
	if s := (testkit.Received{Message: host.Message{Payload: []byte(strings.Repeat("x", 3))}}).String(); s != "78 78 78" {
		t.Errorf("%q", s)
	}
}
