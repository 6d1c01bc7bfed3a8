// Command wasmactors builds, runs and inspects bundles of sandboxed actors.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/runtime"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1   // the bundle has failed
	exitUsage       = 2   // the command line or the manifest is wrong
	exitInterrupted = 130 // Ctrl-C
)

// version is set by releases.
var version = "0.1.0-dev"

func main() {
	runtime.CompileMain() // the hidden command that compiles, in a process of its own
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, stop, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command without the process around it. restore gives signals back
// to the system, so that a second Ctrl-C kills; it may be nil.
func run(ctx context.Context, restore func(), args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	env := &environment{stdin: stdin, stdout: stdout, stderr: stderr, restore: restore}
	app := &cli.App{
		Name:      "wasmactors",
		Usage:     "run actors in WebAssembly sandboxes",
		Version:   version,
		Writer:    stdout,
		ErrWriter: stderr,
		Reader:    stdin,
		Description: "A bundle is a folder with a bundle.yaml: WebAssembly actors and the tree that supervises them.\n\n" +
			"   wasmactors new hello                      make a bundle\n" +
			"   wasmactors run hello --input messages.ndjson\n\n" +
			"Exit codes: 0 done, 1 the bundle failed, 2 wrong usage or manifest, 130 interrupted.",
		HideVersion:     true,
		CommandNotFound: func(c *cli.Context, name string) {},
		Commands: []*cli.Command{
			newCommand(env), buildCommand(env), runCommand(env), inspectCommand(env), checkCommand(env), explainCommand(env), cacheCommand(env), versionCommand(env),
		},
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   func(_ *cli.Context, err error, _ bool) error { return usage("%v", err) },
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usage("there is no command %q; see wasmactors help", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError = func(ctx *cli.Context, err error, _ bool) error {
			return usage("%v; see wasmactors %s --help", err, ctx.Command.Name)
		}
	}
	err := app.RunContext(ctx, reorder(app, args))
	code := exitCode(ctx, err)
	if err != nil && !errors.Is(err, errSilent) && !(code == exitInterrupted && errors.Is(err, context.Canceled)) {
		fmt.Fprintln(stderr, "wasmactors: "+strings.TrimPrefix(err.Error(), "wasmactors: "))
	}
	return code
}

// environment is what commands read and write.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	restore        func()
}

// usageError is a wrong command line or manifest.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// errSilent ends a command whose problem was reported already.
var errSilent = errors.New("reported")

func exitCode(ctx context.Context, err error) int {
	var u *usageError
	var ds bundle.Diagnostics
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case err == nil:
		return exitDone
	case errors.As(err, &u), errors.As(err, &ds):
		return exitUsage
	}
	return exitFailed
}

// reorder puts flags before arguments, so that `run DIR --input F` works as
// `run --input F DIR` does.
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
		flags = append(flags, a)
		name := strings.TrimLeft(a, "-")
		if !strings.Contains(name, "=") && takes[name] && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	out := append(append([]string{args[0], args[1]}, flags...), "--")
	return append(out, rest...)
}

func compilerFlag() cli.Flag {
	return &cli.StringFlag{Name: "compiler", Usage: "build Go guests with `NAME`: auto, go or tinygo (default: what the manifest says)"}
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

func checkCompiler(name string) error {
	switch name {
	case "", "auto", "go", "tinygo":
		return nil
	}
	return usage("--compiler is auto, go or tinygo, not %q", name)
}

// load reads a manifest; a bundle that is not there is wrong usage.
func load(path string) (*bundle.Manifest, error) {
	m, err := bundle.Load(path)
	var ds bundle.Diagnostics
	if err != nil && !errors.As(err, &ds) {
		return nil, usage("%v", err)
	}
	return m, err
}
