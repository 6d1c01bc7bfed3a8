package upgrade_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// lasting is a system in steps whose actors are durable, on a simulated disk.
type lasting struct {
	*host.System
	t      testing.TB
	store  *durable.Store
	module *host.Module
	looks  map[string]string // of what came back
}

// lastingNow is the time that each process begins at.
var lastingNow = time.Unix(1_700_000_000, 0)

var lastingNames = []string{"a", "b", "c"}

// kept are the modules that a store has; they outlive each process.
func openLasting(t testing.TB, fs wal.FS, kept *sync.Map, image *runtime.Image) (*lasting, error) {
	t.Helper()
	return openLastingAs(t, fs, kept, image, false)
}

// openLastingAs is openLasting; late has actors return late, of which looks has nothing then.
func openLastingAs(t testing.TB, fs wal.FS, kept *sync.Map, image *runtime.Image, late bool) (*lasting, error) {
	t.Helper()
	w := &lasting{t: t, module: host.NewModule(image)}
	var err error
	sim := &durable.Sim{Rand: rand.NewChaCha8([32]byte{1}), Segment: 64 << 10, Secret: host.Secret{5}, Modules: kept}
	sim.Recovered = func(sys *host.System) {
		if w.System = sys; !late { // else all would return
			w.looks = w.look()
		}
	}
	w.store, err = durable.Open(durable.Options{Dir: "store", FS: fs, Lazy: late, Sim: sim, Code: func(_ []byte, m *durable.Module) (*runtime.Image, error) {
		return must(engine())(t).Load(context.Background(), m.Code, runtime.ImageConfig{Name: m.Name})
	}})
	if err != nil {
		return nil, err
	}
	keep(t, w.store, image)
	props := durable.Props{}
	for _, name := range lastingNames {
		props[name] = host.GuestOf(w.module, "tally").WithLimits(host.Limits{Memory: 1 << 20, Fuel: 1_000_000}).WithDurable()
	}
	cfg := host.NewConfig("w").WithClock(host.NewVirtualClock(lastingNow)).WithManual().
		WithGuardian(supervision.Default().WithOtherwise(supervision.Restart))
	x, err := w.store.Prepare(cfg, props)
	if err != nil {
		return nil, errors.Join(err, w.store.Close())
	}
	w.System = x.System()
	back, err := x.Recover()
	for _, name := range lastingNames {
		if err == nil && !back[name] {
			_, err = w.Spawn(name, props[name])
		}
	}
	if err != nil {
		x.Abandon()
		w.end()
		return nil, err
	}
	x.Release()
	w.rest()
	return w, nil
}

// keep has a store keep the code of a guest that is written by hand.
func keep(t testing.TB, s *durable.Store, image *runtime.Image) {
	t.Helper()
	code := must(os.ReadFile(filepath.Join("testdata", "wat", image.Name()+".wasm")))(t)
	sum, identity := must(sandbox.Fingerprint(image))(t), must(sandbox.Identity(image))(t)
	if err := s.Keep(sum[:], &durable.Module{Name: image.Name(), Code: code, Identity: identity[:]}); err != nil {
		t.Fatal(err)
	}
}

func (w *lasting) rest() {
	for w.Step() || w.store.Work() {
	}
}

func (w *lasting) end() {
	_ = w.Close(context.Background())
	_ = w.store.Close()
}

// look is all that there is to the actors.
func (w *lasting) look() map[string]string {
	all := map[string]string{}
	for _, name := range lastingNames {
		if ref, err := w.Lookup("/user/" + name); err == nil {
			x := *port.Look(w.System, ref.UID())
			sum := sha256.Sum256(x.Saved)
			x.Saved = sum[:8]
			all[name] = fmt.Sprintf("%+v", x)
		}
	}
	return all
}

// count has an actor count once more. It returns the version of its code and the count.
func (w *lasting) count(name string) (version, n int) {
	w.t.Helper()
	ref := must(w.Lookup("/user/" + name))(w.t)
	p := must(w.Request(ref, host.Raw{1}))(w.t)
	defer p.Cancel()
	w.rest()
	select {
	case m := <-p.Answer():
		if m.Err() == nil && len(m.Payload) == 2 {
			return int(m.Payload[1]) / 100, int(m.Payload[1]) % 100
		}
		w.t.Fatalf("%s: %v %x", name, m.Err(), m.Payload)
	default:
		w.t.Fatal(name, "does not answer: ", w.store.Err())
	}
	return 0, 0
}

