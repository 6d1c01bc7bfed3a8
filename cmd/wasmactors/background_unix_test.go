//go:build unix

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestBackgroundJob: a script's background job starts with SIGINT ignored. It stays so, and SIGTERM ends the job in order.
func TestBackgroundJob(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap '' INT; exec "$0" "$@"`, exe, "run", "../../samples/hello", "--input", "-", "--for", "60s")
	cmd.Env = append(os.Environ(), "WASMACTORS_TEST_MAIN=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close() // it ends with its input
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(50*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "is up") {
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // an interrupt that is heard comes first
	}
	for lines.Scan() {
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitTerminated {
		t.Errorf("it ended with %v, want exit status %d", err, exitTerminated)
	}
}
