//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestInputIsAPipe: a FIFO may be the input, and whoever opens it does not wait for a writer.
func TestInputIsAPipe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	_, done, err := openInput(&environment{}, path)
	if err != nil || done() != nil {
		t.Fatal(err)
	}
	r, done, err := openInput(&environment{}, path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(path, []byte("line\n"), 0) }()
	if text, err := io.ReadAll(r); err != nil || string(text) != "line\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none")} {
		if _, _, err := openInput(&environment{}, bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
