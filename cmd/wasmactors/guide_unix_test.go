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
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// step is a command of a guide and what it prints, or a file that is written.
type step struct {
	command string
	output  []string
	stays   bool // until Ctrl-C
	file    string
	text    string
}

var guideBlock = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// guideSteps are those of the blocks of a page that are marked as console, and, if files is true, of those
// whose first line is a comment with the name of a file.
func guideSteps(t *testing.T, page string, files bool) (steps []step) {
	t.Helper()
	for _, m := range guideBlock.FindAllStringSubmatch(mustRead(t, page), -1) {
		kind, block := m[1], m[2]
		if first, rest, _ := strings.Cut(block, "\n"); files && (kind == "go" || kind == "yaml") {
			name := strings.TrimLeft(first, "/# ")
			if strings.Contains(name, " ") {
				t.Fatalf("%s: a block of %s does not begin with the name of a file: %q", page, kind, first)
			}
			steps = append(steps, step{file: name, text: rest})
			continue
		}
		if kind != "console" {
			continue
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
	ids     = regexp.MustCompile(`\b([0-9a-f]{16}|[0-9a-f]{12})\b`)
	folders = regexp.MustCompile(`/[^ "]*/wasmactors/`)
	blanks  = regexp.MustCompile(` +`)
)

// alike is a line without what differs from run to run.
func alike(line string) string {
	line = folders.ReplaceAllString(line, "/wasmactors/")
	line = ids.ReplaceAllString(line, "ID")
	line = strings.ReplaceAll(numbers.ReplaceAllString(line, "#")+" ", "# turn ", "# turns ") // on a slow machine there may be one
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
var looks = regexp.MustCompile(`^wasmactors (ps|tree|top|logs|events|crashes|dead-letters|trace|profile)\b`)

// guide follows a page: it runs its commands in a folder, with the test's program as the command.
type guide struct {
	t   *testing.T
	dir string
	env []string
}

func newGuide(t *testing.T, dir string) *guide {
	t.Helper()
	if race.Enabled {
		t.Skip("processes, not goroutines: the detector has nothing to see, and takes minutes")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, runtime := t.TempDir(), runtimeDir(t)
	if err := os.WriteFile(filepath.Join(bin, "wasmactors"), []byte("#!/bin/sh\nexport WASMACTORS_TEST_MAIN=1\nexec '"+exe+"' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &guide{t, dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+runtime, "TMPDIR="+runtime, "WASMACTORS_CACHE_DIR="+testCache, "WASMACTORS_BUNDLE=", "GOPROXY=off")}
}

// start begins a command that goes on.
func (g *guide) start(command string) (*exec.Cmd, *syncBuffer) {
	g.t.Helper()
	cmd := exec.Command("sh", "-c", "exec "+command)
	out := &syncBuffer{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = g.dir, g.env, out, out
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return cmd, out
}

// wait waits until a command that goes on has printed what the page says.
func (g *guide) wait(s step, out *syncBuffer) {
	g.t.Helper()
	for end := time.Now().Add(patience); !matches(append(s.output, "..."), out.String()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatalf("%s\nprints\n%s\nand not\n%s", s.command, out.String(), strings.Join(s.output, "\n"))
		}
	}
}

// follow does one step.
func (g *guide) follow(s step) {
	g.t.Helper()
	if command, ok := strings.CutSuffix(s.command, " &"); ok {
		_, out := g.start(command)
		g.wait(s, out)
		return
	}
	if s.stays {
		cmd, out := g.start(s.command)
		g.wait(s, out)
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			g.t.Fatal(err)
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted {
			g.t.Errorf("%s: %s\n%s", s.command, cmd.ProcessState, out.String())
		}
		return
	}
	if strings.HasPrefix(s.command, "curl") {
		if _, err := exec.LookPath("curl"); err != nil {
			return
		}
	}
	g.run(s, looks.MatchString(s.command), matches)
}

// run has a command print what the page says, as same compares it: at once, or, if again is true, at some time.
func (g *guide) run(s step, again bool, same func(want []string, got string) bool) {
	g.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		cmd := exec.Command("sh", "-c", s.command)
		cmd.Dir, cmd.Env = g.dir, g.env
		text, err := cmd.CombinedOutput()
		if err == nil && same(s.output, string(text)) {
			return
		}
		if !again || time.Now().After(end) {
			g.t.Fatalf("%s\nprints (%v)\n%s\nand not\n%s", s.command, err, text, strings.Join(s.output, "\n"))
		}
	}
}

// Every command of docs/operate.md is run, in order, and prints what the page says, numbers
// and times aside.
func TestTheGuideToOperating(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	g := newGuide(t, "../..")
	steps := guideSteps(t, "../../docs/operate.md", false)
	if len(steps) < 25 {
		t.Fatalf("only %d commands", len(steps))
	}
	for _, s := range steps {
		g.follow(s)
	}
}

// Every command of the guides to simulations and to repetitions is run, and prints what the page says, numbers and times aside.
func TestTheGuidesToSimulationsAndReplays(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	g := newGuide(t, "../..") // one cache for both
	for _, page := range []string{"simulate.md", "replay.md"} {
		steps := guideSteps(t, "../../docs/guide/"+page, false)
		if len(steps) < 3 {
			t.Fatalf("%s: only %d commands", page, len(steps))
		}
		for _, s := range steps {
			s.command = strings.ReplaceAll(s.command, "/tmp", "$TMPDIR")
			for i := range s.output {
				s.output[i] = strings.ReplaceAll(s.output[i], "/tmp", folderOf(g, "TMPDIR"))
			}
			g.follow(s)
		}
	}
}

// folderOf is a variable of a guide's environment.
func folderOf(g *guide, name string) string {
	of := ""
	for _, v := range g.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			of = value
		}
	}
	return of
}
