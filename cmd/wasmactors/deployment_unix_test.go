//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/race"
)

// The command of the unit in docs/deployment.md runs a bundle from folders that are links to
// private ones, as systemd lays them out, is ready, and ends in order at SIGTERM.
func TestTheUnitOfTheDeploymentPage(t *testing.T) {
	if race.Enabled {
		t.Skip("processes, not goroutines: the detector has nothing to see")
	}
	page := mustRead(t, "../../docs/deployment.md")
	line := textAfter(t, page, "ExecStart=/usr/local/bin/wasmactors ")
	environment := textAfter(t, page, "Environment=")
	dir := t.TempDir()
	for _, name := range []string{"state", "cache", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, "private", name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("private", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	guest := mustRead(t, "../../host/testdata/echo.wasm")
	bundle := filepath.Join(dir, "shop")
	for name, text := range map[string]string{
		"bundle.yaml": "wasmactors: 1\nname: shop\nmodules: {m: {wasm: ./m.wasm}}\nactors: {echo: {type: m/echo}}\n",
		"m.wasm":      guest,
	} {
		if err := os.MkdirAll(bundle, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bundle, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	place := strings.NewReplacer("/srv/shop", bundle, "${STATE_DIRECTORY}", filepath.Join(dir, "state"), "${CACHE_DIRECTORY}", filepath.Join(dir, "cache"),
		"127.0.0.1:9090", "127.0.0.1:0", "/run/shop", filepath.Join(dir, "run"), "/var/lib/shop", filepath.Join(dir, "state"))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, strings.Fields(place.Replace(line))...)
	cmd.Env = append([]string{"WASMACTORS_TEST_MAIN=1", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.Getenv("TMPDIR")}, strings.Fields(place.Replace(environment))...)
	out := newWatched()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	out.until(t, `"event":"admin"`, 1)
	ready := "http://" + healthOf(t, out.String()) + "/readyz"
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r, err := http.Get(ready)
		if err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatalf("not ready: %v\n%s", err, out)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if !strings.Contains(page, "SuccessExitStatus=143\n") {
		t.Error("the page has another exit code")
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "cache", "images")); err != nil || len(entries) == 0 {
		t.Errorf("nothing is in the cache: %v\n%s", err, out)
	}
}

// textAfter is the rest of the line that begins with a text.
func textAfter(t *testing.T, page, begin string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n"+begin)
	if !ok {
		t.Fatalf("no line begins with %s", begin)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// healthOf is the address for probes that a run has printed.
func healthOf(t *testing.T, out string) string {
	t.Helper()
	for line := range strings.Lines(out) {
		var v struct{ Event, Health string }
		if json.Unmarshal([]byte(line), &v) == nil && v.Event == "admin" {
			return v.Health
		}
	}
	t.Fatalf("no address in\n%s", out)
	return ""
}
