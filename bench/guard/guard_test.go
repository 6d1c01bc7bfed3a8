package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/bench/guard"
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/internal/instrcount"
)

var update = flag.Bool("update", false, "set the limits to what is measured, and a little room")

var profile = flag.Bool("profile", false, "list the functions that the instructions are in")

// limits are what a message may cost at most.
type limits struct {
	Instructions float64 `json:"instructions"`
	Guest        float64 `json:"guest"` // part of them in the guest
	Allocations  float64 `json:"allocations"`
}

const limitsFile = "limits.json"

// room is what a limit leaves above the figure: Go's maps are seeded at random, and
// other versions of Go compile other code.
const room = 1.03

// kindVariable tells the child what to count.
const kindVariable = "WASMACTORS_GUARD_KIND"

// TestCostOfAMessage holds what a message costs against the limits in the repository.
// Who makes it cheaper lowers them: go test ./guard -update.
func TestCostOfAMessage(t *testing.T) {
	if instrcount.Counting() {
		if err := guard.Work(t.Context(), os.Getenv(kindVariable)); err != nil {
			t.Fatal(err)
		}
		return
	}
	if testing.Short() {
		t.Skip("single-stepping takes a while")
	}
	text, err := os.ReadFile(limitsFile)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]limits{}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range []struct{ name, kind, compiler string }{
		{"native", guard.Native, ""},
		{"routed", guard.Routed, ""},
		{"wat", filepath.Join("..", "guests", "bench.wasm"), ""},
		{"go", filepath.Join(dir, "go.wasm"), "go"},
		{"tinygo", filepath.Join(dir, "tinygo.wasm"), "tinygo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.compiler != "" {
				if _, err := exec.LookPath(c.compiler); err != nil {
					t.Skip(err)
				}
				buildGuest(t, c.compiler, c.kind)
			}
			got := measure(t, c.kind)
			t.Logf("%.0f instructions a message, %.0f of them the guest's; %.4f allocations", got.Instructions, got.Guest, got.Allocations)
			if *profile {
				list(t, &got)
			}
			if *update {
				want[c.name] = limits{math.Ceil(got.Instructions * room), math.Ceil(got.Guest * room), math.Floor(got.Allocations) + 0.01}
				return
			}
			limit, ok := want[c.name]
			if !ok {
				t.Fatalf("%s has no limit of %s: run go test ./guard -update", limitsFile, c.name)
			}
			beyond := func() bool { return got.Instructions > limit.Instructions || got.Guest > limit.Guest }
			for again := 0; beyond() && again < 2; again++ {
				// On a busy machine the runtime's own work adds to it; nothing takes away from it.
				t.Logf("that is beyond the limits, %.0f and %.0f: once more", limit.Instructions, limit.Guest)
				if next := measure(t, c.kind); next.Instructions < got.Instructions {
					got = next
				}
			}
			if beyond() {
				t.Errorf("a message costs %.0f instructions, %.0f of them the guest's; the limits are %.0f and %.0f", got.Instructions, got.Guest, limit.Instructions, limit.Guest)
				list(t, &got)
			}
			if got.Allocations > limit.Allocations {
				t.Errorf("a message costs %.4f allocations, more than %.4f", got.Allocations, limit.Allocations)
			}
		})
	}
	if *update && !t.Failed() {
		text, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(limitsFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// list shows where a message's instructions are.
func list(t *testing.T, c *guard.Counts) {
	t.Helper()
	for _, f := range c.Functions[:min(40, len(c.Functions))] {
		t.Logf("%8.1f %s", float64(f.Instructions)/float64(c.Messages), f.Name)
	}
}

func buildGuest(t *testing.T, compiler, file string) {
	t.Helper()
	r, err := build.Guest(t.Context(), filepath.Join("..", "guests", "go"), build.Options{Compiler: compiler})
	if err != nil {
		t.Fatal(err)
	}
	code, err := r.Code(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
}

// measure counts allocations, and instructions where that can be done.
func measure(t *testing.T, kind string) guard.Counts {
	t.Helper()
	allocations, err := guard.Allocations(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(kindVariable, kind)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	windows, err := instrcount.Self(ctx, "-test.run=^TestCostOfAMessage$")
	if errors.Is(err, instrcount.ErrUnsupported) {
		t.Logf("only allocations are checked: %v", err)
		return guard.Counts{Allocations: allocations}
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := guard.Slope(windows)
	if err != nil {
		t.Fatal(err)
	}
	c.Allocations = allocations
	return c
}
