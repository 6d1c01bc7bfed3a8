package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/filewatch"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// bench is a Dev on a bundle of .wasm files that the test changes.
type bench struct {
	t      testing.TB
	dir    string
	events chan DevEvent
	ended  chan error
	cancel context.CancelFunc
	live   *host.System
}

const devManifest = `wasmactors: 1
name: dev
modules:
  m: {wasm: ./m.wasm}
  n: {wasm: ./n.wasm}
actors:
  a: {type: m/echo}
  b: {type: n/echo}
  p: {type: n/echo, children: {k: {type: m/echo}}}
`

func wasmOf(t testing.TB, name string) []byte {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func newBench(t testing.TB, manifest string) *bench {
	b := newBenchOf(t, manifest)
	b.run(Dev{Path: b.dir})
	return b
}

// newBenchOf is newBench of which nothing runs yet.
func newBenchOf(t testing.TB, manifest string) *bench {
	b := &bench{t: t, dir: t.TempDir(), events: make(chan DevEvent, 100), ended: make(chan error, 1)}
	b.write("m.wasm", wasmOf(t, "echo"))
	b.write("n.wasm", wasmOf(t, "echo"))
	b.write(FileName, []byte(manifest))
	return b
}

func (b *bench) run(d Dev) {
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	d.Tell = func(e DevEvent) { b.events <- e }
	d.watch = filewatch.Options{Quiet: 5 * time.Millisecond}
	go func() { b.ended <- d.Run(ctx) }()
	b.t.Cleanup(func() { cancel(); b.end() })
}

func (b *bench) end() {
	select {
	case err := <-b.ended:
		b.ended <- err
		if err != nil {
			b.t.Error(err)
		}
	case <-time.After(time.Minute):
		b.t.Error("it does not end")
	}
}

func (b *bench) write(name string, data []byte) {
	b.t.Helper()
	next := filepath.Join(b.dir, "."+name+".tmp") // as careful editors do
	if err := os.WriteFile(next, data, 0o644); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

// edit changes the manifest.
func (b *bench) edit(old, new string) {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, FileName))
	if err != nil || !strings.Contains(string(text), old) {
		b.t.Fatalf("%v, no %q in\n%s", err, old, text)
	}
	b.write(FileName, []byte(strings.Replace(string(text), old, new, 1)))
}

// next is the next event besides those that files have changed.
func (b *bench) next(kind DevKind) DevEvent {
	b.t.Helper()
	for {
		select {
		case e := <-b.events:
			if e.Kind == DevChanged {
				continue
			}
			if e.Kind != kind {
				b.t.Fatalf("%s %v %v, not %s", e.Kind, e.Err, e.Why, kind)
			}
			b.live = e.System
			return e
		case <-time.After(time.Minute):
			b.t.Fatalf("no %s", kind)
		}
	}
}

func (b *bench) ref(path string) host.Ref {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = b.live.Idle(ctx) // children start when their parents have
	ref, err := b.live.Lookup("/user/" + path)
	if err != nil {
		b.t.Fatalf("%s: %v", path, err)
	}
	return ref
}

// answers reports whether an actor is alive.
func (b *bench) answers(path string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := b.live.Ask(ctx, b.ref(path), 77)
	var n int
	if err != nil || m.Decode(&n) != nil || n != 77 {
		b.t.Errorf("%s: %d %v", path, n, err)
	}
}

func did(e DevEvent) string {
	var parts []string
	for _, m := range e.Modules {
		parts = append(parts, "module "+m.Name)
	}
	for _, a := range e.Actors {
		parts = append(parts, a.Path[strings.Index(a.Path, "/user/")+len("/user/"):]+" "+a.Did)
		if a.Err != nil {
			parts = append(parts, a.Err.Error())
		}
	}
	return strings.Join(parts, ", ")
}

