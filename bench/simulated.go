package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// What simulations take: the command runs copies of a scenario, by test and by simulate without faults, in turn.

const (
	plainScenario    = "a scenario of the ledger, simulated without faults"
	servicesScenario = "a scenario with services, simulated without faults"
	timersBench      = "ten virtual minutes with 100 timers a second"
	thousandBench    = "1000 seeds of the ledger, all faults"
)

// simulated is the piece.
func simulated(l *lab) error {
	exe, err := l.command()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "wasmactors-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	samples := filepath.Join(filepath.Dir(l.dir), "samples")
	for _, x := range []struct{ name, sample, file, note string }{
		{plainScenario, "ledger", "books_test.yaml", "31 messages of guests of standard Go; baseline: wasmactors test"},
		{servicesScenario, "webhooks", "always_test.yaml", "the webhooks, which use kv, http, schedule and config; baseline: wasmactors test"},
	} {
		bundle := filepath.Join(samples, x.sample)
		file, err := copiesOf(filepath.Join(bundle, x.file), dir, l.scale(60))
		if err != nil {
			return err
		}
		times := func(args ...string) func() (float64, error) {
			return func() (float64, error) {
				return l.scenarios(exe, append(args, bundle, file, "--json", "--compiler", "go")...)
			}
		}
		test, simulate := times("test"), times("simulate", "--faults", "none", "--seeds", "1", "--jobs", "1")
		if _, err := test(); err != nil { // fills the caches
			return err
		}
		ours, plain, err := l.interleave(simulate, test)
		if err != nil {
			return err
		}
		if err := l.report.compare(x.name, "ms", ours, plain, x.note); err != nil {
			return err
		}
	}
	if err := l.timers(exe, dir); err != nil {
		return err
	}
	took, err := l.repeatFew(func() (float64, error) {
		began := time.Now()
		_, err := l.output(exe, "simulate", filepath.Join(samples, "ledger"), "--seeds", fmt.Sprint(l.scale(1000)), "--jobs", "2", "--compiler", "go")
		return time.Since(began).Seconds(), err
	})
	if err != nil {
		return err
	}
	return l.report.alone(thousandBench, "s", took, "two at a time, the start of the command included")
}

// repeatFew is repeat for what takes long.
func (l *lab) repeatFew(f func() (float64, error)) (float64, error) {
	few := *l
	few.rounds = min(l.rounds, 3)
	return few.repeat(f)
}

// copiesOf writes a file with so many scenarios like the first one of another.
func copiesOf(path, dir string, n int) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	const begin = "  - name: "
	head, item, ok := strings.Cut(string(text), begin)
	if !ok || strings.Contains(item, "\n"+begin) {
		return "", fmt.Errorf("%s does not have one scenario", path)
	}
	name, rest, _ := strings.Cut(item, "\n")
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		fmt.Fprintf(&b, "%s%s, copy %d\n%s\n", begin, name, i+1, strings.TrimRight(rest, "\n"))
	}
	file := filepath.Join(dir, filepath.Base(filepath.Dir(path))+"_test.yaml")
	return file, os.WriteFile(file, []byte(b.String()), 0o600)
}

// output is what the command prints. It must succeed.
func (l *lab) output(exe string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(l.ctx, exe, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("wasmactors %s: %w\n%s%s", strings.Join(args, " "), err, out, &errs)
	}
	return out, nil
}

// outcome is the last line of what test and simulate print as JSON.
type outcome struct {
	Action  string  `json:"action"`
	Bundle  string  `json:"bundle"`
	Passed  int     `json:"passed"` // scenarios, of test
	Runs    int     `json:"runs"`   // of simulate
	Seconds float64 `json:"seconds"`
	Virtual float64 `json:"virtual_seconds"`
}

// outcome runs scenarios, which must pass.
func (l *lab) outcome(exe string, args ...string) (x outcome, err error) {
	out, err := l.output(exe, args...)
	if err != nil {
		return x, err
	}
	for line := range bytes.Lines(out) {
		x = outcome{}
		if err := json.Unmarshal(line, &x); err != nil {
			return x, err
		}
	}
	if x.Action != "pass" || x.Bundle == "" || x.Passed+x.Runs == 0 || x.Seconds <= 0 {
		return x, fmt.Errorf("no scenario has passed: %s", out)
	}
	return x, nil
}

// scenarios is how long a scenario takes, in milliseconds: the time for all of them by their number.
func (l *lab) scenarios(exe string, args ...string) (float64, error) {
	x, err := l.outcome(exe, args...)
	if err != nil {
		return 0, err
	}
	return 1e3 * x.Seconds / float64(x.Passed+x.Runs), nil
}

// timers lets ten virtual minutes pass for five guests, each of which has two timers of 100 ms.
func (l *lab) timers(exe, dir string) error {
	bundle := filepath.Join(dir, "meters")
	if err := os.Mkdir(bundle, 0o700); err != nil {
		return err
	}
	if err := buildGuest(l.ctx, filepath.Join(filepath.Dir(l.dir), "docs", "examples", "beats", "guest"), "go", filepath.Join(bundle, "m.wasm")); err != nil {
		return err
	}
	manifest := "wasmactors: 1\nname: meters\nmodules:\n  m: {wasm: ./m.wasm}\nactors:\n"
	for i := range 5 {
		manifest += fmt.Sprintf("  meter%d: {type: m/meter, limits: {timers: 3}}\n", i+1)
	}
	file := filepath.Join(bundle, "minutes_test.yaml")
	if err := errors.Join(os.WriteFile(filepath.Join(bundle, "bundle.yaml"), []byte(manifest), 0o600),
		os.WriteFile(file, []byte("scenarios:\n  - name: minutes\n    steps:\n      - advance: 10m\n"), 0o600)); err != nil {
		return err
	}
	faster, err := l.repeatFew(func() (float64, error) {
		x, err := l.outcome(exe, "simulate", bundle, file, "--faults", "none", "--seeds", "3", "--jobs", "1", "--json")
		if err != nil {
			return 0, err
		}
		if x.Virtual < 600*float64(x.Runs) {
			return 0, fmt.Errorf("only %v virtual seconds have passed in %d runs", x.Virtual, x.Runs)
		}
		return x.Virtual / x.Seconds, nil
	})
	if err != nil {
		return err
	}
	r := record{Bench: timersBench, Who: ourFigure, Unit: "times real time", Better: "more", Note: "two timers each of five guests of standard Go"}
	r.fill([]float64{faster})
	return l.report.write(r)
}
