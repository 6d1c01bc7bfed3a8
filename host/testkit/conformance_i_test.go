package testkit_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/testkit"
	"github.com/wasmactors/wasmactors/supervision"
)

// The rows of "I. Testing".

const ms = time.Millisecond

func TestI01_CallerAndUnderlyingActor(t *testing.T) {
	k := testkit.New(t, testkit.CallingThread())
	props, now := testkit.Underlying(func() *tally { return &tally{} })
	a := k.Spawn("a", props)
	k.Tell(a, "x") // has been handled when Tell returns
	if first := now(); first == nil || first.n != 1 {
		t.Errorf("%+v", first)
	}
	first := now()
	k.Mute(testkit.Crash())
	k.Tell(a, "fail")
	k.Tell(a, "x")
	if again := now(); again == first || again.n != 1 || first.n != 2 {
		t.Errorf("%+v after %+v", again, first)
	}
}

func TestI02_ReceiveBypassesSupervision(t *testing.T) {
	k := testkit.New(t, testkit.Guardian(supervision.Default().WithOtherwise(supervision.Stop)))
	props, now := testkit.Underlying(func() *tally { return &tally{} })
	a := k.Spawn("a", props)
	for range 3 {
		_, err := k.Receive(a, "fail")
		var f *abi.Failure
		if !errors.As(err, &f) || f.Reason != "told to" {
			t.Fatalf("%v", err)
		}
	}
	if now().n != 3 || k.Ask(a, "x").Err() != nil {
		t.Error("the supervisor has had its say")
	}
	answer, err := k.Receive(a, "x")
	var n int
	if err != nil || answer.Decode(&n) != nil || n != 5 {
		t.Errorf("%v, %d", err, n)
	}
	if _, err := k.Receive(a, "panic"); err == nil || !strings.Contains(err.Error(), "told to") {
		t.Errorf("%v", err)
	}
	if m := k.Ask(a, "x"); m.Decode(&n) != nil || n != 1 {
		t.Errorf("after a panic it is made again, and not stopped: %d", n)
	}
	k.Mute(testkit.Crash())
	k.Tell(a, "fail") // an ordinary one
	if _, err := k.System().Lookup("/user/a"); err == nil {
		t.Error("the strategy does not count any more")
	}
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		_, _ = k.Receive(k.Probe("p").Spawn("kid", echo), "x")
	}, "wasm://test/user/p/kid", "was not started by the test")
	fails(t, func(t testing.TB) {
		k := testkit.New(t, testkit.RealTime())
		_, _ = k.Receive(k.Spawn("a", echo), "x")
	}, "virtual time")
}

func TestI03_ProbesQueue(t *testing.T) {
	k := testkit.New(t)
	p := k.Probe("p")
	for _, text := range []string{"a", "b", "c"} {
		k.Tell(p.Ref(), text)
	}
	k.Advance(time.Second)
	p.Expect("a")
	k.Advance(time.Hour)
	if m := p.Expect("b"); m.Kind != abi.KindMessage || k.Now().Sub(m.At) != time.Hour+time.Second {
		t.Errorf("%+v", m)
	}
	p.Expect("c")
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		p, q := k.Probe("p"), k.Probe("q")
		k.Tell(q.Ref(), "for q")
		later(k, p.Ref(), time.Minute, "late")
		p.Expect("a")
	}, `the probe p`, `expected: "a"`, "came: nothing within 3s", `the probe q has 1 message: "for q"`, "1 timer, the next in 57s")
}

