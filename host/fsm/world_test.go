package fsm_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/fsm"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// image is the guest of testdata/machine, built once a test run. It batches, as
// every guest of the SDK.
var image = sync.OnceValues(func() (*runtime.Image, error) {
	code, err := guesttest.Build(filepath.Join("testdata", "machine"))
	if err != nil {
		return nil, err
	}
	engine, err := runtime.New(context.Background(), runtime.NewConfig())
	if err != nil {
		return nil, err
	}
	return engine.Load(context.Background(), code, runtime.ImageConfig{Name: "machine"})
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

// world is a manual system with a machine and a probe that hears what it says.
type world struct {
	*host.System
	t       *testing.T
	clock   *host.VirtualClock
	machine host.Ref
	heard   []string
}

// hearing is what a probe makes of a message.
func hearing(m host.Message) string {
	var s string
	var transition fsm.Transition
	var current fsm.CurrentState
	switch {
	case m.Kind == abi.KindTerminated:
		return "terminated"
	case m.Decode(&s) == nil:
		return s
	case m.Decode(&transition) == nil:
		return transition.What + " " + string(transition.From) + " " + string(transition.To)
	case m.Decode(&current) == nil:
		return current.What + " " + string(current.State)
	}
	return "?"
}

// both runs f with the machine as an actor in Go, and in wasm.
func both(t *testing.T, f func(w *world)) {
	for _, c := range []struct {
		name  string
		props func() host.Props
	}{
		{"Go", script.Props},
		{"guest", func() host.Props {
			return host.Guest(must(image())(t), "script").WithCapabilities(host.Capabilities{Send: []string{"/user/*"}})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "guest" && testing.Short() {
				t.Skip("a Go guest takes minutes to compile under the race detector")
			}
			f(newWorld(t, c.props()))
		})
	}
}

func newWorld(t *testing.T, p host.Props) *world {
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	s := must(host.New(host.NewConfig("test").WithManual().WithClock(clock).WithSeed(1).WithGuardian(supervision.Default())))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	w := &world{System: s, t: t, clock: clock}
	must(s.Spawn("probe", host.Func(func(_ *host.Context, m host.Message) error {
		w.heard = append(w.heard, hearing(m))
		return nil
	})))(t)
	w.run()
	w.machine = must(s.Spawn("machine", p))(t)
	w.run()
	return w
}

func (w *world) run() { w.RunUntilIdle(100_000) }

// say sends messages of the probe's, all before the first is handled.
func (w *world) say(texts ...string) {
	w.t.Helper()
	probe := must(w.Lookup("/user/probe"))(w.t)
	for _, s := range texts {
		if err := w.TellFrom(probe, w.machine, s); err != nil {
			w.t.Fatal(err)
		}
	}
	w.run()
}

func (w *world) pass(d time.Duration) {
	w.clock.Advance(d)
	w.run()
}

// wants compares what was heard since the last call.
func (w *world) wants(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.heard, want) {
		w.t.Errorf("heard\n  %s\nwant\n  %s", strings.Join(w.heard, "\n  "), strings.Join(want, "\n  "))
	}
	w.heard = nil
}
