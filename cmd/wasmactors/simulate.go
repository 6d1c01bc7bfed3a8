package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/scenario"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/regular"
)

func simulateCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "simulate",
		Usage:     "run the scenarios of a bundle under faults that seeds choose",
		ArgsUsage: "[BUNDLE] [FILES...]",
		Description: "Each seed chooses an order of turns and faults, and the invariants of the scenarios must hold nevertheless. The same\n" +
			"seed gives the same run. docs/guide/simulate.md describes it.\n\nExamples:\n\n" +
			"   wasmactors simulate samples/ledger --seeds 1000\n" +
			"   wasmactors simulate samples/ledger --bug\n" +
			"   wasmactors simulate samples/ledger --from 4711 --seeds 1 --faults all,-clock -v\n" +
			"   wasmactors simulate samples/ledger --case transfers-4711.case.json",
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "seeds", Value: 100, Usage: "try `N` seeds of each scenario"},
			&cli.Uint64Flag{Name: "from", Value: 1, Usage: "begin with the seed `NUMBER`"},
			&cli.StringFlag{Name: "for", Value: "0s", Usage: "repeat the steps of a scenario for `DURATION` of virtual time"},
			&cli.StringFlag{Name: "faults", Value: "all", Usage: "inject `CLASSES` of faults: all, none, or such as crash,drop or all,-clock"},
			&cli.IntFlag{Name: "jobs", Value: runtime.GOMAXPROCS(0), Usage: "run `N` seeds at a time"},
			&cli.BoolFlag{Name: "shrink", Usage: "make a failing case smaller, and write it to a file"},
			&cli.StringFlag{Name: "cases", Value: ".", Usage: "the `FOLDER` for such files"},
			&cli.BoolFlag{Name: "bug", Usage: "look for the deliberate mistake that the scenarios name: as --env with its variables, --shrink, and --seeds 1000"},
			&cli.StringFlag{Name: "case", Usage: "run the case of `FILE`, which --shrink has written"},
			&cli.BoolFlag{Name: "keep-going", Usage: "try all seeds of a scenario, also after one that has failed"},
			&cli.StringFlag{Name: "run", Usage: "run only scenarios whose names match `REGEXP`; a name is FILE/NAME, without _test.yaml"},
			&cli.StringFlag{Name: "timeout", Value: scenario.DefaultRun.String(), Usage: "let a run take `DURATION` of real time at most: for one that hangs"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "say of each seed how it has ended"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON, an object a line"},
			&cli.StringFlag{Name: "junit", Usage: "write a report for JUnit to `FILE`"},
		}, slices.DeleteFunc(bundleFlags(), func(f cli.Flag) bool { return f.Names()[0] == "state" })...),
		Action: func(c *cli.Context) error { return simulateBundle(c, env) },
	}
}

// bugSeeds is how many seeds --bug tries.
const bugSeeds = 1000

// simulating is what the flags say.
type simulating struct {
	on       []simulate.Class
	fixed    *simulate.Plan // of --case
	sweep    simulate.Sweeping
	shrink   bool
	bug      bool
	cases    string
	going    bool
	options  scenario.Simulating
	chosen   *regexp.Regexp
	repeated string // the flags of the command that repeats a seed, besides
}

func simulatingOf(c *cli.Context) (x simulating, err error) {
	if x.on, err = simulate.ParseFaults(c.String("faults")); err != nil {
		return x, usage("--faults: %w", err)
	}
	if x.options.Timeout, err = durationFlag(c, "timeout"); err != nil {
		return x, err
	}
	if x.options.For, err = bundle.ParseDuration(c.String("for")); err != nil || x.options.For > scenario.MaxAdvance {
		return x, usage("--for: %q is no duration, or a longer one than a hundred years", c.String("for"))
	}
	if x.chosen, err = scenariosToRun(c); err != nil {
		return x, err
	}
	x.sweep = simulate.Sweeping{From: c.Uint64("from"), Seeds: c.Int("seeds"), Jobs: c.Int("jobs"), Again: 32}
	if x.sweep.Seeds < 1 || x.sweep.Jobs < 1 {
		return x, usage("--seeds and --jobs must be 1 or more")
	}
	x.bug, x.cases, x.going = c.Bool("bug"), c.String("cases"), c.Bool("keep-going")
	if x.shrink = c.Bool("shrink") || x.bug; x.bug && !c.IsSet("seeds") {
		x.sweep.Seeds = bugSeeds
	}
	if x.bug && c.IsSet("case") {
		return x, usage("--bug and --case do not go together: the case says what is run, and --env chooses the mistake")
	}
	for _, name := range []string{"faults", "for"} {
		if c.IsSet(name) {
			x.repeated += fmt.Sprintf(" --%s %s", name, c.String(name))
		}
	}
	for _, e := range c.StringSlice("env") {
		x.repeated += " --env " + quoted(e)
	}
	if path := c.String("case"); path != "" {
		data, err := regular.Read(c.Context, path, simulate.MaxCase)
		if err != nil {
			return x, usage("--case: %w", err)
		}
		p, err := simulate.ParsePlan(data)
		if err != nil {
			return x, usage("--case %s: %w", near(path), err)
		}
		x.fixed = &p
		x.sweep.From, x.sweep.Seeds = p.Seed, 1
	}
	return x, nil
}

