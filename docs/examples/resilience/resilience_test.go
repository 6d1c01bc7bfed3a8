package resilience

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/breaker"
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/reliable"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// image is the guest of guest/, built by standard Go once a test run; it batches, as every guest of the SDK.
var image = sync.OnceValues(func() (*runtime.Image, error) {
	ctx := context.Background()
	built, err := build.Guest(ctx, "guest", build.Options{Compiler: "go", CacheDir: filepath.Join(servicetest.CacheDir(), "builds")})
	if err != nil {
		return nil, err
	}
	code, err := built.Code(ctx)
	if err != nil {
		return nil, err
	}
	engine, err := runtime.New(ctx, runtime.NewConfig().WithCacheDir(filepath.Join(servicetest.CacheDir(), "images")))
	if err != nil {
		return nil, err
	}
	return engine.Load(ctx, code, runtime.ImageConfig{Name: "resilience"})
})

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func guest(t *testing.T, typ string) host.Props {
	t.Helper()
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	return host.Guest(must(image())(t), typ).WithCapabilities(host.Capabilities{Send: []string{"/user/*"}})
}

// world is a manual system with a probe.
type world struct {
	*host.System
	t     *testing.T
	clock *host.VirtualClock
	begun time.Time
	heard []string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, begun: time.Unix(1_700_000_000, 0)}
	w.clock = host.NewVirtualClock(w.begun)
	w.System = must(host.New(host.NewConfig("test").WithManual().WithClock(w.clock).WithSeed(1).
		WithGuardian(supervision.Default().WithOtherwise(supervision.Restart).WithMaxRestarts(20, time.Hour))))(t)
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	w.spawn("probe", host.Func(func(_ *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			return nil
		}
		var v any
		_ = m.Decode(&v)
		w.heard = append(w.heard, fmt.Sprint(v))
		return nil
	}))
	return w
}

func (w *world) spawn(name string, p host.Props) host.Ref {
	w.t.Helper()
	ref := must(w.Spawn(name, p))(w.t)
	w.RunUntilIdle(100_000)
	return ref
}

// from sends in the name of an actor, all before the first is handled.
func (w *world) from(sender string, to host.Ref, vs ...any) {
	w.t.Helper()
	for _, v := range vs {
		if err := w.TellFrom(must(w.Lookup("/user/"+sender))(w.t), to, v); err != nil {
			w.t.Fatal(err)
		}
	}
	w.RunUntilIdle(100_000)
}

func (w *world) pass(d time.Duration) {
	for range max(d/(100*time.Millisecond), 1) {
		w.clock.Advance(min(d, 100*time.Millisecond))
		w.RunUntilIdle(100_000)
	}
}

func (w *world) wants(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.heard, want) {
		w.t.Errorf("heard %q, want %q", w.heard, want)
	}
	w.heard = nil
}

func (w *world) ask(to host.Ref, v any) string {
	w.t.Helper()
	p := must(w.Request(to, v))(w.t)
	w.RunUntilIdle(100_000)
	select {
	case m := <-p.Answer():
		if err := m.Err(); err != nil {
			return err.Error()
		}
		var v any
		_ = m.Decode(&v)
		return fmt.Sprint(v)
	default:
		return "nothing yet"
	}
}

func numbers(from, to int) (texts []any) {
	for i := from; i <= to; i++ {
		texts = append(texts, fmt.Sprint(i))
	}
	return texts
}

func strung(vs []any) (texts []string) {
	for _, v := range vs {
		texts = append(texts, v.(string))
	}
	return texts
}

