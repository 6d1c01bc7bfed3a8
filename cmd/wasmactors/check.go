package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
)

func checkCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "check a bundle's manifest, and its modules, without running it",
		ArgsUsage: "[BUNDLE]",
		Description: "Everything that is wrong is reported in one go, as file:line:column, modules included.\n\nExamples:\n\n" +
			"   wasmactors check samples/ledger\n" +
			"   wasmactors check samples/ledger --json\n" +
			"   wasmactors check samples/ledger --manifest-only",
		Flags: append(bundleFlags(),
			&cli.BoolFlag{Name: "manifest-only", Usage: "leave the modules alone"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error {
			path, err := oneArg(c, "a bundle", ".")
			if err != nil {
				return err
			}
			m, err := check(c, env, path)
			if c.Bool("json") && !errors.Is(err, errSilent) {
				return printCheck(env, path, m, err)
			}
			if err != nil {
				return err
			}
			text := fmt.Sprintf("%s is fine: %s, %s\n", m.File, plural(len(m.Modules), "module"), plural(countActors(m), "actor"))
			if reaches := m.Reaches(); len(reaches) > 0 {
				text += (&bundle.OutsideError{Reaches: reaches}).Error() + "\n" + howToAllow(reaches) + "\n"
			}
			return write(env.stdout, text)
		},
	}
}

func check(c *cli.Context, env *environment, path string) (*bundle.Manifest, error) {
	if c.Bool("manifest-only") {
		m, err := load(c, path)
		if err == nil {
			err = m.CheckMessages()
		}
		return m, err
	}
	options, err := bundleOptions(c, env)
	if err != nil {
		return nil, err
	}
	vars, err := variables(c)
	if err != nil {
		return nil, err
	}
	p := newProgress(env.terminal)
	if !c.Bool("json") {
		options.Progress = p.say
	}
	m, err := bundle.Check(c.Context, path, vars, options)
	p.end()
	var ds bundle.Diagnostics
	var module *bundle.ModuleError
	if m == nil && err != nil && !errors.As(err, &ds) && !errors.As(err, &module) {
		err = usage("%w", err)
	}
	return m, err
}

// printCheck prints the report for programs. The exit code says the same.
func printCheck(env *environment, path string, m *bundle.Manifest, err error) error {
	report := map[string]any{"bundle": path, "ok": err == nil, "problems": problems(err)}
	if err == nil {
		report["problems"] = []problem{}
	}
	if m != nil {
		report["modules"], report["actors"] = len(m.Modules), countActors(m)
		report["reaches"] = append([]bundle.Reach{}, m.Reaches()...)
	}
	enc := json.NewEncoder(env.stdout)
	enc.SetIndent("", "  ")
	if werr := enc.Encode(report); werr != nil {
		return &outputError{werr}
	}
	if err != nil {
		return errors.Join(errSilent, err)
	}
	return nil
}

func countActors(m *bundle.Manifest) (n int) {
	m.Walk(func(string, *bundle.Actor) { n++ })
	return n
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
