package reliable_test

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
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/reliable"
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

type world struct {
	*host.System
	t     *testing.T
	clock *host.VirtualClock
	heard []string
}

func newWorld(t *testing.T) *world {
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	s := must(host.New(host.NewConfig("test").WithManual().WithClock(clock).WithSeed(1).
		WithGuardian(supervision.Default().WithOtherwise(supervision.Restart).WithMaxRestarts(50, time.Hour))))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return &world{System: s, t: t, clock: clock}
}

func (w *world) spawn(name string, p host.Props) host.Ref {
	w.t.Helper()
	ref := must(w.Spawn(name, p))(w.t)
	w.RunUntilIdle(10_000)
	return ref
}

func (w *world) tell(to host.Ref, vs ...any) {
	w.t.Helper()
	for _, v := range vs {
		if err := w.Tell(to, v); err != nil {
			w.t.Fatal(err)
		}
	}
	w.RunUntilIdle(10_000)
}

func (w *world) pass(d time.Duration) {
	for range d / (100 * time.Millisecond) {
		w.clock.Advance(100 * time.Millisecond)
		w.RunUntilIdle(10_000)
	}
}

func (w *world) wants(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.heard, want) {
		w.t.Errorf("heard %q, want %q", w.heard, want)
	}
	w.heard = nil
}

// target takes each text once; it fails at "bad" in its first incarnation, and does not see what lossy drops.
type target struct {
	w     *world
	in    reliable.Receiver
	lossy func(m host.Message) bool
}

func (x *target) Receive(ctx *host.Context, m host.Message) error {
	if x.lossy != nil && x.lossy(m) || !x.in.Accept(ctx, m) {
		return nil
	}
	var text string
	if err := m.Decode(&text); err != nil {
		return err
	}
	if text == "bad" && ctx.Head().Incarnation() == 0 {
		return errors.New("as told")
	}
	if from := reliable.Origin(ctx.System(), m); !from.IsZero() {
		text += " of " + from.Name()
	}
	if h, ok := abi.FindHeader(m.Headers, "h"); ok {
		text += " h=" + string(h)
	}
	x.w.heard = append(x.w.heard, text)
	return nil
}

func (w *world) target(name string, lossy func(host.Message) bool) host.Ref {
	w.t.Helper()
	return w.spawn(name, host.Native(func() host.Actor { return &target{w: w, lossy: lossy} }))
}

// source has a sender as a part, and sends what it is told.
type source struct {
	w      *world
	out    *reliable.Sender
	target host.Ref
}

func (s *source) Started(ctx *host.Context) error {
	s.out.OnLost(func(*host.Context) { s.w.heard = append(s.w.heard, "lost") })
	return s.out.Connect(ctx, s.target)
}

func (s *source) Receive(ctx *host.Context, m host.Message) error {
	if s.out.Receive(ctx, m) {
		return nil
	}
	if m.Kind != abi.KindMessage {
		return host.ErrUnhandled
	}
	if err := s.out.Send(ctx, host.Raw(slices.Clone(m.Payload)), nil); err != nil {
		s.w.heard = append(s.w.heard, err.Error())
	}
	return nil
}

// TestK21_Sender: what gets lost comes again after a time, and not before; in order, once; a crash of the
// receiver takes nothing; bounds; the end of the target, and another one.
func TestK21_Sender(t *testing.T) {
	w := newWorld(t)
	drop := 2
	to := w.target("target", func(m host.Message) bool { drop--; return drop >= 0 })
	var src *source
	settings := reliable.Settings{RetryAfter: time.Second, Messages: 4, Attempts: 2, Key: 9}
	a := w.spawn("source", host.Native(func() host.Actor {
		src = &source{w: w, out: reliable.NewSender(settings), target: to}
		return src
	}))
	w.tell(a, "1", "2", "3") // 1 and 2 are dropped on the way, 3 waits for them
	w.pass(900 * time.Millisecond)
	w.wants()
	w.pass(100 * time.Millisecond)
	w.wants("1", "2", "3")
	if src.out.Len() != 0 || w.clock.Pending() > 1 {
		t.Errorf("%d are left, %d timers", src.out.Len(), w.clock.Pending())
	}
	w.pass(5 * time.Second)
	w.wants()
	w.tell(a, "4", "bad", "5")
	w.pass(time.Second)
	w.wants("4", "bad", "5")
	drop = 1 << 30
	w.tell(a, "6", "7", "8", "9", "10")
	w.wants(reliable.ErrFull.Error())
	w.pass(2900 * time.Millisecond)
	w.wants()
	w.pass(100 * time.Millisecond) // after two attempts in vain
	w.wants("lost")
	drop = 0
	w.pass(10 * time.Second)
	w.wants()
	var unsent []string
	src.out.Unsent(func(payload host.Raw, _ map[string]string) { unsent = append(unsent, string(payload[1:])) })
	if !src.out.Lost() || !slices.Equal(unsent, []string{"6", "7", "8", "9"}) {
		t.Errorf("%q", unsent)
	}
	to = w.target("other", nil)
	if err := w.Operate().Restart(a); err != nil { // numbers start over, with the other target
		t.Fatal(err)
	}
	w.RunUntilIdle(1000)
	w.tell(a, "11")
	w.Stop(to)
	w.RunUntilIdle(1000)
	w.tell(a, "12")
	w.wants("11", "lost")
}