func TestI04_Expectations(t *testing.T) {
	type point struct {
		X int `cbor:"x"`
		Y int `cbor:"y,omitempty"`
	}
	k := testkit.New(t)
	p := k.Probe("p")
	send := func(vs ...any) {
		t.Helper()
		for _, v := range vs {
			k.Tell(p.Ref(), v)
		}
	}
	send(3, map[string]int{"b": 2, "a": 1}, []any{1, "x"}, nil)
	p.Expect(3)
	p.Expect(map[string]int{"a": 1, "b": 2}) // the order of keys does not count
	p.Expect([]any{uint8(1), "x"})           // nor does the width of numbers
	p.Expect(nil)
	send(host.Raw("\xa2\x61b\x18\x02\x61a\x01")) // as another encoder may write it
	p.Expect(map[string]int{"a": 1, "b": 2})
	send("b", "x")
	p.ExpectAny("a", "b")
	p.ExpectAny(testkit.Equal("y"), testkit.Text("^[w-z]$"))

	send("c", "ab", "a")
	if got := texts(p.ExpectAll("a", testkit.Text("b"), "c")); got != "a ab c" { // in the order of what was expected
		t.Errorf("%q", got)
	}
	send("a", "ab") // "a" could stand for either
	p.ExpectAll(testkit.Text("a"), "a")

	send(map[string]any{"x": 1, "y": 2, "z": 3}, map[string]any{"x": 7}, []int{1, 2})
	if v := testkit.ExpectAs[point](p); v != (point{1, 2}) {
		t.Errorf("%+v", v)
	}
	p.Expect(testkit.OfType[point]())
	p.ExpectAny(testkit.OfType[string](), testkit.OfType[[]int]())

	failing := func(send []any, expect func(p *testkit.Probe), wants ...string) {
		t.Helper()
		r := &failing{TB: t, helpers: map[string]bool{}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			k := testkit.New(r)
			p := k.Probe("p")
			for _, v := range send {
				k.Tell(p.Ref(), v)
			}
			expect(p)
		}()
		<-done
		for _, c := range r.cleanups {
			c()
		}
		for _, want := range wants {
			if len(r.said) != 1 || !strings.Contains(r.said[0], want) {
				t.Errorf("the test has said %q, want %q", r.said, want)
			}
		}
	}
	failing([]any{1.0}, func(p *testkit.Probe) { p.Expect(1) }, "expected: 1\n", "came: 1.0, after 0s")
	failing([]any{"c"}, func(p *testkit.Probe) { p.ExpectAny("a", "b") }, `one of "a", "b"`, `came: "c"`)
	failing([]any{"a", "a"}, func(p *testkit.Probe) { p.ExpectAll("a", "b") }, `all of "a", "b", in any order`, `came: "a", "a"`)
	failing([]any{"a"}, func(p *testkit.Probe) { p.ExpectAll("a", "b") }, `came: "a"`, "nothing else within 3s")
	failing([]any{map[string]any{"y": 1}}, func(p *testkit.Probe) { testkit.ExpectAs[point](p) }, "a testkit_test.point", `came: {"y": 1}`)
	failing([]any{nil}, func(p *testkit.Probe) { testkit.ExpectAs[point](p) }, "came: null")
	failing([]any{"1"}, func(p *testkit.Probe) { testkit.ExpectAs[int](p) }, `came: "1"`)
	failing([]any{[]int{1, 2, 3}}, func(p *testkit.Probe) { testkit.ExpectAs[[2]int](p) }, "came: [1, 2, 3]")
	failing(nil, func(p *testkit.Probe) { p.Expect(func() {}) }, "cannot be a message")
	failing([]any{"a", "x"}, func(p *testkit.Probe) { p.Expect("b") }, `the probe p has 1 message: "x"`)
}

func TestI05_NoMessage(t *testing.T) {
	k := testkit.New(t)
	p := k.Probe("p")
	later(k, p.Ref(), time.Second, "x")
	begun := k.Now()
	p.ExpectNone(999 * ms)
	if k.Now().Sub(begun) != 999*ms {
		t.Errorf("%v", k.Now().Sub(begun))
	}
	p.Expect("x")
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		p := k.Probe("p")
		later(k, p.Ref(), time.Second, "x")
		p.ExpectNone(time.Second)
	}, "no message for 1s", `came: "x" from /user/`)
	fails(t, func(t testing.TB) { // an earlier one that nobody has taken
		k := testkit.New(t)
		p := k.Probe("p")
		k.Tell(p.Ref(), "old")
		p.ExpectNone(0)
	}, `came: "old"`)
}

