//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
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
	cmd := exec.Command("sh", "-c", `trap '' INT; exec "$0" "$@"`, exe, "run", "../../samples/hello", "--input", "-", "--for", "10m")
	cmd.Env = append(os.Environ(), "WASMACTORS_TEST_MAIN=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close() // it ends with its input
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() }).Stop()
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "is up") {
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	// An interrupt that is heard ends it, and nothing is answered. Each answer is a reason to believe that it was not.
	answers := bufio.NewScanner(stdout)
	for range 10 {
		if _, err := io.WriteString(stdin, `{"to": "greeter", "message": "Ada"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() || !strings.Contains(answers.Text(), "hello Ada") {
			t.Fatalf("it does not go on: %s", answers.Text())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for answers.Scan() {
	}
	for lines.Scan() {
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitTerminated {
		t.Errorf("it ended with %v, want exit status %d", err, exitTerminated)
	}
}