// TestK15_Guest: a guest leaves the stock alone when it has failed three times, and tries it once after a
// minute; an answer that does not come fails at its timeout.
func TestK15_Guest(t *testing.T) {
	w := newWorld(t)
	fails, asked := true, 0
	w.spawn("stock", host.Func(func(ctx *host.Context, m host.Message) error {
		asked++
		var text string
		_ = m.Decode(&text)
		switch {
		case text == "mute":
			return nil
		case fails:
			return ctx.ReplyError("no")
		}
		return ctx.Reply("here is " + text)
	}))
	shop := w.spawn("shop", guest(t, "shop"))
	for range 2 {
		if got := w.ask(shop, "tea"); !strings.Contains(got, "the stock has failed") {
			t.Errorf("%q", got)
		}
	}
	p := must(w.Request(shop, "mute"))(t)
	w.RunUntilIdle(1000)
	w.pass(time.Second - 100*time.Millisecond)
	select {
	case m := <-p.Answer():
		t.Errorf("too early: %v", m)
	default:
	}
	w.pass(100 * time.Millisecond)
	if m := <-p.Answer(); m.Err() == nil {
		t.Error("there is an answer")
	}
	if got := w.ask(shop, "tea"); !strings.Contains(got, "open for another 60000 ms") || asked != 3 {
		t.Errorf("%q, asked %d times", got, asked)
	}
	fails = false
	w.pass(time.Minute)
	first := must(w.Request(shop, "mute"))(t)
	w.RunUntilIdle(1000)
	if got := w.ask(shop, "tea"); !strings.Contains(got, "its one trial call is in progress") {
		t.Errorf("%q", got)
	}
	w.pass(time.Second)
	<-first.Answer()
	w.pass(time.Minute)
	if got := w.ask(shop, "tea"); got != "here is tea" {
		t.Errorf("%q", got)
	}
}

// TestK20_Guest: three a second, in order, although all come at once.
func TestK20_Guest(t *testing.T) {
	w := newWorld(t)
	p := w.spawn("pacer", guest(t, "pacer"))
	w.from("probe", p, "here", "a", "b", "c", "d", "e", "f", "g")
	w.wants("a", "b", "c")
	w.pass(900 * time.Millisecond)
	w.wants()
	w.pass(100 * time.Millisecond)
	w.wants("d", "e", "f")
	w.pass(time.Second)
	w.wants("g")
}

// TestK21_Guests: all arrives once and in order, over a crash of the receiver in the middle of a batch.
func TestK21_Guests(t *testing.T) {
	w := newWorld(t)
	ledger, clerk := w.spawn("ledger", guest(t, "ledger")), w.spawn("clerk", guest(t, "clerk"))
	w.from("ledger", clerk, "hello")
	texts := append(append(numbers(1, 10), "bad"), numbers(11, 30)...)
	w.from("probe", clerk, texts...)
	w.wants(strung(texts[:10])...) // what came behind it waits for it
	w.pass(time.Second)
	w.wants(strung(texts[10:])...)
	if i := must(w.View().Info(ledger))(t); i.Incarnation != 1 {
		t.Errorf("%d incarnations", i.Incarnation)
	}
	// The sender crashes: numbers start over, and the receiver, which remembers the old ones, takes them.
	if err := w.Operate().Crash(clerk, abi.FailureGuestPanic, "by the test"); err != nil {
		t.Fatal(err)
	}
	w.RunUntilIdle(100_000)
	w.from("ledger", clerk, "hello")
	w.from("probe", clerk, "31", "32")
	w.wants("31", "32")
	// What the receiver's mailbox refuses comes again.
	w.Stop(ledger)
	w.RunUntilIdle(100_000)
	w.from("probe", clerk, "33")
	w.pass(3 * time.Second)
	w.wants()
	w.spawn("ledger", guest(t, "ledger"))
	w.from("ledger", clerk, "hello")
	w.wants("33")
	w.pass(time.Minute)
	w.wants()
}

