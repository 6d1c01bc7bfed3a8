package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/scaffold"
)

func newCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "new",
		Usage:     "make a bundle with a guest in Go that builds without a network",
		ArgsUsage: "DIR",
		Description: "Example:\n\n" +
			"   wasmactors new hello && wasmactors run hello --input hello/input.ndjson",
		Flags: []cli.Flag{&cli.StringFlag{
			Name: "template", Aliases: []string{"t"}, Value: scaffold.Default, Usage: "begin with `TEMPLATE`: " + strings.Join(scaffold.Templates(), ", "),
		}},
		Action: func(c *cli.Context) error {
			dir, err := oneArg(c, "the folder to make", "")
			if err != nil {
				return err
			}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			name := filepath.Base(abs)
			if !abi.ValidName([]byte(name)) {
				return usage("%q cannot be a bundle's name: use A-Z a-z 0-9 _ . ~ -", name)
			}
			files, err := scaffold.New(dir, name, c.String("template"))
			if err != nil {
				return usage("%v", err)
			}
			for _, f := range files {
				fmt.Fprintln(env.stdout, "  "+f)
			}
			with := ""
			if input := filepath.Join(dir, "input.ndjson"); slices.Contains(files, input) {
				with = " --input " + input
			}
			if c.String("template") == "web" {
				with = " --allow listen=localhost:8080"
			}
			fmt.Fprintf(env.stdout, "\nRun it, test it:\n\n  wasmactors run %s%s\n  wasmactors test %s\n", dir, with, dir)
			return nil
		},
	}
}
