package typed_test

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
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// image is the guest of testdata/bank, built with standard Go. It batches, as every guest of the SDK.
var image = sync.OnceValues(func() (*runtime.Image, error) {
	ctx := context.Background()
	built, err := build.Guest(ctx, filepath.Join("testdata", "bank"), build.Options{Compiler: guesttest.Compiler(), CacheDir: filepath.Join(servicetest.CacheDir(), "builds")})
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
	return engine.Load(ctx, code, runtime.ImageConfig{Name: "bank"})
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

// world is a manual system with a probe that hears what the others say.
type world struct {
	*host.System
	t         *testing.T
	clock     *host.VirtualClock
	probe     host.Ref
	heard     []string
	entries   []host.Message
	unhandled *host.Subscription
}

func newWorld(t *testing.T) *world {
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	s := must(host.New(host.NewConfig("test").WithManual().WithClock(clock).WithSeed(1).WithGuardian(supervision.Default())))(t)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	w := &world{System: s, t: t, clock: clock}
	w.unhandled = s.Subscribe(100, func(e *host.Event) bool { return e.Kind == host.EventUnhandled })
	w.probe = must(s.Spawn("probe", host.Func(func(_ *host.Context, m host.Message) error {
		var text string
		if m.Decode(&text) == nil {
			w.heard = append(w.heard, text)
		} else {
			w.entries = append(w.entries, m.Clone())
		}
		return nil
	})))(t)
	w.run()
	return w
}

func (w *world) run() { w.RunUntilIdle(100_000) }

func (w *world) pass(d time.Duration) {
	w.clock.Advance(d)
	w.run()
}

func (w *world) guest(name, typ string) host.Ref {
	w.t.Helper()
	p := host.Guest(must(image())(w.t), typ).WithCapabilities(host.Capabilities{Send: []string{"/user/*"}})
	ref := must(w.Spawn(name, p))(w.t)
	w.run()
	return ref
}

// teller is a guest that works for somebody.
func (w *world) teller(bank host.Ref, timeout time.Duration) host.Ref {
	w.t.Helper()
	ref := w.guest("", "teller")
	w.tell(ref, map[string]any{"bank": bank.UID(), "timeout": timeout.Milliseconds()})
	w.heard = nil
	return ref
}

// tell sends messages, all before the first is handled.
func (w *world) tell(to host.Ref, messages ...any) {
	w.t.Helper()
	for _, m := range messages {
		if err := w.TellFrom(w.probe, to, m); err != nil {
			w.t.Fatal(err)
		}
	}
	w.run()
}

// wants compares what was said since the last time.
func (w *world) wants(texts ...string) {
	w.t.Helper()
	if !slices.Equal(w.heard, texts) {
		w.t.Errorf("heard\n\t%s\nwant\n\t%s", strings.Join(w.heard, "\n\t"), strings.Join(texts, "\n\t"))
	}
	w.heard = nil
}

// wantUnhandled compares the types of the messages that nobody handled since the last time.
func (w *world) wantUnhandled(types ...string) {
	w.t.Helper()
	var got []string
	for len(w.unhandled.C()) > 0 {
		e := <-w.unhandled.C()
		got = append(got, e.Dead.Type)
	}
	if !slices.Equal(got, types) {
		w.t.Errorf("unhandled were %q, want %q", got, types)
	}
}

// headed is a message that says what it is.
func headed(typ string, v any) host.Headed {
	return host.Headed{Value: v, Headers: map[string]string{abi.HeaderType: typ}}
}
