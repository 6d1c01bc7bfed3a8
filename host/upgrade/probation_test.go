package upgrade_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/runtime"
)

// Messages of the guest tally.
const (
	counts = 1
	traps  = 9 // in version 2
)

// tell sends an actor messages that nobody waits for.
func (w *lasting) tell(name string, all ...byte) {
	w.t.Helper()
	for _, m := range all {
		if err := w.Tell(must(w.Lookup("/user/"+name))(w.t), host.Raw{m}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.rest()
}

// resume goes on with the upgrade that the store knows of.
func (w *lasting) resume(old, new *runtime.Image, wait func(time.Duration)) *upgrade.Report {
	w.t.Helper()
	p := w.store.Probation()
	if p == nil {
		w.t.Fatal("the store knows of no probation")
	}
	o := upgrade.Options{Remember: w.store.Remember, Wait: func(_ context.Context, d time.Duration) { wait(d) }}
	r := must(upgrade.Resume(context.Background(), w.System, w.module, old, new, p, o))(w.t)
	w.rest()
	return r
}

func didOf(t *testing.T, r *upgrade.Report, name string) string {
	t.Helper()
	for _, a := range r.Actors {
		if a.Path == "/user/"+name {
			return a.Did
		}
	}
	t.Fatalf("the report has no %s: %+v", name, r.Actors)
	return ""
}

// A probation goes on in the next process: for as long as is left of it, whatever code the manifest names, with what the actor has come to
// before a checkpoint and after it. A crash is undone as if the process had not ended, and without one no actor can go back afterwards.
func TestProbationOutlivesTheProcess(t *testing.T) {
	old, new := byHand(t, "tally1"), byHand(t, "tally2")
	defer func(now time.Time, n int) { lastingNow, swap.Part = now, n }(lastingNow, swap.Part)
	swap.Part = 64
	began := lastingNow
	for _, c := range []struct {
		name             string
		checkpoint, trap bool
		image            *runtime.Image
		away             time.Duration
	}{
		{"a crash", false, true, new, 20 * time.Second},
		{"a crash, with the old code in the manifest", false, true, old, 0},
		{"a crash after a checkpoint", true, true, new, 0},
		{"a crash after a checkpoint, with the old code in the manifest", true, true, old, 20 * time.Second},
		{"no crash", false, false, new, 20 * time.Second},
		{"no crash, with the old code in the manifest", true, false, old, 0},
		{"a crash at its end", false, true, new, time.Hour},
		{"it ends while no process runs", true, false, new, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			lastingNow = began
			fs, kept := crashfs.New(), &sync.Map{}
			w := must(openLasting(t, fs, kept, old))(t)
			for _, name := range lastingNames {
				w.count(name)
			}
			keep(t, w.store, new)
			var left *crashfs.FS
			must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{Probation: time.Minute, Remember: w.store.Remember, Wait: func(context.Context, time.Duration) {
				w.tell("c", counts)
				if c.checkpoint {
					if err := w.store.Checkpoint(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
				w.tell("c", counts)
				left = fs.Copy()
			}}))(t)
			if p := w.store.Probation(); p != nil {
				t.Errorf("it is over, and the store has %+v", p)
			}
			w.end()

			lastingNow = began.Add(c.away)
			w = must(openLasting(t, left, kept, c.image))(t)
			waits := 0
			r := w.resume(old, new, func(d time.Duration) {
				if waits++; d != max(0, time.Minute-c.away) {
					t.Errorf("it is watched for %v", d)
				}
				if w.tell("c", counts); c.trap {
					w.tell("c", traps, counts)
				}
			})
			if waits != 1 || w.store.Probation() != nil {
				t.Error(waits, w.store.Probation())
			}
			v, n := w.count("c")
			image := w.module.Image()
			if c.trap {
				if !r.RolledBack || r.Crashes != 1 || didOf(t, r, "c") != upgrade.WentBack || didOf(t, r, "a") != upgrade.WentBack || image != old {
					t.Errorf("%+v", r)
				}
				twin := must(openLasting(t, crashfs.New(), &sync.Map{}, old))(t)
				twin.count("c")
				twin.tell("c", counts, counts, counts, traps, counts)
				if _, want := twin.count("c"); v != 1 || n != want {
					t.Errorf("version %d counts %d; one that was never upgraded %d", v, n, want)
				}
				twin.end()
			} else {
				if r.RolledBack || r.Stopped != "" || didOf(t, r, "c") != upgrade.Upgraded || image != new || v != 2 || n != 5 {
					t.Errorf("version %d counts %d: %+v", v, n, r)
				}
				w.tell("c", traps)
				if v, n := w.count("c"); v != 2 || n != 1 {
					t.Errorf("after a crash version %d counts %d: nothing can go back any more", v, n)
				}
			}
			again := left.Copy()
			w.end()
			w = must(openLasting(t, again, kept, image))(t)
			if p := w.store.Probation(); p != nil {
				t.Errorf("it is over, and the next process has %+v", p)
			}
			w.end()
		})
	}
}

// What has gone over first is watched in the next process, and the others follow; crashes of earlier processes count.
func TestCanariesOutliveTheProcess(t *testing.T) {
	old, new := byHand(t, "tally1"), byHand(t, "tally2")
	fs, kept := crashfs.New(), &sync.Map{}
	w := must(openLasting(t, fs, kept, old))(t)
	for _, name := range lastingNames {
		w.count(name)
	}
	keep(t, w.store, new)
	var left []*crashfs.FS
	r := must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{
		Probation: time.Minute, Canary: 0.3, MaxFailures: 1, Remember: w.store.Remember, Wait: func(context.Context, time.Duration) {
			if w.tell("a", counts); len(left) == 0 {
				left = append(left, fs.Copy())
				w.tell("a", traps)
			}
			left = append(left, fs.Copy())
		}}))(t)
	if r.Crashes != 1 || r.RolledBack || didOf(t, r, "a") != upgrade.WentBack || didOf(t, r, "b") != upgrade.Upgraded || len(left) != 3 {
		t.Fatalf("%+v, %d", r, len(left))
	}
	w.end()

	w = must(openLasting(t, left[0], kept, new))(t)
	if p := w.store.Probation(); !p.First || p.Until == 0 || p.Crashes != 0 {
		t.Errorf("%+v", p)
	}
	waits := 0
	r = w.resume(old, new, func(time.Duration) {
		waits++
		p := w.store.Probation()
		if b := must(w.Lookup("/user/b"))(t); p.First != (waits == 1) || w.code(b) != map[bool]*runtime.Image{true: old, false: new}[waits == 1].Name() {
			t.Errorf("wait %d: %+v, b has %s", waits, p, w.code(b))
		}
	})
	if waits != 2 || r.Stopped != "" {
		t.Errorf("%d waits, %+v", waits, r)
	}
	for _, name := range lastingNames {
		if v, _ := w.count(name); v != 2 {
			t.Errorf("%s has version %d", name, v)
		}
	}
	w.end()

	w = must(openLasting(t, left[1], kept, new))(t) // the crash was not undone yet
	if r = w.resume(old, new, func(time.Duration) {}); r.Crashes != 1 || r.RolledBack || didOf(t, r, "a") != upgrade.WentBack || didOf(t, r, "b") != upgrade.Upgraded {
		t.Errorf("%+v", r)
	}
	w.end()

	w = must(openLasting(t, left[2], kept, new))(t)
	if p := w.store.Probation(); p.First || p.Until == 0 || p.Crashes != 1 {
		t.Errorf("%+v", p)
	}
	r = w.resume(old, new, func(time.Duration) { w.tell("b", traps) })
	if r.Crashes != 2 || !r.RolledBack || didOf(t, r, "a") != upgrade.Kept || didOf(t, r, "b") != upgrade.WentBack || didOf(t, r, "c") != upgrade.WentBack {
		t.Errorf("%+v", r)
	}
	for _, name := range lastingNames {
		if v, n := w.count(name); v != 1 || n < 2 {
			t.Errorf("%s has version %d and counts %d", name, v, n)
		}
	}
	w.end()
}