// moment is what was known when there had been so many changes of the disk.
type moment struct {
	changes int
	said    map[string][2]int // version and count
	looks   map[string]string
	traps   bool // b has a message that traps
	crashed bool // it has trapped, and that is about to be undone: without that it is a crash
	told    bool // c has a message that it has not answered
}

// lived is a life with an upgrade and one that goes back, and what was known in between.
func lived(t *testing.T, fs *crashfs.FS, kept *sync.Map, old, new *runtime.Image) (all []moment) {
	t.Helper()
	w := must(openLasting(t, fs, kept, old))(t)
	said := map[string][2]int{}
	traps, crashed, told := false, false, false
	note := func() {
		w.rest()
		all = append(all, moment{fs.Done(), map[string][2]int{}, w.look(), traps, crashed, told})
		for name, x := range said {
			all[len(all)-1].said[name] = x
		}
	}
	count := func(names ...string) {
		for _, name := range names {
			v, n := w.count(name)
			said[name] = [2]int{v, n}
			told = told && name != "c"
			note()
		}
	}
	note()
	count("a", "b", "c", "a", "b")
	crash := func(context.Context, time.Duration) {
		count("a", "b")
		tell := func(name string, m byte) {
			if err := w.Tell(must(w.Lookup("/user/"+name))(t), host.Raw{m}); err != nil {
				t.Fatal(err)
			}
		}
		tell("c", 1)
		tell("b", 9) // version 2 traps
		traps, crashed, told = true, true, true
		note()
	}
	keep(t, w.store, new)
	r := must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{Probation: time.Minute, Wait: crash}))(t)
	crashed = false
	if !r.RolledBack || r.Crashes != 1 {
		t.Fatalf("%+v", r)
	}
	for _, a := range r.Actors { // those that have answered with another version cannot go back
		if want := map[bool]string{true: upgrade.WentBack, false: upgrade.Paused}[a.Path == "/user/c"]; a.Did != want {
			t.Fatalf("%+v", a)
		}
	}
	note()
	said["b"], traps = [2]int{2, 0}, false // it crashes now
	for _, name := range lastingNames {
		_ = w.Operate().Unpause(must(w.Lookup("/user/"+name))(t), false)
	}
	count("a", "b", "c")
	r = must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{}))(t)
	for _, a := range r.Actors {
		if a.Did != upgrade.Upgraded && said[a.Path[len("/user/"):]][0] != 2 {
			t.Fatalf("%+v", a)
		}
	}
	count("c", "a", "b")
	if err := w.store.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	count("b")
	w.end()
	return all
}