// An acknowledgement counts from the target alone, for the present numbers.
func TestForgedAcknowledgements(t *testing.T) {
	w := newWorld(t)
	to := w.spawn("target", host.Func(func(*host.Context, host.Message) error { return nil })) // it never acknowledges
	var src *source
	a := w.spawn("source", host.Native(func() host.Actor {
		src = &source{w: w, out: reliable.NewSender(reliable.Settings{}), target: to}
		return src
	}))
	w.tell(a, "1", "2")
	stranger := w.spawn("stranger", host.Func(func(*host.Context, host.Message) error { return nil }))
	ack := func(from host.Ref, v string) {
		if err := w.TellFrom(from, a, host.Headed{Headers: map[string]string{"wasmactors.reliable.ack": v}}); err != nil {
			t.Fatal(err)
		}
		w.RunUntilIdle(1000)
	}
	ack(stranger, "0 0 2")
	for _, v := range []string{"0 1 2", "1 0 2", "0 0 1000", "x"} {
		ack(to, v)
	}
	if n := src.out.Len(); n < 2 {
		t.Errorf("%d are left", n)
	}
	before := src.out.Len()
	ack(to, "0 0 1")
	if n := src.out.Len(); n != before-1 {
		t.Errorf("%d are left", n)
	}
}

// A proxy tells who has sent, keeps headers, looks for its target again so often, and hands over what is left.
func TestProxy(t *testing.T) {
	w := newWorld(t)
	var unsent []string
	note := func(us []reliable.Unsent) {
		for _, u := range us {
			unsent = append(unsent, fmt.Sprintf("%s %s", u.Payload[1:], u.Headers["h"]))
		}
	}
	p := w.spawn("p", reliable.To("/user/target", reliable.Settings{Messages: 3, Bytes: 2000}).WithReconnect(time.Second, 3).WithUnsent(note).Props())
	w.tell(p, "1", host.Headed{Value: "2", Headers: map[string]string{"h": "x"}})
	w.pass(500 * time.Millisecond)
	w.wants()
	w.target("target", nil)
	w.pass(500 * time.Millisecond)
	w.wants("1", "2 h=x")
	probe := w.spawn("probe", host.Func(func(*host.Context, host.Message) error { return nil }))
	if err := w.TellFrom(probe, p, "3"); err != nil {
		t.Fatal(err)
	}
	w.RunUntilIdle(1000)
	w.wants("3 of probe")
	w.Stop(must(w.Lookup("/user/target"))(t))
	w.RunUntilIdle(1000)
	many := map[string]string{}
	for i := range abi.MaxHeaders {
		many[fmt.Sprint(i)] = ""
	}
	w.tell(p, "4", "5", "6", "7", strings.Repeat("x", 1900), host.Headed{Value: "8", Headers: many})
	if len(unsent) != 3 || unsent[0] != "7 " {
		t.Errorf("%q", unsent)
	}
	unsent = nil
	w.pass(2900 * time.Millisecond)
	if len(unsent) != 0 {
		t.Errorf("%q", unsent)
	}
	w.pass(100 * time.Millisecond)
	w.pass(time.Second)
	if !slices.Equal(unsent, []string{"4 ", "5 ", "6 "}) {
		t.Errorf("%q", unsent)
	}
	if _, err := w.Ended(p); !errors.Is(err, host.ErrUnknown) {
		t.Errorf("it goes on: %v", err)
	}
	once := w.spawn("once", reliable.To("/user/nobody", reliable.Settings{}).Props())
	if _, err := w.Ended(once); !errors.Is(err, host.ErrUnknown) {
		t.Errorf("it goes on: %v", err)
	}
}

