package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/breaker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	epoch  = time.Unix(1_700_000_000, 0)
	errNo  = errors.New("no")
	errOdd = errors.New("odd")
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// heard is what callbacks have said.
type heard struct {
	mu    sync.Mutex
	texts []string
}

func (h *heard) say(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, s)
}

func (h *heard) wants(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.texts, want) {
		t.Errorf("heard %q, want %q", h.texts, want)
	}
	h.texts = nil
}

func loud(t *testing.T, clock host.Clock, s breaker.Settings) (*breaker.Breaker, *heard) {
	h := &heard{}
	note := func(s string) func() { return func() { h.say(s) } }
	took := func(s string) func(time.Duration) { return func(d time.Duration) { h.say(s + " " + d.String()) } }
	b := must(breaker.New(clock, s))(t).OnOpen(note("open")).OnClose(note("closed")).OnHalfOpen(note("half-open")).OnRefused(note("refused")).
		OnSuccess(took("good")).OnFailure(took("bad")).OnTimeout(took("late")).FailIf(func(err error) bool { return err != errOdd })
	return b, h
}

var two = breaker.Settings{MaxFailures: 2, CallTimeout: time.Second, ResetTimeout: time.Minute}

func returns(err error) func() error { return func() error { return err } }

// Every callback; half-open comes exactly when the reset timeout is over, though nobody calls.
func TestK15_CallbacksInGo(t *testing.T) {
	clock := host.NewVirtualClock(epoch)
	b, h := loud(t, clock, two)
	for _, err := range []error{nil, errNo, errOdd, errNo, errNo} {
		if got := b.DoSync(returns(err)); got != err {
			t.Errorf("%v instead of %v", got, err)
		}
	}
	h.wants(t, "good 0s", "bad 0s", "good 0s", "bad 0s", "open", "bad 0s")
	var open *breaker.OpenError
	clock.Advance(time.Second)
	if err := b.DoSync(returns(nil)); !errors.As(err, &open) || open.Remaining != 59*time.Second || b.Remaining() != 59*time.Second {
		t.Errorf("%v", err)
	}
	h.wants(t, "refused")
	clock.Advance(59*time.Second - 1)
	h.wants(t)
	clock.Advance(1)
	h.wants(t, "half-open")
	if err := b.DoSync(func() error {
		if err := b.DoSync(returns(nil)); !errors.As(err, &open) || open.Remaining != 0 {
			t.Errorf("a second call is tried: %v", err)
		}
		return nil
	}); err != nil || b.State() != breaker.Closed {
		t.Errorf("%v, %v", err, b.State())
	}
	h.wants(t, "refused", "closed", "good 0s")
	func() {
		defer func() { _ = recover() }()
		_ = b.DoSync(func() error { panic("x") })
	}()
	h.wants(t, "bad 0s")
	if clock.Pending() != 0 {
		t.Error("a timer is left")
	}
}

// TestK16_Timing: a call in a goroutine of its own fails at the timeout, one in the caller's only
// when it has returned.
func TestK16_Timing(t *testing.T) {
	clock := host.NewVirtualClock(epoch)
	b, h := loud(t, clock, two)
	err := b.DoSync(func() error {
		clock.Advance(time.Hour)
		h.wants(t) // nothing is known yet
		return nil
	})
	if !errors.Is(err, breaker.ErrTimeout) {
		t.Errorf("%v", err)
	}
	h.wants(t, "late 1h0m0s")
	begun, ended := make(chan struct{}), make(chan error)
	result := make(chan error)
	go func() {
		result <- b.Do(t.Context(), func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		})
	}()
	<-begun
	clock.Advance(time.Second - 1)
	select {
	case err := <-result:
		t.Fatalf("too early: %v", err)
	case <-time.After(5 * time.Millisecond):
	}
	clock.Advance(1)
	if err := <-result; !errors.Is(err, breaker.ErrTimeout) {
		t.Errorf("%v", err)
	}
	h.wants(t, "open", "late 1s")
	if err := <-ended; !errors.Is(err, breaker.ErrTimeout) {
		t.Errorf("the call's context ends with %v", err)
	}
}

