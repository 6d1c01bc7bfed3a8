package sandbox

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/race"
)

// What an actor of the Go SDK is started with and its first message write to few pages, each of
// which is a copy of the image's that the actor keeps, and the allocator of its runtime has nothing to set up: the
// SDK has done that before the image was made.
func TestStartOfAnSDKGuestIsLean(t *testing.T) {
	if race.Enabled {
		t.Skip("a Go guest takes half a minute to compile, on one goroutine")
	}
	const mostPages, mostFuel = 10, 130_000
	file := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", file, ".")
	cmd.Dir = filepath.Join("..", "..", "samples", "hello", "guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(&buildError{string(out), err})
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i, err := newEngine(t, NewConfig().WithCacheDir(goCacheDir(t))).Load(context.Background(), code, ImageConfig{Name: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	if d := i.Description(); !slices.Equal(d.Silent, d.Types) { // its actors have Receive alone
		t.Errorf("of %q are silent: %q", d.Types, d.Silent)
	}
	x := get(t, i)
	defer x.Put()
	image := bytes.Clone(x.memory.Bytes())
	start := abi.Start{Type: "greeter", Path: "wasm://system/user/some/where/greeter#1152921504606846976", Self: 1 << 60, Parent: 1<<60 + 1, Args: []byte{0xf6}}
	hello := abi.NewWriter(nil)
	hello.Text("you")
	in := entry()
	in.Log = &logLines{}
	for _, e := range []abi.Envelope{
		{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &start)},
		{Kind: abi.KindMessage, Sender: 1 << 60, Payload: hello.Bytes()},
	} {
		if !x.Push(&e) {
			t.Fatal("does not fit")
		}
		var out Result
		if x.Run(in, &out); out.Failure != nil || out.Fuel > mostFuel {
			t.Errorf("kind %d: %d units of fuel: %v", e.Kind, out.Fuel, out.Failure)
		}
		t.Logf("kind %d: %d units of fuel", e.Kind, out.Fuel)
	}
	const page = 4096
	pages, now := 0, x.memory.Bytes()
	for at := 0; at < len(image); at += page {
		if !bytes.Equal(image[at:at+page], now[at:at+page]) {
			pages++
		}
	}
	if pages > mostPages || len(now) != len(image) {
		t.Errorf("%d pages differ from the image; %d bytes, %d in the image", pages, len(now), len(image))
	}
	t.Logf("%d pages", pages)
}