func TestI06_Several(t *testing.T) {
	k := testkit.New(t)
	p := k.Probe("p")
	send := func(vs ...any) {
		for _, v := range vs {
			k.Tell(p.Ref(), v)
		}
	}
	send(1, 2, 3, 4)
	if got := texts(p.ReceiveN(3)); got != "1 2 3" {
		t.Error(got)
	}
	small := func(m testkit.Received) bool { var n int; return m.Decode(&n) == nil && n < 10 }
	send(5, 10, 6)
	if got := texts(p.ReceiveWhile(testkit.While{}, small)); got != "4 5" {
		t.Error(got)
	}
	p.Expect(10) // the one that ended it was kept
	p.Expect(6)
	send(1, 2, 3)
	if got := texts(p.ReceiveWhile(testkit.While{Count: 2}, small)); got != "1 2" {
		t.Error(got)
	}
	p.Expect(3)

	later(k, p.Ref(), 200*ms, "a", "b", "c", "d")
	begun := k.Now()
	if got := texts(p.ReceiveWhile(testkit.While{Most: 500 * ms}, nil)); got != "a b" || k.Now().Sub(begun) != 500*ms {
		t.Error(got, k.Now().Sub(begun))
	}
	if got := texts(p.ReceiveWhile(testkit.While{Most: time.Hour, Idle: 200 * ms}, nil)); got != "c d" || k.Now().Sub(begun) != 1000*ms {
		t.Error(got, k.Now().Sub(begun))
	}
	send(1, "x", 2, 3)
	p.FishFor(2)
	p.Expect(3)
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		p := k.Probe("p")
		k.Tell(p.Ref(), "a")
		p.FishFor("b")
	}, `"b" among the messages of 3s`, `came: "a"`)
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		p := k.Probe("p")
		k.Tell(p.Ref(), "a")
		p.ReceiveN(2)
	}, "expected: 2 messages", `came: 1 in time: "a"`)
}

func TestI07_Await(t *testing.T) {
	k := testkit.New(t)
	props, now := testkit.Underlying(func() *tally { return &tally{} })
	later(k, k.Spawn("a", props), time.Second, "x", "x", "x", "x")
	begun := k.Now()
	k.Await(0, "two messages", func() bool { return now().n == 2 })
	if k.Now().Sub(begun) != 2*time.Second {
		t.Error(k.Now().Sub(begun))
	}
	tries := 0
	k.AwaitAssert(time.Minute, func(t testing.TB) {
		if tries++; now().n != 4 {
			t.Fatalf("only %d", now().n)
		}
	})
	if k.Now().Sub(begun) != 4*time.Second || tries < 20 || tries > 25 { // every 100 ms, and when something happens
		t.Error(k.Now().Sub(begun), tries)
	}
	looks := 0
	p := k.Probe("p")
	p.Within(0, time.Second, func() {
		p.Await("nothing of the system's", func() bool { looks++; return looks == 11 })
	})
	fails(t, func(t testing.TB) {
		testkit.New(t).Await(time.Second, "the end of the world", func() bool { return false })
	}, "expected within 1s: the end of the world")
	fails(t, func(t testing.TB) {
		testkit.New(t).AwaitAssert(time.Second, func(t testing.TB) { t.Errorf("%d is odd", 3) })
	}, "not within 1s: 3 is odd")
}

func TestI08_Ignore(t *testing.T) {
	k := testkit.New(t)
	p := k.Probe("p")
	p.Ignore(func(m host.Message) bool { return testkit.Text("^tick").Match(m) })
	for _, text := range []string{"tick 1", "a", "tick 2"} {
		k.Tell(p.Ref(), text)
	}
	p.Expect("a")
	p.ExpectNone(time.Second)
	p.Ignore(nil)
	k.Tell(p.Ref(), "tick 3")
	p.Expect("tick 3")
}