// Who gives up says nothing about the target, and the one call of a half-open circuit that was given
// up is tried again by the next. A panic in a goroutine of its own is an error.
func TestCallsGivenUp(t *testing.T) {
	clock := host.NewVirtualClock(epoch)
	b, h := loud(t, clock, two)
	if err := b.Do(t.Context(), func(context.Context) error { panic("ouch") }); err == nil || !strings.Contains(err.Error(), "ouch") {
		t.Errorf("%v", err)
	}
	if v, err := breaker.Call(t.Context(), b, func(context.Context) (int, error) { return 7, errNo }); v != 7 || err != errNo {
		t.Errorf("%v, %v", v, err)
	}
	clock.Advance(time.Minute)
	h.wants(t, "bad 0s", "open", "bad 0s", "half-open")
	ctx, cancel := context.WithCancel(t.Context())
	if err := b.Do(ctx, func(inner context.Context) error { cancel(); <-inner.Done(); return nil }); err != nil && err != context.Canceled {
		t.Errorf("%v", err)
	}
	h.texts = nil
	if err := b.DoSync(returns(nil)); err != nil || b.State() != breaker.Closed {
		t.Errorf("%v, %v", err, b.State())
	}
}

// Many goroutines at once: of those that find the circuit half-open one is let through.
func TestHammer(t *testing.T) {
	clock := host.NewVirtualClock(epoch)
	b := must(breaker.New(clock, breaker.Settings{MaxFailures: 1, ResetTimeout: time.Second}))(t)
	for round := range 200 {
		_ = b.DoSync(returns(errNo))
		clock.Advance(time.Second)
		var mu sync.Mutex
		through, hold := 0, make(chan struct{})
		var all, refused sync.WaitGroup
		refused.Add(7)
		for range 8 {
			all.Go(func() {
				if b.DoSync(func() error {
					mu.Lock()
					through++
					mu.Unlock()
					<-hold
					return nil
				}) != nil {
					refused.Done()
				}
			})
		}
		refused.Wait()
		close(hold)
		all.Wait()
		if through != 1 || b.State() != breaker.Closed {
			t.Fatalf("round %d: %d calls, %v", round, through, b.State())
		}
	}
}

func TestWrongSettings(t *testing.T) {
	if _, err := breaker.New(host.RealClock(), breaker.Settings{Backoff: -1}); err == nil || !strings.Contains(err.Error(), "Backoff is -1") {
		t.Errorf("%v", err)
	}
}

// world is a manual system.
type world struct {
	*host.System
	t     *testing.T
	clock *host.VirtualClock
}

func newWorld(t *testing.T) *world {
	clock := host.NewVirtualClock(epoch)
	s := must(host.New(host.NewConfig("test").WithManual().WithClock(clock).WithSeed(1)))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return &world{s, t, clock}
}

func (w *world) spawn(name string, p host.Props) host.Ref {
	w.t.Helper()
	ref := must(w.Spawn(name, p))(w.t)
	w.RunUntilIdle(1000)
	return ref
}

func (w *world) pass(d time.Duration) {
	w.clock.Advance(d)
	w.RunUntilIdle(1000)
}

func (w *world) begin(to host.Ref, v any) *host.Pending {
	w.t.Helper()
	p := must(w.Request(to, v))(w.t)
	w.RunUntilIdle(1000)
	return p
}

// take is what has come as an answer, "" for nothing yet.
func take(p *host.Pending) string {
	select {
	case m := <-p.Answer():
		var failed *host.ReplyError
		if err := m.Err(); errors.As(err, &failed) {
			return "error: " + failed.Reason
		} else if err != nil {
			return err.Error()
		}
		var v any
		_ = m.Decode(&v)
		return fmt.Sprint(v)
	default:
		return ""
	}
}

func (w *world) asks(to host.Ref, v any, want string) {
	w.t.Helper()
	if got := take(w.begin(to, v)); got != want {
		w.t.Errorf("%v: answered %q, want %q", v, got, want)
	}
}