// What a full proxy without WithUnsent does not take is a dead letter.
func TestAFullProxyRefuses(t *testing.T) {
	w := newWorld(t)
	p := w.spawn("p", reliable.To("/user/target", reliable.Settings{Messages: 1}).WithReconnect(time.Second, 3).Props())
	w.tell(p, "1", "2")
	if letters, _ := w.DeadLetters(); len(letters) != 1 || letters[0].Reason != host.DeadRefused || string(letters[0].Payload[1:]) != "2" {
		t.Errorf("%+v", letters)
	}
}

// What a proxy keeps for a target that acknowledges nothing is on its account and within what it may hold; with
// the acknowledgement it is given back.
func TestWhatAProxyKeepsIsOnItsAccount(t *testing.T) {
	w := newWorld(t)
	deaf := true
	w.spawn("target", host.Native(func() host.Actor { return &target{w: w, lossy: func(host.Message) bool { return deaf }} }))
	unsent := 0
	p := w.spawn("proxy", reliable.To("/user/target", reliable.Settings{}).WithUnsent(func(l []reliable.Unsent) { unsent += len(l) }).Props().
		WithLimits(host.Limits{Held: 1 << 20}))
	text := strings.Repeat("x", 64<<10)
	for range 40 {
		w.tell(p, text)
	}
	held := must(w.View().Held(p))(t)
	t.Logf("%+v, %d unsent", held, unsent)
	if held.Stash < 10*64<<10 || held.Total() > 1<<20 || unsent < 20 {
		t.Errorf("%+v, %d unsent", held, unsent)
	}
	deaf = false
	w.pass(10 * time.Second)
	if held := must(w.View().Held(p))(t); held.Stash != 0 || len(w.heard) != 40-unsent {
		t.Errorf("%+v, %d have arrived", held, len(w.heard))
	}
}

// A target that a keeper stands for is started by what the proxy sends, also after it was passivated, and
// gets once what it had acknowledged. The proxy lives as long as the keeper.
func TestProxyToAKeptActor(t *testing.T) {
	w := newWorld(t)
	lose := 0
	lossy := func(host.Message) bool { lose--; return lose >= 0 }
	keys := func() host.Ref {
		return w.spawn("keys", keyed.New(host.Native(func() host.Actor { return &target{w: w, lossy: lossy} })).WithIdle(10*time.Second).Props())
	}
	keeper := keys()
	p := w.spawn("p", reliable.To("/user/keys/a", reliable.Settings{}).WithReconnect(time.Second, 3).Props())
	other := w.spawn("q", reliable.To("/user/keys/b", reliable.Settings{}).WithReconnect(time.Second, 3).Props())
	gone := func(key string) bool { _, err := w.Lookup("/user/keys/" + key); return err != nil }
	if !gone("a") {
		t.Error("a target is started before there is anything for it")
	}
	for range 3 {
		w.tell(p, "1", "2")
		w.tell(other, "3")
		w.wants("1", "2", "3")
		w.pass(30 * time.Second)
		w.wants() // nothing comes again
		if !gone("a") || !gone("b") {
			t.Fatal("they are not passivated")
		}
	}
	lose = 1 // the first is lost: what is sent again keeps the order
	w.tell(p, "4", "5")
	w.pass(2 * time.Second)
	w.wants("4", "5")
	// Who has another path does not acknowledge for it: that is a message as any other.
	forger := w.spawn("forger", host.Func(func(ctx *host.Context, m host.Message) error {
		return ctx.Tell(p, host.Headed{Headers: map[string]string{"wasmactors.reliable.ack": "0 0 9"}})
	}))
	lose = 1
	w.tell(p, "6")
	w.tell(forger, "now")
	w.pass(2 * time.Second)
	w.wants("6", " of forger")
	w.Stop(keeper)
	w.RunUntilIdle(1000)
	w.tell(p, "7")
	w.pass(1500 * time.Millisecond)
	keys()
	w.pass(2 * time.Second)
	w.wants("7")
	w.Stop(must(w.Lookup("/user/keys"))(t))
	w.pass(10 * time.Second)
	if _, err := w.Ended(p); !errors.Is(err, host.ErrUnknown) {
		t.Errorf("it goes on without a keeper: %v", err)
	}
}
