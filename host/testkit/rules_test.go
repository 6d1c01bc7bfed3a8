package testkit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/testkit"
)

// A time bounds an expectation as a whole, however many messages come meanwhile.
func TestTimesAreOfTheWhole(t *testing.T) {
	every := func(t testing.TB, n int) (*testkit.Kit, *testkit.Probe) {
		k := testkit.New(t)
		p := k.Probe("p")
		var texts []string
		for range n {
			texts = append(texts, "x")
		}
		later(k, p.Ref(), time.Second, texts...)
		return k, p
	}
	var k *testkit.Kit
	var p *testkit.Probe
	fails(t, func(t testing.TB) { k, p = every(t, 10); p.FishFor("y") }, "among the messages of 3s")
	if took := k.Now().Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); took != 3*time.Second {
		t.Errorf("it took %v", took)
	}
	fails(t, func(t testing.TB) { k, p = every(t, 10); p.ReceiveN(5) }, "came: 3 in time")
	fails(t, func(t testing.TB) { k, p = every(t, 10); p.ExpectAll("x", "x", "x", "x", "x") }, "nothing else within 3s")
	fails(t, func(t testing.TB) {
		k, p = every(t, 10)
		p.Within(0, 2500*ms, func() { p.FishFor("y") })
	}, "among the messages of 2.5s")
	k, p = every(t, 10)
	begun := k.Now()
	if got := p.ReceiveWhile(testkit.While{Most: 2500 * ms, Idle: time.Hour}, nil); len(got) != 2 || k.Now().Sub(begun) != 2500*ms {
		t.Errorf("%d messages in %v", len(got), k.Now().Sub(begun))
	}
}

// That a time was used up is forgiven to the expectation that did, not to what follows.
func TestWithinAfterExpectNone(t *testing.T) {
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		p := k.Probe("p")
		p.ExpectNone(time.Second)
		p.Within(0, time.Second, func() { k.Advance(2 * time.Second) })
	}, "it took 2s, expected at most 1s")
}

// Time does not go on before all is quiet: what work outside of the system has caused is handled first, and
// what follows from the last thing that is due, too.
func TestTimeGoesOnWhenAllIsQuiet(t *testing.T) {
	k := testkit.New(t)
	p := k.Probe("p")
	for range 20 {
		begun := k.Now()
		k.Go("a disk", func() {
			time.Sleep(100 * time.Microsecond)
			_ = k.System().Tell(p.Ref(), "read")
		})
		if m := p.Expect("read"); m.At != begun {
			t.Fatalf("%v has passed", m.At.Sub(begun))
		}
	}
	a := k.Spawn("a", host.Func(func(ctx *host.Context, m host.Message) error {
		var n int
		_ = m.Decode(&n)
		switch {
		case m.Kind == abi.KindMessage:
			return ctx.After(1, time.Second, 0, 3)
		case n > 0: // at once, again and again
			return ctx.After(1, 0, 0, n-1)
		}
		return ctx.Tell(p.Ref(), "due")
	}))
	k.Tell(a, "go")
	begun := k.Now()
	k.Advance(time.Second)
	if got := p.Waiting(); len(got) != 1 || got[0].At.Sub(begun) != time.Second {
		t.Errorf("%v", got)
	}
}

// A message that is delayed comes exactly so much later, one that is overtaken by two copies comes behind both, and each
// actor has a count of its own.
func TestWhatFaultsDo(t *testing.T) {
	relay := func(to host.Ref) host.Props {
		return host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Forward(to) })
	}
	k := testkit.New(t)
	p := k.Probe("p")
	a, b := k.Spawn("a", relay(p.Ref())), k.Spawn("b", relay(p.Ref()))
	k.Fault("/user/a").Matching("slow").Delay(1500 * ms)
	begun := k.Now()
	k.Tell(a, "slow")
	if m := p.Expect("slow"); m.At.Sub(begun) != 1500*ms {
		t.Errorf("after %v", m.At.Sub(begun))
	}
	k.Fault("/user/a").Matching("1").Reorder()
	k.Fault("/user/a").Matching("2").Duplicate()
	for n := range 4 {
		if err := k.System().Tell(a, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	k.Run()
	for _, want := range []string{"0", "2", "2", "1", "3"} {
		p.Expect(want)
	}
	f := k.Fault("/user/*").Matching(testkit.Text("^n")).Nth(2).Drop()
	for n := range 3 {
		k.Tell(a, fmt.Sprint("na", n))
		k.Tell(b, fmt.Sprint("nb", n))
	}
	for _, want := range []string{"na0", "nb0", "na2", "nb2"} {
		p.Expect(want)
	}
	if f.Hits() != 2 {
		t.Errorf("%d are lost", f.Hits())
	}
}

// A crash without a number is of each message, and not of the starts and ends that follow from it.
func TestStartsAndEndsMeetNoFault(t *testing.T) {
	k := testkit.New(t)
	f := k.Fault("/user/a").Crash()
	a := k.Spawn("a", echo)
	for n := range 3 {
		k.ExpectEvents(1, testkit.Crash().From("/user/a"), func() {
			k.ExpectEvents(1, testkit.Restart().From("/user/a"), func() { k.Tell(a, "x") })
		})
		if f.Hits() != n+1 {
			t.Errorf("%d crashes after %d messages", f.Hits(), n+1)
		}
	}
	k.ExpectEvents(0, testkit.Crash(), func() { k.Stop(a) })
}