// moody answers as it is told.
func moody(got *[]string) host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		var text string
		if err := m.Decode(&text); err != nil {
			return err
		}
		header, _ := abi.FindHeader(m.Headers, "h")
		if _, marked := abi.FindHeader(m.Headers, breaker.Header); marked {
			text += " marked"
		}
		*got = append(*got, text+string(header))
		switch text {
		case "mute":
			return nil
		case "fail":
			return ctx.ReplyError("as told")
		}
		return ctx.Reply("re: " + text)
	})
}

func how(v any, header string) host.Headed {
	return host.Headed{Value: v, Headers: map[string]string{breaker.Header: header}}
}

// A proxy asks in its own name, within the call timeout; a question that is to be handled although nobody waits any more
// is so behind it, too.
func TestProxyKeepsWhatLasts(t *testing.T) {
	w := newWorld(t)
	var got []string
	target := w.spawn("target", host.Func(func(ctx *host.Context, m host.Message) error {
		at, ok := ctx.Head().Deadline()
		got = append(got, fmt.Sprint(ctx.Head().Lasting(), ok, at.Sub(ctx.Now()) == time.Second))
		return ctx.Reply("done")
	}))
	p := w.spawn("proxy", breaker.NewProxy(target, two).Props())
	w.asks(p, "a", "done")
	w.asks(p, host.Marked{Value: "b", Marks: host.Lasting}, "done")
	w.asks(p, host.Marked{Value: host.Headed{Value: "c", Headers: map[string]string{"h": "1"}}, Marks: host.Lasting}, "done")
	if want := []string{"false true true", "true false false", "true false false"}; !slices.Equal(got, want) {
		t.Errorf("lasting, with a deadline, of a second: %q, want %q", got, want)
	}
}

// TestK17_Proxy: questions are counted and refused, answers and headers go through, what is only told goes
// while the circuit is closed, what passes through always.
func TestK17_Proxy(t *testing.T) {
	w := newWorld(t)
	var got, news []string
	target := w.spawn("target", moody(&got))
	listener := w.spawn("listener", host.Func(func(_ *host.Context, m host.Message) error {
		var s string
		err := m.Decode(&s)
		news = append(news, s)
		return err
	}))
	p := w.spawn("proxy", breaker.NewProxy(target, two).WithListener(listener).Props())
	wants := func(what *[]string, want ...string) {
		t.Helper()
		if !slices.Equal(*what, want) {
			t.Errorf("%q, want %q", *what, want)
		}
		*what = nil
	}
	w.asks(p, host.Headed{Value: "a", Headers: map[string]string{"h": "1"}}, "re: a")
	w.asks(p, "fail", "error: as told")
	mute := w.begin(p, "mute")
	w.pass(time.Second - 1)
	if a := take(mute); a != "" {
		t.Errorf("too early: %s", a)
	}
	w.pass(1)
	if a := take(mute); a != "error: breaker: no answer within 1s" {
		t.Errorf("%q", a)
	}
	wants(&got, "a1", "fail", "mute")
	wants(&news, "breaker.open")
	w.asks(p, "b", "error: breaker: the circuit is open for another 1m0s")
	_ = w.Tell(p, "told")
	_ = w.Tell(p, how("told", breaker.TellOnly))
	_ = w.Tell(p, how("passed", breaker.Passthrough))
	w.RunUntilIdle(1000)
	w.asks(p, how("passed", breaker.Passthrough), "re: passed")
	w.asks(p, how("?", "odd"), "error: breaker: the header wasmactors.breaker must be tell or passthrough")
	wants(&got, "passed", "passed")
	if letters, _ := w.DeadLetters(); len(letters) != 3 || letters[0].Reason != host.DeadRefused || letters[1].Reason != host.DeadRefused {
		t.Errorf("what was told while the circuit is open: %+v", letters)
	}
	w.pass(time.Minute - 1)
	wants(&news)
	w.pass(1)
	wants(&news, "breaker.half-open")
	first := w.begin(p, "mute")
	w.asks(p, "c", "error: breaker: the circuit is half-open, and its one trial call is in progress")
	_ = w.Tell(p, "told")
	w.pass(time.Second)
	wants(&news, "breaker.open")
	wants(&got, "mute")
	_ = take(first)
	w.pass(time.Minute)
	w.asks(p, "d", "re: d")
	_ = w.Tell(p, "told")
	_ = w.Tell(p, how("told", breaker.TellOnly))
	w.RunUntilIdle(1000)
	wants(&news, "breaker.half-open", "breaker.closed")
	wants(&got, "d", "told", "told")
}

