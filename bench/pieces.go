package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A piece is a part of a run that compares us with other things than actor systems. It runs in a process of its own,
// which writes its records as they come: one that crashes or never ends loses what it has not measured yet, and no more.
type piece struct {
	name    string
	f       func(*lab) error
	weight  int  // seconds that it takes on a quiet machine
	command bool // it runs the command
}

var pieces = []piece{
	{"instructions", countAll, 120, false},
	{"call", call, 3, false},
	{"pages", pages, 15, false},
	{"start", start, 40, true},
	{"gateway", gatewayPiece, 60, true},
	{"keyed", keyedPiece, 50, false},
	{"resume", resume, 20, false},
	{"recorded", recorded, 40, false},
	{"simulated", simulated, 90, true},
	{"look", looking, 50, false},
	{"fair", fair, 120, false},
	{"compute", computing, 70, false},
	{"crowd", crowd, 70, false},
	{"upgrade", upgrades, 60, false},
	{"recovery", recovering, 40, false},
}

// contestWeight is what the rounds of a benchmark take, in seconds on a quiet machine.
const contestWeight = 30

// plan divides the time of a run among its parts by their weights.
type plan struct {
	end  time.Time
	left int // weights of the parts that have not begun
}

// take is the time that the next part may use: its share of what is left, and not more than three times its weight.
func (p *plan) take(weight int, now time.Time) time.Duration {
	share := p.end.Sub(now) * time.Duration(weight) / time.Duration(max(weight, p.left))
	p.left -= weight
	return max(time.Second, min(share, 3*time.Duration(weight)*time.Second))
}

// lost is what a piece has left undone.
type lost []string

func (l lost) error() error {
	if len(l) == 0 {
		return nil
	}
	return errors.New(strings.Join(l, "; "))
}

// run measures what matches. An error is of the run itself: what one part lacks is in its record.
func (l *lab) run(only, who *regexp.Regexp, within time.Duration) error {
	p := &plan{end: l.began.Add(within)}
	contests, rest := chosen(only, who)
	p.left = len(contests) * contestWeight
	for _, x := range rest {
		p.left += x.weight
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(rest, func(x piece) bool { return x.command }) {
		fmt.Fprintln(os.Stderr, "building the command")
		if _, err := l.command(); err != nil {
			fmt.Fprintln(os.Stderr, err) // those that need it say so
		}
	}
	var missing lost
	for _, x := range rest { // they are what nothing else measures: first, while there is time
		if err := l.piece(exe, x, p.take(x.weight, time.Now())); err != nil {
			missing = append(missing, x.name+": "+err.Error())
		}
	}
	for _, b := range contests {
		l.budget = p.take(contestWeight, time.Now())
		if err := l.contestOf(exe, b, who); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "took", time.Since(l.began).Round(time.Second))
	return missing.error()
}

// chosen are the benchmarks and the pieces that match.
func chosen(only, who *regexp.Regexp) (contests []*benchmark, rest []piece) {
	for _, b := range benchmarks {
		if only.MatchString(b.name) {
			contests = append(contests, b)
		}
	}
	for _, x := range pieces {
		if only.MatchString(x.name) && who.MatchString("go") {
			rest = append(rest, x)
		}
	}
	return contests, rest
}

// piece runs one in a process of its own, and kills it when it has used twice its time.
func (l *lab) piece(exe string, x piece, budget time.Duration) error {
	fmt.Fprintf(os.Stderr, "%s  [%s, %s for it]\n", x.name, time.Since(l.began).Round(time.Second), budget.Round(time.Second))
	ctx, cancel := context.WithTimeout(l.ctx, max(30*time.Second, 2*budget))
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "piece", x.name, strconv.FormatBool(l.quick), strconv.Itoa(l.rounds), budget.String())
	cmd.Env = append(os.Environ(), guestsVariable+"="+l.guests)
	said := &tail{}
	cmd.Stderr, cmd.WaitDelay = said, 2*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with all that it has started
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	copied := l.copyRecords(out)
	err = cmd.Wait()
	switch {
	case copied != nil:
		return copied
	case ctx.Err() != nil:
		err = fmt.Errorf("stopped after %v", max(30*time.Second, 2*budget).Round(time.Second))
	case err != nil:
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said.text)))
	default:
		return nil
	}
	return errors.Join(err, l.report.write(record{Bench: x.name, Who: "ours", Missing: err.Error()}))
}

// copyRecords writes what a piece says, as records of this run.
func (l *lab) copyRecords(from io.Reader) error {
	s := bufio.NewScanner(from)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var r record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			continue // the end of a line of one that was killed
		}
		if err := l.report.write(r); err != nil {
			return err
		}
	}
	return nil
}

// runPiece is what the process does.
func runPiece(args []string) error {
	if len(args) != 4 {
		return errors.New("piece NAME QUICK ROUNDS BUDGET")
	}
	rounds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	budget, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	l := &lab{
		ctx: context.Background(), report: newReporter(os.Stdout, args[1] == "true"), quick: args[1] == "true", rounds: rounds,
		began: time.Now(), dir: sourceDir(), guests: os.Getenv(guestsVariable), budget: budget,
	}
	l.report.human = io.Discard // the parent says it
	for name, to := range map[string]*[]byte{"go": &l.goPing, "naive-go": &l.naive} {
		if *to, err = os.ReadFile(filepath.Join(l.guests, name+".wasm")); err != nil {
			return err
		}
	}
	for _, x := range pieces {
		if x.name == args[0] {
			return x.f(l)
		}
	}
	return fmt.Errorf("there is no %q", args[0])
}

// over says whether a piece has used its time. It ends with the rounds that it has, one at least.
func (l *lab) over() bool { return l.budget > 0 && time.Since(l.began) > l.budget }
