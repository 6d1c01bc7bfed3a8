package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/throttle"
	"github.com/wasmactors/wasmactors/supervision"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// world is a manual system with a target that notes when it is told what.
type world struct {
	*host.System
	t      *testing.T
	clock  *host.VirtualClock
	begun  time.Time
	target host.Ref
	heard  []string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, begun: time.Unix(1_700_000_000, 0)}
	w.clock = host.NewVirtualClock(w.begun)
	w.System = must(host.New(host.NewConfig("test").WithManual().WithClock(w.clock).WithSeed(1).WithGuardian(supervision.Default())))(t)
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	w.target = w.spawn("target", host.Func(func(ctx *host.Context, m host.Message) error {
		var v any
		_ = m.Decode(&v)
		w.heard = append(w.heard, fmt.Sprintf("%d %v", w.clock.Now().Sub(w.begun).Milliseconds(), v))
		if m.Correlation != 0 {
			return ctx.Reply(v)
		}
		return nil
	}))
	return w
}

func (w *world) spawn(name string, p host.Props) host.Ref {
	w.t.Helper()
	ref := must(w.Spawn(name, p))(w.t)
	w.RunUntilIdle(1000)
	return ref
}

func (w *world) tell(to host.Ref, vs ...any) (err error) {
	for _, v := range vs {
		err = errors.Join(err, w.Tell(to, v))
	}
	w.RunUntilIdle(1000)
	return err
}

func (w *world) pass(d time.Duration) {
	for range d / (100 * time.Millisecond) {
		w.clock.Advance(100 * time.Millisecond)
		w.RunUntilIdle(1000)
	}
}

func (w *world) wants(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.heard, want) {
		w.t.Errorf("%q, want %q", w.heard, want)
	}
	w.heard = nil
}

func (w *world) state(ref host.Ref) throttle.State {
	w.t.Helper()
	p := must(w.Request(ref, host.Headed{Headers: map[string]string{throttle.Header: "state"}}))(w.t)
	w.RunUntilIdle(1000)
	var s throttle.State
	if err := (<-p.Answer()).Decode(&s); err != nil {
		w.t.Error(err)
	}
	return s
}

// TestK20_ThrottlerInGo: three in a second, the rest in order; answers go straight to who has asked.
func TestK20_ThrottlerInGo(t *testing.T) {
	w := newWorld(t)
	a := w.spawn("a", throttle.New(w.target, throttle.Rate{N: 3, Per: time.Second}).Props())
	w.pass(500 * time.Millisecond)
	_ = w.tell(a, 1, 2, 3, 4, 5, 6, 7)
	w.wants("500 1", "500 2", "500 3")
	q := must(w.Request(a, "ask"))(t)
	w.pass(5 * time.Second)
	w.wants("1500 4", "1500 5", "1500 6", "2500 7", "2500 ask")
	if m := <-q.Answer(); m.Sender.UID() != w.target.UID() || m.Err() != nil {
		t.Errorf("%v", m)
	}
	_ = w.tell(a, 8) // an interval begins with the first start
	w.pass(900 * time.Millisecond)
	_ = w.tell(a, 9, 10, 11)
	w.wants("5500 8", "6400 9", "6400 10")
	w.pass(time.Second)
	w.wants("6500 11")
}

// Pause, resume, another rate, and what it is doing; from those who may.
func TestOrders(t *testing.T) {
	w := newWorld(t)
	a := w.spawn("a", throttle.New(w.target, throttle.Rate{N: 1, Per: time.Second}).Props())
	run := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		w.RunUntilIdle(1000)
	}
	run(throttle.Pause(w.System, a))
	_ = w.tell(a, 1, 2, 3, 4, 5)
	w.pass(3 * time.Second)
	w.wants()
	if s := w.state(a); !s.Paused || s.Waiting != 5 || s.N != 1 || s.Per != time.Second {
		t.Errorf("%+v", s)
	}
	run(throttle.Resume(w.System, a))
	w.wants("3000 1")
	run(throttle.SetRate(w.System, a, throttle.Rate{N: 3, Per: 2 * time.Second}))
	w.wants("3000 2", "3000 3")
	w.pass(3 * time.Second)
	w.wants("5000 4", "5000 5")
	if err := throttle.SetRate(w.System, a, throttle.Rate{}); err == nil {
		t.Error("a wrong rate")
	}
	stranger := w.spawn("stranger", host.Func(func(ctx *host.Context, _ host.Message) error {
		return ctx.Ask(a, host.Headed{Headers: map[string]string{throttle.Header: "pause"}}, 1, time.Second)
	}).WithInterceptors(func(next host.Receive) host.Receive {
		return func(ctx *host.Context, m host.Message) error {
			if m.Correlation == 1 {
				w.heard = append(w.heard, fmt.Sprint(m.Err()))
				return nil
			}
			return next(ctx, m)
		}
	}))
	_ = w.tell(stranger, "go")
	w.wants("host: the actor replied with an error: throttle: only the parent, and callers outside the system, may give orders")
	if w.state(a).Paused {
		t.Error("a stranger's order is carried out")
	}
}

