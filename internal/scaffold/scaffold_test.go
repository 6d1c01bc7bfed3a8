package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/internal/thorough"
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

// A new bundle of each template is valid and builds with nothing but the go command.
func TestNewBuildsOffline(t *testing.T) {
	for _, template := range Templates() {
		t.Run(template, func(t *testing.T) {
			if template != Default {
				thorough.SkipUnlessSlow(t)
			}
			dir := filepath.Join(t.TempDir(), "fresh")
			files, err := New(dir, "fresh", template)
			if err != nil {
				t.Fatal(err)
			}
			mine, err := own(template, "fresh")
			if err != nil || len(files) != len(mine) || mine["guest/go.mod"] == "" {
				t.Error(files, err)
			}
			if _, err := bundle.LoadWith(dir, nil, all.Kinds()...); err != nil {
				t.Error(err)
			}
			if _, err := New(dir, "fresh", template); err == nil {
				t.Error("an existing bundle was overwritten")
			}
			if tests, err := filepath.Glob(filepath.Join(dir, "*_test.yaml")); err != nil || len(tests) == 0 {
				t.Error("there is no scenario", err)
			}
			goIn(t, dir, []string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-buildmode=c-shared", "-o", filepath.Join(dir, "guest.wasm"), ".")
			goIn(t, dir, nil, "generate", ".")
			goIn(t, dir, nil, "vet", ".")
			goIn(t, dir, nil, "test", ".")
			for p, text := range mine {
				if now, err := os.ReadFile(filepath.Join(dir, p)); err != nil || string(now) != text {
					t.Errorf("%s is not what go generate makes of it: %v\n%s", p, err, now)
				}
			}
		})
	}
	if _, err := New(filepath.Join(t.TempDir(), "x"), "x", "none"); err == nil || !strings.Contains(err.Error(), "use one of") {
		t.Error(err)
	}
}

// goIn runs the go command in the guest's folder, without a network.
func goIn(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(dir, "guest")
	cmd.Env = append(append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}

// A guest of a new bundle may import every package of the SDK and of the ABI.
func TestEveryPackageIsVendored(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	dir := filepath.Join(t.TempDir(), "all")
	if _, err := New(dir, "all", Default); err != nil {
		t.Fatal(err)
	}
	text, n := "package main\n\nimport (\n", 0
	for _, mod := range modules {
		err := filepath.WalkDir(filepath.Join("../..", mod), func(p string, e os.DirEntry, err error) error {
			if err != nil || !e.IsDir() || e.Name() == "internal" || e.Name() == "testdata" || e.Name() == "gen" { // a program
				if err == nil && e.IsDir() {
					return filepath.SkipDir
				}
				return err
			}
			if sources, _ := filepath.Glob(filepath.Join(p, "*.go")); len(sources) == 0 {
				return nil
			}
			rel, err := filepath.Rel("../..", p)
			if !strings.HasPrefix(rel, filepath.Join("guest-sdk", "actortest")) { // native tests alone
				text += "\t_ \"" + module + filepath.ToSlash(rel) + "\"\n"
				n++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 20 {
		t.Errorf("%d packages:\n%s", n, text)
	}
	if err := os.WriteFile(filepath.Join(dir, "guest", "all.go"), []byte(text+")\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	goIn(t, dir, []string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-buildmode=c-shared", "-o", filepath.Join(dir, "guest.wasm"), ".")
	goIn(t, dir, nil, "vet", ".")
}