// quoted is a word for a shell.
func quoted(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_=./,:-+@%") == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func simulateBundle(c *cli.Context, env *environment) error {
	x, err := simulatingOf(c)
	if err != nil {
		return err
	}
	options, err := bundleOptions(c, env)
	if err != nil {
		return err
	}
	vars, err := variables(c)
	if err != nil {
		return err
	}
	path, files := testArgs(c.Args().Slice())
	m, err := bundle.LoadWith(path, vars, scenario.NewStage(all.Kinds()...).Kinds()...)
	if err != nil {
		return wrongInput(err)
	}
	list, err := scenariosOf(c.Context, m, files)
	if err != nil {
		return wrongInput(err)
	}
	if list, err = x.choose(list); err != nil {
		return err
	}
	if x.bug {
		if list, vars, err = x.planted(list, vars); err != nil {
			return err
		}
		if m, err = bundle.LoadWith(path, vars, scenario.NewStage(all.Kinds()...).Kinds()...); err != nil {
			return wrongInput(err)
		}
	}
	options.NoRecorder = true // the manifest's is for runs
	p := newProgress(env.terminal)
	if !c.Bool("json") {
		options.Progress = p.say
	}
	opened := &stages{ctx: c.Context, path: path, vars: vars, options: options, m: m}
	defer opened.close()
	if _, err := opened.take(); err != nil { // compiles, before there are several
		p.end()
		return err
	}
	p.end()
	opened.options.Progress = nil
	opened.free = opened.made
	r := newSimulationReport(env.stdout, m.Name, c.Bool("json"), c.Bool("verbose"))
	for _, s := range list {
		if err := x.scenario(c.Context, opened, s, path, r); err != nil {
			return err
		}
	}
	r.end()
	if file := c.String("junit"); file != "" {
		if err := r.junit(file); err != nil {
			return err
		}
	}
	switch {
	case r.err != nil:
		return &outputError{r.err}
	case r.failed > 0:
		return errSilent
	}
	return nil
}

// planted are the scenarios that name a deliberate mistake, and the variables that choose it.
func (x *simulating) planted(list []*scenario.Scenario, vars bundle.Variables) ([]*scenario.Scenario, bundle.Variables, error) {
	list = slices.DeleteFunc(list, func(s *scenario.Scenario) bool { return len(s.Bug()) == 0 })
	if len(list) == 0 {
		return nil, nil, usage("--bug: no scenario names a deliberate mistake; the key bug of simulation does")
	}
	chosen := list[0].Bug()
	for _, s := range list[1:] {
		if !maps.Equal(chosen, s.Bug()) {
			return nil, nil, usage("--bug: %s and %s name different mistakes: choose one of them by --run", list[0].ID(), s.ID())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		x.repeated += " --env " + quoted(name+"="+chosen[name])
	}
	return list, func(name string) (string, bool) {
		if v, ok := chosen[name]; ok {
			return v, true
		}
		return vars(name)
	}, nil
}

// choose is what is simulated of the scenarios: those with invariants, or all if there are none.
func (x *simulating) choose(list []*scenario.Scenario) ([]*scenario.Scenario, error) {
	if x.fixed != nil {
		i := slices.IndexFunc(list, func(s *scenario.Scenario) bool { return s.ID() == x.fixed.Scenario })
		if i < 0 {
			return nil, usage("--case: the bundle has no scenario %q, which the case is of", x.fixed.Scenario)
		}
		return list[i : i+1], nil
	}
	list = slices.DeleteFunc(slices.Clone(list), func(s *scenario.Scenario) bool { return s.Skip != "" || !x.chosen.MatchString(s.ID()) })
	if with := slices.DeleteFunc(slices.Clone(list), func(s *scenario.Scenario) bool { return len(s.Invariants()) == 0 }); len(with) > 0 {
		list = with
	}
	if len(list) == 0 {
		return nil, usage("there is no scenario to simulate: scenarios stand in *%s beside the manifest", scenario.Suffix)
	}
	if len(x.on) > 0 && !slices.ContainsFunc(list, func(s *scenario.Scenario) bool { return s.Meets(x.on) }) {
		return nil, usage("--faults: all of these are for scenarios with nodes, and those that are chosen have none")
	}
	return list, nil
}

// scenario tries the seeds of one.
func (x *simulating) scenario(ctx context.Context, opened *stages, s *scenario.Scenario, path string, r *simulationReport) error {
	on := s.Faults(x.on)
	x.sweep.Plan = func(seed uint64) simulate.Plan { return simulate.NewPlan(seed, on) }
	if x.fixed != nil {
		x.sweep.Plan = func(uint64) simulate.Plan { return *x.fixed }
		if v := simulate.Version(); x.fixed.Host != v {
			r.note("the case is of host %s, and this is %s: what a seed chooses may be another", x.fixed.Host, v)
		}
	}
	players := func() (simulate.Player, error) {
		b, err := opened.take()
		if err != nil {
			return nil, err
		}
		return &scenarioPlayer{opened: opened, staged: b, s: s, o: x.options}, nil
	}
	var failed []*simulate.Outcome
	r.begins(s)
	err := simulate.Sweep(ctx, x.sweep, players, func(o *simulate.Outcome) bool {
		r.outcome(s, o)
		if o.Failed() {
			failed = append(failed, o)
		}
		return x.going || !o.Failed()
	})
	if err != nil {
		return err
	}
	for _, o := range failed {
		command := fmt.Sprintf("wasmactors simulate %s --run %s --from %d --seeds 1%s", quoted(path), quoted("^"+regexp.QuoteMeta(s.ID())+"$"), o.Plan.Seed, x.repeated)
		var shrunk *simulate.Shrunk
		var file string
		if x.shrink && x.fixed == nil {
			p, err := players()
			if err != nil {
				return err
			}
			shrunk = simulate.Shrink(ctx, p, o, simulate.DefaultShrinking)
			p.Close()
			name := strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
					return r
				}
				return '-'
			}, s.Name)
			file = filepath.Join(x.cases, fmt.Sprintf("%s-%d.case.json", name, o.Plan.Seed))
			if err := shrunk.Plan.Save(file); err != nil {
				return err
			}
		}
		crash := ""
		if small := shrunkOutcome(o, shrunk); small.Violation != nil && (x.shrink || x.fixed != nil) {
			if crash, err = x.crashFile(ctx, opened, s, small.Plan); err != nil {
				return err
			}
		}
		r.failure(s, o, shrunk, file, command, path, x.repeated, crash)
	}
	return nil
}

// shrunkOutcome is the smaller one.
func shrunkOutcome(o *simulate.Outcome, shrunk *simulate.Shrunk) *simulate.Outcome {
	if shrunk != nil {
		return shrunk.Outcome
	}
	return o
}

// crashFile runs a plan once more, with black boxes, and returns the crash file of what fails in it; empty if that is no guest.
func (x *simulating) crashFile(ctx context.Context, opened *stages, s *scenario.Scenario, p simulate.Plan) (string, error) {
	dir, err := os.MkdirTemp(x.cases, ".crashes-*") // others may fail, too
	if err != nil {
		return "", usage("--cases: %v", err)
	}
	defer os.RemoveAll(dir)
	box, err := blackbox.Open(blackbox.Config{Dir: dir, Version: version, Module: func(sum [32]byte) ([]byte, error) {
		return moduleOf(ctx, opened.m, opened.options, sum)
	}})
	if err != nil {
		return "", usage("--cases: %v", err)
	}
	defer box.Close()
	b, err := opened.take()
	if err != nil {
		return "", err
	}
	o := x.options
	o.BlackBox = box
	player := &scenarioPlayer{opened: opened, staged: b, s: s, o: o}
	defer player.Close()
	out := player.Play(ctx, p)
	box.Flush()
	if out.Violation == nil || out.Violation.File == "" {
		return "", nil
	}
	file := filepath.Join(x.cases, filepath.Base(out.Violation.File))
	return file, os.Rename(out.Violation.File, file)
}

// stages are bundles that were opened for the jobs: each has an engine of its own.
type stages struct {
	ctx     context.Context
	path    string
	vars    bundle.Variables
	options bundle.Options
	m       *bundle.Manifest
	made    []*staged
	free    []*staged
}

type staged struct {
	stage *scenario.Stage
	b     *bundle.Bundle
}

// take is one that is free. It is not for concurrent use.
func (x *stages) take() (*staged, error) {
	if n := len(x.free); n > 0 {
		s := x.free[n-1]
		x.free = x.free[:n-1]
		return s, nil
	}
	stage := scenario.NewStage(all.Kinds()...)
	m, err := bundle.LoadWith(x.path, x.vars, stage.Kinds()...)
	if err != nil {
		return nil, err
	}
	o := x.options
	o.Services = stage.Kinds()
	b, err := stage.Open(x.ctx, m, o)
	if err != nil {
		return nil, err
	}
	s := &staged{stage, b}
	x.made = append(x.made, s)
	return s, nil
}

func (x *stages) close() {
	for _, s := range x.made {
		_ = s.b.Close(context.Background())
	}
}

// scenarioPlayer plays a scenario with one of the bundles.
type scenarioPlayer struct {
	opened *stages
	*staged
	s *scenario.Scenario
	o scenario.Simulating
}

// Play implements simulate.Player.
func (p *scenarioPlayer) Play(ctx context.Context, plan simulate.Plan) *simulate.Outcome {
	return p.stage.Simulate(ctx, p.b, p.s, plan, p.o)
}

// Close implements simulate.Player.
func (p *scenarioPlayer) Close() {
	returned.Lock()
	defer returned.Unlock()
	p.opened.free = append(p.opened.free, p.staged)
}