func TestI09_Within(t *testing.T) {
	k := testkit.New(t)
	p, q := k.Probe("p"), k.Probe("q")
	later(k, p.Ref(), time.Second, "a", "b", "c")
	p.Within(3*time.Second, 10*time.Second, func() {
		p.Expect("a")
		p.Within(0, time.Hour, func() { // no more than what is left
			if d := p.Remaining(); d != 9*time.Second {
				t.Error(d)
			}
		})
		p.Within(0, 2*time.Second, func() {
			if d := p.Remaining(); d != 2*time.Second {
				t.Error(d)
			}
			p.Expect("b")
			p.ExpectNone(0)
		})
		p.Expect("c")
		if d := p.Remaining(); d != 7*time.Second {
			t.Error(d)
		}
	})
	p.Within(0, time.Second, func() { p.ExpectNone(2 * time.Second) }) // the check is left out
	p.Within(0, time.Second, func() { p.ReceiveWhile(testkit.While{Most: 2 * time.Second}, nil) })

	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		p := k.Probe("p")
		p.Within(0, time.Second, func() { k.Advance(1001 * ms) })
	}, "it took 1.001s, expected at most 1s")
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		p := k.Probe("p")
		k.Tell(p.Ref(), "a")
		p.Within(time.Second, time.Minute, func() { p.Expect("a") })
	}, "it took 0s, expected at least 1s")
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		p := k.Probe("p")
		k.Tell(p.Ref(), "a")
		p.Within(0, time.Second, func() { p.ExpectNone(0 * ms) })
	}, "no message")
	fails(t, func(t testing.TB) { // the last expectation counts
		k := testkit.New(t)
		p := k.Probe("p")
		p.Within(0, time.Second, func() {
			p.ExpectNone(0)
			k.Tell(p.Ref(), "a")
			k.Advance(2 * time.Second)
			p.Expect("a")
		})
	}, "it took 2s, expected at most 1s")
	fails(t, func(t testing.TB) { // the deadline is the innermost one's
		k := testkit.New(t)
		p := k.Probe("p")
		p.Within(0, time.Minute, func() { p.Within(0, time.Second, func() { p.Expect("a") }) })
	}, "came: nothing within 1s")
	fails(t, func(t testing.TB) { // and local to the probe
		k := testkit.New(t)
		p, q := k.Probe("p"), k.Probe("q")
		p.Within(0, time.Second, func() { q.Expect("a") })
	}, "the probe q", "came: nothing within 3s")
	fails(t, func(t testing.TB) { testkit.New(t).Probe("p").Remaining() }, "Remaining outside of Within")
	fails(t, func(t testing.TB) {
		p := testkit.New(t).Probe("p")
		p.Within(time.Minute, time.Second, func() {})
	}, "at least 1m0s, and 1s are left")
	_ = q
}

func TestI10_Dilation(t *testing.T) {
	virtual := testkit.New(t, testkit.Dilation(5))
	if d := virtual.Dilated(time.Second); d != time.Second {
		t.Errorf("virtual time is stretched to %v", d)
	}
	real := testkit.New(t, testkit.RealTime(), testkit.Dilation(2.5))
	if d := real.Dilated(time.Second); d != 2500*ms {
		t.Errorf("%v", d)
	}
	p := real.Probe("p")
	p.Within(0, time.Hour, func() {
		if d := p.Remaining(); d < 2*time.Hour || d > 2*time.Hour+30*time.Minute {
			t.Error(d)
		}
	})
	t.Setenv(testkit.TimeFactor, "3")
	if d := testkit.New(t, testkit.RealTime()).Dilated(time.Second); d != 3*time.Second {
		t.Errorf("%v", d)
	}
	t.Setenv(testkit.TimeFactor, "fast")
	fails(t, func(t testing.TB) { testkit.New(t) }, `WASMACTORS_TIMEFACTOR="fast": it must be a number above 0`)
	fails(t, func(t testing.TB) { newWith(t, testkit.Dilation(0)) }, "above 0")
}

// newWith is New whatever the environment says.
func newWith(t testing.TB, o ...testkit.Option) *testkit.Kit {
	t.Helper()
	t.(*failing).TB.(*testing.T).Setenv(testkit.TimeFactor, "")
	return testkit.New(t, o...)
}

