package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
)

func checkCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "check a bundle's manifest, and its modules, without running it",
		ArgsUsage: "[BUNDLE]",
		Description: "Everything that is wrong is reported, with file, line and column.\n\nExamples:\n\n" +
			"   wasmactors check samples/ledger\n" +
			"   wasmactors check samples/ledger --manifest-only",
		Flags: append(cacheFlags(),
			compilerFlag(),
			&cli.BoolFlag{Name: "manifest-only", Usage: "leave the modules alone"},
		),
		Action: func(c *cli.Context) error {
			path, err := oneArg(c, "a bundle", ".")
			if err != nil {
				return err
			}
			options, err := bundleOptions(c, env)
			if err != nil {
				return err
			}
			m, err := load(path)
			if err != nil {
				return err
			}
			if !c.Bool("manifest-only") {
				p := newProgress(env.stderr)
				options.Progress = p.say
				b, err := bundle.Open(c.Context, m, options)
				p.end()
				if err != nil {
					return err
				}
				defer b.Close(c.Context)
			}
			actors := 0
			m.Walk(func(string, *bundle.Actor) { actors++ })
			fmt.Fprintf(env.stdout, "%s is fine: %s, %s\n", m.File, plural(len(m.Modules), "module"), plural(actors, "actor"))
			return nil
		},
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
