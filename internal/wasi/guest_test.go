package wasi

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestGoProgram runs a program that standard Go has compiled for wasip1: what its
// runtime and library need is here, and behaves.
func TestGoProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a Go program")
	}
	wasm := filepath.Join(t.TempDir(), "guest.wasm")
	build := exec.Command("go", "build", "-o", wasm, ".")
	build.Dir = filepath.Join("testdata", "guest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	binary, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}

	dir := sandbox(t)
	g := newGuest(t, Dir{Host: dir, Guest: "/data"}, Dir{Host: filepath.Join(dir, "sub"), Guest: "/ro", ReadOnly: true})
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	if _, err := Instantiate(ctx, r); err != nil {
		t.Fatal(err)
	}
	_, err = r.Instantiate(g.h, binary)
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("exit: %v\n%s%s", err, g.h.out, g.h.err)
	}
	want := strings.TrimSpace(`
args [actor -v]
env value
time 2023-11-14T22:13:20.123456789Z 0s
random [1 2 3 4] <nil>
stdin 0 <nil>
read "hello, guest" <nil>
stat two 3 true
walk . true <nil>
walk a true <nil>
walk a/b true <nil>
walk a/two false <nil>
walk hello.txt false <nil>
walk sub true <nil>
walk sub/inner.txt false <nil>
gone true
secret true
passwd true
read-only true
`)
	if got := strings.TrimSpace(string(g.h.out)); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
	if got := string(g.h.err); got != "to stderr\n" {
		t.Errorf("stderr: %q", got)
	}
}
