package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// TestOneHistory: whatever runs beside it, a scenario with one seed has one history. Each is run three times, or as often as
// the variable WASMACTORS_HISTORIES says:
//
//	WASMACTORS_HISTORIES=1000 go test -race -timeout 0 -run TestOneHistory ./host/scenario
//	WASMACTORS_HISTORIES=1000 go run ./tools/stalls -timeout 24h -run TestOneHistory ./host/scenario
//
// With the variable, the samples are run under the race detector, too.
func TestOneHistory(t *testing.T) {
	runs, asked := thorough.SlowOf(2, 3), os.Getenv("WASMACTORS_HISTORIES")
	switch {
	case asked != "":
		n, err := strconv.Atoi(asked)
		if err != nil || n < 2 {
			t.Fatalf("WASMACTORS_HISTORIES is %q: it must be a number from 2", asked)
		}
		runs = n
	case testing.Short():
		t.Skip("compiles a guest")
	}
	bundles := []string{"testdata", "testdata/nodes"}
	if asked != "" || !race.Enabled {
		for _, name := range samples {
			bundles = append(bundles, filepath.Join("../../samples", name))
		}
	}
	for _, path := range bundles {
		t.Run(filepath.Base(path), func(t *testing.T) {
			st, b := opened(t, path)
			files, err := Find(b.Manifest)
			if err != nil || len(files) == 0 {
				t.Fatalf("%v, %v", files, err)
			}
			now := ""
			st.ended = func(w *world) { now = w.told() }
			for _, file := range files {
				for _, s := range loaded(t, b, file) {
					first := ""
					for n := range runs {
						now = ""
						if r := st.Run(t.Context(), b, s, Options{}); r.Failure != nil {
							holds(t, r)
							t.Fatalf("run %d", n)
						}
						if n == 0 {
							first = now
						}
						if now != first {
							t.Fatalf("%s: run %d has another history:\n%s", s.ID(), n, parting(first, now))
						}
					}
					t.Logf("%s: %d runs, one history of %d lines", s.ID(), runs, strings.Count(first, "\n"))
				}
			}
		})
	}
}

// told is everything that has happened.
func (w *world) told() string {
	var b strings.Builder
	for _, e := range w.history.events {
		fmt.Fprintf(&b, "%d %v %x %s\n", e.seen, w.since(e.Time), uint64(e.Ref.UID()), telling(&e.Event))
	}
	for _, line := range w.history.tail(w.since) {
		fmt.Fprintln(&b, line)
	}
	for _, r := range w.web.seen {
		fmt.Fprintf(&b, "%s %s %q\n", r.method, r.url, r.body)
	}
	fmt.Fprintln(&b, w.since(w.clock.Now()))
	return b.String()
}

// parting is where two histories part.
func parting(one, other string) string {
	a, b := strings.Split(one, "\n"), strings.Split(other, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return strings.Join(a[max(0, i-3):min(i+3, len(a))], "\n") + "\nand\n" + strings.Join(b[max(0, i-3):min(i+3, len(b))], "\n")
		}
	}
	return fmt.Sprintf("%d and %d lines", len(a), len(b))
}
