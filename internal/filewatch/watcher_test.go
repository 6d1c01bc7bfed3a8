package filewatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a watcher on a virtual clock, whose hints the test gives.
type bench struct {
	*Watcher
	t     testing.TB
	dir   string
	clock *clock.Virtual
	hints *fakeHints
	mute  []string
}

type fakeHints struct {
	mu   sync.Mutex
	dirs []string
	fail error
}

func (h *fakeHints) add(dir string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail == nil {
		h.dirs = append(h.dirs, dir)
	}
	return h.fail
}

func (h *fakeHints) remove(dir string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirs = slices.DeleteFunc(h.dirs, func(d string) bool { return d == dir })
}

func (h *fakeHints) close() {}

func newBench(t testing.TB, dir string) *bench {
	b := &bench{t: t, dir: dir, clock: clock.NewVirtual(time.Now()), hints: &fakeHints{}}
	b.Watcher = New(Options{Clock: b.clock, Every: time.Hour, hinter: b.hints, Trouble: func(dir string, err error) { b.mute = append(b.mute, dir) }})
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// changed is what the watcher tells, as names.
func (b *bench) changed() string {
	var names []string
	select {
	case <-b.C():
	default:
		return ""
	}
	for _, p := range b.Take() {
		rel, _ := filepath.Rel(b.dir, p)
		names = append(names, filepath.ToSlash(rel))
	}
	return strings.Join(names, " ")
}

func goFile(name string) bool { return strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, ".") }

// One change is told, when the hints are over; and what is no change is none.
func TestHintsAreCollected(t *testing.T) {
	b := newBench(t, t.TempDir())
	defer b.Close()
	b.write("a.go", "1")
	b.Watch(Set{Files: []string{b.path("a.go")}})
	b.write("a.go", "2")
	for range 5 {
		b.Hint(b.path("a.go"))
		b.clock.Advance(DefaultQuiet - 1)
		if got := b.changed(); got != "" {
			t.Fatalf("%q is told before it is quiet", got)
		}
	}
	b.clock.Advance(1)
	if got := b.changed(); got != "a.go" {
		t.Fatalf("%q", got)
	}
	b.Hint(b.path("a.go"))
	b.clock.Advance(time.Minute)
	if got := b.changed(); got != "" {
		t.Errorf("%q without a change", got)
	}
	if b.clock.Pending() != 1 {
		t.Errorf("%d timers, not that of the next look alone", b.clock.Pending())
	}
}

// Hints without an end do not keep a change from being told.
func TestHintsWithoutAnEnd(t *testing.T) {
	b := newBench(t, t.TempDir())
	defer b.Close()
	b.write("a.go", "1")
	b.Watch(Set{Files: []string{b.path("a.go")}})
	b.write("a.go", "2")
	began := b.clock.Now()
	for b.changed() == "" {
		b.Hint(b.path("a.go"))
		b.clock.Advance(DefaultQuiet / 2)
		if b.clock.Now().Sub(began) > 2*DefaultMost {
			t.Fatal("it is never told")
		}
	}
	if took := b.clock.Now().Sub(began); took < DefaultMost || took > DefaultMost+DefaultQuiet {
		t.Errorf("told after %v", took)
	}
}