// A crash of an actor that had nothing for going back is in the log as a failure. The next process repeats it as one, although the actor
// could go back there, and goes on with the upgrade.
func TestCrashesWithoutAWayBackAreRepeated(t *testing.T) {
	old, new := byHand(t, "tally1"), byHand(t, "tally2")
	for _, c := range []struct {
		name  string
		room  int64
		ended bool // it crashes after the end of its trial, and before that of the upgrade
	}{{"no room", 1, false}, {"its trial has ended", 0, true}} {
		for _, said := range [][]byte{{traps}, {counts, counts, traps, counts}, {traps, traps, counts}} {
			for _, checkpoint := range []bool{false, true} {
				t.Run(fmt.Sprint(c.name, " ", said, " ", checkpoint), func(t *testing.T) {
					fs, kept := crashfs.New(), &sync.Map{}
					w := must(openLasting(t, fs, kept, old))(t)
					for _, name := range lastingNames {
						w.count(name)
					}
					keep(t, w.store, new)
					var left *crashfs.FS
					crash := func() {
						w.tell("c", said...)
						left = fs.Copy()
					}
					r := must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{
						Probation: time.Minute, Keep: c.room,
						Remember: func(p *record.Probation) error {
							if p.Over && c.ended {
								crash()
							}
							return w.store.Remember(p)
						},
						Wait: func(context.Context, time.Duration) {
							if w.tell("c", counts); checkpoint {
								if err := w.store.Checkpoint(context.Background()); err != nil {
									t.Fatal(err)
								}
							}
							if !c.ended {
								crash()
							}
						}}))(t)
					if w.rest(); r.Crashes != 0 || r.RolledBack {
						t.Fatalf("%+v", r)
					}
					version, n := w.count("c")
					if version != 2 || n > 3 {
						t.Fatalf("version %d counts %d: it has not crashed", version, n)
					}
					w.end()
					for _, image := range []*runtime.Image{new, old} {
						w := must(openLasting(t, left.Copy(), kept, image))(t)
						r := w.resume(old, new, func(time.Duration) {})
						if v, k := w.count("c"); v != version || k != n || r.RolledBack || r.Crashes != 0 {
							t.Errorf("version %d counts %d, and not %d and %d: %+v", v, k, version, n, r)
						}
						w.end()
					}
				})
			}
		}
	}
}

