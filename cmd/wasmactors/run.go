package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/cluster"
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
		Flags: slices.Concat(runFlagList(), joinFlags(), detachFlags(), recordFlags()),
		Action: func(c *cli.Context) error {
			path, err := oneArg(c, "a bundle", ".")
			if err != nil {
				return err
			}
			starter := detached()
			switch {
			case c.Bool("detach") && starter.pipe == nil:
				return detach(c, env, path)
			case c.String("log-file") != "" && !c.Bool("detach"):
				return usage("--log-file is for --detach")
			}
			defer starter.close()
			return runBundle(c, env, path, starter)
		},
	}
}

// runFlagList are the flags of run and of dev.
func runFlagList() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "input", Aliases: []string{"i"}, Usage: "read messages from `FILE`; - is standard input"},
		&cli.StringFlag{Name: "on-input-error", Value: "skip", Usage: "`WHAT` to do about an invalid line: skip it, or stop once everything before it has been handled"},
		&cli.StringFlag{Name: "fail-on", Usage: "exit with code 3 if lines have one of these `KINDS`: " + strings.Join(failKinds, ", ") + ", or any; separated by commas"},
		&cli.StringFlag{Name: "timeout", Usage: "wait at most `DURATION` for the answer to a line (default: until nothing is left to do)"},
		&cli.StringFlag{Name: "for", Usage: "end after `DURATION`; without --input the bundle runs until then"},
		&cli.BoolFlag{Name: "json", Usage: "write events, and errors, to standard error as NDJSON"},
		&cli.StringFlag{Name: "log", Value: "info", Usage: "the lowest `LEVEL` of guests' logs: " + strings.Join(host.LevelNames(), ", ")},
		&cli.StringFlag{Name: "reports", Value: "first", Usage: "`WHICH` crash reports are shown whole: all, first (of each actor and reason) or none"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no logs, only answers"},
		&cli.Uint64Flag{Name: "seed", Usage: "repeat a run: refs, guests' randomness and jitter come from `NUMBER` (default: from the operating system; refs are only as hard to guess as the seed)"},
	}, slices.Concat(adminFlags(), blackBoxFlags(), telemetryFlags(), bundleFlags())...)
}

// failKinds are the values of --fail-on.
var failKinds = []string{bundle.KindUnanswered, bundle.KindError, bundle.KindFailed, bundle.KindTimeout, bundle.KindInvalid}

// runFlags are the flags of run, read and checked.
type runFlags struct {
	level         int
	reports       string
	stop          bool
	failOn        []string
	timeout, ends time.Duration
}

func readRunFlags(c *cli.Context) (f runFlags, err error) {
	level, ok := host.ParseLevel(c.String("log"))
	if !ok {
		return f, usage("--log must be one of %s, not %q", strings.Join(host.LevelNames(), ", "), c.String("log"))
	}
	f.level = level
	if m := c.String("on-input-error"); m != "skip" && m != "stop" {
		return f, usage("--on-input-error must be skip or stop, not %q", m)
	}
	f.stop = c.String("on-input-error") == "stop"
	if f.reports = c.String("reports"); f.reports != "all" && f.reports != "first" && f.reports != "none" {
		return f, usage("--reports must be all, first or none, not %q", f.reports)
	}
	if text := c.String("fail-on"); text == "any" {
		f.failOn = failKinds
	} else if text != "" {
		for _, kind := range strings.Split(text, ",") {
			if !slices.Contains(failKinds, kind) {
				return f, usage("--fail-on: %q is not one of %s%s", kind, strings.Join(failKinds, ", "), didYouMean(kind, failKinds))
			}
			f.failOn = append(f.failOn, kind)
		}
	}
	if f.timeout, err = durationFlag(c, "timeout"); err != nil {
		return f, err
	}
	f.ends, err = durationFlag(c, "for")
	return f, err
}

