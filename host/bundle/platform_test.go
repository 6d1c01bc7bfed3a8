package bundle

import (
	"context"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
)

// engines are the ways in which a bundle can run; platforms without memfd have
// the portable ones only, those without a compiler the interpreter.
var engines = map[string]func(runtime.Config) runtime.Config{
	"compiler":              nil,
	"portable":              func(c runtime.Config) runtime.Config { return c.WithPortableMemory(true) },
	"interpreter":           func(c runtime.Config) runtime.Config { return c.WithInterpreter(true) },
	"portable, interpreter": func(c runtime.Config) runtime.Config { return c.WithPortableMemory(true).WithInterpreter(true) },
}

// TestBundleOnEveryEngine runs one bundle through failures of several kinds, each
// followed by a restart. What the supervisor sees is the same on every engine,
// fuel included.
func TestBundleOnEveryEngine(t *testing.T) {
	type seen struct {
		kind   string
		reason string
		fuel   uint64
		turn   uint64
	}
	var want []seen
	for _, name := range []string{"compiler", "portable", "interpreter", "portable, interpreter"} {
		b, err := openOn(t, needs(t, "memory: 128KiB, table: 100, stack: 8KiB, fuel: 1M, outbox: 1KiB", "", "a: {type: needs}"), engines[name])
		if err != nil {
			t.Fatal(name, err)
		}
		sys, events := begin(t, b)
		ref, err := sys.Lookup("/user/a")
		if err != nil {
			t.Fatal(name, err)
		}
		var got []seen
		for round := range 3 {
			for what := 1; what <= 6; what++ {
				if err := sys.Tell(ref, what); err != nil {
					t.Fatal(name, err)
				}
				f := failed(t, events, nil)
				got = append(got, seen{f.Kind.String(), f.Reason, f.Fuel, f.Turn})
			}
			if err := sys.Tell(ref, 0); err != nil { // needs nothing
				t.Fatal(name, round, err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := sys.Idle(ctx); err != nil {
			t.Error(name, err)
		}
		cancel()
		for len(events.C()) > 0 {
			if e := <-events.C(); e.Kind == host.EventFailed {
				t.Errorf("%s: %v", name, e.Failure)
			}
		}
		if want == nil {
			want = got
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s, failure %d: %+v, on the first engine %+v", name, i, got[i], want[i])
			}
		}
	}
}
