//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// said is what a run that goes on writes.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// A node that keeps the directory and does not start keeps dev waiting for no other node: it says so, and takes the change that mends it.
func TestDevSaysWhichNodeDoesNotStart(t *testing.T) {
	if testing.Short() {
		t.Skip("processes for some seconds")
	}
	var taken net.Listener
	for taken == nil { // at an address whose last digit is the number of the first node
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if l.Addr().(*net.TCPAddr).Port%10 == 1 {
			taken = l
			continue
		}
		defer l.Close()
	}
	defer taken.Close()
	dir := echoBundle(t, "cluster: {}\n")
	t.Setenv("WASMACTORS_TEST_MAIN", "1")
	t.Setenv("WASMACTORS_CACHE_DIR", testCache)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var errs said
	over := make(chan struct{})
	go func() {
		defer close(over)
		run(ctx, nil, []string{"wasmactors", "dev", dir, "--nodes", "2", "--json", "--health", fmt.Sprintf("127.0.0.1:%d{node}", taken.Addr().(*net.TCPAddr).Port/10)}, strings.NewReader(""), io.Discard, &errs)
	}()
	until := func(what ...string) {
		t.Helper()
		for deadline := time.Now().Add(2 * patience); ; time.Sleep(20 * time.Millisecond) {
			text := errs.String()
			found := 0
			for _, w := range what {
				if strings.Contains(text, w) {
					found++
				}
			}
			if found == len(what) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("it does not say %q:\n%s", what, text)
			}
		}
	}
	until(`"kind":"failed"`, "node n1: it has ended before it was up")
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bundle.yaml")
	if err := os.WriteFile(file, []byte(mustRead(t, file)+"# mended\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	until(`"kind":"up"`)
	end()
	select {
	case <-over:
	case <-time.After(2 * patience):
		t.Errorf("it does not end:\n%s", &errs)
	}
}
