package scenario

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
)

// press is a service of an embedder's.
type press struct{ env *service.Env }

type nothing struct{}

// Serve implements service.Provider. What is "printed" is made in a goroutine of its own, which needs a while and
// calls nobody; what is "sent" is told to an actor later.
func (p press) Serve(_ context.Context, r *service.Request[nothing]) (any, error) {
	switch r.Op {
	case "print":
		done := make(chan string)
		go func() {
			time.Sleep(30 * time.Millisecond)
			done <- "printed"
		}()
		return <-done, nil
	case "send":
		to, err := p.env.System.Lookup("/user/echo")
		if err != nil {
			return nil, err
		}
		p.env.Go(func() {
			time.Sleep(30 * time.Millisecond)
			_ = p.env.System.Tell(to, "sent")
		})
		p.env.After(time.Hour, func() { _ = p.env.System.Tell(to, "an hour later") })
		return "soon", nil
	}
	return nil, r.Unknown()
}

func (press) Close(context.Context) error { return nil }

// TestServicesOfEmbedders: time does not pass while a service works that the product knows nothing of: neither in Serve,
// whatever that waits for, nor in what it has started with its environment.
func TestServicesOfEmbedders(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	kind := service.Define(service.Definition[nothing, nothing]{
		Name: "press", Open: func(env *service.Env, _ *nothing) (service.Provider[nothing], error) { return press{env}, nil },
	})
	dir := t.TempDir()
	text := "wasmactors: 1\nname: embedded\nmodules: {echo: {wasm: " + abs(t, "../testdata/echo.wasm") + "}, guest: {go: " + abs(t, "../service/testdata/guest") + "}}\n" +
		"actors: {echo: {type: echo/echo}, asker: {type: guest/service-asker, capabilities: {press: {}}}}\nservices: {press: {}}\n"
	if err := os.WriteFile(filepath.Join(dir, bundle.FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	st := NewStage(append(all.Kinds(), service.Kind(kind))...)
	m, err := bundle.LoadWith(dir, nil, st.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := st.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir(), Compiler: guesttest.Compiler(), Services: st.Kinds(), Allow: func([]bundle.Reach) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	for _, r := range plays(t, st, b, `
scenarios:
- name: what is asked for is there at once
  steps:
  - {ask: asker, message: [press, print, null], answer: printed, within: 1ms}
- name: so is what comes by itself
  stand-ins: [echo]
  steps:
  - {ask: asker, message: [press, send, null], answer: soon, within: 1ms}
  - {expect: echo, message: sent, within: 1ms}
  - {expect-none: echo, for: 59m}
  - {expect: echo, message: an hour later, within: 1m}
`) {
		holds(t, r)
	}
}
