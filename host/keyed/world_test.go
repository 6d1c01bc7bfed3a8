package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/supervision"
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

// worker is a keyed actor in Go that does what messages tell it.
type worker struct {
	w     *world
	n     int
	later *host.Reply
}

func (a *worker) Started(ctx *host.Context) error {
	name := ctx.Self().Name()
	if strings.HasPrefix(name, "bad") {
		a.w.starts[name]++
		return errors.New("no start")
	}
	a.w.starts[name]++
	if name == "quits" {
		ctx.Stop(ctx.Self())
	}
	if a.w.live[name]++; a.w.live[name] > 1 {
		a.w.t.Errorf("two of %s", name)
	}
	return nil
}

func (a *worker) Stopped(ctx *host.Context) {
	if name := ctx.Self().Name(); !strings.HasPrefix(name, "bad") {
		a.w.live[name]--
	}
}

func (a *worker) Receive(ctx *host.Context, m host.Message) error {
	name := ctx.Self().Name()
	if m.Kind != abi.KindMessage {
		a.w.heard = append(a.w.heard, name+":"+m.Kind.String())
		return nil
	}
	var text string
	if err := m.Decode(&text); err != nil {
		text = "?"
	}
	a.n++
	a.w.heard = append(a.w.heard, name+":"+text)
	verb, rest, _ := strings.Cut(text, " ")
	d, _ := time.ParseDuration(rest)
	switch verb {
	case "who":
		return ctx.Reply(fmt.Sprint(name, " ", a.n))
	case "crash":
		return errors.New("crashed")
	case "stop":
		ctx.Stop(ctx.Self())
	case "timer":
		return ctx.After(1, d, 0, nil)
	case "every":
		return ctx.After(2, d, d, nil)
	case "ask":
		probe, err := ctx.System().Lookup("/user/mute")
		if err != nil {
			return err
		}
		return ctx.Ask(probe, "x", 7, d)
	case "later":
		r, err := ctx.Later()
		a.later, a.w.reply = r, r
		return err
	case "answer":
		return a.later.Send("late")
	case "child":
		ref, err := ctx.Spawn("c", host.Func(func(ctx *host.Context, m host.Message) error {
			ctx.Stop(ctx.Self())
			return nil
		}))
		if err != nil {
			return err
		}
		if rest == "unwatched" {
			return nil
		}
		return ctx.Watch(ref)
	case "hold":
		return ctx.Stash()
	}
	return nil
}

// world is a manual system.
type world struct {
	*host.System
	t      testing.TB
	clock  *host.VirtualClock
	heard  []string
	live   map[string]int
	starts map[string]int
	log    *host.Subscription
	reply  *host.Reply // the last one of "later"
}

func newWorld(t testing.TB) *world { return newWorldThat(t, false) }

// newWorldThat is a world where actors keep their children in a restart, or do not.
func newWorldThat(t testing.TB, keeps bool) *world {
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	s := must(host.New(host.NewConfig("test").WithManual().WithClock(clock).WithSeed(1).
		WithGuardian(supervision.Default().WithOtherwise(supervision.Restart).WithMaxRestarts(10, time.Hour).WithKeepChildren(keeps))))(t)
	w := &world{System: s, t: t, clock: clock, live: map[string]int{}, starts: map[string]int{}, log: s.Subscribe(10_000, nil)}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	must(s.Spawn("mute", host.Func(func(*host.Context, host.Message) error { return nil })))(t)
	w.run()
	return w
}

func (w *world) worker() host.Props {
	return host.Native(func() host.Actor { return &worker{w: w} })
}

func (w *world) run() { w.RunUntilIdle(1_000_000) }

func (w *world) pass(d time.Duration) {
	w.clock.Advance(d)
	w.run()
}

// start starts a keeper as /user/users.
func (w *world) start(c keyed.Config) host.Ref {
	w.t.Helper()
	ref := must(w.Spawn("users", c.Props()))(w.t)
	w.run()
	return ref
}

func (w *world) tell(ref host.Ref, key, text string) {
	w.t.Helper()
	if err := w.Tell(ref, keyed.For(key, text)); err != nil {
		w.t.Fatal(err)
	}
	w.run()
}

// ask asks, lets everything happen, and returns the answer or the error as a text; "" if there is
// neither.
func (w *world) ask(ref host.Ref, v any) string {
	w.t.Helper()
	p, err := w.Request(ref, v)
	if err != nil {
		return err.Error()
	}
	w.run()
	select {
	case m := <-p.Answer():
		return answerOf(m)
	default:
		p.Cancel()
		return ""
	}
}

func answerOf(m host.Message) string {
	var failed *host.ReplyError
	if err := m.Err(); errors.As(err, &failed) {
		return failed.Reason
	} else if err != nil {
		return err.Error()
	}
	var v any
	if err := m.Decode(&v); err != nil {
		return err.Error()
	}
	if text, ok := v.(string); ok {
		return text
	}
	return fmt.Sprint(v)
}

func (w *world) asks(ref host.Ref, v any, want string) {
	w.t.Helper()
	if got := w.ask(ref, v); got != want {
		w.t.Errorf("%v: answered %q, want %q", v, got, want)
	}
}

func (w *world) wants(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.heard, want) {
		w.t.Errorf("heard %q, want %q", w.heard, want)
	}
	w.heard = nil
}

// endsIn has the only actor, "a", end after a time, and not before.
func (w *world) endsIn(d time.Duration) {
	w.t.Helper()
	w.pass(d - 1)
	w.there("a")
	w.pass(1)
	w.there()
}

// there are the names of the keeper's actors.
func (w *world) there(want ...string) {
	w.t.Helper()
	names := []string{}
	for _, ref := range w.Select("/user/users/*") {
		names = append(names, ref.Name())
	}
	slices.Sort(names)
	if !slices.Equal(names, want) && len(names)+len(want) > 0 {
		w.t.Errorf("there are %q, want %q", names, want)
	}
}
