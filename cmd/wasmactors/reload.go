package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
)

func reloadCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "reload", Usage: "read a running bundle again, and replace the actors that have changed", ArgsUsage: "[BUNDLE]",
		Description: "The manifest is read where the run has read it, and modules are built, with the flags of the run. What has changed takes\n" +
			"its place under the actors, which keep their refs and mailboxes and start over. If it does not load, or reaches what\n" +
			"the run was not allowed, the version before keeps running. What cannot be changed in place needs restart --all.\n\nExamples:\n\n" +
			"   wasmactors reload\n" +
			"   wasmactors reload shop",
		Flags: reachFlags(),
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usage("reload takes one argument, a bundle")
			}
			if c.NArg() == 1 {
				if err := c.Set("bundle", c.Args().First()); err != nil {
					return err
				}
			}
			return reaching(env, func(c *cli.Context, r *reached) error { return r.reload(c, admin.Reload{}) })(c)
		},
	}
}

// reload has the bundle read again, and prints what has changed.
func (r *reached) reload(c *cli.Context, how admin.Reload) error {
	return order(c, r, "/v1/reload", how, func(done admin.Reloaded) error {
		failed := 0
		var b strings.Builder
		for _, m := range done.Modules {
			fmt.Fprintf(&b, "module %s  replaced\n", oneLine(m))
		}
		for i, a := range done.Actors {
			if a.Error != "" {
				failed++
			}
			switch {
			case i == mostShown:
				fmt.Fprintf(&b, "and %d more; --json shows all\n", len(done.Actors)-i)
			case i > mostShown:
			case a.Error != "":
				fmt.Fprintf(&b, "%s  failed: %s\n", a.Path, oneLine(a.Error))
			default:
				fmt.Fprintf(&b, "%s  %s: %s\n", a.Path, a.Did, oneLine(a.Why))
			}
		}
		switch {
		case done.Restarted:
			fmt.Fprintf(&b, "process %d has started the bundle anew\n", done.PID)
		case b.Len() == 0:
			b.WriteString("nothing has changed\n")
		}
		if !r.json {
			if err := write(r.env.stdout, b.String()); err != nil {
				return err
			}
		}
		if failed > 0 {
			return fmt.Errorf("reload: %d of %d changes failed", failed, len(done.Actors))
		}
		return nil
	})
}
