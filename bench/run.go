package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strconv"
	"time"
)

// contestants take part in this order.
func contestants() []*contestant {
	return []*contestant{
		oursGo, oursTinyGo, oursWAT, native,
		goroutines, hollywood, proto, ergoContestant, goakt, erlang,
		extismContestant, naiveWATContestant, naiveGoContestant, copies,
	}
}

func goVersion() string { return goruntime.Version() }

// sourceDir is the directory of this module's sources.
func sourceDir() string {
	_, file, _, _ := goruntime.Caller(0)
	dir := filepath.Dir(file)
	if _, err := os.Stat(dir); err != nil {
		return "." // built with -trimpath: run from the module
	}
	return dir
}

// runner is a child process that measures a round when it is told to.
type runner struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	first reply
	limit time.Duration // how long it may take to open, and for a round
}

// launch starts a child and waits until it is ready.
func (l *lab) launch(exe, guests string, b *benchmark, c *contestant) (*runner, error) {
	args := []string{"child", b.name, c.name}
	if l.quick {
		args = append(args, "quick")
	}
	r := &runner{cmd: exec.Command(exe, args...), limit: 30 * time.Second}
	if l.quick { // some peers never come back from a crash
		r.limit = 10 * time.Second
	}
	procs := b.procs
	if procs == 0 {
		procs = goruntime.NumCPU()
	}
	r.cmd.Env = append(os.Environ(), guestsVariable+"="+guests, "GOMAXPROCS="+strconv.Itoa(procs))
	r.cmd.Stderr = &tail{}
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewScanner(out)
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	if r.first, err = r.read(); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// tail keeps the first of what a child writes to its standard error.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	if room := 2000 - len(t.text); room > 0 {
		t.text = append(t.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// read waits for the child's next line.
func (r *runner) read() (reply, error) {
	killer := time.AfterFunc(r.limit, func() { _ = r.cmd.Process.Kill() })
	defer killer.Stop()
	var x reply
	if !r.out.Scan() {
		_ = r.cmd.Wait()
		text := r.cmd.Stderr.(*tail).text
		return x, fmt.Errorf("%v: %.200s", r.cmd.ProcessState, text)
	}
	if err := json.Unmarshal(r.out.Bytes(), &x); err != nil {
		return x, err
	}
	if x.Error != "" {
		return x, fmt.Errorf("%s", x.Error)
	}
	return x, nil
}

// round makes the child measure once.
func (r *runner) round() (reply, error) {
	if _, err := io.WriteString(r.in, "go\n"); err != nil {
		return reply{}, err
	}
	return r.read()
}

// stop ends the child.
func (r *runner) stop() {
	_ = r.in.Close()
	if r.cmd.ProcessState == nil {
		killer := time.AfterFunc(5*time.Second, func() { _ = r.cmd.Process.Kill() })
		_ = r.cmd.Wait()
		killer.Stop()
	}
}

// side is a contestant of one benchmark in one binary.
type side struct {
	c       *contestant
	exe     string
	guests  string
	r       *runner
	first   reply
	samples []float64
	err     error
}

// contest lets all sides measure in turn and returns when each has its rounds.
func (l *lab) contest(b *benchmark, sides []*side, rounds int) {
	defer func() {
		for _, s := range sides {
			if s.r != nil {
				s.r.stop()
			}
		}
	}()
	began := time.Now()
	if b.most > 0 {
		rounds = min(rounds, b.most)
	}
	for round := range rounds {
		if l.budget > 0 && round > 0 && time.Since(began) > l.budget {
			break // the machine is busy, or somebody slow
		}
		for _, s := range sides {
			if s.err == nil {
				s.measure(l, b)
			}
		}
	}
}

// measure adds a sample.
func (s *side) measure(l *lab, b *benchmark) {
	if s.r == nil {
		if s.r, s.err = l.launch(s.exe, s.guests, b, s.c); s.err != nil {
			return
		}
		s.first = s.r.first
	}
	x, err := s.r.round()
	if err != nil {
		s.err = err
		return
	}
	s.samples = append(s.samples, b.figure(x.Value))
	if x.Note != "" {
		s.first.Note = x.Note
	}
	if b.fresh {
		s.r.stop()
		s.r = nil
	}
}

// record is what the side has come to.
func (s *side) record(b *benchmark) record {
	x := record{Bench: b.name, Who: s.c.name, Unit: b.unit, N: s.first.N, Procs: s.first.Procs, Note: s.first.Note, Version: s.c.version()}
	if b.more {
		x.Better = "more"
	}
	switch {
	case s.err != nil:
		x.Missing = s.err.Error()
	case len(s.samples) == 0:
		x.Missing = "no samples"
	default:
		x.fill(s.samples)
	}
	return x
}

// contestOf runs a benchmark, of the contestants that match.
func (l *lab) contestOf(exe string, b *benchmark, who *regexp.Regexp) error {
	fmt.Fprintf(os.Stderr, "%s  [%s, %s for it]\n", b.title, time.Since(l.began).Round(time.Second), l.budget.Round(time.Second))
	var sides []*side
	for _, c := range contestants() {
		if who.MatchString(c.name) {
			sides = append(sides, l.side(b, c, exe, l.guests))
		}
	}
	l.contest(b, sides, l.rounds)
	for _, s := range sides {
		if err := l.report.write(s.record(b)); err != nil {
			return err
		}
	}
	return nil
}

// side is one, with the reason if it cannot take part.
func (l *lab) side(b *benchmark, c *contestant, exe, guests string) *side {
	s := &side{c: c, exe: exe, guests: guests}
	switch {
	case c.absent != nil && c.absent() != "":
		s.err = fmt.Errorf("%s", c.absent())
	case c.opens[b.name] == nil:
		why := c.why(b.name)
		if why == "" {
			why = "does not apply"
		}
		s.err = fmt.Errorf("%s", why)
	case b.procs > goruntime.NumCPU():
		s.err = fmt.Errorf("the machine has %d processors", goruntime.NumCPU())
	}
	return s
}

// lab is what benchmarks measure with.
type lab struct {
	ctx    context.Context
	report *reporter
	quick  bool
	rounds int
	began  time.Time
	dir    string // of the sources
	guests string // of the guests that were built
	goPing []byte
	naive  []byte
	budget time.Duration // for a benchmark, or for a piece
}

// scale shortens a count where the run is to be quick.
func (l *lab) scale(n int) int {
	if l.quick {
		return max(1, n/20)
	}
	return n
}
