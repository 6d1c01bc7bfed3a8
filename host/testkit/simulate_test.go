package testkit_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/host/testkit"
)

func TestTransfers(t *testing.T) {
	testkit.Simulate(t, func(w *simulate.World) {
		total := 0
		till := w.Spawn("till", host.Func(func(ctx *host.Context, m host.Message) error {
			var n int
			if err := m.Decode(&n); err != nil {
				return err
			}
			total += n
			return ctx.Reply(total)
		}))
		sum := 0
		for range 10 {
			n := w.Int(100)
			w.Ask(till, n, func(_ host.Message, err error) {
				if err == nil {
					sum += n
				}
			})
		}
		w.Settled("what was confirmed is in the till", func() error {
			if total < sum {
				return fmt.Errorf("%d of %d", total, sum)
			}
			return nil
		})
	}, testkit.Seeds(200), testkit.Faults("all,-crash"))
}

// fataled is a test whose failure is a value.
type fataled struct {
	testing.TB
	text string
}

func (f *fataled) Helper()                  {}
func (f *fataled) Name() string             { return "TestX" }
func (f *fataled) Context() context.Context { return f.TB.Context() }
func (f *fataled) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	panic(f)
}

// TestSimulateTells: a failure has the seed, the command that repeats it, and a smaller case; an unknown class is a failure, too.
func TestSimulateTells(t *testing.T) {
	tells := func(body simulate.Body, opts ...testkit.SimulateOption) (text string) {
		f := &fataled{TB: t}
		defer func() { _ = recover(); text = f.text }()
		testkit.Simulate(f, body, opts...)
		return ""
	}
	loses := func(w *simulate.World) {
		got, sent := 0, 0
		a := w.Spawn("a", host.Func(func(*host.Context, host.Message) error { got++; return nil }))
		for range 20 {
			if w.Tell(a, sent) {
				sent++
			}
		}
		w.Settled("all have come", func() error {
			if got < sent {
				return fmt.Errorf("%d of %d", got, sent)
			}
			return nil
		})
	}
	text := tells(loses, testkit.Faults("drop"))
	for _, want := range []string{"all have come: 0 of 1", "-simulate.seed ", "go test -run '^TestX$'", "to 1 and 1", "FAULT drop"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if text := tells(loses, testkit.Faults("none")); text != "" {
		t.Error(text)
	}
	if text := tells(loses, testkit.Faults("krash")); !strings.Contains(text, `did you mean "crash"`) {
		t.Error(text)
	}
}

// TestSimulateFlags: of the seeds, the flags say which and how many there are.
func TestSimulateFlags(t *testing.T) {
	seeds := func() []uint64 {
		var mu sync.Mutex
		tried := map[uint64]bool{}
		testkit.Simulate(t, func(w *simulate.World) {
			mu.Lock()
			defer mu.Unlock()
			tried[w.Run().Plan().Seed] = true
		}, testkit.Seeds(3))
		return slices.Sorted(maps.Keys(tried))
	}
	if got := seeds(); !slices.Equal(got, []uint64{1, 2, 3}) {
		t.Errorf("%v", got)
	}
	for _, x := range []struct {
		name, value string
		want        []uint64
	}{{"simulate.seeds", "5", []uint64{1, 2, 3, 4, 5}}, {"simulate.seed", "4711", []uint64{4711}}} {
		if err := flag.Set(x.name, x.value); err != nil {
			t.Fatal(err)
		}
		got := seeds()
		_ = flag.Set(x.name, "0")
		if !slices.Equal(got, x.want) {
			t.Errorf("-%s %s: %v", x.name, x.value, got)
		}
	}
}
