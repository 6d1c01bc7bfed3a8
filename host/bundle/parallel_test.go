package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestInOrder: whatever takes how long, no more than the bound work at a time, and
// the error is that of the first piece, in order, that fails by itself.
func TestInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(1, 5).Draw(rt, "most")
		took := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 12).Draw(rt, "took")
		fails := rapid.SliceOfN(rapid.Bool(), len(took), len(took)).Draw(rt, "fails")
		synctest.Test(t, func(*testing.T) {
			var now, peak atomic.Int32
			err := inOrder(context.Background(), most, len(took), func(ctx context.Context, i int) error {
				if n := now.Add(1); n > peak.Load() {
					peak.Store(n)
				}
				defer now.Add(-1)
				select {
				case <-time.After(time.Duration(took[i]) * time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
				if fails[i] {
					return fmt.Errorf("piece %d", i)
				}
				return nil
			})
			var want error
			for i, f := range fails {
				if f {
					want = fmt.Errorf("piece %d", i)
					break
				}
			}
			if fmt.Sprint(err) != fmt.Sprint(want) {
				rt.Fatalf("%v, want %v", err, want)
			}
			if int(peak.Load()) > most {
				rt.Fatalf("%d at a time", peak.Load())
			}
		})
	})
}

// TestFailureEndsWhatIsBehind: a failure does not wait for what comes after it.
func TestFailureEndsWhatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		begun := 0
		err := inOrder(context.Background(), 3, 100, func(ctx context.Context, i int) error {
			mu.Lock()
			begun++
			mu.Unlock()
			if i == 1 {
				time.Sleep(time.Second)
				return errors.New("bad")
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(2+i) * time.Second):
			}
			return ctx.Err()
		})
		if err == nil || err.Error() != "bad" || time.Since(start) > 2*time.Second || begun > 3 {
			t.Error(err, time.Since(start), begun)
		}
	})
}

// TestManyModules: a bundle of many modules loads a few at a time, and reports its
// first bad one, whatever the others do.
func TestManyModules(t *testing.T) {
	wasm, err := filepath.Abs("testdata/needs.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]int{nil, {3, 7}, {7, 8, 9}} {
		dir := t.TempDir()
		text := "wasmactors: 1\nname: many\nmodules:\n"
		file := map[int]string{}
		for n := range 10 {
			file[n] = wasm
		}
		for _, n := range bad {
			file[n] = filepath.Join(dir, fmt.Sprint("bad", n, ".wasm"))
			if err := os.WriteFile(file[n], []byte("no"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 10 {
			text += fmt.Sprintf("  m%d: {wasm: %s}\n", n, file[n])
		}
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text+"actors: {a: {type: m0/needs}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Open(context.Background(), m, Options{Allow: anywhere, Parallel: 3})
		if len(bad) == 0 {
			if err != nil || len(b.Images) != 10 {
				t.Fatal(err)
			}
			if err := b.Close(context.Background()); err != nil {
				t.Error(err)
			}
			continue
		}
		var e *ModuleError
		if !errors.As(err, &e) || e.Module != fmt.Sprint("m", bad[0]) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestOddFiles: what is not a regular file is neither a module nor a manifest.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	zero := filepath.Join(dir, "zero.wasm")
	if err := os.Symlink("/dev/zero", zero); err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat(zero); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("wasmactors: 1\nname: odd\nmodules: {m: {wasm: zero.wasm}}\nactors: {a: {type: x}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), m, Options{Allow: anywhere}); err == nil || !strings.Contains(err.Error(), "module m: ") || !strings.Contains(err.Error(), "zero.wasm: not a regular file but a device") {
		t.Error(err)
	}
	for _, path := range []string{zero, "/dev/null"} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "not a regular file but a device") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
