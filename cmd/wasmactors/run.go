package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
)

func runCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "build a bundle if need be, start its actors and feed them messages",
		ArgsUsage: "[BUNDLE]",
		Description: "Input is NDJSON, a message a line: {\"to\": \"name\", \"message\": value}. Answers go to standard output as NDJSON,\n" +
			"logs to standard error. The run ends when all input is dealt with, when the main actor (run.main) stops,\n" +
			"after --for, or at Ctrl-C, with an orderly stop; a second Ctrl-C kills.\n\nExamples:\n\n" +
			"   wasmactors run samples/hello --input samples/hello/input.ndjson\n" +
			"   echo '{\"to\": \"greeter\", \"message\": \"Ada\"}' | wasmactors run samples/hello --input -\n" +
			"   wasmactors run service --for 1h --json 2>events.ndjson",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "input", Aliases: []string{"i"}, Usage: "read messages from `FILE`; - is standard input"},
			&cli.StringFlag{Name: "on-input-error", Value: "skip", Usage: "what a line that is wrong means: skip or stop"},
			&cli.DurationFlag{Name: "for", Usage: "end after `DURATION`; without --input the bundle runs until then"},
			&cli.BoolFlag{Name: "json", Usage: "write events to standard error as NDJSON"},
			&cli.StringFlag{Name: "log", Value: "info", Usage: "lowest level of guests' logs: debug, info, warn or error"},
			&cli.StringFlag{Name: "reports", Value: "first", Usage: "whole crash reports: all, first (of each actor and reason) or none"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no logs, only answers"},
			&cli.Uint64Flag{Name: "seed", Usage: "derive refs, guests' randomness and jitter from this number, to repeat a run; without it they come from the operating system"},
			compilerFlag(),
		}, cacheFlags()...),
		Action: func(c *cli.Context) error {
			path, err := oneArg(c, "a bundle", ".")
			if err != nil {
				return err
			}
			return runBundle(c, env, path)
		},
	}
}

func runBundle(c *cli.Context, env *environment, path string) error {
	level, ok := logLevels[c.String("log")]
	if !ok {
		return usage("--log is debug, info, warn or error, not %q", c.String("log"))
	}
	if m := c.String("on-input-error"); m != "skip" && m != "stop" {
		return usage("--on-input-error is skip or stop, not %q", m)
	}
	options, err := bundleOptions(c, env)
	if err != nil {
		return err
	}
	reports := c.String("reports")
	if reports != "all" && reports != "first" && reports != "none" {
		return usage("--reports is all, first or none, not %q", reports)
	}
	m, err := load(path)
	if err != nil {
		return err
	}
	input, closeInput, err := openInput(env, c.String("input"))
	if err != nil {
		return err
	}
	defer closeInput()

	start := time.Now()
	p := newProgress(env.stderr)
	if !c.Bool("quiet") && !c.Bool("json") {
		options.Progress = p.say
	}
	b, err := bundle.Open(c.Context, m, options)
	p.end()
	if err != nil {
		return err
	}
	defer b.Close(context.Background())

	console := newConsole(env, c.Bool("json"), c.Bool("quiet"), level, reports)
	secret := func(cfg host.Config) host.Config {
		if c.IsSet("seed") {
			return cfg.WithSeed(c.Uint64("seed"))
		}
		return cfg
	}
	sys, err := b.Start(secret, console.follow)
	if err != nil {
		return err
	}
	console.started(m, time.Since(start))
	began := time.Now()
	stats, err := serve(c, m, sys, input, console)
	if c.Context.Err() != nil && env.restore != nil {
		env.restore() // a second Ctrl-C kills
	}
	final := sys.Stats()
	cause := sys.Cause()
	stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if serr := sys.Shutdown(stop); serr != nil && err == nil && c.Context.Err() == nil {
		err = fmt.Errorf("the actors did not stop in time: %w", serr)
	}
	console.end(m, stats, final, time.Since(began))
	if cause != nil && err == nil {
		err = fmt.Errorf("the bundle has failed: %w", cause)
	}
	return err
}

// serve feeds the input and waits for whatever ends the run.
func serve(c *cli.Context, m *bundle.Manifest, sys *host.System, input io.Reader, console *console) (bundle.FeedStats, error) {
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	limited := false
	if d := c.Duration("for"); d > 0 {
		limited = true
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	go func() {
		select {
		case <-sys.Terminated():
			cancel()
		case <-ctx.Done():
		}
	}()
	if m.Main != "" {
		ref, err := sys.Lookup("/user/" + m.Main)
		if err == nil {
			if ended, err := sys.Ended(ref); err == nil {
				go func() {
					select {
					case <-ended:
						cancel()
					case <-ctx.Done():
					}
				}()
			}
		}
	}
	var stats bundle.FeedStats
	var err error
	if input != nil {
		feed := bundle.Feed{Stop: c.String("on-input-error") == "stop", Answer: console.answer}
		stats, err = feed.Run(ctx, sys, input)
	}
	if err == nil && (input == nil || m.Main != "" || limited && c.String("input") == "") {
		<-ctx.Done()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	var bad *bundle.InputError
	if errors.As(err, &bad) {
		err = &usageError{err}
	}
	return stats, err
}

func openInput(env *environment, name string) (io.Reader, func() error, error) {
	nothing := func() error { return nil }
	switch name {
	case "":
		return nil, nothing, nil
	case "-":
		return env.stdin, nothing, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nothing, usage("--input: %v", err)
	}
	return f, f.Close, nil
}