// In the next process more crashes than are allowed end the probation at once, and a clock that was set back does not make it longer.
func TestResumedProbationsEnd(t *testing.T) {
	defer func(now time.Time) { lastingNow = now }(lastingNow)
	old, new := byHand(t, "tally1"), byHand(t, "tally2")
	fs, kept := crashfs.New(), &sync.Map{}
	w := must(openLasting(t, fs, kept, old))(t)
	for _, name := range lastingNames {
		w.count(name)
	}
	keep(t, w.store, new)
	var calm, crashed *crashfs.FS
	must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{
		Probation: time.Minute,
		Remember: func(p *record.Probation) error {
			if p.Back && crashed == nil { // a has gone back, and the others are about to
				w.rest()
				crashed = fs.Copy()
			}
			return w.store.Remember(p)
		},
		Wait: func(context.Context, time.Duration) {
			w.rest()
			calm = fs.Copy()
			w.tell("a", traps)
		}}))(t)
	w.end()
	if calm == nil || crashed == nil {
		t.Fatal("it has not crashed")
	}

	lastingNow = lastingNow.Add(-time.Hour)
	w = must(openLasting(t, calm, kept, new))(t)
	w.resume(old, new, func(d time.Duration) {
		if d != time.Minute {
			t.Errorf("it is watched for %v", d)
		}
	})
	w.end()

	w = must(openLasting(t, crashed, kept, new))(t)
	p, watched := w.store.Probation(), false
	if p == nil || p.Back || p.Crashes != 1 {
		t.Fatalf("%+v", p)
	}
	r := must(upgrade.Resume(context.Background(), w.System, w.module, old, new, p, upgrade.Options{
		Remember: w.store.Remember, Wait: func(ctx context.Context, _ time.Duration) { watched = watched || ctx.Err() == nil }}))(t)
	if w.rest(); watched || !r.RolledBack {
		t.Errorf("watched: %v, %+v", watched, r)
	}
	w.end()
}

