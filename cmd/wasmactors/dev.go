package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/pkg/browser"
	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
)

func devCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "dev",
		Usage:     "run a bundle, and replace its actors when their sources or the manifest change",
		ArgsUsage: "[BUNDLE]",
		Description: "Flags and input are those of run. Whatever the builds read is watched: Go packages, also those that replace\n" +
			"directives name, embedded files, .wasm files, the manifest. What has changed is built again and takes its place\n" +
			"under the actors, which keep their refs and mailboxes and start over. Mistakes are shown as file:line:column,\n" +
			"and the old code goes on. It ends at Ctrl-C, or after --for. With --nodes the bundle runs on so many nodes of a cluster that is\n" +
			"made for it: processes of this machine. What they say begins with their names, a change reaches one after the other, and one that\n" +
			"is killed starts again. In values of --env and of other flags {node} stands for the number of the node.\n\nExamples:\n\n" +
			"   wasmactors dev samples/hello\n" +
			"   wasmactors dev samples/hello --input samples/hello/input.ndjson --again\n" +
			"   wasmactors dev --open\n" +
			"   wasmactors dev shop --nodes 3 --env LISTEN=localhost:808{node}",
		Flags: append(runFlagList(),
			&cli.BoolFlag{Name: "again", Usage: "feed the input again after every change that is running"},
			&cli.BoolFlag{Name: "open", Usage: "open the dashboard in the browser"},
			&cli.IntFlag{Name: "nodes", Usage: "run the bundle on `N` nodes of a cluster, each a process of its own; input is for the first one"},
		),
		Action: func(c *cli.Context) error {
			path, err := oneArg(c, "a bundle", ".")
			if err != nil {
				return err
			}
			return devBundle(c, env, path)
		},
	}
}

// attachment opens the admin endpoint of a running system, until detach is called. dashboard
// is its address for a browser, "" if it has none.
type attachment func(c *cli.Context, e bundle.DevEvent, t *telemetry) (dashboard string, detach func(), err error)

