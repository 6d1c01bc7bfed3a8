package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func needsKernelLimits(t *testing.T) {
	if raceDetector {
		t.Skip("address space is not limited under the race detector")
	}
}

func withoutDeathSignal(without bool) {
	if without {
		deathSignal = 0
	}
}

// lives reports whether a process is there and is not just waiting to be counted.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// eatUnseen takes memory that Go does not count, until the kernel refuses.
func eatUnseen() {
	for {
		b, err := syscall.Mmap(-1, 0, 16<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			panic(err)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
}

// unwatched works on for ever, with nothing but the kernel's limits.
func unwatched() int {
	limitProcess(compileLimits{Time: 2 * time.Second, Memory: 1 << 30})
	for {
	}
}

// who says what the process can see.
func who() int {
	closeInherited()
	wd, _ := os.Getwd()
	var open []string
	for fd := range 64 {
		if to, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); err == nil {
			open = append(open, to)
		}
	}
	fmt.Fprintf(os.Stderr, "environment %q folder %q files %q", os.Environ(), wd, open)
	return 1
}

// TestProcessInheritsNothing: no environment, no folder, no files but its pipes,
// not even those that this process has been handed down itself.
func TestProcessInheritsNothing(t *testing.T) {
	t.Setenv("TREASURE", "gold")
	secret := filepath.Join(t.TempDir(), "treasure")
	fd, err := syscall.Open(secret, syscall.O_CREAT|syscall.O_RDWR, 0o600) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	_, err = newEngine(t, NewConfig().withProgram("__who")).Load(t.Context(), guest(t, "echo"), ImageConfig{})
	var c *CompileError
	if !errors.As(err, &c) {
		t.Fatal(err)
	}
	if !strings.Contains(c.Output, `environment [] folder "/" files ["pipe:`) || strings.Contains(c.Output, "treasure") {
		t.Error(c.Output)
	}
}

// TestOwnCompiler: a program that has called CompileMain compiles in processes of
// its own from then on.
func TestOwnCompiler(t *testing.T) {
	if p, err := new(Config).compiler(); p != nil || err != nil {
		t.Error("before it has called CompileMain:", p, err)
	}
	ownCompiler.Store(true)
	defer ownCompiler.Store(false)
	e := newEngine(t, NewConfig())
	if e.compiler == nil || e.compiler.path != "/proc/self/exe" {
		t.Fatal(e.compiler)
	}
	works(t, load(t, e, "echo", ImageConfig{}))
	if e := newEngine(t, NewConfig().WithCompileInProcess()); e.compiler != nil {
		t.Error(e.compiler)
	}
}
