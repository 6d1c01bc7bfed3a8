package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/bundle"
)

func TestPackedSourcesAreCurrent(t *testing.T) {
	now, err := Pack("../..")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(now, packed) {
		t.Fatal("the SDK has changed: run `go generate ./internal/scaffold`")
	}
}

// A new bundle is valid and builds with nothing but the go command.
func TestNewBuildsOffline(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fresh")
	files, err := New(dir, "fresh")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(own) {
		t.Error(files)
	}
	if _, err := bundle.Load(dir); err != nil {
		t.Error(err)
	}
	if _, err := New(dir, "fresh"); err == nil {
		t.Error("an existing bundle was overwritten")
	}
	guest := filepath.Join(dir, "guest")
	run := func(env []string, args ...string) {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = guest
		cmd.Env = append(append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off"), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	run([]string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-buildmode=c-shared", "-o", filepath.Join(dir, "guest.wasm"), ".")
	run(nil, "generate", ".")
	run(nil, "vet", ".")
	run(nil, "test", ".")
	for p, text := range own {
		if now, err := os.ReadFile(filepath.Join(dir, p)); err != nil || string(now) != strings.ReplaceAll(text, "NAME", "fresh") {
			t.Errorf("%s is not what go generate makes of it: %v\n%s", p, err, now)
		}
	}
}
