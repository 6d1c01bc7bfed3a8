package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// runtimeDir is a folder for sockets with a short path.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wa")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Every verb has help with an example that begins with its name, and a page of the guide
// that shows it.
func TestHelpOfEveryCommand(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range newApp(&environment{}).Commands {
		if c.Name == "help" {
			continue
		}
		code, out, errs := try(t, context.Background(), "", c.Name, "--help")
		if code != 0 || !strings.Contains(out, "wasmactors "+c.Name) || c.Usage == "" {
			t.Errorf("%s: %d %s%s", c.Name, code, out, errs)
		}
		if code, after, errs := try(t, context.Background(), "", c.Name, "ls", "x", "--help"); code != 0 || after != out || errs != "" {
			t.Errorf("%s, behind arguments: %d %s%s", c.Name, code, after, errs)
		}
		if !reaches(c) {
			continue
		}
		if !strings.Contains(out, "Examples:") || strings.Count(out, "   wasmactors "+c.Name) < 2 {
			t.Errorf("%s has no examples:\n%s", c.Name, out)
		}
		if !bytes.Contains(guide, []byte("wasmactors "+c.Name)) {
			t.Errorf("docs/operate.md does not show %s", c.Name)
		}
	}
}

// Help says once what the default of a flag is.
func TestDefaultsAreSaidOnce(t *testing.T) {
	for _, c := range newApp(&environment{}).Commands {
		_, out, _ := try(t, context.Background(), "", c.Name, "--help")
		for _, line := range strings.Split(out, "\n") {
			if strings.Count(line, "(default: ") > 1 {
				t.Errorf("%s: %s", c.Name, line)
			}
		}
	}
	if _, out, _ := try(t, context.Background(), "", "tree", "--help"); !strings.Contains(out, "(default: 3)") {
		t.Error(out)
	}
}

// syncBuffer is a buffer that a process writes to and a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