// What editors do, and what it is.
func TestWhatEditorsDo(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		do   func(b *bench)
		want string
	}{
		{"writes in place", func(b *bench) { b.write("a.go", "new") }, "a.go"},
		{"writes the same", func(b *bench) { b.write("a.go", "one") }, ""},
		{"writes as many bytes at the same time", func(b *bench) {
			info, err := os.Stat(b.path("a.go"))
			must(err)
			b.write("a.go", "two")
			must(os.Chtimes(b.path("a.go"), time.Time{}, info.ModTime()))
		}, "a.go"},
		{"renames a new file over it", func(b *bench) {
			b.write("a.go.tmp", "new")
			must(os.Rename(b.path("a.go.tmp"), b.path("a.go")))
		}, "a.go"},
		{"renames the same over it", func(b *bench) {
			b.write(".a.go.swp", "one")
			must(os.Rename(b.path(".a.go.swp"), b.path("a.go")))
		}, ""},
		{"moves it aside and writes it", func(b *bench) {
			must(os.Rename(b.path("a.go"), b.path("a.go~")))
			b.write("a.go", "new")
		}, "a.go"},
		{"leaves a lock and a backup", func(b *bench) {
			must(os.Symlink("nobody@nowhere", b.path(".#a.go")))
			b.write("4913", "")
			b.write("a.go~", "one")
			b.write(".a.go.swp", "x")
		}, ""},
		{"changes modes", func(b *bench) { must(os.Chmod(b.path("a.go"), 0o600)) }, ""},
		{"touches it", func(b *bench) { must(os.Chtimes(b.path("a.go"), time.Now(), time.Now().Add(time.Hour))) }, ""},
		{"adds a source", func(b *bench) { b.write("b.go", "x") }, "b.go"},
		{"removes one", func(b *bench) { must(os.Remove(b.path("a.go"))) }, "a.go"},
		{"removes the folder", func(b *bench) { must(os.RemoveAll(b.dir)) }, "a.go deep/x/y.txt"},
		{"adds an embedded file", func(b *bench) { b.write("deep/x/z.txt", "x") }, "deep/x/z.txt"},
		{"adds one in a new folder", func(b *bench) { b.write("deep/new/z.txt", "x") }, "deep/new/z.txt"},
		{"saves beside embedded files", func(b *bench) {
			b.write("deep/x/.y.txt.swp", "x")
			b.write("deep/x/y.txt~", "x")
			b.write("deep/x/#y.txt#", "x")
			b.write("deep/x/y.txt.tmp", "x")
		}, ""},
		{"works in .git", func(b *bench) { b.write("deep/.git/index", "x") }, ""},
		{"builds and runs", func(b *bench) {
			b.write("guest.wasm", "x")
			b.write("out/log.txt", "x")
			b.write("deep/data/log.txt", "x")
			b.write("deep/data/more/log.txt", "x")
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, filepath.Join(t.TempDir(), "src"))
			defer b.Close()
			b.write("a.go", "one")
			b.write("deep/x/y.txt", "one")
			b.write("deep/data/old.txt", "one")
			b.Watch(Set{
				Files: []string{b.path("a.go"), b.path("deep/x/y.txt"), b.path("deep/data/old.txt")},
				Dirs:  []Dir{{Path: b.dir, Name: goFile}, {Path: b.path("deep"), Deep: true}},
				Skip:  []string{b.path("deep/data")},
			})
			c.do(b)
			b.Hint(b.dir)
			b.clock.Advance(DefaultQuiet)
			if got := b.changed(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// What lies elsewhere, and what is skipped, is no hint: not even a look.
func TestForeignHints(t *testing.T) {
	b := newBench(t, t.TempDir())
	defer b.Close()
	b.write("src/a.go", "1")
	b.Watch(Set{Files: []string{b.path("src/a.go")}, Dirs: []Dir{{Path: b.path("src"), Name: goFile}, {Path: b.path("deep"), Deep: true}}, Skip: []string{b.path("deep/data")}})
	for path, want := range map[string]bool{
		"src/a.go": true, "src/b.go": true, "src": true, "": true, "src/b.txt": false, "src/sub/c.go": false, "other": false,
		"deep/any/thing": true, "deep/data/x": false, "deep/data": false,
	} {
		b.mu.Lock()
		got := b.concerns(b.path(path))
		b.mu.Unlock()
		if got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

// A change of what is watched loses nothing that happens around it.
func TestWatchAgain(t *testing.T) {
	b := newBench(t, t.TempDir())
	defer b.Close()
	b.write("a.go", "1")
	b.write("b.go", "1")
	b.Watch(Set{Files: []string{b.path("a.go")}})
	b.write("a.go", "2")
	b.write("b.go", "2")
	b.Watch(Set{Files: []string{b.path("a.go"), b.path("b.go")}})
	if got := b.changed(); got != "a.go" {
		t.Errorf("%q", got)
	}
	b.write("b.go", "3")
	b.Watch(Set{Files: []string{b.path("b.go")}})
	if got := b.changed(); got != "b.go" {
		t.Errorf("%q", got)
	}
	b.write("a.go", "4")
	b.Hint(b.path("a.go"))
	b.clock.Advance(time.Second)
	if got := b.changed(); got != "" {
		t.Errorf("%q is watched no more", got)
	}
}

// Who reads files while they are written can have read what is there no more, although they hold what they
// held: these are told, and others not.
func TestRewritten(t *testing.T) {
	b := newBench(t, t.TempDir())
	defer b.Close()
	for _, name := range []string{"same", "back", "replaced", "other", "gone"} {
		b.write(name, "old")
	}
	files := func(names ...string) (set Set) {
		for _, n := range names {
			set.Files = append(set.Files, b.path(n))
		}
		return set
	}
	b.Watch(files("same", "back", "replaced"))
	early := b.Mark()
	b.Watch(files("same", "back", "replaced", "other", "gone", "missing"))
	mark := early.And(b.Mark())
	if got := b.Rewritten(mark); len(got) != 0 {
		t.Error(got)
	}
	b.write("back", "new")
	b.write("back", "old")
	later := time.Now().Add(time.Second) // clocks of file systems may be coarse
	if err := os.Chtimes(b.path("back"), later, later); err != nil {
		t.Fatal(err)
	}
	b.write("next", "old")
	if err := os.Rename(b.path("next"), b.path("replaced")); err != nil {
		t.Fatal(err)
	}
	b.write("other", "new")
	if err := os.Remove(b.path("gone")); err != nil {
		t.Fatal(err)
	}
	if got, want := b.Rewritten(mark), []string{b.path("back"), b.path("replaced")}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := b.changed(); got != "gone other" {
		t.Errorf("told as usual: %q", got)
	}
	if got := b.Rewritten(b.Mark()); len(got) != 0 {
		t.Error(got)
	}
}

// A file whose folder is missing is waited for, from the folder above that is there.
func TestMissingFolders(t *testing.T) {
	b := newBench(t, t.TempDir())
	defer b.Close()
	b.Watch(Set{Files: []string{b.path("x/y/a.go")}})
	if !slices.Equal(b.hints.dirs, []string{b.dir}) {
		t.Errorf("hints of %q", b.hints.dirs)
	}
	b.write("x/y/a.go", "1")
	b.Hint(b.path("x"))
	b.clock.Advance(DefaultQuiet)
	if got := b.changed(); got != "x/y/a.go" {
		t.Errorf("%q", got)
	}
	if !slices.Equal(b.hints.dirs, []string{b.path("x/y")}) {
		t.Errorf("hints of %q", b.hints.dirs)
	}
	if err := os.RemoveAll(b.path("x")); err != nil {
		t.Fatal(err)
	}
	b.hints.remove(b.path("x/y")) // as the system does
	b.gone(b.path("x/y"))
	b.Hint(b.path("x/y"))
	b.clock.Advance(DefaultQuiet)
	if got := b.changed(); got != "x/y/a.go" || !slices.Equal(b.hints.dirs, []string{b.dir}) {
		t.Errorf("%q, hints of %q", got, b.hints.dirs)
	}
}

// Where there are no hints the files are looked at again and again, and the trouble is told once.
func TestPolling(t *testing.T) {
	b := newBench(t, t.TempDir())
	defer b.Close()
	b.hints.fail = errors.New("too many watches")
	b.write("a.go", "1")
	b.Watch(Set{Files: []string{b.path("a.go")}})
	b.clock.Advance(time.Hour) // the first look is as far away as with hints
	for i := range 3 {
		b.write("a.go", fmt.Sprint("again ", i))
		b.clock.Advance(DefaultPoll)
		if got := b.changed(); got != "a.go" {
			t.Fatalf("%d: %q", i, got)
		}
	}
	if !slices.Equal(b.mute, []string{b.dir}) {
		t.Errorf("told: %q", b.mute)
	}
	b.hints.fail = nil
	b.clock.Advance(DefaultPoll)
	if len(b.hints.dirs) != 1 {
		t.Error("hints are not tried again")
	}
}

// With the system's own hints a change is told, in a folder that comes later as well.
func TestSystemHints(t *testing.T) {
	b := &bench{t: t, dir: t.TempDir()}
	b.Watcher = New(Options{Every: 20 * time.Minute, Quiet: time.Millisecond})
	defer b.Close()
	b.write("a.go", "1")
	b.Watch(Set{Files: []string{b.path("a.go"), b.path("later/b.go")}, Dirs: []Dir{{Path: b.dir, Name: goFile}}})
	wait := func(want string) {
		t.Helper()
		select {
		case <-b.C():
			if got := b.Take(); !slices.Contains(got, b.path(want)) {
				t.Errorf("%q, want %s", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s is not told", want)
		}
	}
	b.write("a.go", "2")
	wait("a.go")
	b.write("c.go", "1")
	wait("c.go")
	b.write("later/b.go", "1")
	wait("later/b.go")
	b.write("later/b.go", "22")
	wait("later/b.go")
}

// Whatever happens to the files, and however it is hinted at: at the end what is told is
// what differs from when it was told before.
func TestNoChangeIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "filewatch")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		b := newBench(t, dir)
		defer b.Close()
		names := []string{"a", "d/b", "d/c"}
		var paths []string
		for _, n := range names {
			paths = append(paths, b.path(n))
		}
		set := Set{Files: paths}
		b.Watch(set)
		shown := map[string]string{} // what was there when it was told last
		read := func(n string) string {
			data, err := os.ReadFile(b.path(n))
			if err != nil {
				return "missing"
			}
			return string(data)
		}
		for _, n := range names {
			shown[n] = read(n)
		}
		settle := func() {
			b.Hint(b.dir)
			b.clock.Advance(DefaultMost)
			told := strings.Fields(b.changed())
			for _, n := range names {
				if differs := read(n) != shown[n]; differs && !slices.Contains(told, n) {
					r.Fatalf("%s has changed from %q to %q, told: %q", n, shown[n], read(n), told)
				}
				shown[n] = read(n)
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"write": func(r *rapid.T) {
				b.write(rapid.SampledFrom(names).Draw(r, "name"), rapid.SampledFrom([]string{"x", "y", "zz", ""}).Draw(r, "text"))
			},
			"remove": func(r *rapid.T) { os.Remove(b.path(rapid.SampledFrom(names).Draw(r, "name"))) },
			"remove the folder": func(r *rapid.T) {
				os.RemoveAll(b.path("d"))
			},
			"hint": func(r *rapid.T) { b.Hint(b.path(rapid.SampledFrom(names).Draw(r, "name"))) },
			"pass": func(r *rapid.T) {
				b.clock.Advance(time.Duration(rapid.IntRange(0, 200).Draw(r, "ms")) * time.Millisecond)
			},
			"again":  func(r *rapid.T) { b.Watch(set) },
			"settle": func(r *rapid.T) { settle() },
		})
		settle()
	})
}
