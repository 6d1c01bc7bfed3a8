// Package release holds the tests that what README says of installing and embedding
// works, from what a release would contain: the modules of this checkout behind a proxy
// of files.
package release

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/thorough"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	root    = "github.com/wasmactors/wasmactors"
	version = "v0.1.0" // what the modules require of each other
)

// proxy writes the modules of the checkout as a module proxy has them.
func proxy(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, sub := range []string{"", "abi", "guest-sdk"} {
		m := module.Version{Path: path.Join(root, sub), Version: version}
		from := filepath.Join("../..", sub)
		at := filepath.Join(dir, filepath.FromSlash(m.Path), "@v")
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		mod, err := os.ReadFile(filepath.Join(from, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(mod), "\nreplace") {
			t.Errorf("%s: a module with replace directives cannot be installed by version", m.Path)
		}
		for name, text := range map[string]string{"list": version + "\n", version + ".info": `{"Version":"` + version + `"}`, version + ".mod": string(mod)} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Create(filepath.Join(at, version+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		if err := zip.CreateFromDir(f, m, from); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// modCache is the module cache of the tests. They share it: to unpack all that the product needs
// takes as long as to compile it.
var modCache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "wasmactors-release")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	modCache = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// workshop runs the go command with the module cache of the tests, which is filled from the
// proxy and from what this machine's module cache has downloaded already.
type workshop struct {
	t   *testing.T
	env []string
	bin string
}

func newWorkshop(t *testing.T, proxies ...string) *workshop {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Fields(string(out))
	w := &workshop{t: t, bin: t.TempDir()}
	var list []string
	for _, p := range append(proxies, filepath.Join(caches[0], "cache", "download")) {
		list = append(list, "file://"+filepath.ToSlash(p))
	}
	w.env = append(os.Environ(), "GOPROXY="+strings.Join(list, ","), "GONOSUMDB=*", "GONOPROXY=none", "GOPRIVATE=", "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOWORK=",
		"GOMODCACHE="+modCache, "GOCACHE="+caches[1], "GOBIN="+w.bin, "GOTOOLCHAIN=local")
	return w
}

func (w *workshop) run(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// program is the one in README, on the main package's own.
func program(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(readme), "## In your program")
	_, after, ok2 := strings.Cut(after, "```go\n")
	body, _, ok3 := strings.Cut(after, "```")
	if !ok || !ok2 || !ok3 {
		t.Fatal("README has no program")
	}
	text := "package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"log\"\n\t\"os\"\n\n\t\"" + root + "/host\"\n\t\"" + root + "/runtime\"\n)\n\nfunc main() {\n" + body + "}\n"
	for name, text := range map[string]string{"go.mod": "module example\n\ngo 1.26.0\n", "main.go": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wasm, err := os.ReadFile("../../host/testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "echo.wasm"), wasm, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

const answer = "map[n:42]"

// TestInstall: `go install .../cmd/wasmactors@version`, and a program that requires the
// released module.
func TestInstall(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("compiles all of it: make tools")
	}
	w := newWorkshop(t, proxy(t))
	w.run(t.TempDir(), "go", "install", root+"/cmd/wasmactors@"+version)
	if out := w.run(t.TempDir(), filepath.Join(w.bin, "wasmactors"), "version"); !strings.Contains(out, "ABI 1") {
		t.Error(out)
	}
	dir := program(t)
	w.run(dir, "go", "get", root+"@"+version)
	w.run(dir, "go", "mod", "tidy")
	if out := w.run(dir, "go", "run", "."); !strings.Contains(out, answer) {
		t.Error(out)
	}
}

// TestEmbedCheckout: a program beside a checkout, as README says.
func TestEmbedCheckout(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("compiles: make tools")
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkshop(t)
	dir := program(t)
	w.run(dir, "go", "mod", "edit", "-replace", root+"="+checkout, "-replace", root+"/abi="+filepath.Join(checkout, "abi"))
	w.run(dir, "go", "mod", "tidy")
	if out := w.run(dir, "go", "run", "."); !strings.Contains(out, answer) {
		t.Error(out)
	}
}

// TestFreshClone: in a clone that has nothing but the module cache's downloads, every
// module of the workspace builds without a network.
func TestFreshClone(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("compiles: make tools")
	}
	clone := filepath.Join(t.TempDir(), "clone")
	copyTracked(t, "../..", clone)
	w := newWorkshop(t)
	for _, m := range []string{".", "abi", "guest-sdk", "samples/hello/guest", "samples/ledger/guest", "samples/flaky/guest", "samples/chat/guest", "samples/crawler/guest", "samples/webhooks/guest", "samples/redis/guest", "samples/accounts/guest"} {
		w.run(filepath.Join(clone, m), "go", "build", "./...")
	}
}

// copyTracked copies what a clone would have.
func copyTracked(t *testing.T, from, to string) {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = from
	out, err := cmd.Output()
	if err != nil {
		t.Skip("not a checkout: ", err)
	}
	for _, name := range strings.Split(strings.Trim(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
