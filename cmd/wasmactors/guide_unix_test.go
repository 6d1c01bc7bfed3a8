//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/race"
)

// step is a command of the guide and what it prints.
type step struct {
	command string
	output  []string
	stays   bool // until Ctrl-C
}

// guideSteps are those of the blocks that are marked as console.
func guideSteps(t *testing.T) (steps []step) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```console\n")[1:] {
		block, _, ok := strings.Cut(block, "```")
		if !ok {
			t.Fatal("a block has no end")
		}
		for _, line := range strings.Split(strings.TrimSuffix(block, "\n"), "\n") {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, step{command: command})
				continue
			}
			if len(steps) == 0 {
				t.Fatalf("%q is before any command", line)
			}
			if last := &steps[len(steps)-1]; line == "^C" {
				last.stays = true
			} else {
				last.output = append(last.output, line)
			}
		}
	}
	return steps
}

var (
	numbers = regexp.MustCompile(`[0-9]+([.:][0-9]+)*(ns|µs|ms|s|m|h|d|k|M|G|K|B| [KMG]iB)?([0-9]+(s|m|h))?\b`)
	folders = regexp.MustCompile(`/[^ "]*/wasmactors/`)
	blanks  = regexp.MustCompile(` +`)
)

// alike is a line without what differs from run to run.
func alike(line string) string {
	line = folders.ReplaceAllString(line, "/wasmactors/")
	line = numbers.ReplaceAllString(line, "#")
	return strings.TrimSpace(blanks.ReplaceAllString(line, " "))
}

// matches compares an output with that of the guide, where "..." is any number of lines.
func matches(want []string, got string) bool {
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	var walk func(w, g []string) bool
	walk = func(w, g []string) bool {
		switch {
		case len(w) == 0:
			return len(g) == 0 || len(g) == 1 && g[0] == ""
		case w[0] == "...":
			for i := 0; i <= len(g); i++ {
				if walk(w[1:], g[i:]) {
					return true
				}
			}
			return false
		}
		return len(g) > 0 && alike(w[0]) == alike(g[0]) && walk(w[1:], g[1:])
	}
	return walk(want, lines)
}

// looks are commands that change nothing: they are repeated until what was done before is
// seen.
var looks = regexp.MustCompile(`^wasmactors (ps|tree|top|logs|events|dead-letters)\b`)

// Every command of docs/operate.md is run, in order, and prints what the page says, numbers
// and times aside.
func TestTheGuideToOperating(t *testing.T) {
	if race.Enabled {
		t.Skip("processes, not goroutines: the detector has nothing to see, and takes minutes")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, runtime := t.TempDir(), runtimeDir(t)
	// The test's program is the command.
	if err := os.WriteFile(filepath.Join(bin, "wasmactors"), []byte("#!/bin/sh\nexport WASMACTORS_TEST_MAIN=1\nexec '"+exe+"' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+runtime, "WASMACTORS_CACHE_DIR="+testCache, "WASMACTORS_BUNDLE=", "GOPROXY=off")
	start := func(command string) (*exec.Cmd, *syncBuffer) {
		cmd := exec.Command("sh", "-c", "exec "+command)
		out := &syncBuffer{}
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "../..", env, out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		})
		return cmd, out
	}
	wait := func(s step, out *syncBuffer) {
		t.Helper()
		for end := time.Now().Add(patience); !matches(append(s.output, "..."), out.String()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s\nprints\n%s\nand not\n%s", s.command, out.String(), strings.Join(s.output, "\n"))
			}
		}
	}
	steps := guideSteps(t)
	if len(steps) < 25 {
		t.Fatalf("only %d commands", len(steps))
	}
	for _, s := range steps {
		if command, ok := strings.CutSuffix(s.command, " &"); ok {
			_, out := start(command)
			wait(s, out)
			continue
		}
		if s.stays {
			cmd, out := start(s.command)
			wait(s, out)
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted {
				t.Errorf("%s: %s\n%s", s.command, cmd.ProcessState, out.String())
			}
			continue
		}
		if strings.HasPrefix(s.command, "curl") {
			if _, err := exec.LookPath("curl"); err != nil {
				continue
			}
		}
		var text []byte
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			cmd := exec.Command("sh", "-c", s.command)
			cmd.Dir, cmd.Env = "../..", env
			text, err = cmd.CombinedOutput()
			if err == nil && matches(s.output, string(text)) {
				break
			}
			if !looks.MatchString(s.command) || time.Now().After(end) {
				t.Fatalf("%s\nprints (%v)\n%s\nand not\n%s", s.command, err, text, strings.Join(s.output, "\n"))
			}
		}
	}
}