// TestK21_Proxy: what is between the guests survives the crash of either: here the sender's, with the receiver
// stopped, and started anew.
func TestK21_Proxy(t *testing.T) {
	w := newWorld(t)
	ledger := w.spawn("ledger", guest(t, "ledger"))
	var unsent []reliable.Unsent
	proxy := w.spawn("proxy", Surely("/user/ledger", func(u []reliable.Unsent) { unsent = append(unsent, u...) }))
	pacer := w.spawn("pacer", guest(t, "pacer"))
	w.from("proxy", pacer, "here", "1", "2")
	w.wants("1", "2")
	w.Stop(ledger)
	w.RunUntilIdle(100_000)
	w.from("proxy", pacer, "3")
	if err := w.Operate().Crash(pacer, abi.FailureGuestPanic, "by the test"); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	w.wants()
	ledger = w.spawn("ledger", guest(t, "ledger"))
	w.pass(5 * time.Second)
	w.wants("3")
	if err := w.Operate().Pause(ledger, false); err != nil { // it takes nothing, for a while
		t.Fatal(err)
	}
	w.from("probe", proxy, "4", "5")
	w.pass(3 * time.Second) // each is sent four times
	w.wants()
	if err := w.Operate().Unpause(ledger, false); err != nil {
		t.Fatal(err)
	}
	w.pass(5 * time.Second)
	w.wants("4", "5")
	w.from("probe", proxy, "bad", "6")
	w.pass(time.Second)
	w.wants("bad", "6")
	if got := w.ask(proxy, "6"); !strings.Contains(got, "ask /user/ledger itself") {
		t.Errorf("%q", got)
	}
	w.Stop(ledger)
	w.RunUntilIdle(1000)
	w.from("probe", proxy, "7", "8")
	w.Stop(proxy)
	w.RunUntilIdle(1000)
	if len(unsent) != 2 || string(unsent[1].Payload) != "\x618" {
		t.Errorf("unsent: %q", unsent)
	}
}

// TestK23_Guest: interceptors in a sandbox.
func TestK23_Guest(t *testing.T) {
	w := newWorld(t)
	log := w.Subscribe(100, func(e *host.Event) bool { return e.Kind == host.EventLog })
	e := w.spawn("echo", guest(t, "echo"))
	for text, want := range map[string]string{" a  ": "a", "b": "b", strings.Repeat("x", 21): "too long"} {
		if got := w.ask(e, text); !strings.HasSuffix(got, want) || strings.HasPrefix(got, " ") {
			t.Errorf("%q is answered %q", text, got)
		}
	}
	for i := range 2 {
		if got := (<-log.C()).Text; got != fmt.Sprintf("%d texts were handled", i+1) {
			t.Errorf("%q", got)
		}
	}
}

func TestPrices(t *testing.T) {
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	fails, asked := true, 0
	p := must(NewPrices(clock, func(context.Context, string) (int, error) {
		if asked++; fails {
			return 0, errors.New("no")
		}
		return 7, nil
	}))(t)
	var open *breaker.OpenError
	for wait := 10 * time.Second; wait <= time.Minute; wait = min(2*wait, time.Minute+1) {
		for range 4 {
			_, _ = p.Of(t.Context(), "tea")
		}
		if _, err := p.Of(t.Context(), "tea"); !errors.As(err, &open) || open.Remaining != wait {
			t.Fatalf("%v, want %v", err, wait)
		}
		clock.Advance(wait)
	}
	fails = false
	if v, err := p.Of(t.Context(), "tea"); v != 7 || err != nil || asked != 6 {
		t.Errorf("%d, %v, asked %d times", v, err, asked)
	}
}

func TestInGo(t *testing.T) {
	w := newWorld(t)
	probe := must(w.Lookup("/user/probe"))(t)
	w.from("probe", w.spawn("paced", Paced(probe)), "a", "b", "c", "d")
	w.wants("a", "b", "c")
	w.pass(time.Second)
	w.wants("d")
	failing := w.spawn("failing", host.Func(func(ctx *host.Context, _ host.Message) error { return ctx.ReplyError("no") }))
	guarded := w.spawn("guarded", Guarded(failing))
	for range 3 {
		w.ask(guarded, 1)
	}
	if got := w.ask(guarded, 1); got != "map[retry:1m0s]" {
		t.Errorf("%q", got)
	}
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l := &Ledger{}
	w.spawn("ledger", Timed(log, host.Native(func() host.Actor { return l })))
	w.from("probe", w.spawn("surely", Surely("/user/ledger", nil)), "a", "b")
	if !slices.Equal(l.Entered, []string{"a", "b"}) || strings.Count(out.String(), "actor=/user/ledger") < 2 {
		t.Errorf("%q, %s", l.Entered, out.String())
	}
}

func TestRates(t *testing.T) {
	s := must(host.New(host.NewConfig("test")))(t)
	c := must(s.Spawn("converter", host.Func(Convert)))(t)
	if v, err := host.AskAs[float64](t.Context(), s, c, 10); v != 9 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	table := must(Rates.Get(s))(t)
	if err := s.Close(t.Context()); err != nil || !table.Closed {
		t.Errorf("%v, closed %v", err, table.Closed)
	}
}
