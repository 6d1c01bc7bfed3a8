package bundle

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// imports is a module that imports one function.
func imports(module, name string) []byte {
	item := string([]byte{byte(len(module))}) + module + string([]byte{byte(len(name))}) + name + "\x00\x00"
	body := "\x01" + item
	return []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x02" + string([]byte{byte(len(body))}) + body)
}

// TestForeignModules: what another tool has made is refused with its file, its place in
// the manifest, and what to do.
func TestForeignModules(t *testing.T) {
	for _, c := range []struct{ module, name, want string }{
		{"env", "abort", "compile it with --use abort="},
		{"gojs", "runtime.wasmExit", "build it with GOOS=wasip1 -buildmode=c-shared"},
		{"wasi_unstable", "fd_write", "build it for wasip1"},
		{"other", "thing", "the file is"},
	} {
		dir := t.TempDir()
		for name, text := range map[string][]byte{"m.wasm": imports(c.module, c.name), FileName: []byte(minimal)} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Check(context.Background(), dir, nil, Options{CacheDir: servicetest.CacheDir()})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Join(dir, "m.wasm")) || !strings.Contains(err.Error(), "bundle.yaml:4:3: module m: ") {
			t.Errorf("%s.%s: %v", c.module, c.name, err)
		}
	}
}

// A manifest that is not a regular file, or too large, is not read.
func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 1<<40); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{os.DevNull: "not a regular file", big: "larger than"} {
		if _, _, err := readManifest(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a manifest %s: %v", path, err)
		}
	}
}
