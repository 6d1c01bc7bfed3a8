package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/wasi"
)

// counted is the state of a guest that has counted to 2 and whose memory has one page more, as bytes of an image.
func counted(t *testing.T, i *Image) []byte {
	t.Helper()
	x := get(t, i)
	defer x.Put()
	for _, what := range []byte{10, 10, 14, 4} {
		answerless(t, x, what)
	}
	var s Snapshot
	if err := x.Save(&s); err != nil {
		t.Fatal(err)
	}
	return encoded(t, i, &s)
}

// opens fails the test unless the bytes are a state of the image that counts on.
func opens(t *testing.T, i *Image, raw []byte) {
	t.Helper()
	s, err := DecodeSnapshot(i, bytes.Clone(raw), 0)
	if err != nil {
		t.Error(err)
		return
	}
	x, err := GetSaved(i, s)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Put()
	var again Snapshot
	if err := x.Save(&again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encoded(t, i, &again), raw) {
		t.Error("saved again it has other bytes")
	}
	if got := answer(t, x, 10); got != 6 { // the sum of a global and a word of memory
		t.Errorf("it counts on to %#x", got)
	}
}

// A state opens under other limits, and whatever runs the code and holds the memory.
func TestSnapshotOpensUnderOtherLimits(t *testing.T) {
	raw := counted(t, load(t, newEngine(t, NewConfig()), "echo", ImageConfig{MemoryLimit: 32 << 20}))
	everywhere(t, func(t *testing.T, e *Engine) {
		for what, cfg := range map[string]ImageConfig{
			"the same": {MemoryLimit: 32 << 20}, "more memory": {MemoryLimit: 64 << 20}, "just enough": {MemoryLimit: memoryOfSnapshot(t, raw)},
			"stack": {StackLimit: 1 << 19}, "tables": {TableLimit: 1000, TablesLimit: 7, EntriesLimit: 5000, GlobalLimit: 50, TypeLimit: 99, FunctionLimit: 999, SegmentLimit: 99, ElementLimit: 999},
			"sizes": {DataLimit: 1 << 20, SizeLimit: 1 << 20, CompileSteps: math.MaxUint64, CompileBytes: math.MaxUint64}, "fuel of the initialisation": {InitFuel: 1 << 30}, "NaNs": {RawNaNs: true},
		} {
			t.Run(what, func(t *testing.T) { opens(t, load(t, e, "echo", cfg), raw) })
		}
	})
}

// A state does not depend on what the disk cache calls the image, where the version of the host, the operating
// system and the processor have a part.
func TestSnapshotOpensInOtherVersions(t *testing.T) {
	i := load(t, newEngine(t, NewConfig()), "echo", ImageConfig{})
	raw := counted(t, i)
	i.key[0] ^= 1
	opens(t, i, raw)
	if !bytes.Equal(counted(t, i), raw) {
		t.Error("another version writes other bytes")
	}
}

func memoryOfSnapshot(t *testing.T, raw []byte) uint64 {
	t.Helper()
	s, err := DecodeSnapshot(load(t, newEngine(t, NewConfig()), "echo", ImageConfig{}), raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s.patch.Size()
}

// What is not a state of the image is refused with what differs.
func TestForeignSnapshots(t *testing.T) {
	e := newEngine(t, NewConfig().WithInterpreter(true).WithPortableMemory(true))
	raw := counted(t, load(t, e, "echo", ImageConfig{}))
	refused := func(what string, i *Image, limit uint64, want string) {
		t.Helper()
		if _, err := DecodeSnapshot(i, raw, limit); !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	small := memoryOfSnapshot(t, raw) - 64<<10
	refused("a smaller limit of the image", load(t, e, "echo", ImageConfig{MemoryLimit: small}), 0, "its memory has")
	refused("a smaller limit of the actor", load(t, e, "echo", ImageConfig{}), small, "KiB, the limit is")

	same, err := e.Load(context.Background(), append(guest(t, "echo"), 0, 2, 1, 'x'), ImageConfig{}) // an empty custom section
	if err != nil {
		t.Fatal(err)
	}
	refused("another module", same, 0, "another module")
	refused("another variable", load(t, e, "echo", ImageConfig{Env: []string{"A=1"}}), 0, "another environment")
	dir := load(t, e, "echo", ImageConfig{Dirs: []wasi.Dir{{Host: t.TempDir(), Guest: "/data"}}})
	refused("another directory", dir, 0, "another environment")

	cfg := ImageConfig{}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	other := &Image{engine: e, cfg: cfg, sum: sha256.Sum256(guest(t, "echo"))}
	other.refs.Store(1)
	rec, err := other.build(context.Background(), guest(t, "echo"))
	if err != nil {
		t.Fatal(err)
	}
	opensIn := func(i *Image) error {
		defer func() { _ = i.Close() }()
		if err := i.finish(context.Background(), rec, nil); err != nil {
			t.Fatal(err)
		}
		_, err := DecodeSnapshot(i, raw, 0)
		return err
	}
	rec.memory[len(rec.memory)-1] ^= 1
	if err := opensIn(other); !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), "another frozen memory") {
		t.Errorf("another frozen memory: %v", err)
	}
}

// Variables count in their order, and each for itself.
func TestEnvironments(t *testing.T) {
	seen := map[[sha256.Size]byte]int{}
	for i, c := range []ImageConfig{
		{}, {Env: []string{"A=1"}}, {Env: []string{"A=1", "B=2"}}, {Env: []string{"B=2", "A=1"}}, {Env: []string{"A=1B=2"}}, {Env: []string{"A=1", "B=2", ""}},
		{Dirs: []wasi.Dir{{Guest: "A=1"}}},
	} {
		d := c.environment()
		if at, ok := seen[d]; ok {
			t.Errorf("%d and %d are the same", i, at)
		}
		seen[d] = i
	}
	a, b := ImageConfig{Dirs: []wasi.Dir{{Host: "/a", Guest: "/d"}}}, ImageConfig{Dirs: []wasi.Dir{{Host: "/b", Guest: "/d"}}}
	if a.environment() != b.environment() {
		t.Error("where the host keeps a directory counts")
	}
}

var writeSaved = flag.Bool("write-saved", false, "write the fixture of the present version of snapshots")

// Snapshots that were written once open, or are refused by their version. The module is a copy that nobody changes.
func TestSavedSnapshots(t *testing.T) {
	module, err := os.ReadFile(filepath.Join("testdata", "saved", "counter.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	everywhere(t, func(t *testing.T, e *Engine) {
		i, err := e.Load(context.Background(), module, ImageConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if *writeSaved {
			if err := os.WriteFile(filepath.Join("testdata", "saved", "v2.snapshot"), counted(t, i), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range map[string]string{"v1": "version 1, this host reads version 2", "v2": ""} {
			raw, err := os.ReadFile(filepath.Join("testdata", "saved", name+".snapshot"))
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				opens(t, i, raw)
			} else if _, err := DecodeSnapshot(i, raw, 0); !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
