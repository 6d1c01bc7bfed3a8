package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed switch.txt
var switchText string

// The statuses of a mutant.
const (
	killed    = "killed"
	timedOut  = "killed by its time"
	survived  = "survived"
	unreached = "no test reaches it"
	fine      = "accepted"
	untried   = "not tried"
)

// run mutates packages and writes the report; left is the number of mutants that were
// neither killed nor accepted.
func run(ctx context.Context, o options, patterns []string, w io.Writer) (left int, err error) {
	accepted, err := readAccepted(o.accepted)
	if err != nil {
		return 0, err
	}
	pkgs, err := load(ctx, patterns)
	if err != nil {
		return 0, err
	}
	var all []*mutant
	for _, p := range pkgs {
		began := time.Now()
		ms, err := runPackage(ctx, o, p, accepted)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p.path, err)
		}
		left += report(w, p.path, ms, time.Since(began))
		all = append(all, ms...)
	}
	if len(all) == 0 && len(o.files) > 0 {
		return 0, fmt.Errorf("no file with something to mutate matches %v", []string(o.files))
	}
	for _, key := range accepted.unused(pkgs, o.files) {
		fmt.Fprintf(w, "accepted, but there is no such mutant: %s\n", key)
	}
	if o.json == "" {
		return left, nil
	}
	b, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return 0, err
	}
	return left, os.WriteFile(o.json, append(b, '\n'), 0o644)
}

// trial is a package whose mutants are compiled into one binary.
type trial struct {
	p      *pkg
	o      options
	dir    string
	binary string
	tests  []test
}

// test is a test of the package that passes.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

func runPackage(ctx context.Context, o options, p *pkg, accepted *acceptances) ([]*mutant, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t := &trial{p: p, o: o, dir: dir, binary: filepath.Join(dir, "mutated.test")}
	mutants, err := t.build(ctx)
	if err != nil || len(mutants) == 0 {
		return nil, err
	}
	if mutants[0].Status == unreached {
		return mutants, nil
	}
	if err := t.record(ctx); err != nil {
		return nil, err
	}
	tried := t.choose(mutants, accepted)
	work := make(chan *mutant)
	var group sync.WaitGroup
	var mu sync.Mutex
	left := len(tried)
	for range max(o.workers, 1) {
		group.Go(func() {
			for m := range work {
				t.try(ctx, m)
				mu.Lock()
				if left--; m.Status == survived {
					fmt.Fprintf(o.found, "%d left: %s has survived %s\n", left, m.key(), m.By)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range tried {
		work <- m
	}
	close(work)
	group.Wait()
	return mutants, ctx.Err()
}

// build mutates the files and compiles the test binary.
func (t *trial) build(ctx context.Context) ([]*mutant, error) {
	var all []*mutant
	overlay := map[string]string{}
	replace := func(name string, text []byte) error {
		to := filepath.Join(t.dir, name)
		overlay[filepath.Join(t.p.dir, name)] = to
		return os.WriteFile(to, text, 0o644)
	}
	for _, f := range t.p.files {
		if !t.o.files.match(f.name) {
			continue
		}
		m := &mutator{p: t.p, f: f, edits: &edits{}, base: len(all), seen: map[string]int{}}
		m.file()
		all = append(all, m.all...)
		if err := replace(f.name, m.edits.apply(f.text)); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	if err := replace("mutants_switch.go", fmt.Appendf(nil, switchText, t.p.files[0].tree.Name.Name, len(all))); err != nil {
		return nil, err
	}
	b, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	list := filepath.Join(t.dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o644); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", list, "-o", t.binary, t.p.path).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the mutants do not compile: %w\n%s", err, out)
	}
	if _, err := os.Stat(t.binary); err != nil {
		for _, m := range all {
			m.Status = unreached // there are no tests
		}
	}
	return all, nil
}

// command runs the binary where its tests expect to be.
func (t *trial) command(ctx context.Context, env string, args ...string) *exec.Cmd {
	if t.o.short {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(ctx, t.binary, args...)
	cmd.Dir = t.p.dir
	cmd.Env = append(os.Environ(), env, "RAPID_NOFAILFILE=true") // what fails with a mutant is nothing to keep
	cmd.WaitDelay = 10 * time.Second                             // a busy machine takes more than a second to read what a process has written
	return cmd
}

// record runs every test by itself and notes which mutants it reaches.
func (t *trial) record(ctx context.Context) error {
	out, err := t.command(ctx, "MUTANT=", "-test.list", "^Test|^Example|^Fuzz").Output()
	if err != nil {
		return fmt.Errorf("listing the tests: %w", err)
	}
	names := strings.Fields(string(out))
	if r := t.o.run; r != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return !r.MatchString(name) })
	}
	found := make([]*test, len(names))
	var group sync.WaitGroup
	turn := make(chan struct{}, max(t.o.workers, 1))
	var mu sync.Mutex
	var failed error
	for i, name := range names {
		group.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			file := filepath.Join(t.dir, "reached."+strconv.Itoa(i))
			began := time.Now()
			limit, cancel := context.WithTimeout(ctx, 2*t.o.longest)
			defer cancel()
			out, err := t.command(limit, "MUTANT_RECORD="+file, "-test.run", "^"+name+"$").CombinedOutput()
			took := time.Since(began)
			if limit.Err() != nil || took > t.o.longest {
				return
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = fmt.Errorf("%s fails without any mutant: %w\n%s", name, err, out)
				return
			}
			reached := map[int]bool{}
			text, _ := os.ReadFile(file)
			for _, f := range strings.Fields(string(text)) {
				if id, err := strconv.Atoi(f); err == nil {
					reached[id] = true
				}
			}
			found[i] = &test{name, took, reached}
		})
	}
	group.Wait()
	for _, f := range found {
		if f != nil {
			t.tests = append(t.tests, *f)
		}
	}
	if len(t.tests) == 0 && failed == nil {
		failed = errors.New("no test is short enough, or none matches: see -longest and -run")
	}
	// What few mutants have been reached by says more about each of them.
	slices.SortStableFunc(t.tests, func(a, b test) int { return len(a.reaches) - len(b.reaches) })
	return failed
}

