package router_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// image is the guest of testdata/worker, built once a test run. It batches, as
// every guest of the SDK.
var image = sync.OnceValues(func() (*runtime.Image, error) {
	code, err := guesttest.Build(filepath.Join("testdata", "worker"))
	if err != nil {
		return nil, err
	}
	engine, err := runtime.New(context.Background(), runtime.NewConfig())
	if err != nil {
		return nil, err
	}
	return engine.Load(context.Background(), code, runtime.ImageConfig{Name: "worker"})
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

// native is testdata/worker's worker in Go.
type native struct{ n int }

func (w *native) Receive(ctx *host.Context, m host.Message) error {
	if w.n++; m.Kind == abi.KindTimer {
		var answer func()
		answer, later = later[0], later[1:]
		answer()
		return nil
	}
	var text string
	_ = m.Decode(&text)
	name := ctx.Self().Name()
	switch text {
	case "who":
		return ctx.Reply(name + " " + strconv.Itoa(w.n))
	case "crash":
		return errors.New("crashed")
	case "stop":
		ctx.Stop(ctx.Self())
	case "error":
		return ctx.ReplyError("no")
	case "mute":
	case "slow":
		r, err := ctx.Later()
		if err != nil {
			return err
		}
		later = append(later, func() { _ = r.Send("slow") })
		return ctx.After(1, 100*time.Millisecond, 0, nil)
	default:
		return ctx.At("/user/probe").Tell(name + ":" + text)
	}
	return nil
}

var later []func() // answers of native workers; the worlds are of one goroutine

// world is a manual system with a probe that hears what it is told.
type world struct {
	*host.System
	t      *testing.T
	clock  *host.VirtualClock
	worker host.Props
	idle   bool // guests sleep when they have nothing to do
	heard  []string
	log    *host.Subscription
}

// each runs f with workers in Go, and with guests that are awake, or asleep whenever there is
// nothing to do.
func each(t *testing.T, f func(w *world)) {
	t.Run("Go", func(t *testing.T) { f(newWorld(t, host.Native(func() host.Actor { return &native{} }), false)) })
	for _, sleepy := range []bool{false, true} {
		name := map[bool]string{false: "guests", true: "sleepy guests"}[sleepy]
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("a Go guest takes minutes to compile under the race detector")
			}
			p := host.Guest(must(image())(t), "worker").WithCapabilities(host.Capabilities{Send: []string{"/user/*"}})
			f(newWorld(t, p, sleepy))
		})
	}
}

func inGo(t *testing.T) *world {
	return newWorld(t, host.Native(func() host.Actor { return &native{} }), false)
}

func newWorld(t *testing.T, worker host.Props, sleepy bool) *world {
	later = nil
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	c := host.NewConfig("test").WithManual().WithClock(clock).WithSeed(1).WithGuardian(supervision.Default().WithOtherwise(supervision.Restart).WithMaxRestarts(10, time.Hour))
	if sleepy {
		c = c.WithIdleAfter(time.Nanosecond)
	}
	s := must(host.New(c))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	w := &world{System: s, t: t, clock: clock, worker: worker, idle: sleepy, log: s.Subscribe(10_000, nil)}
	must(s.Spawn("probe", host.Func(func(_ *host.Context, m host.Message) error {
		var text string
		if m.Decode(&text) != nil {
			text = "?"
		}
		if m.Kind != abi.KindMessage {
			text = m.Kind.String() + " " + text
		}
		w.heard = append(w.heard, text)
		return nil
	})))(t)
	w.run()
	return w
}

func (w *world) run() {
	w.RunUntilIdle(1_000_000)
	for range 2 {
		if w.idle {
			w.clock.Advance(time.Nanosecond)
			w.RunUntilIdle(1_000_000)
		}
	}
}

func (w *world) pass(d time.Duration) {
	w.clock.Advance(d)
	w.run()
}

// start starts a router as /user/router.
func (w *world) start(c router.Config) host.Ref {
	w.t.Helper()
	ref := must(w.Spawn("router", c.Props()))(w.t)
	w.run()
	return ref
}

// crowd starts n workers as /user/w0, /user/w1 and so on, and returns their paths.
func (w *world) crowd(n int) (paths []string) {
	w.t.Helper()
	for i := range n {
		ref := must(w.Spawn("w"+strconv.Itoa(i), w.worker))(w.t)
		paths = append(paths, ref.Path())
	}
	w.run()
	return paths
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
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return "done"
	case []any:
		var texts []string
		for _, x := range v {
			texts = append(texts, x.(string))
		}
		return strings.Join(texts, " ")
	}
	return "?"
}

// post sends in the probe's name.
func (w *world) post(ref host.Ref, vs ...any) {
	w.t.Helper()
	probe := must(w.Lookup("/user/probe"))(w.t)
	for _, v := range vs {
		if err := w.TellFrom(probe, ref, v); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) tell(ref host.Ref, vs ...any) {
	w.t.Helper()
	w.post(ref, vs...)
	w.run()
}

// wants compares what was heard since the last call.
func (w *world) wants(want ...string) {
	w.t.Helper()
	slices.Sort(w.heard) // routees run in any order
	slices.Sort(want)
	if !slices.Equal(w.heard, want) {
		w.t.Errorf("heard %q, want %q", w.heard, want)
	}
	w.heard = nil
}

// asks asks and compares, one question after the other.
func (w *world) asks(ref host.Ref, v any, want ...string) {
	w.t.Helper()
	for _, want := range want {
		if got := w.ask(ref, v); got != want {
			w.t.Errorf("%v: answered %q, want %q", v, got, want)
		}
	}
}

// events are those of a kind, by the names of their actors.
func (w *world) events(kind host.EventKind) (names []string) {
	for {
		select {
		case e := <-w.log.C():
			if e.Kind == kind {
				names = append(names, e.Ref.Name())
			}
		default:
			return names
		}
	}
}

func (w *world) children(ref host.Ref) int {
	w.t.Helper()
	return must(w.View().Info(ref))(w.t).Children
}
