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

	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

func needsKernelLimits(t *testing.T) {
	if race.Enabled {
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
	spin()
	return 0
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

// TestSlowModules: modules whose locals meet at thousands of joins, which wazero's
// compiler takes long for, are loaded or refused within the limits of their size.
func TestSlowModules(t *testing.T) {
	if race.Enabled {
		t.Skip("measures processor time")
	}
	e := newEngine(t, NewConfig().withProgram(compileArg))
	for _, c := range []struct {
		what          string
		locals, joins int
		head          []byte
	}{
		{"blocks", 5000, 8000, []byte{wasm.OpBlock, 0x40, 0x20, 0, 0x0d, 0}},
		{"loops", 1000, 2000, []byte{wasm.OpLoop, 0x40}},
	} {
		s := newSketch()
		var body []byte
		for j := range c.joins {
			body = append(append(body, c.head...), wasm.OpI32Const, 1, 0x21)
			body = wasm.AppendU32(body, uint32(j%c.locals)+1)
			if c.what == "loops" {
				body = append(body, 0x20, 0, 0x0d, 0)
			}
			body = append(body, wasm.OpEnd)
		}
		s.m.Code[1] = wasm.Body{Locals: []wasm.LocalGroup{{N: uint32(c.locals), Type: wasm.I32}}, Code: append(body, wasm.OpI32Const, 0, wasm.OpEnd)}
		raw := s.bytes()
		before := childTime(t)
		_, err := e.Load(t.Context(), raw, ImageConfig{Name: c.what})
		took := childTime(t) - before
		var load *LoadError
		if err != nil && !errors.As(err, &load) {
			t.Error(err)
		}
		if limit := compileTimeBase + time.Duration(len(raw))*compileTimeByte; len(raw) > 100_000 || took > limit+time.Second/2 {
			t.Errorf("%s: %d bytes took %s of processor time, the limit is %s: %v", c.what, len(raw), took, limit, err)
		}
		t.Log(c.what, len(raw), took, err)
	}
}

// childTime is the processor time of all processes that have ended.
func childTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(syscall.TimevalToNsec(u.Utime) + syscall.TimevalToNsec(u.Stime))
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
