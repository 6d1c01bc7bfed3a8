package streams

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/host/testkit"
	"github.com/wasmactors/wasmactors/runtime"
)

// A stage is tested without the actors beside it: the test plays both ends.
func TestCounterWithProbes(t *testing.T) {
	k := testkit.New(t)
	splitter, out := k.Probe("splitter"), k.Probe("out")
	k.Spawn("counter", Counter(splitter.Ref(), out.Ref()))
	words := splitter.GiveFlow("words")
	words.ExpectRequest(4)
	words.Send("a", "b", "b")
	out.ExpectNone(time.Second - 1)
	out.Expect([]Count{{"a", 1}, {"b", 1}})
	words.Send("a")
	words.Complete()
	out.Expect([]Count{{"a", 2}})
	out.Expect("over")
}

// N18: a guest gives elements to an actor in Go.
func TestN18_GuestFeedsGo(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	ctx := context.Background()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	built, err := build.Guest(ctx, "guest", build.Options{Compiler: "go", CacheDir: filepath.Join(servicetest.CacheDir(), "builds")})
	check(err)
	code, err := built.Code(ctx)
	check(err)
	engine, err := runtime.New(ctx, runtime.NewConfig().WithCacheDir(filepath.Join(servicetest.CacheDir(), "images")))
	check(err)
	defer func() { _ = engine.Close(ctx) }()
	image, err := engine.Load(ctx, code, runtime.ImageConfig{Name: "streams"})
	check(err)
	k := testkit.New(t)
	out := k.Probe("out")
	splitter := k.Spawn("splitter", host.Guest(image, "splitter"))
	k.Spawn("counter", Counter(splitter, out.Ref()))
	k.Tell(splitter, "one two")
	out.Tell(splitter, "two  two three")
	out.Expect([]Count{{"one", 1}, {"two", 1}, {"three", 1}})
	out.Tell(splitter, host.Raw(flow.EndOf("")))
	out.Expect("over")
}
