package bundle

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// keeping is a bundle with a store, in a process of its own as far as the store can tell.
type keeping struct {
	t   *testing.T
	dir string
	b   *Bundle
	sys *host.System
	log bytes.Buffer
}

const keepingManifest = `wasmactors: 1
name: tally
store: {path: ./state, size: 64MiB}
modules: {m: {wasm: m.wasm, limits: {memory: 1MiB}}}
actors: {a: {type: m/tally, durable: true}, b: {type: m/tally, durable: true, upgrade: [state, restart]}, c: {type: m/tally}}
`

// startKeeping runs the bundle of a folder, with a module.
func startKeeping(t *testing.T, dir, module string) *keeping {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "m.wasm"), tallyOf(t, module), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(keepingManifest), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeping{t: t, dir: dir}
	if k.b, err = Open(context.Background(), m, Options{CacheDir: servicetest.CacheDir(), Log: slog.New(slog.NewTextHandler(&k.log, nil))}); err != nil {
		t.Fatal(err)
	}
	if k.sys, err = k.b.Start(nil, nil); err != nil {
		_ = k.b.Close(context.Background())
		t.Fatal(err)
	}
	return k
}

// killed is a folder with what is left of the process when it is killed now.
func (k *keeping) killed() string {
	k.t.Helper()
	dir := k.t.TempDir()
	for _, sub := range []string{"log", "modules", "."} {
		if err := os.MkdirAll(filepath.Join(dir, "state", sub), 0o700); err != nil {
			k.t.Fatal(err)
		}
		from := filepath.Join(k.dir, "state", sub)
		all, err := os.ReadDir(from)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, f := range all {
			if f.IsDir() || f.Name() == "lock" {
				continue
			}
			b, err := os.ReadFile(filepath.Join(from, f.Name()))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "state", sub, f.Name()), b, 0o600)
			}
			if err != nil {
				k.t.Fatal(err)
			}
		}
	}
	return dir
}

func (k *keeping) ask(name string) (n uint64) {
	k.t.Helper()
	ref, err := k.sys.Lookup("/user/" + name)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := k.sys.Ask(ctx, ref, 0)
	if err == nil {
		err = answer.Decode(&n)
	}
	if err != nil {
		k.t.Fatal(name, err)
	}
	return n
}

// files is how many modules the store has.
func (k *keeping) files() int {
	k.t.Helper()
	all, err := os.ReadDir(filepath.Join(k.dir, "state", "modules"))
	if err != nil {
		k.t.Fatal(err)
	}
	return len(all)
}

func (k *keeping) end() {
	k.t.Helper()
	if err := k.b.Close(context.Background()); err != nil {
		k.t.Error(err)
	}
}

