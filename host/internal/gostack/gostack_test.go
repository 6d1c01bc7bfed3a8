package gostack

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/race"
)

// TestStackOfAPanic: it is what debug.Stack says, up to the bound, whatever was in the room before, and is printed
// once: into the room of an earlier one.
func TestStackOfAPanic(t *testing.T) {
	var below func(n int) (ours, theirs string)
	below = func(n int) (string, string) {
		if n > 0 {
			return below(n - 1)
		}
		return Text(), string(debug.Stack())
	}
	frames := func(s string) (names []string) {
		for line := range strings.Lines(s) {
			if name, _, ok := strings.Cut(line, "("); ok && !strings.HasPrefix(line, "\t") && !strings.Contains(name, "tack") {
				names = append(names, name)
			}
		}
		return names
	}
	for _, n := range []int{100, 3, 0, 1000} {
		ours, theirs := below(n)
		got, want := frames(ours), frames(theirs)
		if len(ours) > abi.MaxReason || len(got) < min(len(want), 50) || strings.Join(got[:len(got)-1], "\n") != strings.Join(want[:len(got)-1], "\n") {
			t.Errorf("%d calls below: %d bytes, %q, not %q", n, len(ours), got, want)
		}
		if short := len(theirs) < abi.MaxReason; short && len(got) != len(want) || !short && len(ours) < abi.MaxReason-4 {
			t.Errorf("%d calls below: %d bytes and %d frames of %d and %d", n, len(ours), len(got), len(theirs), len(want))
		}
	}
	if race.Enabled {
		return // sync.Pool drops at random under the race detector
	}
	if n := testing.AllocsPerRun(100, func() { Text() }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