// TestK17_FailureDetector: which answers are failures, and what the refused are answered, is said by
// whoever makes the proxy.
func TestK17_FailureDetector(t *testing.T) {
	w := newWorld(t)
	var got []string
	target := w.spawn("target", moody(&got))
	p := w.spawn("proxy", breaker.NewProxy(target, breaker.Settings{MaxFailures: 1, ResetTimeout: time.Minute}).
		WithFailureDetector(func(m host.Message) bool { var s string; return m.Decode(&s) == nil && s == "re: bad" }).
		WithOpenConverter(func(r breaker.Refused) any {
			var s string
			if _ = r.Message.Decode(&s); s == "x" {
				return errors.New("refused")
			}
			return []any{s, int(r.Remaining / time.Second)}
		}).Props())
	w.asks(p, "fail", "error: as told")
	w.asks(p, "bad", "re: bad") // the answer goes through
	w.asks(p, "a", "[a 60]")
	w.asks(p, "x", "error: refused")
	w.Stop(target)
	w.pass(time.Minute)
	w.asks(p, "a", "error: host: no such actor")
	w.asks(p, "a", "error: host: no such actor") // errors are no failures either if the detector says so
}

// Who waits for an answer is told when the proxy ends; with wrong settings or no target there is none.
func TestProxyEnds(t *testing.T) {
	w := newWorld(t)
	var got []string
	target := w.spawn("target", moody(&got))
	p := w.spawn("proxy", breaker.NewProxy(target, two).Props())
	q := w.begin(p, "mute")
	w.Stop(p)
	w.RunUntilIdle(1000)
	if a := take(q); a != "error: breaker: the proxy has ended before an answer came" {
		t.Errorf("%q", a)
	}
	for _, props := range []host.Props{breaker.NewProxy(host.Ref{}, two).Props(), breaker.NewProxy(target, breaker.Settings{MaxFailures: -1}).Props()} {
		if _, err := w.Spawn("", props); !errors.Is(err, host.ErrBadProps) {
			t.Errorf("it is spawned: %v", err)
		}
	}
}

// A circuit that is open leaves the system idle: a run does not wait until it is half-open. It still becomes so by
// itself, once.
func TestAnOpenCircuitIsAtRest(t *testing.T) {
	w := newWorld(t)
	var got, news []string
	target := w.spawn("target", moody(&got))
	listener := w.spawn("listener", host.Func(func(_ *host.Context, m host.Message) error {
		news = append(news, "")
		return m.Decode(&news[len(news)-1])
	}))
	p := w.spawn("proxy", breaker.NewProxy(target, two).WithListener(listener).Props())
	w.asks(p, "fail", "error: as told")
	w.asks(p, "fail", "error: as told")
	before := w.clock.Now()
	if err := w.Idle(t.Context()); err != nil || !w.clock.Now().Equal(before) {
		t.Errorf("%v; it has waited for %v", err, w.clock.Now().Sub(before))
	}
	for range 5 {
		w.pass(time.Minute)
	}
	if want := []string{"breaker.open", "breaker.half-open"}; !slices.Equal(news, want) {
		t.Errorf("told %q", news)
	}
}