func TestI11_EventFilters(t *testing.T) {
	k := testkit.New(t)
	a := k.Spawn("a", echo)
	b := k.Spawn("b", echo)
	got := k.ExpectEvents(1, testkit.Crash().From("/user/a").Kind(abi.FailureGuestError).Text("guest_error: told to").Mail("fail"), func() {
		k.Tell(b, "fail")
		k.Tell(a, "panic")
		k.Tell(a, "fail")
	})
	if len(got) != 1 || got[0].Incarnation != 1 {
		t.Errorf("%+v", got)
	}
	k.ExpectEvents(2, testkit.Restart().From("/user/*"), func() { k.Tell(a, "fail"); k.Tell(b, "panic") })
	k.ExpectEvents(1, testkit.Unhandled().From("/user/a").Mail("odd"), func() { k.Tell(a, "odd") })
	k.ExpectEvents(1, testkit.Crash().Prefix("native_panic: ").Pattern("told .o$"), func() { k.Tell(a, "panic") })
	k.ExpectEvents(1, testkit.DeadLetter().From("/user/a").Reason(host.DeadStopped).Mail("x"), func() {
		_ = k.System().Tell(a, "x")
		k.Stop(a)
	})
	for _, other := range []testkit.Filter{
		testkit.Crash().Pattern("told nobody"), testkit.Crash().Prefix("guest"), testkit.Crash().Text("told to"), testkit.Crash().Mail("fail"),
		testkit.Crash().From("/user/b"), testkit.Crash().Kind(abi.FailureTrap), testkit.Unhandled(), testkit.Crash().Where("else", func(*host.Event) bool { return false }),
	} {
		k.ExpectEvents(0, other, func() { k.Tell(k.Spawn("", echo), "panic") })
	}
	k.ExpectEvents(0, testkit.Unhandled().Mail("even"), func() { k.Tell(b, "odd") })
	k.ExpectEvents(0, testkit.DeadLetter().Reason(host.DeadMailboxFull), func() {
		c := k.Spawn("c", echo)
		_ = k.System().Tell(c, "x")
		k.Stop(c)
	})
	k.ExpectEvents(0, testkit.Crash(), func() { k.Tell(b, "x") })
	k.ExpectEvents(1, testkit.End().From("/user/b"), func() { k.Stop(b) })
	k.ExpectEvents(1, testkit.EventOf(host.EventStarted).Where("new", func(e *host.Event) bool { return e.Ref.Name() == "new" }), func() { k.Spawn("new", echo) })

	// It waits for the leeway, and no longer.
	c := k.Spawn("c", echo)
	begun := k.Now()
	k.ExpectEvents(1, testkit.Crash(), func() { later(k, c, time.Second, "fail") })
	if d := k.Now().Sub(begun); d != time.Second {
		t.Error(d)
	}
	r := fails(t, func(t testing.TB) {
		k := testkit.New(t, testkit.Leeway(time.Second))
		c := k.Spawn("c", echo)
		later(k, c, 1001*ms, "fail")
		k.ExpectEvents(1, testkit.Crash().From("/user/c"), func() { k.Tell(k.Spawn("d", echo), "fail") })
	}, "expected within 1s: 1 crash of /user/c", "came: 0: nothing", "others: failed /user/d: guest_error: told to")
	if len(r.logs) != 1 || !strings.Contains(r.logs[0], "failed /user/d") {
		t.Errorf("%q", r.logs)
	}
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		c := k.Spawn("c", echo)
		k.ExpectEvents(1, testkit.Crash(), func() { k.Tell(c, "fail"); k.Tell(c, "fail") })
	}, "1 crash", "came: 2")
	r = fails(t, func(t testing.TB) { // what is expected, or muted, is not in the log
		k := testkit.New(t)
		c := k.Spawn("c", echo)
		k.ExpectEvents(1, testkit.Crash(), func() { k.Tell(c, "fail") })
		k.Mute(testkit.Crash().From("/user/c"))
		k.Tell(c, "panic")
		k.ExpectEvents(0, testkit.Crash(), func() { k.Tell(c, "fail") })
	}, "0 crash")
	if len(r.logs) != 0 {
		t.Errorf("%q", r.logs)
	}
}

