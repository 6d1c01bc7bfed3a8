// Package guesttest builds the guests of tests, with the compiler that the test run is for: standard Go, or TinyGo with
// make test COMPILER=tinygo. Tests of what only one of them does name it themselves.
package guesttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Variable is the environment variable that names the compiler.
const Variable = "WASMACTORS_COMPILER"

// The compilers.
const (
	Go     = "go"
	TinyGo = "tinygo"
)

// Compiler is the one that guests of tests are built with: what [Variable] says, standard Go if it is not set.
func Compiler() string {
	switch c := os.Getenv(Variable); c {
	case "":
		return Go
	case Go, TinyGo:
		return c
	default:
		panic(fmt.Sprintf("%s is %q: it must be %s or %s", Variable, c, Go, TinyGo))
	}
}

// Build compiles the guest in a folder with [Compiler].
func Build(dir string) ([]byte, error) { return BuildWith(Compiler(), dir) }

// BuildWith compiles the guest in a folder with a compiler, which must be installed. The error has the compiler's output.
func BuildWith(compiler, dir string) ([]byte, error) {
	out, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	file := filepath.Join(out, "guest.wasm")
	args := []string{"build", "-buildmode=c-shared"}
	if compiler == TinyGo {
		args = append(args, "-target=wasip1", "-scheduler=none", "-panic=print", "-no-debug")
	}
	cmd := exec.Command(compiler, append(args, "-o", file, ".")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s in %s: %w\n%s", compiler, dir, err, text)
	}
	return os.ReadFile(file)
}