// A day's work: code and manifest change, break and are mended; the actors that are not
// concerned go on, and the others keep their refs.
func TestDev(t *testing.T) {
	b := newBench(t, devManifest)
	up := b.next(DevUp)
	if len(up.Hashes["m"]) != 64 || up.Hashes["m"] != up.Hashes["n"] || did(up) != "module m, module n" {
		t.Errorf("%v", up.Hashes)
	}
	sys := b.live
	a, k, other := b.ref("a"), b.ref("p/k"), b.ref("b")

	b.write("m.wasm", wasmOf(t, "echo_single"))
	e := b.next(DevReplaced)
	if did(e) != "module m, a restarted, p/k restarted" || e.Hashes["m"] == up.Hashes["m"] || e.Modules[0].Before != up.Hashes["m"] || e.Modules[0].Now != e.Hashes["m"] {
		t.Errorf("%s %v", did(e), e.Modules)
	}
	if b.live != sys || b.ref("a") != a || b.ref("p/k") != k || b.ref("b") != other {
		t.Error("not the same system and actors")
	}
	b.answers("a")
	b.answers("p/k")

	b.write("m.wasm", []byte("\x00asm, but not quite"))
	e = b.next(DevFailed)
	var wrong *ModuleError
	if !errors.As(e.Err, &wrong) || wrong.Module != "m" || wrong.Line != 4 {
		t.Errorf("%v", e.Err)
	}
	b.answers("a")
	b.write("m.wasm", wasmOf(t, "echo_single"))
	b.next(DevUnchanged)

	b.edit("{type: m/echo}\n", "{type: m/echo, limit: 1}\n")
	e = b.next(DevFailed)
	var ds Diagnostics
	if !errors.As(e.Err, &ds) || !strings.Contains(ds.Error(), filepath.Join(b.dir, FileName)+`:7:21: unknown key "limit"`) {
		t.Errorf("%v", e.Err)
	}
	b.edit("limit: 1", "args: 5, limits: {fuel: 2M}")
	if e = b.next(DevReplaced); did(e) != "a restarted" || e.Actors[0].Why != "limits, args" || b.ref("a") != a {
		t.Errorf("%s %+v", did(e), e.Actors)
	}
	b.answers("a")
	b.edit("args: 5", "supervision: {otherwise: stop}")
	if e = b.next(DevReplaced); did(e) != "a replaced" || b.ref("a") == a || b.ref("b") != other {
		t.Errorf("%s", did(e))
	}
	b.edit("  b: {type: n/echo}\n", "  c: {type: m/echo}\n")
	if e = b.next(DevReplaced); did(e) != "b stopped, c started" {
		t.Errorf("%s", did(e))
	}
	b.answers("c")
	b.edit("wasmactors: 1\n", "# hello\nwasmactors: 1\n")
	b.next(DevUnchanged)
	b.edit("name: dev", "name: devel")
	if e = b.next(DevUp); len(e.Why) != 1 || !strings.HasPrefix(e.Why[0], "name has changed") || b.live == sys || b.live.Name() != "devel" {
		t.Errorf("%v", e.Why)
	}
	b.answers("a")

	if err := os.Remove(filepath.Join(b.dir, FileName)); err != nil {
		t.Fatal(err)
	}
	if e = b.next(DevWaiting); !errors.Is(e.Err, ErrNoManifest) {
		t.Error(e.Err)
	}
	b.answers("a")
	b.write(FileName, []byte(strings.Replace(devManifest, "name: dev", "name: devel", 1)))
	b.next(DevReplaced)
	b.answers("b")
	b.cancel()
	b.end()
	if _, err := b.live.Spawn("x", host.Func(nil)); err == nil {
		t.Error("the system still runs")
	}
}

// A module whose new image has other types can not take the place of the old one.
func TestDevStartsAgainAsAWhole(t *testing.T) {
	b := newBench(t, "wasmactors: 1\nname: dev\nmodules: {m: {wasm: ./m.wasm}}\nactors: {a: {type: m/echo}}\n")
	b.next(DevUp)
	b.write("m.wasm", wasmOf(t, "puppet"))
	if e := b.next(DevFailed); !strings.Contains(e.Err.Error(), `has no type "echo"`) {
		t.Error(e.Err)
	}
	b.edit("m/echo", "m/puppet")
	if e := b.next(DevUp); len(e.Why) != 1 || !strings.Contains(e.Why[0], `module m: `) || !strings.Contains(e.Why[0], `no actor type "echo"`) {
		t.Errorf("%v", e.Why)
	}
}

// What is wrong at the start is waited for, too; a bundle that is not there is not.
func TestDevBegins(t *testing.T) {
	b := newBench(t, strings.Replace(devManifest, "m/echo", "m/oho", 1))
	if e := b.next(DevFailed); e.System != nil {
		t.Error("there is a system")
	}
	b.edit("m/oho", "m/echo")
	b.next(DevUp)
	if err := (Dev{Path: t.TempDir()}).Run(context.Background()); err == nil || !strings.Contains(err.Error(), "holds no bundle.yaml") {
		t.Error(err)
	}
}

// A bundle that has failed as a whole starts again with the next change, and an actor that
// has ended with the next change of what it is made of.
func TestDevAfterTheEnd(t *testing.T) {
	b := newBench(t, "supervision: {decide: [{kind: trap, directive: escalate}], otherwise: stop}\n"+devManifest)
	b.next(DevUp)
	if err := b.live.Tell(b.ref("a"), 0); err != nil { // a trap
		t.Fatal(err)
	}
	if e := b.next(DevEnded); e.Err == nil || e.System != nil {
		t.Errorf("%v", e.Err)
	}
	b.write("m.wasm", wasmOf(t, "echo_single"))
	b.next(DevUp)
	ended, err := b.live.Ended(b.ref("a"))
	if err != nil {
		t.Fatal(err)
	}
	b.live.Stop(b.ref("a"))
	<-ended
	b.edit("wasmactors: 1\n", "# hello\nwasmactors: 1\n")
	b.next(DevUnchanged)
	if _, err := b.live.Lookup("/user/a"); err == nil {
		t.Error("a comment has brought it back")
	}
	b.write("m.wasm", wasmOf(t, "echo"))
	if e := b.next(DevReplaced); did(e) != "module m, a started, p/k restarted" {
		t.Errorf("%s", did(e))
	}
	b.answers("a")
}

