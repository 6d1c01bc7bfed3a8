//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"go/build"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A run that joins no cluster pays nothing for those that do: no goroutine of a node or of NATS, no port, no file beside its own.
func TestARunThatIsAloneHasNoNode(t *testing.T) {
	dir := echoBundle(t, "")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	cmd := exec.Command(exe, "run", dir, "--state", state, "--health", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "WASMACTORS_TEST_MAIN=1", "WASMACTORS_CACHE_DIR="+testCache, "GOTRACEBACK=all")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop()
	up := false
	lines := bufio.NewReader(errs)
	for !up && err == nil {
		var line string
		line, err = lines.ReadString('\n')
		up = strings.Contains(line, "is up")
	}
	if !up {
		t.Fatal("it has not started")
	}
	if runtime.GOOS == "linux" {
		if n := listeners(t, cmd.Process.Pid); n != 1 {
			t.Errorf("it listens at %d ports; --health is one", n)
		}
	}
	if code, text, _ := try(t, context.Background(), "", "cluster", "status", "--bundle", fmt.Sprint(cmd.Process.Pid)); code == 0 {
		t.Errorf("it is a node: %s", text)
	}
	_ = cmd.Process.Signal(syscall.SIGQUIT)
	dump, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(dump), "goroutine 1 ") || !strings.Contains(string(dump), "cmd/wasmactors.serve(") {
		t.Fatalf("no goroutines are shown (%v):\n%.2000s", err, dump)
	}
	for _, of := range []string{"wasmactors/host/cluster", "nats-io"} {
		if i := strings.Index(string(dump), of); i >= 0 {
			t.Errorf("a goroutine of %s runs:\n%.1000s", of, dump[max(0, i-500):])
		}
	}
}

// listeners is how many TCP ports of the machine a process listens at.
func listeners(t *testing.T, pid int) int {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	mine := map[string]bool{}
	for _, fd := range fds {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			mine[strings.TrimSuffix(inode, "]")] = true
		}
	}
	n := 0
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(text), "\n") {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && mine[f[9]] { // LISTEN
				n++
			}
		}
	}
	return n
}

// Nothing below host/cluster is imported by what is not of clusters, and NATS by natscluster and the command alone.
func TestOnlyClustersImportNodes(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata") || rel == "bench" || rel == "tools" {
			return filepath.SkipDir
		}
		p, err := build.Default.ImportDir(path, build.IgnoreVendor)
		if err != nil {
			return nil // no package, or none of this machine
		}
		rel = filepath.ToSlash(rel)
		for _, i := range p.Imports {
			nats := strings.HasPrefix(i, "github.com/nats-io/") || strings.HasSuffix(i, "/host/cluster/natscluster")
			node := strings.Contains(i, "wasmactors/host/cluster")
			switch {
			case nats && rel != "host/cluster/natscluster" && rel != "cmd/wasmactors":
				t.Errorf("%s imports %s", rel, i)
			case node && !strings.HasPrefix(rel, "host/cluster") && !strings.HasPrefix(rel, "host/scenario") && !slices.Contains([]string{"host/bundle", "host/testkit/nodekit", "cmd/wasmactors"}, rel):
				t.Errorf("%s imports %s", rel, i)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
