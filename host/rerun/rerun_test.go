package rerun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/runtime"
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
			if !testing.Short() && (n == 1 || thorough.Slow) {
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

// The order of a map follows from what a guest draws when it is initialised. Where that is not what was recorded, it is found.
func TestAnotherOrderOfMapsIsFound(t *testing.T) {
	w := newWorld(t, setting{workers: 2, image: runtime.ImageConfig{NoFreeze: true}})
	ref, err := w.Lookup("/user/worker")
	for range 20 {
		err = errors.Join(err, w.Tell(ref, "order"))
	}
	if _, failed := w.Ask(t.Context(), ref, "answer"); err != nil || failed != nil { // now it has handled them
		t.Fatal(err, failed)
	}
	r := w.end()
	if equal(t, compiled(t), r, Options{Actor: "/user/worker"}).Turns < 20 {
		t.Fatal("too little has happened")
	}
	other := func(in *sandbox.Entry) { in.Seed[5] ^= 1 }
	report, err := Run(t.Context(), compiled(t), r, Options{Modules: modules(t), Actor: "/user/worker", plant: other})
	if err != nil {
		t.Fatal(err)
	}
	if report.Difference == nil {
		t.Errorf("%s, and nothing is found", describe(report))
	}
	t.Log(report.Difference)
}

// Each file of a recording repeats by itself, whatever was under way when it began: failures, stashed messages, timers.
func TestFurtherFilesRepeat(t *testing.T) {
	w := newWorld(t, setting{workers: 3, bytes: recorder.MinBytes})
	var before os.FileInfo
	files := 1
	for n := uint64(0); n < 60 && files < 4; n++ {
		w.load(n, 150)
		w.r.Flush()
		if info, err := os.Stat(w.path + recorder.Old); err == nil && (before == nil || !os.SameFile(before, info)) {
			before = info
			files++
		}
	}
	if files < 4 {
		t.Errorf("there were %d files", files)
	}
	last := w.end()
	for name, r := range map[string]*recorder.Recording{"the file before": read(t, w.path+recorder.Old), "the last file": last} {
		report := equal(t, compiled(t), r, Options{})
		if r.Missing != nil || report.Turns < 10 {
			t.Errorf("%s: %v, %s", name, r.Missing, describe(report))
		}
		t.Log(name, describe(report), report.NotRecorded)
	}
}

// A recording whose messages are never handed out takes no more memory than it may, and one that nobody waits for any more is
// not read to its end.
func TestBoundsOfARepetition(t *testing.T) {
	w := newWorld(t, setting{workers: 2})
	w.load(3, 50)
	r := w.end()
	if _, err := Run(t.Context(), compiled(t), r, Options{Modules: modules(t), kept: 100}); err == nil || !strings.Contains(err.Error(), "messages wait") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := planOf(ctx, r, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for given, want := range map[uint64]uint64{0: 1_000_000_000, 5: 5, 1 << 63: mostFuel} {
		if p := newPlayer(nil, &recorder.Incarnation{Fuel: given}); p.in.TurnFuel != want {
			t.Errorf("of %d units of fuel a turn may spend %d", given, p.in.TurnFuel)
		}
	}
}

// A recording of a type that its module does not have is refused before anything runs.
func TestForeignRecordings(t *testing.T) {
	image := load(t, "puppet", modules(t)[0], runtime.ImageConfig{})
	path := filepath.Join(t.TempDir(), "x.wrec")
	r, err := recorder.Open(recorder.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	l := r.NewLane()
	known, unknown := l.Begin(&recorder.Incarnation{Path: "/user/a", Type: "puppet"}, image), l.Begin(&recorder.Incarnation{Path: "/user/b", Type: "marionette"}, image)
	for _, x := range []*recorder.Track{known, unknown} {
		l.Run(x, &recorder.Run{Done: 1}, []*mailbox.Envelope{{Kind: abi.KindStart}}, nil)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	ran := false
	report, err := Run(t.Context(), compiled(t), read(t, path), Options{Modules: modules(t), seen: func(*happened) bool { ran = true; return true }})
	if err == nil || report != nil || ran || !strings.Contains(err.Error(), `puppet has no actor type "marionette"`) {
		t.Errorf("%v, %+v, ran %t", err, report, ran)
	}
}
