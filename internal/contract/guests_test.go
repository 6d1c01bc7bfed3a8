package contract

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/runtime/wasi"
)

func load(t *testing.T, file string) *runtime.Image {
	t.Helper()
	ctx := context.Background()
	code, err := os.ReadFile("../../abi/testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := runtime.New(ctx, runtime.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(ctx) })
	image, err := e.Load(ctx, code, runtime.ImageConfig{Name: file})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func start(t *testing.T, p host.Props) (*host.System, host.Ref) {
	t.Helper()
	s, err := host.New(host.NewConfig("contract"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	ref, err := s.Spawn("guest", p)
	if err != nil {
		t.Fatal(err)
	}
	return s, ref
}

func TestAllImportsLink(t *testing.T) {
	image := load(t, "all_imports.wasm")
	want := []string{"wasmactors.flush", "wasmactors.log", "wasmactors.next", "wasmactors.panic"}
	for _, f := range wasi.Functions() {
		want = append(want, "wasi_snapshot_preview1."+f.Name)
	}
	slices.Sort(want)
	if got := image.Info().Imports; !slices.Equal(got, want) {
		t.Errorf("the golden file imports %v\nthe host offers %v", got, want)
	}
}

func ask(t *testing.T, s *host.System, ref host.Ref, question, answer any) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m, err := s.Ask(ctx, ref, question)
	if err != nil {
		return err
	}
	return m.Decode(answer)
}

func TestGuestInWAT(t *testing.T) {
	s, ref := start(t, host.Guest(load(t, "guests/echo.wasm"), "echo"))
	var got string
	if err := ask(t, s, ref, "hello", &got); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestGuestInC(t *testing.T) {
	s, ref := start(t, host.Guest(load(t, "guests/counter.wasm"), "counter"))
	events := s.Subscribe(10, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	total := func(want uint64) {
		t.Helper()
		var got uint64
		if err := ask(t, s, ref, "get", &got); err != nil || got != want {
			t.Errorf("%d, %v; want %d", got, err, want)
		}
	}
	for _, n := range []uint64{1, 200, 70_000, 1 << 40} {
		if err := s.Tell(ref, n); err != nil {
			t.Fatal(err)
		}
	}
	total(1 + 200 + 70_000 + 1<<40)
	if err := s.Tell(ref, "what?"); err != nil {
		t.Fatal(err)
	}
	total(0)
	select {
	case e := <-events.C():
		if e.Failure.Kind != abi.FailureGuestError || e.Failure.Reason != "not a number" {
			t.Errorf("%v", e.Failure)
		}
	case <-time.After(30 * time.Second):
		t.Error(errors.New("no failure was seen"))
	}
}
