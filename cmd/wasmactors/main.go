// Command wasmactors builds, runs and inspects bundles of sandboxed actors.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/runtime"
)

// version is set by releases.
var version = "0.1.0-dev"

func main() {
	runtime.CompileMain() // does not return in a process that compiles
	os.Exit(mainCode())
}

// mainCode runs the command with the signals and streams of the process.
func mainCode() int {
	ctx, restore := signals(context.Background())
	defer restore()
	return run(ctx, restore, os.Args, os.Stdin, os.Stdout, os.Stderr)
}

// run runs the command and returns its exit code. restore gives signals back to the system,
// so that a second Ctrl-C kills the process; it may be nil.
func run(ctx context.Context, restore func(), args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	env := &environment{stdin: stdin, stdout: printable.Writer(stdout), stderr: printable.Writer(stderr), raw: stdout, terminal: stderr, restore: restore}
	env.attach = attachDoor(env)
	app := newApp(env)
	if len(args) > 1 && args[1] == completing {
		complete(ctx, env, app, args[2:])
		return exitDone
	}
	err := app.RunContext(ctx, reorder(app, args))
	code := exitCode(ctx, err)
	if err != nil && !errors.Is(err, errSilent) && !(ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		env.report(err, code)
	}
	return code
}

func newApp(env *environment) *cli.App {
	app := &cli.App{
		Name:      "wasmactors",
		Usage:     "run actors in WebAssembly sandboxes",
		Version:   version,
		Writer:    env.stdout,
		ErrWriter: env.stderr,
		Reader:    env.stdin,
		Description: "A bundle is a folder with a bundle.yaml: WebAssembly actors and the tree that supervises them.\n\n" +
			"   wasmactors new hello                      make a bundle\n" +
			"   wasmactors run hello --input messages.ndjson\n\n" +
			exitCodes,
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // the value of a variable may contain commas
		CommandNotFound:           func(c *cli.Context, name string) {},
		Commands: []*cli.Command{
			newCommand(env), buildCommand(env), runCommand(env), devCommand(env), inspectCommand(env), checkCommand(env), explainCommand(env), testCommand(env),
			simulateCommand(env), cacheCommand(env),
			psCommand(env), topCommand(env), treeCommand(env), describeCommand(env), eventsCommand(env), crashesCommand(env), replayCommand(env), diffCommand(env), logsCommand(env), traceCommand(env), profileCommand(env),
			reloadCommand(env), upgradeCommand(env), sendCommand(env), askCommand(env), deadLettersCommand(env), kvCommand(env), storeCommand(env), clusterCommand(env), completionCommand(env), versionCommand(env), helpCommand(),
		},
		Flags: []cli.Flag{
			cli.HelpFlag, // the library adds it only if no command is called help
			&cli.BoolFlag{Name: "version", Aliases: []string{"v"}, Usage: "say which version this is"},
		},
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError: func(c *cli.Context, err error, _ bool) error {
			return usage("%v%s; see wasmactors help", err, likeFlag(err, c.App.Flags))
		},
	}
	app.Commands = append(app.Commands, verbCommands(env)...)
	app.Action = func(c *cli.Context) error {
		switch {
		case c.Bool("version"):
			return printVersion(env, false)
		case c.NArg() > 0:
			return noCommand(app, c.Args().First())
		}
		return cli.ShowAppHelp(c)
	}
	for _, c := range app.Commands {
		c.HideHelpCommand = true
		c.OnUsageError = func(ctx *cli.Context, err error, _ bool) error {
			return usage("%v%s; see wasmactors %s --help", err, likeFlag(err, ctx.Command.Flags), ctx.Command.Name)
		}
		action := c.Action
		c.Action = func(ctx *cli.Context) error {
			env.json = ctx.Bool("json")
			return action(ctx)
		}
	}
	return app
}

// likeFlag suggests a flag instead of one that does not exist.
func likeFlag(err error, flags []cli.Flag) string {
	_, name, ok := strings.Cut(err.Error(), "flag provided but not defined: -")
	if !ok {
		return ""
	}
	var names []string
	for _, f := range flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, "--"+n)
			}
		}
	}
	return didYouMean("--"+strings.TrimPrefix(name, "-"), names)
}

// Flags whose usage says what the default is do not say it a second time.
func init() {
	usual := cli.FlagStringer
	cli.FlagStringer = func(f cli.Flag) string {
		text := usual(f)
		first := strings.Index(text, "(default: ")
		if again := strings.LastIndex(text, "(default: "); again > first {
			if end := strings.IndexByte(text[again:], ')'); end >= 0 {
				text = strings.TrimRight(text[:again], " ") + text[again+end+1:]
			}
		}
		return text
	}
}

// noCommand is a command that does not exist.
func noCommand(app *cli.App, name string) error {
	var names []string
	for _, c := range app.Commands {
		names = append(names, c.Name)
	}
	return usage("there is no command %q%s; see wasmactors help", name, didYouMean(name, names))
}

func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Aliases: []string{"h"}, Usage: "say what there is, or how a command is used", ArgsUsage: "[COMMAND]",
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return cli.ShowAppHelp(c)
			}
			name := c.Args().First()
			if c.App.Command(name) == nil {
				return noCommand(c.App, name)
			}
			return cli.ShowCommandHelp(c, name)
		},
	}
}

// environment is what commands read and write.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer // for text and JSON, without characters that control a terminal
	raw            io.Writer // standard output unfiltered, for binary data
	terminal       io.Writer // standard error unfiltered, for colours and lines that are redrawn
	restore        func()
	consent        *consent   // of what was opened last
	attach         attachment // nil: running bundles have no admin endpoint
	json           bool       // --json was given
}

// stdoutFile is standard output, for checks whether it is a terminal.
func (env *environment) stdoutFile() any { return env.raw }

// reorder puts flags before arguments, so that `run DIR --input F` works as
// `run --input F DIR` does. Who asks for help gets that of the command, whatever stands beside it: the library takes an argument for
// the name of a command, and says nothing if there is none.
func reorder(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	cmd := app.Command(args[1])
	if cmd == nil {
		return args
	}
	takes := map[string]bool{}
	for _, f := range cmd.Flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, n := range f.Names() {
			takes[n] = !isBool
		}
	}
	var flags, rest []string
	for i := 2; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			rest = append(rest, a)
			continue
		}
		name := strings.TrimLeft(a, "-")
		if slices.Contains(cli.HelpFlag.Names(), name) {
			return []string{args[0], args[1], a}
		}
		flags = append(flags, a)
		if !strings.Contains(name, "=") && takes[name] && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	out := append(append([]string{args[0], args[1]}, flags...), "--")
	return append(out, rest...)
}

// oneArg is the only argument of a command, or def if there is none.
func oneArg(c *cli.Context, what, def string) (string, error) {
	switch {
	case c.NArg() == 1:
		return c.Args().First(), nil
	case c.NArg() == 0 && def != "":
		return def, nil
	case c.NArg() == 0:
		return "", usage("%s needs %s; see wasmactors %s --help", c.Command.Name, what, c.Command.Name)
	}
	return "", usage("%s takes one argument, %s; see wasmactors %s --help", c.Command.Name, what, c.Command.Name)
}

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }
