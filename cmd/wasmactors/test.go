package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/scenario"
	"github.com/wasmactors/wasmactors/host/service/all"
)

func testCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "test",
		Usage:     "run the scenarios of a bundle, in virtual time",
		ArgsUsage: "[BUNDLE] [FILES...]",
		Description: "Scenarios stand in *_test.yaml beside the manifest, or in FILES: what is sent to actors, what must come of it, how\n" +
			"time passes, what crashes. Each has a system of its own, nothing sleeps, and nothing reaches the network.\n" +
			"docs/guide/scenarios.md describes them.\n\nExamples:\n\n" +
			"   wasmactors test samples/hello\n" +
			"   wasmactors test samples/ledger -v --run 'broken rows'\n" +
			"   wasmactors test samples/flaky/styles_test.yaml --json",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "say of each scenario that it runs, and how it has ended"},
			&cli.StringFlag{Name: "run", Usage: "run only scenarios whose names match `REGEXP`; a name is FILE/NAME, without _test.yaml"},
			&cli.IntFlag{Name: "count", Value: 1, Usage: "run all of them `N` times"},
			&cli.BoolFlag{Name: "failfast", Usage: "end after the first failure"},
			&cli.StringFlag{Name: "timeout", Value: scenario.DefaultTimeout.String(), Usage: "let a scenario take `DURATION` of real time at most"},
			&cli.Uint64Flag{Name: "seed", Usage: "take `NUMBER` instead of the seeds of the scenarios"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON, an object a line"},
		}, slices.DeleteFunc(bundleFlags(), func(f cli.Flag) bool { return f.Names()[0] == "state" })...), // nothing is kept
		Action: func(c *cli.Context) error { return testBundle(c, env) },
	}
}

// testArgs tells the bundle from the files.
func testArgs(args []string) (path string, files []string) {
	switch {
	case len(args) == 0:
		return ".", nil
	case strings.HasSuffix(args[0], scenario.Suffix):
		return filepath.Dir(args[0]), args
	}
	return args[0], args[1:]
}

// scenariosToRun is what the flag --run says.
func scenariosToRun(c *cli.Context) (*regexp.Regexp, error) {
	chosen, err := regexp.Compile(c.String("run"))
	if err != nil {
		return nil, usage("--run: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return chosen, nil
}

func testBundle(c *cli.Context, env *environment) error {
	timeout, err := durationFlag(c, "timeout")
	if err != nil {
		return err
	}
	chosen, err := scenariosToRun(c)
	if err != nil {
		return err
	}
	if c.Int("count") < 1 {
		return usage("--count must be 1 or more, not %d", c.Int("count"))
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
	stage := scenario.NewStage(all.Kinds()...)
	options.Services = stage.Kinds()
	m, err := bundle.LoadWith(path, vars, stage.Kinds()...)
	if err != nil {
		return wrongInput(err)
	}
	list, err := scenariosOf(c.Context, m, files)
	switch {
	case err != nil:
		return wrongInput(err)
	case list == nil:
		if !c.Bool("json") {
			return write(env.stdout, fmt.Sprintf("?   \t%s\t[no scenario files: *%s beside the manifest]\n", m.Name, scenario.Suffix))
		}
	}
	p := newProgress(env.terminal)
	if !c.Bool("json") {
		options.Progress = p.say
	}
	b, err := stage.Open(c.Context, m, options)
	p.end()
	if err != nil {
		return err
	}
	defer b.Close(context.Background())
	o := scenario.Options{Timeout: timeout}
	if c.IsSet("seed") {
		seed := c.Uint64("seed")
		o.Seed = &seed
	}
	return playAll(c, env.stdout, stage, b, list, chosen, o)
}

// scenariosOf reads the files, or all of the bundle's if there are none.
func scenariosOf(ctx context.Context, m *bundle.Manifest, files []string) (list []*scenario.Scenario, err error) {
	if len(files) == 0 {
		if files, err = scenario.Find(m); err != nil {
			return nil, err
		}
	}
	var found bundle.Diagnostics
	for _, path := range files {
		f, err := scenario.Load(ctx, path)
		if err == nil {
			err = f.Fits(m)
		}
		var ds bundle.Diagnostics
		switch {
		case errors.As(err, &ds):
			found = append(found, ds...)
		case err != nil:
			return nil, err
		default:
			list = append(list, f.Scenarios...)
		}
	}
	if len(found) > 0 {
		return nil, found
	}
	return list, nil
}

// wrongInput makes an error one of usage, unless it is one already.
func wrongInput(err error) error {
	var ds bundle.Diagnostics
	if errors.As(err, &ds) {
		return err
	}
	return usage("%w", err)
}

// playAll runs scenarios and reports how they end.
func playAll(c *cli.Context, w io.Writer, stage *scenario.Stage, b *bundle.Bundle, list []*scenario.Scenario, chosen *regexp.Regexp, o scenario.Options) error {
	r := scenario.NewReport(w, b.Manifest.Name, c.Bool("verbose"), c.Bool("json"), near)
again:
	for range c.Int("count") {
		for _, s := range list {
			if !chosen.MatchString(s.ID()) {
				continue
			}
			r.Begins(s)
			r.Ended(stage.Run(c.Context, b, s, o))
			if c.Context.Err() != nil {
				return c.Context.Err()
			}
			if r.Err() != nil || c.Bool("failfast") && r.Failed() > 0 {
				break again
			}
		}
	}
	r.End()
	switch {
	case r.Err() != nil:
		return &outputError{r.Err()}
	case r.Failed() > 0:
		return errSilent
	}
	return nil
}
