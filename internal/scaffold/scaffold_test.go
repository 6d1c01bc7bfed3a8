package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", filepath.Join(dir, "guest.wasm"), ".")
	cmd.Dir = filepath.Join(dir, "guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