// TestKilledInAnUpgrade: whenever the power fails in an upgrade, or while one goes back, each actor comes back with its old code and
// state, or with those that it had after it; what it has said holds, and each message was handled once. So it is whatever code the
// manifest names.
func TestKilledInAnUpgrade(t *testing.T) {
	defer func(n int) { swap.Part = n }(swap.Part)
	swap.Part = 64 // the snapshots of actors that go back have several parts
	old, new := byHand(t, "tally1"), byHand(t, "tally2")
	fs, kept := crashfs.New(), &sync.Map{}
	all := lived(t, fs, kept, old, new)
	opened, versions := 0, map[int]int{}
	for changes := all[0].changes; changes <= all[len(all)-1].changes; changes++ {
		i, exact := slices.BinarySearchFunc(all, changes, func(m moment, c int) int { return m.changes - c })
		if !exact {
			i--
		}
		before, after := all[i], all[min(i+1, len(all)-1)]
		for seed := range uint64(thorough.Of(thorough.SlowOf(2, 4), 40)) {
			image := old
			if seed%2 == 1 {
				image = new
			}
			x, err := openLasting(t, fs.After(changes, rand.New(rand.NewPCG(seed, uint64(changes)))), kept, image)
			if err != nil {
				t.Fatalf("after %d changes, seed %d, with %s: %v", changes, seed, image.Name(), err)
			}
			if exact {
				for _, name := range lastingNames {
					if x.looks[name] != before.looks[name] && !(name == "b" && before.crashed) {
						t.Errorf("after %d changes %s is\n%s\nand was\n%s", changes, name, x.looks[name], before.looks[name])
					}
				}
			}
			for _, name := range lastingNames {
				_ = x.Operate().Unpause(must(x.Lookup("/user/"+name))(t), false)
				v, n := x.count(name)
				versions[v]++
				first, last := before.said[name], after.said[name]
				if name == "b" && before.traps && v == 2 && n == 1 {
					continue // it has begun anew
				}
				most := last[1] + 1 // this one counts
				if after.told && name == "c" {
					most++
				}
				if v != 1 && v != 2 || n <= first[1] || n > most {
					t.Errorf("after %d changes, seed %d: %s has version %d and counts %d; it had said %v, and then %v", changes, seed, name, v, n, first, last)
				}
			}
			x.end()
			opened++
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if t.Logf("%d moments, %d systems, versions %v", len(all), opened, versions); versions[1] == 0 || versions[2] == 0 {
		t.Error("one of them never came back")
	}
}

// TestKeptCode: code is kept as long as a record or an actor needs it; without it a start is refused, and says why.
func TestKeptCode(t *testing.T) {
	old, new := byHand(t, "tally1"), byHand(t, "tally2")
	fs, kept := crashfs.New(), &sync.Map{}
	number := func() (n int) { kept.Range(func(any, any) bool { n++; return true }); return n }
	w := must(openLasting(t, fs, kept, old))(t)
	w.count("a")
	keep(t, w.store, new)
	if r := must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{}))(t); r.Stopped != "" || of(&world{t: t}, r, "/a").Did != upgrade.Upgraded {
		t.Fatalf("%+v", r)
	}
	sum := must(sandbox.Fingerprint(old))(t)
	w.store.Release(sum[:])
	if number() != 2 {
		t.Error("the log needs both, and has", number())
	}
	if err := w.store.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	if number() != 1 {
		t.Error("the old code is not needed any more, and there are", number())
	}
	w.end()
	x := must(openLasting(t, fs.Copy(), kept, new))(t)
	if v, n := x.count("a"); v != 2 || n != 2 {
		t.Error(v, n)
	}
	x.end()
	x = must(openLasting(t, fs.Copy(), kept, old))(t)
	if v, n := x.count("a"); v != 2 || n != 2 {
		t.Error(v, n)
	}
	x.end()
	_, err := openLasting(t, fs.Copy(), &sync.Map{}, old)
	if !errors.Is(err, port.ErrCode) || !errors.Is(err, durable.ErrNoModule) || !strings.Contains(err.Error(), "/user/a") {
		t.Error(err)
	}
}

// TestDurableKeepsItsCode: a durable actor whose code does not save, or whose new code does not load, keeps both, and its log opens. A
// restart keeps the code, too, and its state is lost only where it is said that it may be.
func TestDurableKeepsItsCode(t *testing.T) {
	for name, why := range map[string]string{
		"save-trap": "unreachable", "save-loop": "fuel", "save-grow": "unreachable", "save-twice": "saved 2 times", "save-send": "asked for send",
		"save-garbage": "not one item", "load-trap": "unreachable", "load-loop": "fuel", "load-grow": "unreachable", "load-send": "asked for send",
		"load-saved": "asked for saved",
	} {
		t.Run(name, func(t *testing.T) {
			images, version := [2]string{"tally1", name}, 1
			if strings.HasPrefix(name, "save") {
				images, version = [2]string{name, "tally1"}, 2
			}
			fs, kept := crashfs.New(), &sync.Map{}
			w := must(openLasting(t, fs, kept, byHand(t, images[0])))(t)
			w.count("a")
			new := byHand(t, images[1])
			keep(t, w.store, new)
			for _, plan := range []bool{true, false} {
				r := must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{Plan: plan}))(t)
				if a := of(&world{t: t}, r, "/a"); a.Did != upgrade.Kept || !strings.Contains(a.Why, why) {
					t.Errorf("%+v", a)
				}
			}
			if v, n := w.count("a"); v != version || n != 2 {
				t.Error(v, n)
			}
			look := w.look()
			w.end()
			for _, image := range images {
				x := must(openLasting(t, fs.Copy(), kept, byHand(t, image)))(t)
				if x.looks["a"] != look["a"] {
					t.Errorf("with %s it is\n%s\nand was\n%s", image, x.looks["a"], look["a"])
				}
				if v, n := x.count("a"); v != version || n != 3 {
					t.Error(image, v, n)
				}
				if err := x.Operate().Restart(must(x.Lookup("/user/a"))(t)); err != nil {
					t.Fatal(err)
				}
				x.rest()
				if v, n := x.count("a"); v != version || n != 1 {
					t.Error(image, "after a restart:", v, n)
				}
				x.end()
			}
		})
	}
	fs, kept := crashfs.New(), &sync.Map{}
	w := must(openLasting(t, fs, kept, byHand(t, "tally1")))(t)
	w.count("a")
	w.count("b")
	new := byHand(t, "load-trap")
	keep(t, w.store, new)
	anew := func(path, _ string) []upgrade.Way {
		if path == "/user/a" {
			return []upgrade.Way{upgrade.Restart}
		}
		return nil
	}
	r := must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{Ways: anew}))(t)
	w.rest()
	if a, b := of(&world{t: t}, r, "/a"), of(&world{t: t}, r, "/b"); a.Did != upgrade.Restarted || b.Did != upgrade.Kept {
		t.Errorf("%+v %+v", a, b)
	}
	look := w.look()
	w.end()
	for _, image := range []string{"tally1", "load-trap"} {
		x := must(openLasting(t, fs.Copy(), kept, byHand(t, image)))(t)
		for _, name := range lastingNames {
			if x.looks[name] != look[name] {
				t.Errorf("with %s %s is\n%s\nand was\n%s", image, name, x.looks[name], look[name])
			}
		}
		if v, n := x.count("a"); v != 2 || n != 1 {
			t.Error(image, v, n)
		}
		if v, n := x.count("b"); v != 1 || n != 2 {
			t.Error(image, v, n)
		}
		x.end()
	}
}