func (k *keeping) upgrade(module string) Upgraded {
	k.t.Helper()
	c, err := k.b.PrepareModule(context.Background(), "m", tallyOf(k.t, module), Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	done, err := c.Upgrade(context.Background(), k.sys, upgrade.Options{}, nil)
	if err != nil || len(done) != 1 {
		k.t.Fatal(done, err)
	}
	return done[0]
}

// Durable actors are upgraded as others are, and come back with their code and state after a crash. If the manifest names other code, they
// are upgraded to that when they are back, in the ways that it says; where that fails they keep what they have, and the log says so.
func TestDurableActorsAndOtherCode(t *testing.T) {
	k := startKeeping(t, t.TempDir(), "tally1")
	k.ask("a")
	k.ask("b")
	k.ask("c")
	if u := k.upgrade("tally2"); u.Stopped != "" || len(u.Actors) != 3 {
		t.Fatalf("%+v", u.Report)
	}
	if a, b, c := k.ask("a"), k.ask("b"), k.ask("c"); a != 202 || b != 202 || c != 202 {
		t.Errorf("%d %d %d", a, b, c)
	}
	for _, x := range []struct {
		module  string
		a, b, c uint64
		says    string
		files   int // that the store has after a checkpoint
	}{
		{"tally2", 203, 203, 201, "", 1},
		{"tally1", 103, 103, 101, "2 upgraded", 1}, // the upgrade was given by hand, and its manifest names the code before it
		{"load-trap", 203, 203, 201, "keeps the code that it had", 2},
		{"save-trap", 203, 203, 201, "2 upgraded", 1},
	} {
		t.Run(x.module, func(t *testing.T) {
			dir := k.killed()
			for life := range uint64(3) {
				k := startKeeping(t, dir, x.module)
				if a, b, c := k.ask("a"), k.ask("b"), k.ask("c"); a != x.a+life || b != x.b+life || c != x.c {
					t.Errorf("life %d: %d %d %d", life, a, b, c)
				}
				if said := k.log.String(); life == 0 && !strings.Contains(said, x.says) || x.says == "" && strings.Contains(said, "code") {
					t.Errorf("life %d: %s", life, said)
				}
				if life == 1 {
					dir = k.killed()
				} else if err := k.b.Store().Checkpoint(context.Background()); err != nil {
					t.Error(err)
				} else if n := k.files(); n != x.files {
					t.Errorf("life %d: the store has %d modules, want %d", life, n, x.files)
				}
				k.end()
			}
		})
	}
	k.end()
}

// Code goes from the store when no module and no actor has it any more, while the process runs; under other limits it is the same code.
func TestKeptCodeGoesWithItsModule(t *testing.T) {
	k := startKeeping(t, t.TempDir(), "tally1")
	defer k.end()
	k.ask("a")
	checkpoint := func(want int) {
		t.Helper()
		if err := k.b.Store().Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := k.files(); n != want {
			t.Errorf("the store has %d modules, want %d", n, want)
		}
	}
	k.upgrade("tally2")
	checkpoint(1)
	if err := os.WriteFile(filepath.Join(k.dir, "m.wasm"), tallyOf(t, "tally2"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := *k.b.Manifest
	m.Modules = slices.Clone(m.Modules)
	m.Modules[0].Memory = 2 << 20
	c, err := k.b.Prepare(context.Background(), &m, Options{}, func(string) bool { return false })
	if err != nil || len(c.Modules) != 1 || c.Modules[0].Now != c.Modules[0].Before {
		t.Fatal(err)
	}
	for _, x := range c.Apply(context.Background(), k.sys) {
		if x.Err != nil {
			t.Error(x)
		}
	}
	for _, name := range []string{"a", "b"} {
		ref, err := k.sys.Lookup("/user/" + name)
		if err != nil {
			t.Fatal(err)
		}
		ended, err := k.sys.Ended(ref)
		if err != nil {
			t.Fatal(err)
		}
		k.sys.Stop(ref)
		<-ended
	}
	checkpoint(1) // durable actors that begin now run it
}

// A reload whose code cannot be kept leaves the module as it was, also for actors that begin later; the next one can.
func TestReloadOfCodeThatIsNotKept(t *testing.T) {
	k := startKeeping(t, t.TempDir(), "tally1")
	defer k.end()
	k.ask("a")
	k.ask("c")
	before := k.b.Hash("m")
	prepared := func() *Change {
		c, err := k.b.PrepareModule(context.Background(), "m", tallyOf(t, "tally2"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := prepared()
	c.loaded["m"].fetch = fetching([]byte("other code"))
	if done := c.Apply(context.Background(), k.sys); len(done) != 1 || done[0].Err == nil || !strings.Contains(done[0].Err.Error(), "cannot keep its code") {
		t.Errorf("%+v", done)
	}
	if k.b.Hash("m") != before || k.b.Images["m"] != k.b.Module("m").Image() {
		t.Error("the bundle has other code than the system")
	}
	p := k.b.props(&k.b.Manifest.Actors[2])
	if _, err := k.sys.Spawn("late", p); err != nil {
		t.Fatal(err)
	}
	if a, c, late := k.ask("a"), k.ask("c"), k.ask("late"); a != 102 || c != 102 || late != 101 {
		t.Error(a, c, late)
	}
	for _, x := range prepared().Apply(context.Background(), k.sys) {
		if x.Err != nil {
			t.Error(x)
		}
	}
	if a := k.ask("a"); a != 203 || k.b.Hash("m") == before {
		t.Error(a)
	}
}

// A start does not wait for upgrades without an end: actors that were not reached keep their code, and the log says so.
func TestCatchingUpTakesItsTime(t *testing.T) {
	k := startKeeping(t, t.TempDir(), "tally1")
	k.ask("a")
	dir := k.killed()
	k.end()
	defer func(d time.Duration) { catchUpTime = d }(catchUpTime)
	catchUpTime = -time.Second // over before it begins
	k = startKeeping(t, dir, "tally2")
	if a, c := k.ask("a"), k.ask("c"); a != 102 || c != 201 {
		t.Error(a, c)
	}
	if said := k.log.String(); !strings.Contains(said, "keep the code that they had") {
		t.Error(said)
	}
	dir = k.killed()
	k.end()
	catchUpTime = time.Minute
	k = startKeeping(t, dir, "tally2")
	defer k.end()
	if a := k.ask("a"); a != 203 {
		t.Error(a)
	}
}

// What a kept module says of its own limits does not count, whether the manifest has its name or not.
func TestForgedKeptModules(t *testing.T) {
	k := startKeeping(t, t.TempDir(), "tally1")
	defer k.end()
	for i, name := range []string{"m", "other"} {
		x, err := k.b.loadKept([]byte{byte(i)}, &durable.Module{
			Name:   name,
			Config: []byte(`{"Memory": 4294967296, "Size": 1099511627776, "InitFuel": 18446744073709551615, "InitDeadline": 9223372036854775807, "CompileMemory": 1099511627776, "Freeze": true, "Dirs": [{"Host": "/", "Guest": "/"}]}`),
			Code:   tallyOf(t, "tally2"),
		})
		if err != nil {
			t.Fatal(err)
		}
		c := sandbox.ConfigOf(x)
		if c.MemoryLimit > mostKeptMemory || c.SizeLimit != runtime.DefaultSizeLimit || c.InitFuel != runtime.DefaultInitFuel || c.InitDeadline != runtime.DefaultInitDeadline || c.CompileMemory != 0 || len(c.Dirs) > 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
	k.b.retireKept()
}
