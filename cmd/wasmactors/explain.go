package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/bundle"
)

func explainCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "tell who decides about an actor's failures, and the delays that it would get; or what a crash file has",
		ArgsUsage: "BUNDLE [ACTOR] | FILE" + blackbox.Suffix,
		Description: "Without an actor all of them are explained. Of a crash file it shows the failure, its message, and the last events before it.\n" +
			"Nothing is built or run.\n\nExamples:\n\n" +
			"   wasmactors explain crash-20260101-120000.000000-cart-3f2a9c01.wacrash\n" +
			"   wasmactors explain samples/ledger\n" +
			"   wasmactors explain samples/ledger gateway",
		Flags: []cli.Flag{envFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() < 1 || c.NArg() > 2 {
				return usage("explain wants a bundle and perhaps an actor; see wasmactors explain --help")
			}
			if c.NArg() == 1 && isCrashFile(c.Args().First()) {
				return explainCrash(c, env, c.Args().First())
			}
			m, err := load(c, c.Args().First())
			if err != nil {
				return err
			}
			if c.NArg() == 2 {
				if err := m.Explain(env.stdout, c.Args().Get(1)); err != nil {
					return usage("%v", err)
				}
				return nil
			}
			first := true
			m.Walk(func(path string, _ *bundle.Actor) {
				if !first {
					fmt.Fprintln(env.stdout)
				}
				first = false
				_ = m.Explain(env.stdout, path) // the actor exists
			})
			return nil
		},
	}
}