// choose takes the mutants that are to be tried: all, or a sample.
func (t *trial) choose(all []*mutant, accepted *acceptances) (tried []*mutant) {
	reached := map[int]bool{}
	for _, x := range t.tests {
		for id := range x.reaches {
			reached[id] = true
		}
	}
	order := rand.New(rand.NewPCG(t.o.seed, 0)).Perm(len(all))
	if t.o.sample > 0 {
		order = order[:min(t.o.sample, len(order))]
	}
	slices.Sort(order)
	for _, m := range all {
		m.Status = untried
	}
	for _, i := range order {
		m := all[i]
		if m.Reason = accepted.reason(t.p.path, m); m.Reason != "" {
			m.Status = fine
			continue
		}
		if !reached[m.ID] {
			m.Status = unreached
			continue
		}
		tried = append(tried, m)
	}
	return tried
}

// batch is some tests that are run at once.
type batch struct {
	names []string
	usual time.Duration // that they take without a mutant, one after the other
}

// How a mutant's tests are shared out. A mutant that never ends costs the limit of one batch, so no batch takes
// long, however many tests reach the mutant.
const (
	firstBatch   = 4 // tests; each batch may have batchGrowth times as many as the one before
	batchGrowth  = 4
	longestBatch = 5 * time.Second
	slack        = 4 // a batch is given up after so many times what it usually takes
)

// batches shares out the tests that reach a mutant, in their order.
func (t *trial) batches(id int) (all []batch) {
	most := firstBatch
	var b batch
	end := func() {
		if len(b.names) > 0 {
			all = append(all, b)
			b, most = batch{}, most*batchGrowth
		}
	}
	for _, x := range t.tests {
		if !x.reaches[id] {
			continue
		}
		if len(b.names) == most || b.usual+x.took > longestBatch {
			end()
		}
		b.names, b.usual = append(b.names, x.name), b.usual+x.took
	}
	end()
	return all
}

// limit is the time that a batch may take with a mutant.
func (t *trial) limit(b batch) time.Duration { return max(t.o.timeout, slack*b.usual) }

// try runs the tests that reach a mutant, until one fails.
func (t *trial) try(ctx context.Context, m *mutant) {
	tests := 0
	m.Status = survived
	for _, b := range t.batches(m.ID) {
		tests += len(b.names)
		limit, cancel := context.WithTimeout(ctx, t.limit(b))
		err := t.command(limit, "MUTANT="+strconv.Itoa(m.ID), "-test.run", "^("+strings.Join(b.names, "|")+")$", "-test.failfast").Run()
		late := limit.Err() != nil
		cancel()
		if err != nil {
			if m.Status = killed; late {
				m.Status = timedOut
			}
			break
		}
	}
	m.By = fmt.Sprintf("%d tests", tests)
}
