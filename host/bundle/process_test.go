package bundle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/runtime"
)

// TestMain lets the test binary be another process that opens a bundle.
func TestMain(m *testing.M) {
	runtime.CompileMain() // modules compile in processes of their own, as in production
	if dir := os.Getenv("BUNDLE_TEST_CACHE"); dir != "" {
		os.Exit(openInProcess(dir, os.Getenv("BUNDLE_TEST_DIR")))
	}
	if dir := os.Getenv("BUNDLE_TEST_LEDGER"); dir != "" {
		os.Exit(ledgerInProcess(dir))
	}
	os.Exit(m.Run())
}

// openInProcess opens a bundle, asks its actor and says how that went.
func openInProcess(cache, dir string) int {
	if err := limitFiles(os.Getenv("BUNDLE_TEST_LIMIT")); err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	m, err := Load(dir)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	b, err := Open(ctx, m, Options{Allow: anywhere, CacheDir: cache, Compiler: guesttest.Compiler(), Progress: func(module, text string) { fmt.Println("stage", text) }})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	sys, err := b.Start(nil, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ref, err := sys.Lookup("/user/greeter")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var reply string
	answer, err := sys.Ask(ctx, ref, "Ada")
	if err == nil {
		err = errors.Join(answer.Decode(&reply), sys.Close(ctx), b.Close(ctx))
	}
	fmt.Println("reply", reply, b.Images["hello"].Info().Cached, err)
	if err != nil {
		return 1
	}
	return 0
}

// another starts the test binary as such a process; killAt, if not "", is the
// stage at which it is killed.
func another(t *testing.T, cache, dir, killAt string, env ...string) (lines []string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Error(err)
		return nil
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), "BUNDLE_TEST_CACHE="+cache, "BUNDLE_TEST_DIR="+dir), env...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = os.Stderr
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	killed := false
	for s := bufio.NewScanner(out); s.Scan(); {
		lines = append(lines, s.Text())
		if killAt != "" && strings.HasPrefix(s.Text(), "stage "+killAt) {
			killed = cmd.Process.Kill() == nil
		}
	}
	if err := cmd.Wait(); err != nil && !killed {
		t.Errorf("%v: %q", err, lines)
	}
	return lines
}

const greeting = "reply hello Ada, you are number 1 "

func answered(lines []string) bool {
	return len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], greeting)
}

// TestProcessesShareACache starts processes that build and load the same bundle
// at once, some of which are killed on the way, while another one damages files
// of the cache. Each that was not killed gets its answer, and in the end the
// cache serves.
func TestProcessesShareACache(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	dir, err := filepath.Abs("../../samples/hello")
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range thorough.SlowOf(1, 2) {
		var wg sync.WaitGroup
		for n := range thorough.SlowOf(2, 4) {
			killAt := ""
			if n == 0 {
				killAt = []string{"compiling", "decode", "initialise", "compile"}[r.IntN(4)]
			}
			wg.Go(func() {
				lines := another(t, cache, dir, killAt)
				if killAt == "" && !answered(lines) {
					t.Errorf("round %d, process %d: %q", round, n, lines)
				}
			})
		}
		wg.Wait()
		if lines := another(t, cache, dir, ""); !answered(lines) || !strings.Contains(lines[len(lines)-1], " true ") {
			t.Errorf("round %d: the cache does not serve: %q", round, lines)
		}
		damage(t, r, cache)
		if lines := another(t, cache, dir, ""); !answered(lines) {
			t.Errorf("seed %d, round %d, after damage: %q", seed, round, lines)
		}
	}
}

// damage changes every file of the cache: flips a bit, cuts, empties, removes.
func damage(t *testing.T, r *rand.Rand, cache string) {
	t.Helper()
	err := filepath.WalkDir(cache, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil || len(raw) == 0 {
			return err
		}
		switch r.IntN(4) {
		case 0:
			raw[r.IntN(len(raw))] ^= 1 << r.IntN(8)
		case 1:
			raw = raw[:r.IntN(len(raw))]
		case 2:
			raw = nil
		case 3:
			return os.Remove(path)
		}
		return os.WriteFile(path, raw, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk: a bundle runs though nothing can be kept, and nothing is left
// half written.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles")
	}
	if err := limitFiles(""); err != nil {
		t.Skip("files cannot be limited here:", err)
	}
	m, err := Load("../../samples/hello")
	if err != nil {
		t.Fatal(err)
	}
	code, _, err := Code(context.Background(), m.Modules[0], Options{CacheDir: servicetest.CacheDir(), Compiler: guesttest.Compiler()})
	if err != nil {
		t.Fatal(err)
	}
	dir, cache := t.TempDir(), t.TempDir()
	manifest := "wasmactors: 1\nname: hello\nmodules:\n  hello: {wasm: hello.wasm}\nactors:\n  greeter: {type: hello/greeter}\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, FileName), []byte(manifest), 0o600), os.WriteFile(filepath.Join(dir, "hello.wasm"), code, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range thorough.SlowOf(1, 2) {
		if lines := another(t, cache, dir, "", "BUNDLE_TEST_LIMIT=100000"); !answered(lines) || !strings.Contains(lines[len(lines)-1], " false ") {
			t.Errorf("%q", lines)
		}
	}
	_ = filepath.WalkDir(cache, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "tmp-") {
			t.Errorf("left: %s", path)
		}
		return nil
	})
	if lines := another(t, cache, dir, ""); !answered(lines) {
		t.Errorf("with room again: %q", lines)
	}
	if lines := another(t, cache, dir, ""); !answered(lines) || !strings.Contains(lines[len(lines)-1], " true ") {
		t.Errorf("with room again, the second time: %q", lines)
	}
}
