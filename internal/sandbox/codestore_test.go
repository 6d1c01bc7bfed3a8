package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/cache"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// TestOutlineNeverRuns: machine code that wazero does not take, though it comes from
// our cache, costs a warning and is made again. wazero compiles the outline then,
// which traps wherever it is called; no instance of that is ever made.
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
	good, err := i.entry.Load(codePart)
	if err != nil {
		t.Fatal(err)
	}
	stale := bytes.Clone(good)
	stale[32+7] ^= 1 // the first letter of wazero's version
	cut := good[:len(good)/2]
	for name, kept := range map[string][]byte{"stale": stale, "cut": cut, "empty": good[:32]} {
		if err := i.entry.Store(codePart, kept); err != nil {
			t.Fatal(err)
		}
		for _, warned := range []bool{true, false} {
			warnings.Reset()
			i := load(t, newEngine(t, cfg), "echo", ImageConfig{})
			if !i.Info().Cached || warnings.Len() > 0 != warned {
				t.Errorf("%s: cached %v, warnings %q", name, i.Info().Cached, warnings.String())
			}
			works(t, i)
		}
	}
	// Another processor's is no damage: it is replaced without a word.
	other := bytes.Clone(good)
	other[0] ^= 1
	if err := i.entry.Store(codePart, other); err != nil {
		t.Fatal(err)
	}
	warnings.Reset()
	works(t, load(t, newEngine(t, cfg), "echo", ImageConfig{}))
	if now, err := i.entry.Load(codePart); err != nil || !bytes.Equal(now, good) || warnings.Len() > 0 {
		t.Error("not replaced", err, warnings.String())
	}
}

// TestPlantedCode puts machine code in the place of an image's: another image's, and
// one that another user has sealed. None of it is given to
// wazero, each costs a warning, and all is made again.
func TestPlantedCode(t *testing.T) {
	dir, keys := t.TempDir(), t.TempDir()
	var warnings bytes.Buffer
	cfg := NewConfig().WithCacheDir(dir).WithCacheKeyFile(filepath.Join(keys, "mine")).WithLog(slog.New(slog.NewTextHandler(&warnings, nil)))
	stranger := NewConfig().WithCacheDir(t.TempDir()).WithCacheKeyFile(filepath.Join(keys, "theirs"))
	file := func(cfg Config, guest string) string {
		e := newEngine(t, cfg)
		i := load(t, e, guest, ImageConfig{})
		body, err := i.entry.Load(codePart)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		_ = filepath.WalkDir(cfg.cacheDir, func(path string, d os.DirEntry, err error) error {
			if raw, err := os.ReadFile(path); err == nil && d.Name() == codePart && bytes.HasSuffix(raw, body) {
				found = path
			}
			return nil
		})
		return found
	}
	mine := file(cfg, "echo")
	for name, from := range map[string]string{"another image's": file(cfg, "single"), "another user's": file(stranger, "echo")} {
		if from == "" || from == mine {
			t.Fatal(name, from)
		}
		raw, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(mine, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, warned := range []bool{true, false} {
			warnings.Reset()
			i := load(t, newEngine(t, cfg), "echo", ImageConfig{})
			if !i.Info().Cached || warnings.Len() > 0 != warned {
				t.Errorf("%s: cached %v, warnings %q", name, i.Info().Cached, warnings.String())
			}
			works(t, i)
		}
	}
	// The key is lost: everything is built anew, without a word.
	if err := os.Remove(filepath.Join(keys, "mine")); err != nil {
		t.Fatal(err)
	}
	for _, cached := range []bool{false, true} {
		warnings.Reset()
		i := load(t, newEngine(t, cfg), "echo", ImageConfig{})
		if i.Info().Cached != cached || warnings.Len() > 0 {
			t.Errorf("after the key was lost: cached %v, warnings %q", i.Info().Cached, warnings.String())
		}
		works(t, i)
	}
}

// works runs a message through an instance.
func works(t *testing.T, i *Image) {
	t.Helper()
	x := get(t, i)
	defer x.Put()
	push(t, x, 0)
	if out, _, err := run(t, x, entry()); out.Failure != nil || err != nil {
		t.Error(out.Failure, err)
	}
}

// TestCodeStore: this version of wazero asks us for its machine code.
func TestCodeStore(t *testing.T) {
	if _, err := compilationCache(&codeStore{}); err != nil {
		t.Fatal(err)
	}
	a, err := machine()
	if err != nil || a == (codeKey{}) {
		t.Fatal(a, err)
	}
}

func BenchmarkMachine(b *testing.B) {
	for b.Loop() {
		r := wazero.NewRuntimeWithConfig(b.Context(), runtimeConfig(false))
		if _, err := r.CompileModule(b.Context(), []byte("\x00asm\x01\x00\x00\x00")); err != nil {
			b.Fatal(err)
		}
		closeRuntime(r, nil)
	}
}

// TestCheckCode cuts, extends and changes the frame of machine code: what is
// accepted has the functions that it should have, within the code.
func TestCheckCode(t *testing.T) {
	e := newEngine(t, NewConfig().WithCacheDir(t.TempDir()))
	i := load(t, e, "echo", ImageConfig{})
	raw, err := i.entry.Load(codePart)
	if err != nil {
		t.Fatal(err)
	}
	code := raw[32:]
	functions := int(binary.LittleEndian.Uint32(code[7+int(code[6]):]))
	if err := checkCode(code, functions, false); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{functions - 1, functions + 1, 0, 1 << 30} {
		if checkCode(code, n, false) == nil {
			t.Errorf("%d functions are accepted", n)
		}
	}
	for n := range code {
		if n < 2000 || n > len(code)-100 {
			if checkCode(code[:n], functions, false) == nil {
				t.Errorf("cut at %d: accepted", n)
			}
		}
	}
	if checkCode(append(bytes.Clone(code), 0), functions, false) == nil {
		t.Error("longer: accepted")
	}
	first := 7 + int(code[6]) + 4
	for name, at := range map[string]int{"offset": first + 7, "offsets descend": first + 8*(functions-1), "size": first + 8*functions + 6, "end": len(code) - 5} {
		bad := bytes.Clone(code)
		if bad[at] = 0x7f; name == "offsets descend" {
			clear(bad[at : at+8])
		}
		if checkCode(bad, functions, false) == nil {
			t.Errorf("%s: accepted", name)
		}
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
	c, err := cache.Open(cache.Options{Dir: dir, MaxBytes: 1 << 20})
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