func TestI12_Probes(t *testing.T) {
	k := testkit.New(t)
	p, q := k.Probe("p"), k.Probe("q")
	p.Tell(q.Ref(), "hi")
	q.Expect("hi")
	if q.Sender().UID() != p.Ref().UID() {
		t.Error(q.Sender())
	}
	q.Reply("hello") // who has not asked gets a message
	if m := p.Expect("hello"); m.Kind != abi.KindMessage || m.Sender.UID() != q.Ref().UID() {
		t.Errorf("%+v", m)
	}
	p.Ask(q.Ref(), "how?")
	q.Expect("how?")
	q.Tell(p.Ref(), "something else")
	k.Advance(time.Minute)
	q.Reply("so")
	p.Expect("something else")
	if m := p.Expect("so"); m.Kind != abi.KindReply || m.Correlation != 1 {
		t.Errorf("%+v", m)
	}
	p.Ask(q.Ref(), "why?")
	q.Expect("why?")
	q.ReplyError("no reason")
	if m := p.Expect(testkit.OfKind(abi.KindReplyError)); m.Err() == nil || !strings.Contains(m.Err().Error(), "no reason") {
		t.Errorf("%v", m.Err())
	}

	r := k.Probe("r")
	p.Ask(q.Ref(), "who?")
	q.Expect("who?")
	q.Forward(r.Ref())
	r.Expect("who?")
	if r.Sender().UID() != p.Ref().UID() {
		t.Errorf("forwarded in the name of %v", r.Sender())
	}
	r.Reply("me") // it may, although q was asked
	p.Expect("me")

	p.AskFor(q.Ref(), "never", time.Second)
	p.Within(time.Second, time.Second, func() { p.Expect(testkit.OfKind(abi.KindAskTimeout)) })
	q.Expect("never")

	a, b := k.Spawn("a", echo), k.Spawn("b", echo)
	p.Watch(a)
	p.Watch(b)
	p.Unwatch(b)
	k.Stop(b)
	k.Tell(a, "stop")
	if reason := p.ExpectTerminated(a); reason != "stopped" {
		t.Error(reason)
	}
	p.ExpectNone(time.Second)
	fails(t, func(t testing.TB) {
		k := testkit.New(t)
		a, b := k.Spawn("a", echo), k.Spawn("b", echo)
		p := k.Probe("p")
		p.Watch(a)
		p.Watch(b)
		k.Stop(a)
		p.ExpectTerminated(b)
	}, "the end of /user/b", "came: terminated")
	fails(t, func(t testing.TB) { testkit.New(t).Probe("p").Reply(1) }, "the test has taken no message")
}

func TestI13_Autopilot(t *testing.T) {
	k := testkit.New(t)
	p := k.Probe("p")
	var queued []int
	var twice testkit.Pilot
	left := 2
	twice = func(ctx *host.Context, m host.Message) testkit.Pilot {
		queued = append(queued, len(p.Waiting()))
		_ = ctx.Reply(fmt.Sprint("auto ", left))
		if left--; left == 0 {
			return nil
		}
		return twice
	}
	p.Autopilot(twice)
	p.Ignore(func(m host.Message) bool { return testkit.Equal("quiet").Match(m) })
	for i, text := range []string{"a", "quiet"} { // a pilot sees what is ignored
		if m := k.Ask(p.Ref(), text); !testkit.Equal(fmt.Sprint("auto ", 2-i)).Match(m) {
			t.Errorf("%+v", m)
		}
	}
	if fmt.Sprint(queued) != "[0 1]" {
		t.Errorf("it runs before the message waits: %v", queued)
	}
	q := k.Probe("q")
	q.Ask(p.Ref(), "b")
	q.ExpectNone(time.Second) // there is no pilot any more
	p.Expect("a")
	p.Expect("b")
}

func TestI14_ParentsAndChildren(t *testing.T) {
	k := testkit.New(t)
	p := k.Probe("p") // a fabricated parent
	kid := p.Spawn("kid", host.Func(func(ctx *host.Context, m host.Message) error {
		if string(m.Payload) == "\x64fail" {
			return errors.New("told to")
		}
		return ctx.Tell(ctx.Parent(), host.Raw(m.Payload))
	}))
	k.Tell(kid, "to the parent")
	if m := p.Expect("to the parent"); m.Sender.Path() != "/user/p/kid" {
		t.Error(m.Sender)
	}
	decided := ""
	p.Supervise(func(child host.Ref, f *abi.Failure) supervision.Directive {
		decided = child.Name() + ": " + f.Reason
		return supervision.Stop
	})
	k.Mute(testkit.Crash())
	k.ExpectEvents(1, testkit.End().From("/user/p/kid"), func() { k.Tell(kid, "fail") })
	if decided != "kid: told to" {
		t.Error(decided)
	}
	kid = p.Spawn("kid", echo)
	p.Supervise(nil)
	k.ExpectEvents(1, testkit.Restart().From("/user/p/kid"), func() { k.Tell(kid, "fail") })

	// Props of children that the actor under test is given.
	recipe := p.Props()
	a := k.Spawn("a", host.Func(func(ctx *host.Context, m host.Message) error {
		child, err := ctx.GetOrSpawn("child", recipe)
		if err != nil {
			return err
		}
		return ctx.Forward(child)
	}))
	q := k.Probe("q")
	q.Ask(a, "work")
	p.Expect("work")
	p.Reply("done")
	q.Expect("done")
	fails(t, func(t testing.TB) {
		p := testkit.New(t).Probe("p")
		p.Spawn("a", echo)
		p.Spawn("a", echo)
	}, "the probe p cannot spawn")
}

