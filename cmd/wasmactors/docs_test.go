package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// shell is the block of commands in a page that begins with a line.
func shell(t *testing.T, page, first string) []string {
	t.Helper()
	for _, part := range strings.Split(mustRead(t, page), "\n```sh\n")[1:] {
		block, _, ok := strings.Cut(part, "\n```\n")
		if ok && strings.HasPrefix(block, first) {
			return strings.Split(block, "\n")
		}
	}
	t.Fatalf("%s has no block that begins with %s", page, first)
	return nil
}

// watched is a stream that a test waits for.
type watched struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newWatched() *watched { return &watched{more: make(chan struct{}, 1)} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
	return w.text.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// until waits for a text, so many times.
func (w *watched) until(t *testing.T, text string, times int) {
	t.Helper()
	over := time.After(3 * time.Minute)
	for strings.Count(w.String(), text) < times {
		select {
		case <-w.more:
		case <-over:
			t.Fatalf("no %q in\n%s", text, w)
		}
	}
}

// The loop of docs/guests.md, as it stands there, and an edit that it speaks of.
func TestGuidesLoop(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("compiles a guest, and uses a shell")
	}
	lines := shell(t, "../../docs/guests.md", "wasmactors new counter")
	t.Setenv("WASMACTORS_CACHE_DIR", testCache)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	t.Chdir(t.TempDir())
	for _, line := range lines {
		command, ok := strings.CutPrefix(line, "wasmactors ")
		switch {
		case ok && strings.HasPrefix(command, "dev "):
			tryLoop(t, strings.Fields(line))
		case ok:
			if code := run(context.Background(), nil, strings.Fields(line), strings.NewReader(""), io.Discard, os.Stderr); code != 0 {
				t.Fatalf("%s: %d", line, code)
			}
		default:
			if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
		}
	}
}

func tryLoop(t *testing.T, args []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stdout, stderr := newWatched(), newWatched()
	ended := make(chan int)
	go func() {
		ended <- run(ctx, nil, append(args, "--compiler", "go"), strings.NewReader(""), stdout, stderr)
	}()
	end := sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != exitInterrupted {
			t.Errorf("exit code %d", code)
		}
	})
	defer end()
	stdout.until(t, `"reply":101}`, 1)
	main := filepath.Join("counter", "guest", "main.go")
	text := mustRead(t, main)
	write := func(old, new string) {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q in\n%s", old, text)
		}
		if err := os.WriteFile(main, []byte(strings.Replace(text, old, new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("c.total += n", "c.total += m")
	stderr.until(t, filepath.Join("counter", "guest", "main.go")+":22:13: undefined: m", 1)
	write("c.total += n", "c.total += 10 * n")
	stdout.until(t, `"reply":110}`, 1)
	end()
	if !strings.Contains(stderr.String(), "INFO replaced module=guest runs=") {
		t.Error(stderr)
	}
}