// A new rate holds at once: a shorter interval ends earlier than the one that is under way would have, a longer
// one later.
func TestANewRateHoldsAtOnce(t *testing.T) {
	w := newWorld(t)
	a := w.spawn("a", throttle.New(w.target, throttle.Rate{N: 1, Per: time.Hour}).Props())
	_ = w.tell(a, 1, 2, 3, 4)
	w.pass(300 * time.Millisecond)
	if err := throttle.SetRate(w.System, a, throttle.Rate{N: 1, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	w.pass(2 * time.Second)
	w.wants("0 1", "1000 2", "2000 3")
	if err := throttle.SetRate(w.System, a, throttle.Rate{N: 1, Per: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}
	w.pass(4 * time.Second)
	w.wants("5000 4")
}

// What orders have changed is that of all incarnations, and so are the vouchers that are used.
func TestOrdersSurviveARestart(t *testing.T) {
	w := newWorld(t)
	other := w.spawn("other", host.Func(func(_ *host.Context, m host.Message) error {
		var v any
		_ = m.Decode(&v)
		w.heard = append(w.heard, fmt.Sprintf("%d other %v", w.clock.Now().Sub(w.begun).Milliseconds(), v))
		return nil
	}))
	a := w.spawn("a", throttle.New(w.target, throttle.Rate{N: 1, Per: time.Hour}).Props())
	restart := func() {
		t.Helper()
		if err := w.Operate().Restart(a); err != nil {
			t.Fatal(err)
		}
		w.RunUntilIdle(1000)
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		w.RunUntilIdle(1000)
		restart()
	}
	_ = w.tell(a, 1, 2, 3, 4, 5, 6)
	restart()
	w.wants("0 1")
	do(throttle.SetRate(w.System, a, throttle.Rate{N: 2, Per: time.Second}))
	w.wants("0 2")
	w.pass(time.Second)
	w.wants("1000 3", "1000 4")
	do(throttle.Pause(w.System, a))
	w.pass(2 * time.Second)
	w.wants()
	do(throttle.SetTarget(w.System, a, other))
	if s := w.state(a); !s.Paused || s.N != 2 || s.Per != time.Second || s.Waiting != 2 || s.Target != other.UID() {
		t.Errorf("%+v", s)
	}
	do(throttle.Resume(w.System, a))
	w.wants("3000 other 5", "3000 other 6")
}

// The target can be changed, and what waits goes to the new one; nobody, and the throttler itself, are none.
func TestK20_TheTargetCanBeChanged(t *testing.T) {
	w := newWorld(t)
	a := w.spawn("a", throttle.New(w.target, throttle.Rate{N: 1, Per: time.Second}).Props())
	other := w.spawn("other", host.Func(func(ctx *host.Context, m host.Message) error {
		w.heard = append(w.heard, "other")
		return ctx.Reply("from the other")
	}))
	_ = w.tell(a, 1)
	q := must(w.Request(a, "ask"))(t)
	if err := throttle.SetTarget(w.System, a, other); err != nil {
		t.Error(err)
	}
	w.pass(time.Second)
	w.wants("0 1", "other")
	if m := <-q.Answer(); m.Sender.UID() != other.UID() || m.Err() != nil {
		t.Errorf("%v", m)
	}
	if err := throttle.SetTarget(w.System, a, host.Ref{}); err == nil {
		t.Error("nobody")
	}
	for _, v := range []any{uint64(a.UID()), 0, "x"} {
		p := must(w.Request(a, host.Headed{Value: v, Headers: map[string]string{throttle.Header: "target"}}))(t)
		w.RunUntilIdle(1000)
		if m := <-p.Answer(); m.Err() == nil {
			t.Errorf("%v is a target", v)
		}
	}
	if s := w.state(a); s.Target != other.UID() {
		t.Errorf("%+v", s)
	}
}

// The queue is bounded in messages and bytes, and what waits at the end are dead letters.
func TestTheQueueIsBounded(t *testing.T) {
	w := newWorld(t)
	c := throttle.New(w.target, throttle.Rate{N: 1, Per: time.Second})
	a := w.spawn("a", c.WithQueue(4, 1<<20).Props())
	b := w.spawn("b", c.WithQueue(100, 3000).Props())
	if err := w.tell(a, 1, 2, 3, 4); err != nil {
		t.Error(err)
	}
	if err := w.tell(a, 5); err != nil {
		t.Error(err)
	}
	if err := w.tell(a, 6); !errors.Is(err, host.ErrMailboxFull) {
		t.Errorf("%v", err)
	}
	for range 3 { // the first one starts
		if err := w.tell(b, strings.Repeat("x", 1000)); err != nil {
			t.Error(err)
		}
	}
	if err := w.tell(b, strings.Repeat("x", 1000)); !errors.Is(err, host.ErrMailboxFull) {
		t.Errorf("%v", err)
	}
	if h := must(w.View().Held(a))(t); h.Mailbox == 0 {
		t.Errorf("nobody pays for what waits: %+v", h)
	}
	_, before := w.DeadLetters()
	w.Stop(a)
	w.RunUntilIdle(1000)
	if _, n := w.DeadLetters(); n != before+4 {
		t.Errorf("%d dead letters", n-before)
	}
	for _, p := range []host.Props{throttle.New(host.Ref{}, throttle.Rate{N: 1, Per: 1}).Props(), throttle.New(w.target, throttle.Rate{}).Props(), c.Props().WithMailbox(nil)} {
		if ref := w.spawn("", p); ref.IsZero() {
			t.Error("?")
		} else if _, err := w.Ended(ref); !errors.Is(err, host.ErrUnknown) {
			t.Errorf("it has started: %v", err)
		}
	}
}

// Under real time and many workers nothing is lost, and the rate holds.
func TestThrottlerHammer(t *testing.T) {
	s := must(host.New(host.NewConfig("test")))(t)
	defer s.Close(context.Background())
	got := make(chan int, 1000)
	target := must(s.Spawn("target", host.Func(func(_ *host.Context, m host.Message) error {
		var n int
		err := m.Decode(&n)
		got <- n
		return err
	})))(t)
	a := must(s.Spawn("a", throttle.New(target, throttle.Rate{N: 50, Per: 10 * time.Millisecond}).Props()))(t)
	begun := time.Now()
	go func() {
		for i := range 500 {
			_ = s.Tell(a, i)
		}
	}()
	for i := range 500 {
		select {
		case n := <-got:
			if n != i {
				t.Fatalf("%d instead of %d", n, i)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("stuck after %d", i)
		}
	}
	if took := time.Since(begun); took < 85*time.Millisecond {
		t.Errorf("500 in %v", took)
	}
}

// A throttler that has ended takes nothing, not even from the host.
func TestAnEndedThrottlerTakesNothing(t *testing.T) {
	w := newWorld(t)
	var box host.Mailbox
	a := w.spawn("a", throttle.New(w.target, throttle.Rate{N: 1, Per: time.Second}).Props().WithInterceptors(func(next host.Receive) host.Receive {
		return func(ctx *host.Context, m host.Message) error {
			box = ctx.Head().Mailbox()
			return next(ctx, m)
		}
	}))
	_ = w.tell(a, 1, 2, 3)
	if box.Len() != 2 || box.Bytes() == 0 {
		t.Errorf("%d messages wait, %d bytes", box.Len(), box.Bytes())
	}
	w.Stop(a)
	w.RunUntilIdle(1000)
	for _, k := range []abi.Kind{abi.KindMessage, abi.KindTimer} {
		if err := box.Push(&host.Envelope{Kind: k}); !errors.Is(err, host.ErrStopped) {
			t.Errorf("%v: %v", k, err)
		}
		if box.Force(&host.Envelope{Kind: k}) {
			t.Errorf("%v is forced in", k)
		}
	}
	if box.Len() != 0 || box.Bytes() != 0 || !box.Empty() {
		t.Errorf("%d messages are left, %d bytes", box.Len(), box.Bytes())
	}
}

// What comes back from the stash waits for vouchers as before, in order and before what has come meanwhile;
// an order that comes back does not wait.
func TestThrottlerUnstashes(t *testing.T) {
	w := newWorld(t)
	aside := true
	a := w.spawn("a", throttle.New(w.target, throttle.Rate{N: 1, Per: time.Second}).Props().WithInterceptors(func(next host.Receive) host.Receive {
		return func(ctx *host.Context, m host.Message) error {
			var v any
			if _, ordered := abi.FindHeader(m.Headers, throttle.Header); !ordered && m.Kind == abi.KindMessage {
				if err := m.Decode(&v); err != nil {
					return err
				}
			}
			switch {
			case v == "back":
				aside = false
				ctx.Unstash()
				return nil
			case aside && m.Kind == abi.KindMessage:
				return ctx.Stash()
			}
			return next(ctx, m)
		}
	}))
	_ = w.tell(a, 1, 2)
	if err := throttle.Pause(w.System, a); err != nil {
		t.Error(err)
	}
	_ = w.tell(a, 3)
	w.wants()
	for _, v := range []any{"back", 4} {
		if err := w.Tell(a, v); err != nil {
			t.Error(err)
		}
	}
	w.pass(time.Second)
	w.wants() // the pause overtakes what was put aside before it
	if s := w.state(a); !s.Paused || s.Waiting != 4 {
		t.Errorf("%+v", s)
	}
	if err := throttle.Resume(w.System, a); err != nil {
		t.Error(err)
	}
	w.RunUntilIdle(1000)
	w.pass(4 * time.Second)
	w.wants("1000 1", "2000 2", "3000 3", "4000 4")
}

// A poison pill keeps its place: what was told before it is passed on first, each in its time.
func TestPillAtAThrottler(t *testing.T) {
	w := newWorld(t)
	a := w.spawn("a", throttle.New(w.target, throttle.Rate{N: 1, Per: time.Second}).Props())
	tell := func(vs ...any) {
		t.Helper()
		for _, v := range vs {
			if err := w.Tell(a, v); err != nil {
				t.Error(err)
			}
		}
	}
	tell(1, 2)
	if err := w.System.PoisonPill(a); err != nil {
		t.Error(err)
	}
	tell(3)
	w.RunUntilIdle(1000)
	w.pass(3 * time.Second)
	w.wants("0 1", "1000 2")
	if _, err := w.Ended(a); !errors.Is(err, host.ErrUnknown) {
		t.Errorf("it has not ended: %v", err)
	}
	if _, n := w.DeadLetters(); n != 1 {
		t.Errorf("%d dead letters, not the one behind the pill", n)
	}
}

// An answer to an interceptor of a throttler waits in its place, as every message that somebody has sent.
func TestAnswersWaitAtAThrottler(t *testing.T) {
	w := newWorld(t)
	a := w.spawn("a", throttle.New(w.target, throttle.Rate{N: 1, Per: time.Second}).Props().WithInterceptors(func(next host.Receive) host.Receive {
		return func(ctx *host.Context, m host.Message) error {
			var v any
			switch _ = m.Decode(&v); {
			case m.Kind == abi.KindReply:
				w.heard = append(w.heard, fmt.Sprintf("%d answer", w.clock.Now().Sub(w.begun).Milliseconds()))
				return nil
			case v == "ask":
				return ctx.Ask(w.target, "question", 1, time.Minute)
			}
			return next(ctx, m)
		}
	}))
	for _, v := range []any{"ask", 1, 2} {
		if err := w.Tell(a, v); err != nil {
			t.Error(err)
		}
	}
	w.RunUntilIdle(1000)
	w.pass(3 * time.Second)
	w.wants("0 question", "0 1", "1000 2", "2000 answer")
}