func TestI15_CallingThread(t *testing.T) {
	order := func(options ...testkit.Option) string {
		var order []string
		k := testkit.New(t, options...)
		note := func(then func(ctx *host.Context, text string) error) host.Props {
			return host.Func(func(ctx *host.Context, m host.Message) error {
				var text string
				if err := m.Decode(&text); err != nil {
					return err
				}
				order = append(order, ctx.Self().Name()+" "+text)
				return then(ctx, text)
			})
		}
		quiet := func(*host.Context, string) error { return nil }
		d := k.Spawn("d", note(quiet))
		c := k.Spawn("c", note(quiet))
		b := k.Spawn("b", note(func(ctx *host.Context, text string) error { return ctx.Tell(d, "from b") }))
		a := k.Spawn("a", note(func(ctx *host.Context, text string) error {
			if text != "first" {
				return nil
			}
			return errors.Join(ctx.Tell(ctx.Self(), "to myself"), ctx.Tell(b, "x"), ctx.Tell(c, "x"))
		}))
		_ = k.System().Tell(a, "first")
		_ = k.System().Tell(a, "second")
		k.Run()
		return strings.Join(order, ", ")
	}
	if got := order(testkit.CallingThread()); got != "a first, b x, d from b, c x, a second, a to myself" {
		t.Error(got)
	}
	if got := order(); got == order(testkit.CallingThread()) {
		t.Errorf("the usual order is the same, so this proves nothing: %s", got)
	}
	fails(t, func(t testing.TB) { testkit.New(t, testkit.CallingThread(), testkit.RealTime()) }, "exclude each other")
	fails(t, func(t testing.TB) { // who waits within a turn would wait for itself
		k := testkit.New(t)
		k.Spawn("a", host.Func(func(*host.Context, host.Message) error { k.Run(); return nil }))
		k.Tell(k.At("/user/a"), "x")
	}, "only the test may")
}

func TestI16_Tracing(t *testing.T) {
	var log strings.Builder
	logged := func(options ...testkit.Option) *testkit.Kit { return testkit.New(t, options...) }
	quiet := logged()
	a := quiet.Spawn("a", echo)
	quiet.Mute(testkit.Unhandled())
	quiet.Tell(a, "odd")
	if log.Len() != 0 {
		t.Error("something is logged that nobody has asked for")
	}

	k := logged(testkit.Configured(func(c host.Config) host.Config {
		return c.WithLog(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	}))
	a = k.Spawn("a", echo)
	p := k.Probe("p")
	var seen []string
	stop, err := k.System().View().Tap(a, 100, func(m *host.Tapped) {
		way := "in"
		if m.Out {
			way = "out"
		}
		seen = append(seen, fmt.Sprintf("%s %v %s", way, m.Kind, m.Payload[1:]))
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Ask(a, "x")
	k.ExpectEvents(1, testkit.Unhandled().From("/user/a"), func() { k.Tell(a, "odd") })
	stop()
	p.Ask(a, "y")
	if got := strings.Join(seen, ", "); got != "in message x, out reply x, in message odd" {
		t.Error(got)
	}
	k.ExpectEvents(1, testkit.End(), func() { k.Stop(a) })
	if err := k.System().Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"started", "stopped", "unhandled"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, log.String())
		}
	}
}