func devBundle(c *cli.Context, env *environment, path string) error {
	flags, err := readRunFlags(c)
	if err != nil {
		return err
	}
	vars, err := variables(c)
	if c.IsSet("nodes") {
		if err = checkNodes(c, c.Int("nodes")); err == nil {
			vars, err = variablesOfNode(c, 1)
		}
	}
	if err != nil {
		return err
	}
	options, err := bundleOptions(c, env)
	switch {
	case err != nil:
		return err
	case c.Bool("again") && c.String("input") == "":
		return usage("--again needs --input")
	case c.Bool("again") && c.String("input") == "-":
		return usage("--again reads the input more than once, and standard input is gone after the first time: --input needs a file")
	case c.Bool("open") && env.attach == nil:
		return usage("--open: there is no dashboard in this build of wasmactors")
	}
	if _, closeInput, err := openInput(env, c.String("input")); err != nil {
		return err // before the first build
	} else if err := closeInput(); err != nil {
		return usage("--input: %v", err)
	}
	quiet, asJSON := c.Bool("quiet"), c.Bool("json")
	if c.String("input") == "" && !quiet && holdsInput(env.stdin) {
		env.note("standard input is not read; --input - reads it")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	telemetry := &telemetry{env: env}
	if !c.IsSet("nodes") { // they have their own
		if telemetry, err = openTelemetry(c, env, filepath.Base(abs)); err != nil {
			return err
		}
		defer telemetry.close()
		if telemetry.box, err = openBlackBox(c, env, nil, &options); err != nil {
			return err
		}
		defer closeBlackBox(telemetry.box)
		options.Traces = telemetry.traces()
	} else if c.Bool("with-module") {
		return errWithModule
	}
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	if flags.ends > 0 {
		var over context.CancelFunc
		ctx, over = context.WithTimeout(ctx, flags.ends)
		defer over()
	}
	d := &devSession{c: c, env: env, telemetry: telemetry, flags: flags, ctx: ctx, console: newConsole(env, asJSON, quiet, flags.level, flags.reports), began: time.Now()}
	d.console.fail = func(error) { cancel() }
	options.Progress = d.progress
	dev := bundle.Dev{Path: path, Vars: vars, Options: options, Start: systemOf(c, telemetry), Watch: d.follow, Tell: d.tell, Trouble: d.trouble}
	if c.IsSet("nodes") {
		d.nodes = newDevNodes(c, env, d.console, path)
		dev.Place = d.nodes
		defer d.nodes.close()
	}
	if env.restore != nil {
		defer context.AfterFunc(ctx, env.restore)() // a second Ctrl-C kills
	}
	err = dev.Run(ctx)
	if err != nil {
		err = usage("%w", err) // the bundle does not exist
	}
	d.feeding.Wait()
	d.detach()
	d.count()
	if d.nodes != nil && err == nil {
		err = d.nodes.verdict()
	} else if d.manifest != nil {
		d.console.end(d.manifest, d.stats, d.final, time.Since(d.began))
	}
	d.console.died = nil // actors that have failed may have been corrected since
	return verdictOfRun(flags, d.stats, d.console, nil, err)
}

// devSession is the output of a running dev.
type devSession struct {
	c       *cli.Context
	env     *environment
	flags   runFlags
	ctx     context.Context
	console *console
	began   time.Time

	telemetry *telemetry
	nodes     *devNodes // nil: the bundle runs in this process

	manifest *bundle.Manifest // what ran last
	sys      *host.System
	final    host.Stats // of all systems before
	release  func()     // detaches the admin endpoint
	opened   bool

	feeding sync.WaitGroup
	stopFed context.CancelFunc // of the feed under way
	turn    chan struct{}      // closed when it is over
	fed     bool
	stats   bundle.FeedStats // of all feeds; they run one after the other
}

// count adds the statistics of a system that has ended.
func (d *devSession) count() {
	if d.sys == nil {
		return
	}
	s := d.sys.View().Stats()
	d.final.Turns += s.Turns
	d.final.Crashes += s.Crashes
	d.final.Restarts += s.Restarts
	d.final.DeadLetters += s.DeadLetters
	d.final.Fuel += s.Fuel
}

// follow prints the events of a new system, after those of the one before.
func (d *devSession) follow(sys *host.System) {
	d.console.finished.Wait()
	d.console.endings.Wait()
	d.console.follow(sys)
}

// progress shows on a terminal what is going on.
func (d *devSession) progress(module, text string) {
	if !d.console.quiet && !d.console.json {
		d.console.status.set(oneLine(module + ": " + text))
	}
}

func (d *devSession) trouble(dir string, err error) {
	switch {
	case d.console.quiet:
	case d.console.json:
		d.env.writeJSON(map[string]any{"event": "dev", "kind": "polling", "dir": dir, "reason": err.Error()})
	default:
		d.console.log.Warn("the operating system does not report changes here; the files are polled", "dir", oneLine(near(dir)), "why", oneLine(err.Error()))
	}
}

// tell prints an event of the loop, and feeds the running system.
func (d *devSession) tell(e bundle.DevEvent) {
	d.console.status.set("")
	if e.Kind == bundle.DevUp || e.Kind == bundle.DevEnded {
		d.detach()
	}
	switch {
	case d.console.json:
		j := eventOfDev(e)
		if d.nodes != nil && e.Kind == bundle.DevUp {
			j.Nodes = d.nodes.pids()
		}
		d.env.writeJSON(j)
	case !d.console.quiet:
		d.human(e)
	case e.Kind == bundle.DevFailed:
		d.human(e)
	}
	if e.Running {
		if d.sys != e.System {
			d.count()
		}
		d.sys, d.manifest = e.System, e.Manifest
	}
	switch e.Kind {
	case bundle.DevUp:
		if d.nodes == nil {
			d.attach(e)
			d.waitForMain(e)
		} else if d.c.Bool("open") {
			d.show(d.nodes.dashboard(d.ctx))
		}
		d.feed(e)
	case bundle.DevReplaced:
		d.feed(e)
	}
}

// attach opens the admin endpoint, and the dashboard at the first time.
func (d *devSession) attach(e bundle.DevEvent) {
	if d.env.attach == nil {
		return
	}
	url, detach, err := d.env.attach(d.c, e, d.telemetry)
	if err != nil {
		d.env.note(err.Error())
		return
	}
	d.release = detach
	if d.c.Bool("open") {
		d.show(url, nil)
	}
}

// show opens the dashboard at an address in the browser, the first time that there is one.
func (d *devSession) show(url string, err error) {
	if err != nil {
		d.env.note("there is no dashboard: " + oneLine(err.Error()))
	}
	if d.opened || url == "" {
		return
	}
	d.opened = true
	if err := openBrowser(url); err != nil {
		d.env.note(fmt.Sprintf("the browser cannot be opened (%v); the dashboard is at %s", err, url))
	}
}

func (d *devSession) detach() {
	if d.release != nil {
		d.release()
		d.release = nil
	}
}

// openBrowser opens an address; a variable, since tests have no browser.
var openBrowser = func(url string) error {
	browser.Stdout, browser.Stderr = nil, nil // standard output is for answers only
	return browser.OpenURL(url)
}

// waitForMain reports the end of the main actor, which does not end dev.
func (d *devSession) waitForMain(e bundle.DevEvent) {
	if e.Manifest.Main == "" {
		return
	}
	ref, err := e.System.Lookup("/user/" + e.Manifest.Main)
	if err != nil {
		return
	}
	ended, err := e.System.Ended(ref)
	if err != nil {
		return
	}
	d.feeding.Go(func() {
		select {
		case <-ended:
			if d.ctx.Err() == nil && !d.console.quiet {
				d.env.note("the main actor " + e.Manifest.Main + " has ended; the next change of its sources or of the manifest starts it again")
			}
		case <-e.System.Terminated():
		case <-d.ctx.Done():
		}
	})
}

// feed feeds the input to the running system: once, or with --again after each change. It
// ends a feed that is under way.
func (d *devSession) feed(e bundle.DevEvent) {
	name := d.c.String("input")
	if name == "" || d.fed && !d.c.Bool("again") {
		return
	}
	d.fed = true
	if d.stopFed != nil {
		d.stopFed()
	}
	ctx, stop := context.WithCancel(d.ctx)
	before := d.turn
	d.turn = make(chan struct{})
	over := d.turn
	d.stopFed = stop
	d.feeding.Go(func() {
		defer close(over)
		defer stop()
		if before != nil {
			<-before
		}
		input, closeInput, err := openInput(d.env, name)
		if err != nil {
			d.env.note(err.Error())
			return
		}
		defer closeInput()
		if d.nodes != nil {
			if err := d.nodes.feed(ctx, input); err != nil && ctx.Err() == nil {
				d.env.note("the rest of the input is not read: " + err.Error())
			}
			return
		}
		go func() {
			select {
			case <-e.System.Terminated():
				stop()
			case <-ctx.Done():
			}
		}()
		stats, err := feed(ctx, d.flags, e.Manifest, e.System, input, d.console, nil)
		d.stats = d.stats.Plus(stats)
		if err != nil && ctx.Err() == nil {
			d.env.note("the rest of the input is not read: " + err.Error())
		}
	})
}
