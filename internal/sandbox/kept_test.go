package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// TestOutlineNeverRuns: when wazero does not find the machine code where it was
// left, as after the move to another processor, it compiles the outline, which
// traps wherever it is called. No instance of that is ever made.
func TestOutlineNeverRuns(t *testing.T) {
	dir := t.TempDir()
	code := guest(t, "echo")
	var warnings bytes.Buffer
	cfg := NewConfig().WithCacheDir(dir).WithLog(slog.New(slog.NewTextHandler(&warnings, nil)))
	first := newEngine(t, cfg)
	i, err := first.Load(context.Background(), code, ImageConfig{})
	if err != nil {
		t.Fatal(err)
	}
	disk := i.entry
	kept, err := disk.Code()
	if err != nil {
		t.Fatal(err)
	}
	// The same code under another name, with a sum that fits.
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.CopyFS(moved, os.DirFS(kept.Dir)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(moved, "wazero-*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := errors.Join(os.Remove(filepath.Join(moved, "sum")), os.Rename(files[0], files[0][:len(files[0])-4]+"beef"), disk.DropCode(), disk.StoreCode(moved)); err != nil {
		t.Fatal(err)
	}
	for _, warned := range []bool{true, false} {
		warnings.Reset()
		i := load(t, newEngine(t, cfg), "echo", ImageConfig{})
		if !i.Info().Cached || warnings.Len() > 0 != warned {
			t.Errorf("cached %v, warnings %q", i.Info().Cached, warnings.String())
		}
		x := get(t, i)
		push(t, x, 0)
		if out, _, err := run(t, x, entry()); out.Failure != nil || err != nil {
			t.Error(out.Failure, err)
		}
		x.Put()
	}
}

// TestOutline: what wazero is shown has the module's shape, and no code.
func TestOutline(t *testing.T) {
	m, err := wasm.Decode(guest(t, "echo"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := wasm.Decode(outline(m, []byte("a")))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Funcs) != len(m.Funcs) || len(o.Code) != len(m.Code) || len(o.Exports) != len(m.Exports) || len(o.Globals) != len(m.Globals) {
		t.Error("another shape")
	}
	for _, b := range o.Code {
		if !bytes.Equal(b.Code, []byte{wasm.OpUnreachable, wasm.OpEnd}) {
			t.Error("code is left")
		}
	}
	if bytes.Equal(outline(m, []byte("a")), outline(m, []byte("b"))) {
		t.Error("two modules share an outline")
	}
}

// TestCacheTakenAway: a directory that vanishes costs a warning.
func TestCacheTakenAway(t *testing.T) {
	var warnings bytes.Buffer
	dir := t.TempDir()
	e := newEngine(t, NewConfig().WithCacheDir(dir).WithLog(slog.New(slog.NewTextHandler(&warnings, nil))))
	c, err := cache.Open(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	x := get(t, load(t, e, "echo", ImageConfig{}))
	defer x.Put()
	push(t, x, 0)
	if out, _, err := run(t, x, entry()); out.Failure != nil || err != nil {
		t.Error(out.Failure, err)
	}
	if warnings.Len() == 0 {
		t.Error("no warning")
	}
	if items, _ := c.Items(); len(items) != 0 {
		t.Error(items)
	}
}

// TestLoadFrom: a module whose image is cached is not read, and what is read
// counts, not what was said of it.
func TestLoadFrom(t *testing.T) {
	e := newEngine(t, NewConfig().WithCacheDir(t.TempDir()))
	echo, single := guest(t, "echo"), guest(t, "single")
	reads := 0
	load := func(said, is []byte) ImageInfo {
		t.Helper()
		i, err := e.LoadFrom(context.Background(), Source{sha256.Sum256(said), func(context.Context) ([]byte, error) { reads++; return is, nil }}, ImageConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer i.Close()
		return i.Info()
	}
	first := load(echo, echo)
	if first.Cached || reads != 1 {
		t.Errorf("cached %v, %d reads", first.Cached, reads)
	}
	second := load(echo, nil)
	if !second.Cached || reads != 1 || second.Hash != first.Hash || second.WasmBytes != len(echo) {
		t.Errorf("%+v, %d reads", second, reads)
	}
	other := load([]byte("something else"), single)
	if again := load(single, nil); !again.Cached || again.Hash != other.Hash || reads != 2 {
		t.Errorf("%+v, %d reads", again, reads)
	}
	gone := errors.New("gone")
	_, err := e.LoadFrom(context.Background(), Source{Read: func(context.Context) ([]byte, error) { return nil, gone }}, ImageConfig{})
	if !errors.Is(err, gone) {
		t.Error(err)
	}
}
