// Package thorough is for tests: it tells how much they try. Usually that is what a person can wait for. WASMACTORS_SLOW=1 adds
// what must hold before a change lands, and takes longer; WASMACTORS_THOROUGH=1 has them try everything, for half an hour.
// `make slow` and `make thorough` set them.
package thorough

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

var (
	// Enabled is whether to try everything.
	Enabled = os.Getenv("WASMACTORS_THOROUGH") != ""
	// Slow is whether to try what takes longer than a person waits for: every command of the guides, nodes that are processes,
	// as many seeds as CI has.
	Slow = Enabled || os.Getenv("WASMACTORS_SLOW") != ""
)

// Of is full if Enabled, and usual otherwise.
func Of[T any](usual, full T) T {
	if Enabled {
		return full
	}
	return usual
}

// SlowOf is slow if Slow, and usual otherwise.
func SlowOf[T any](usual, slow T) T {
	if Slow {
		return slow
	}
	return usual
}

// SkipUnlessSlow skips a test that takes long, unless Slow.
func SkipUnlessSlow(t testing.TB) {
	t.Helper()
	if !Slow {
		t.Skip("takes long: make slow")
	}
}

// Checks has rapid try the properties of a test so often, instead of the 100 times that are usual, until the test ends. What a
// flag says, and Slow, go before it. It is for tests whose tries take long, and which do not run beside others.
func Checks(t testing.TB, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f == nil || Slow || testing.Short() || f.Value.String() != f.DefValue { // with -short rapid tries a fifth
		return
	}
	t.Setenv("WASMACTORS_CHECKS", "") // refuses to run in parallel
	before := f.Value.String()
	if err := f.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(before) })
}