func runBundle(c *cli.Context, env *environment, path string, starter starter) error {
	flags, err := readRunFlags(c)
	if err != nil {
		return err
	}
	options, err := bundleOptions(c, env)
	if err != nil {
		return err
	}
	node := asNode()
	env.consent.quiet = env.consent.quiet || node != nil
	m, err := load(c, path)
	if err != nil {
		return err
	}
	if c.IsSet("seed") && m.Store != nil {
		return usage("--seed cannot be combined with the key store of %s: refs and randomness follow from the store's secret", m.File)
	}
	input, closeInput, err := openInput(env, c.String("input"))
	if err != nil {
		return err
	}
	defer closeInput()
	telemetry, err := openTelemetry(c, env, m.Name)
	if err != nil {
		return err
	}
	defer telemetry.close()
	if telemetry.box, err = openBlackBox(c, env, m, &options); err != nil {
		return err
	}
	defer closeBlackBox(telemetry.box)
	if telemetry.tape, err = openRecording(c, env); err != nil {
		return err
	}
	defer closeRecording(env, telemetry.tape)
	options.Traces = telemetry.traces()
	door, err := readAdminFlags(c, env, m)
	if err != nil {
		return err
	}
	door.explicit = door.explicit || starter.pipe != nil
	defer door.close() // last: who waits for the end waits until nobody answers
	whole, end := context.WithCancel(c.Context)
	defer end()
	c.Context, door.cfg = whole, door.cfg.WithShutdown(end)
	input = node.attend(env.stdin, input, end)
	quiet, asJSON := c.Bool("quiet"), c.Bool("json")
	if input == nil && !quiet && node == nil && holdsInput(env.stdin) {
		env.note("standard input is not read; --input - reads it")
	}
	start := time.Now()
	shown := env.terminal
	if quiet || asJSON || node != nil { // dev has shown it
		shown = io.Discard
	}
	p := newProgress(shown)
	if !quiet && !asJSON && node == nil {
		options.Progress = p.say
	}
	b, err := bundle.Open(c.Context, m, options)
	p.end()
	if err != nil {
		return err
	}
	defer b.Close(context.Background())
	console := newConsole(env, asJSON, quiet, flags.level, flags.reports)
	console.brief = node != nil && input == nil
	if !asJSON && !quiet {
		telemetry.warnBy(func(text string) { console.log.Warn(text) })
	}
	vars, err := variables(c)
	if err != nil {
		return err
	}
	member, err := openMembership(c, env, m, node)
	if err != nil {
		return err
	}
	defer member.close()
	ongoing, over := context.WithCancel(c.Context)
	defer over()
	l := &live{running: ongoing, c: c, path: path, vars: vars, options: options, consent: env.consent, console: console, door: door, telemetry: telemetry, fed: input != nil, bundle: b, membership: member}
	door.cfg = door.cfg.WithReload(l.reload).WithUpgrade(l.upgrade)
	if member != nil {
		door.cfg, telemetry.cluster = door.cfg.WithNode(member.identity.Node).WithNodes(l.nodes), l.figures
		member.running, member.operator = ongoing, &clusterAdmin{l}
		member.lost = func(n *cluster.Node, _ error) { go l.rejoin(n) }
	}
	if err := member.join(ongoing); err != nil {
		return err
	}
	if err := l.start(); err != nil {
		return err
	}
	if err := door.tell(env, quiet); err != nil {
		_, late := l.close()
		return errors.Join(err, late)
	}
	console.started(b, time.Since(start))
	starter.tellUp(m)
	began := time.Now()
	stats, err := serve(c, flags, l, input)
	over()
	if c.Context.Err() != nil && env.restore != nil {
		env.restore() // a second Ctrl-C kills
	}
	final := l.stats()
	member.settle()
	cause, late := l.close()
	if late != nil && err == nil && c.Context.Err() == nil {
		err = fmt.Errorf("the actors did not stop in time: %w", late)
	}
	if failed := storeFailure(l); failed != nil && err == nil {
		err = failed
	}
	console.end(m, stats, final, time.Since(began))
	return verdictOfRun(flags, stats, console, cause, err)
}

// systemOf configures the system by the flags.
func systemOf(c *cli.Context, t *telemetry) func(host.Config) host.Config {
	return func(cfg host.Config) host.Config {
		cfg = t.configure(cfg)
		if t.box != nil {
			cfg = cfg.WithBlackBox(t.box)
		}
		if t.tape != nil {
			cfg = cfg.WithRecording(t.tape)
		}
		if c.IsSet("seed") {
			return cfg.WithSeed(c.Uint64("seed"))
		}
		return cfg
	}
}

// verdictOfRun is the error that a run ends with: the most serious one.
func verdictOfRun(flags runFlags, stats bundle.FeedStats, console *console, cause, err error) error {
	if broken := console.broken(); broken != nil {
		return broken
	}
	switch {
	case err != nil:
		return err
	case cause != nil:
		return fmt.Errorf("the bundle has failed: %w", cause)
	case len(console.died) > 0:
		return errors.New(strings.Join(console.died, "\n"))
	}
	var bad []string
	for _, kind := range flags.failOn {
		if n := stats.Of(kind); n > 0 {
			bad = append(bad, fmt.Sprintf("%d %s", n, kind))
		}
	}
	if len(bad) > 0 {
		return &linesError{"--fail-on: lines of input were " + strings.Join(bad, ", ")}
	}
	return nil
}

// holdsInput reports whether standard input is a pipe or a file, and not a terminal or a
// device.
func holdsInput(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular() && info.Size() > 0)
}

// note prints something that is not an error.
func (env *environment) note(text string) {
	if env.json {
		env.writeJSON(map[string]any{"event": "note", "text": text})
		return
	}
	fmt.Fprintln(env.stderr, "wasmactors: "+text)
}

// serve feeds the input and waits for whatever ends the run.
func serve(c *cli.Context, flags runFlags, l *live, input io.Reader) (bundle.FeedStats, error) {
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	l.console.fail = func(error) { cancel() }
	if flags.ends > 0 {
		var over context.CancelFunc
		ctx, over = context.WithTimeout(ctx, flags.ends)
		defer over()
	}
	m, sys := l.first()
	go func() {
		l.wait(ctx)
		cancel()
	}()
	var stats bundle.FeedStats
	var err error
	if input != nil {
		stats, err = feed(ctx, flags, m, sys, input, l.console, l)
	}
	if err == nil && (input == nil || m.Main != "") {
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

// feed sends the input to the actors, and prints the answers. l is the run, which may be a node of a cluster; nil: it is none.
func feed(ctx context.Context, flags runFlags, m *bundle.Manifest, sys *host.System, input io.Reader, console *console, l *live) (bundle.FeedStats, error) {
	var paths []string
	m.Walk(func(path string, _ *bundle.Actor) { paths = append(paths, path) })
	defer console.status.set("")
	f := bundle.Feed{Stop: flags.stop, Timeout: flags.timeout, Paths: paths, Answer: console.answer, Progress: console.feeding(sys)}
	if l != nil && l.membership != nil {
		f.System, f.Answer = l.present, l.membership.checked(console.answer)
	}
	return f.Run(ctx, sys, input)
}
