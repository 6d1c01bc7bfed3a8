package rerun

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Whatever varies besides the recorded inputs makes no difference: workers, how many turns they take at once, the collector,
// and the engine that repeats it.
func TestRecordedRunsRepeat(t *testing.T) {
	for n, s := range []setting{{workers: 1}, {workers: 4, turns: 1}, {workers: 3, turns: 100}, {workers: 2}} {
		t.Run(fmt.Sprint(s.workers, " workers ", s.turns), func(t *testing.T) {
			if n == 2 {
				defer debug.SetGCPercent(debug.SetGCPercent(5))
			}
			w := newWorld(t, s)
			w.load(uint64(n), 200)
			r := w.end()
			report := equal(t, compiled(t), r, Options{})
			if report.Turns < 100 || report.Failed == 0 {
				t.Errorf("too little has happened: %s", describe(report))
			}
			info, err := os.Stat(w.path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("the file has mode %v", info.Mode())
			}
			t.Logf("%+v", report.Living)
			t.Log(describe(report), info.Size(), "bytes", report.NotRecorded)
			if !testing.Short() {
				if again := equal(t, interpreted(t), r, Options{}); again.Turns != report.Turns {
					t.Errorf("%d turns in the interpreter, %d compiled", again.Turns, report.Turns)
				}
			}
		})
	}
}

// An input that is not recorded is found: planted are other clocks, other random numbers (and with them the order of maps), and
// other batches.
func TestPlantedInputsAreFound(t *testing.T) {
	w := newWorld(t, setting{workers: 2, turns: 50})
	w.load(7, 100)
	r := w.end()
	equal(t, compiled(t), r, Options{})
	for name, plant := range map[string]func(*sandbox.Entry){
		"clock":  func(in *sandbox.Entry) { in.Now += 1_000_000 },
		"random": func(in *sandbox.Entry) { in.Seed[3] ^= 1 },
		"batch":  func(in *sandbox.Entry) { in.Most = max(in.Most-1, 0) },
	} {
		report, err := Run(context.Background(), compiled(t), r, Options{Modules: modules(t), plant: plant})
		if err != nil {
			t.Fatal(err)
		}
		if report.Difference == nil {
			t.Errorf("%s: %s, and nothing is found", name, describe(report))
		} else {
			t.Logf("%s, after %d turns: %v", name, report.Turns, report.Difference)
		}
	}
}