// A module that is written while it is made ready is read again, although it holds what the watcher saw:
// what was read may have been something in between.
func TestDevReadsAgainWhatWasWrittenMeanwhile(t *testing.T) {
	b := newBenchOf(t, devManifest)
	var once sync.Once
	b.run(Dev{Path: b.dir, Options: Options{Progress: func(string, string) {
		once.Do(func() { b.write("m.wasm", wasmOf(t, "echo")) })
	}}})
	b.next(DevUp)
	b.next(DevUnchanged)
}

// Many changes one after the other end in what the last one says.
func TestDevUnderChanges(t *testing.T) {
	b := newBench(t, devManifest)
	b.next(DevUp)
	ref := b.ref("b")
	for i := range 40 {
		b.write("m.wasm", wasmOf(t, []string{"echo", "echo_single"}[i%2]))
	}
	want := hashOf(wasmOf(t, "echo_single"))
	for {
		select {
		case e := <-b.events:
			b.live = e.System
			if e.Err != nil {
				t.Fatal(e.Err)
			}
			if e.Kind != DevChanged && e.Hashes["m"] == want {
				b.answers("a")
				if b.ref("b") != ref {
					t.Error("b was not left alone")
				}
				return
			}
		case <-time.After(time.Minute):
			t.Fatal("the last change is not there")
		}
	}
}

// What actors write is no change, unless sources lie there.
func TestOutputs(t *testing.T) {
	m := parse(t, `wasmactors: 1
name: b
modules:
  m: {wasm: ./code/m.wasm, dirs: [{host: ./data, guest: /data, mode: rw}, {host: ., guest: /all, mode: rw}, {host: ./code, guest: /code, mode: rw}, {host: ./ro, guest: /ro}]}
  n: {go: ./guest, dirs: [{host: ./guest/out, guest: /out, mode: rw}]}
actors: {a: {type: m/t}}
`)
	set := filewatch.Set{Files: []string{filepath.Join(m.Dir, FileName)}, Dirs: []filewatch.Dir{{Path: filepath.Join(m.Dir, "guest"), Deep: true}}}
	want := []string{filepath.Join(m.Dir, "data"), filepath.Join(m.Dir, "guest", "out")}
	if got := outputs(m, set); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A change that is not applied costs nothing, and the images of one that is are given back.
func TestChangesGiveBackImages(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("m.wasm", wasmOf(t, "echo"))
	write(FileName, []byte("wasmactors: 1\nname: dev\nmodules: {m: {wasm: ./m.wasm}}\nactors: {a: {type: m/echo}}\n"))
	ctx := context.Background()
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(ctx, m, Options{CacheDir: servicetest.CacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(ctx)
	sys, err := b.Start(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(ctx)
	var wg sync.WaitGroup
	for i := range 4 {
		write("m.wasm", slices.Concat(wasmOf(t, "echo"), bytes.Repeat([]byte{0, 2, 1, 'x'}, i+1))) // a custom section more
		c, err := b.Prepare(ctx, m, Options{}, func(string) bool { return true })
		if err != nil || len(c.Modules) != 1 {
			t.Fatal(err, c)
		}
		if i%2 == 0 {
			image := c.loaded["m"].image
			c.Discard()
			if b.Images["m"] == image {
				t.Fatal("it was applied")
			}
			continue
		}
		old := b.Images["m"]
		wg.Go(func() {
			if ref, err := sys.Lookup("/user/a"); err == nil {
				_, _ = sys.Ask(ctx, ref, 5)
			}
		})
		for _, a := range c.Apply(ctx, sys) {
			if a.Err != nil {
				t.Error(a.Err)
			}
		}
		wg.Wait()
		for end := time.Now().Add(time.Minute); len(b.Codes()) > 1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the old image is not given back: %+v", b.Codes())
			}
		}
		if c := b.Codes()[0]; !c.Present || c.Actors != 1 || c.Module != "m" || c.Hash != b.Hash("m") {
			t.Errorf("%+v", c)
		}
		if _, err := sandbox.Get(old); !errors.Is(err, sandbox.ErrClosed) {
			t.Error("the old image is open:", err)
		}
		if n := fmt.Sprint(b.Hash("m")); n != hashOf(slices.Concat(wasmOf(t, "echo"), bytes.Repeat([]byte{0, 2, 1, 'x'}, i+1))) {
			t.Errorf("the hash is %s", n)
		}
	}
}