// More questions than an actor may have open are answered at once, and count neither way.
func TestProxyIsBounded(t *testing.T) {
	w := newWorld(t)
	var got []string
	target := w.spawn("target", moody(&got))
	for _, l := range []host.Limits{{Asks: 3}, {Replies: 3}} {
		p := w.spawn("", breaker.NewProxy(target, two).Props().WithLimits(l))
		for range 3 {
			w.begin(p, "mute")
		}
		for range 3 {
			if a := take(w.begin(p, "a")); !strings.HasPrefix(a, "error: breaker: ") || strings.Contains(a, "circuit") {
				t.Errorf("%q", a)
			}
		}
	}
}

// asker asks a target for all that it is told.
type asker struct {
	b      *breaker.Breaker
	asks   *breaker.Asks
	target host.Ref
	n      uint64
	open   map[uint64]*host.Reply
}

func (a *asker) Receive(ctx *host.Context, m host.Message) error {
	if a.asks == nil {
		a.asks, a.open = breaker.NewAsks(a.b).FailIf(func(m host.Message) bool { var s string; return m.Decode(&s) == nil && s == "re: bad" }), map[uint64]*host.Reply{}
	}
	if a.asks.Ended(m) {
		if m.Kind == abi.KindAskTimeout {
			return a.open[m.Correlation].Fail("late")
		}
		return a.open[m.Correlation].Send(host.Raw(m.Payload))
	}
	a.n++
	if err := a.asks.Ask(ctx, a.target, host.Raw(m.Payload), a.n); err != nil {
		return ctx.ReplyError(err.Error())
	}
	reply, err := ctx.Later()
	a.open[a.n] = reply
	return err
}

func (a *asker) Stopped(*host.Context) { a.asks.Forget() }

// An actor asks through a breaker that others share, and fails with the others.
func TestK16_AsksOfActors(t *testing.T) {
	w := newWorld(t)
	var got []string
	target := w.spawn("target", moody(&got))
	b, h := loud(t, w.clock, two)
	a := w.spawn("asker", host.Native(func() host.Actor { return &asker{b: b, target: target} }))
	w.asks(a, "bad", "re: bad")
	mute := w.begin(a, "mute")
	w.pass(time.Second - 1)
	h.wants(t, "bad 0s")
	w.pass(1)
	h.wants(t, "open", "late 1s")
	if got := take(mute); got != "error: late" {
		t.Errorf("%q", got)
	}
	w.asks(a, "a", "error: breaker: the circuit is open for another 1m0s")
	if err := b.DoSync(returns(nil)); err == nil {
		t.Error("the breaker is not shared")
	}
	w.pass(time.Minute)
	w.begin(a, "mute")
	w.Stop(a) // with the one call under way
	w.RunUntilIdle(1000)
	if err := b.DoSync(returns(nil)); err != nil || b.State() != breaker.Closed {
		t.Errorf("%v: what was given up blocks the others", err)
	}
}

func TestAskFromOutside(t *testing.T) {
	s := must(host.New(host.NewConfig("test")))(t)
	defer s.Close(context.Background())
	ref := must(s.Spawn("a", host.Func(func(ctx *host.Context, m host.Message) error { return ctx.ReplyError("no") })))(t)
	b := must(breaker.New(s.Clock(), breaker.Settings{MaxFailures: 2}))(t)
	for range 2 {
		var no *host.ReplyError
		if _, err := breaker.Ask(t.Context(), b, s, ref, 1); !errors.As(err, &no) {
			t.Errorf("%v", err)
		}
	}
	var open *breaker.OpenError
	if _, err := breaker.Ask(t.Context(), b, s, ref, 1); !errors.As(err, &open) {
		t.Errorf("%v", err)
	}
}

// A call that has taken just its time is not late.
func TestACallThatTakesJustItsTime(t *testing.T) {
	clock := host.NewVirtualClock(epoch)
	b, h := loud(t, clock, two)
	for _, took := range []time.Duration{two.CallTimeout, two.CallTimeout + 1} {
		_ = b.DoSync(func() error { clock.Advance(took); return nil })
	}
	h.wants(t, "good 1s", "late 1.000000001s")
}