// A plan touches nothing: neither the actors nor their log.
func TestAPlanOfDurableActors(t *testing.T) {
	fs, kept := crashfs.New(), &sync.Map{}
	w := must(openLasting(t, fs, kept, byHand(t, "tally1")))(t)
	w.count("a")
	look, changes := w.look(), fs.Done()
	r := must(upgrade.Run(context.Background(), w.System, w.module, byHand(t, "tally2"), upgrade.Options{Plan: true}))(t)
	w.rest()
	if a := of(&world{t: t}, r, "/a"); a.Did != upgrade.WouldBe || fs.Done() != changes || w.look()["a"] != look["a"] {
		t.Errorf("%+v, %d changes", a, fs.Done()-changes)
	}
	w.end()
}

// An actor that is away is planned, upgraded and goes back as one that is here.
func TestWhoIsAwayIsUpgraded(t *testing.T) {
	old, new := byHand(t, "tally1"), byHand(t, "tally2")
	fs, kept := crashfs.New(), &sync.Map{}
	w := must(openLasting(t, fs, kept, old))(t)
	for i, name := range lastingNames {
		for range i + 1 {
			w.count(name)
		}
	}
	if err := w.store.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.end()
	for _, how := range []string{"plan", "whole", "canary", "goes back", "looked at before"} {
		var said [2]string // of those that are here, and of those that are away
		for i, late := range []bool{false, true} {
			disk := fs.Copy()
			w := must(openLastingAs(t, disk, &sync.Map{}, old, late))(t)
			disk.Fail(nil) // counts from here
			if how == "looked at before" {
				w.look()
			}
			keep(t, w.store, new)
			o := upgrade.Options{Plan: how == "plan", Probation: time.Minute, Wait: func(context.Context, time.Duration) { w.rest() }}
			switch how {
			case "canary":
				o.Canary = 0.3
			case "goes back":
				o.Wait = func(context.Context, time.Duration) { w.tell("b", 9) } // it crashes
			}
			r := must(upgrade.Run(context.Background(), w.System, w.module, new, o))(t)
			if read := disk.Calls() > 0; o.Plan && read != late { // a plan writes nothing
				t.Fatalf("late %v, and the disk was read: %v", late, read)
			}
			w.rest()
			for _, a := range r.Actors {
				said[i] += fmt.Sprintln(a.Path, a.Type, a.Way, a.Did, a.Why, a.Tried, a.Differ)
			}
			said[i] += fmt.Sprintln(r.Plan, r.Stopped, r.RolledBack, r.Crashes, w.look())
			for _, name := range lastingNames {
				version, n := w.count(name)
				said[i] += fmt.Sprintln(name, version, n)
			}
			w.end()
		}
		if said[0] != said[1] {
			t.Errorf("%s: of actors that are here\n%s\nof those that are away\n%s", how, said[0], said[1])
		}
		if t.Logf("%s: %s", how, said[1]); len(said[1]) < 100 {
			t.Error("it says too little")
		}
	}
}