// An actor that has begun anew with the new code, in the process before, stays with it where the others go back. The report says so.
func TestWhatCannotGoBackIsSaid(t *testing.T) {
	old, new := byHand(t, "tally1"), byHand(t, "tally2")
	fs, kept := crashfs.New(), &sync.Map{}
	w := must(openLasting(t, fs, kept, old))(t)
	for _, name := range lastingNames {
		w.count(name)
	}
	keep(t, w.store, new)
	var left *crashfs.FS
	must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{
		Probation: time.Minute, Keep: 1, Remember: w.store.Remember, Wait: func(context.Context, time.Duration) {
			w.tell("c", traps)
			left = fs.Copy()
		}}))(t)
	w.end()
	w = must(openLasting(t, left, kept, new))(t)
	r := w.resume(old, new, func(time.Duration) { w.tell("a", traps) })
	for _, a := range r.Actors {
		if c := a.Path == "/user/c"; !r.RolledBack || c != (a.Did == upgrade.Upgraded) || c != (a.Why == "it has not gone back: nothing is kept for that") {
			t.Errorf("%+v", a)
		}
	}
	if v, _ := w.count("c"); v != 2 || len(r.Actors) != 3 {
		t.Errorf("c has version %d, %+v", v, r)
	}
	w.end()
}

// code is the name of the image that an actor runs.
func (w *lasting) code(ref host.Ref) string {
	x := must(w.View().Inspect(context.Background(), ref))(w.t)
	return x.Module
}

// TestKilledOnProbation: whenever the power fails, the upgrade goes on in the next process, or was not begun, or is over; all that was said holds,
// no message is handled twice, and a message that crashes the new code has the actor go back, with its state.
func TestKilledOnProbation(t *testing.T) {
	defer func(n int) { swap.Part = n }(swap.Part)
	swap.Part = 64
	old, new := byHand(t, "tally1"), byHand(t, "tally2")
	for _, crashes := range []bool{true, false} {
		fs, kept := crashfs.New(), &sync.Map{}
		w := must(openLasting(t, fs, kept, old))(t)
		for _, name := range lastingNames {
			w.count(name)
		}
		keep(t, w.store, new)
		first := fs.Done()
		trapped := -1
		r := must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{
			Probation: time.Minute, Batch: 1, Remember: w.store.Remember, Tell: func(upgrade.Step) { w.rest() }, Wait: func(context.Context, time.Duration) {
				w.tell("b", counts)
				if crashes {
					w.tell("b", traps)
					trapped = fs.Done()
				}
			}}))(t)
		if w.rest(); r.RolledBack != crashes {
			t.Fatalf("%+v", r)
		}
		last := fs.Done()
		w.end()
		stages := map[string]int{}
		for changes := first; changes <= last; changes++ {
			for seed := range uint64(thorough.Of(3, 40)) {
				image := []*runtime.Image{old, new}[seed%2]
				var x *lasting
				x, err := openLasting(t, wal.FS(fs.After(changes, rand.New(rand.NewPCG(seed, uint64(changes))))), kept, image)
				if err != nil {
					t.Fatalf("after %d changes, seed %d: %v", changes, seed, err)
				}
				stage := "none"
				if p := x.store.Probation(); p != nil {
					stage = map[bool]string{true: "back", false: map[bool]string{true: "all", false: "rolling"}[p.Until != 0]}[p.Back]
					r := x.resume(old, new, func(time.Duration) {})
					if r.RolledBack != (r.Crashes > 0 || p.Back) {
						t.Errorf("after %d changes, seed %d: %+v", changes, seed, r)
					}
					if v, _ := x.count("a"); v == 1 != r.RolledBack {
						t.Errorf("after %d changes, seed %d: a has version %d, %+v", changes, seed, v, r)
					}
				}
				if stages[stage]++; x.store.Probation() != nil {
					t.Errorf("after %d changes, seed %d: it is not over", changes, seed)
				}
				if v, n := x.count("b"); n < 2 || n > 4 || changes >= trapped && trapped > 0 && (v != 1 || n < 3) {
					t.Errorf("after %d changes, seed %d, at %s: b has version %d and counts %d", changes, seed, stage, v, n)
				}
				x.end()
			}
			if t.Failed() {
				t.FailNow()
			}
		}
		if t.Log(stages); stages["none"] == 0 || stages["rolling"] == 0 || stages["all"] == 0 || crashes && stages["back"] == 0 {
			t.Errorf("%v: a stage was never hit", stages)
		}
	}
}
