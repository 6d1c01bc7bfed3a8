package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/internal/regular"
)

func buildCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "build",
		Usage:     "build the modules of a bundle, or say that they are up to date",
		ArgsUsage: "[BUNDLE]",
		Description: "Guests in Go are built with TinyGo if it is installed, else with the go command. Results are kept by the\n" +
			"contents of all source files.\n\nExamples:\n\n" +
			"   wasmactors build samples/hello\n" +
			"   wasmactors build samples/hello --compiler go --output out",
		Flags: append(bundleFlags(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "also write each module to `DIR`/NAME.wasm"},
		),
		Action: func(c *cli.Context) error {
			path, err := oneArg(c, "a bundle", ".")
			if err != nil {
				return err
			}
			opt, err := bundleOptions(c, env)
			if err != nil {
				return err
			}
			m, err := load(c, path)
			if err != nil {
				return err
			}
			opt.LoadOnly = true
			if err := opt.Consent(m); err != nil {
				return err
			}
			return buildAll(c, env, m, opt)
		},
	}
}

func buildAll(c *cli.Context, env *environment, m *bundle.Manifest, opt bundle.Options) error {
	p := newProgress(env.terminal)
	defer p.end()
	opt.Progress = p.say
	var errs []error
	for _, mod := range m.Modules {
		code, built, err := bundle.Code(c.Context, mod, opt)
		if err != nil {
			errs = append(errs, m.ModuleError(mod, err))
			continue
		}
		how := "is given"
		switch {
		case built != nil && built.Cached:
			how = "is up to date"
		case built != nil:
			how = fmt.Sprintf("built with %s in %s", built.Compiler, built.Took.Round(time.Millisecond))
		}
		fmt.Fprintf(env.stdout, "%s: %s, %s\n", mod.Name, how, humanBytes(uint64(len(code))))
		if dir := c.String("output"); dir != "" {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := regular.Replace(filepath.Join(dir, mod.Name+".wasm"), code, 0o644); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

func humanBytes(n uint64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
