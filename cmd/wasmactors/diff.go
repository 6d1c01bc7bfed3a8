package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/rerun"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/regular"
)

func diffCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "find the first turn in which two recorded runs differ",
		ArgsUsage: "RECORDING RECORDING",
		Description: "The recordings are those of run --record. Both are repeated, and their turns compared by actor: the message that\n" +
			"each takes in, the commands that it leads to, and its fuel. Refs, seeds and times may differ.\n\n" +
			"Exit codes: 0 equal; 3 they differ; 5 a module is missing; 2 a file is wrong, or does not come out as it was recorded.\n\nExamples:\n\n" +
			"   wasmactors diff before.wrec after.wrec\n" +
			"   wasmactors diff --json before.wrec after.wrec",
		Flags: append(cacheFlags(),
			&cli.StringSliceFlag{Name: "module", Usage: "take a module that is not in the cache from `FILE`; may be repeated"},
			&cli.BoolFlag{Name: "interpreter", Usage: "run them in the interpreter instead of compiled"},
			&cli.StringFlag{Name: "timeout", Usage: "give up after `DURATION` (default: none)"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error { return diffRecordings(c, env) },
	}
}

// compared is what diff prints as JSON.
type compared struct {
	Files [2]string `json:"files"`
	Same  bool      `json:"same"`
	*rerun.Comparison
	TookMS float64 `json:"took_ms"`
}

func diffRecordings(c *cli.Context, env *environment) error {
	if c.NArg() != 2 {
		return usage("diff needs two recordings; see wasmactors diff --help")
	}
	x := compared{Files: [2]string{c.Args().Get(0), c.Args().Get(1)}}
	timeout, err := durationFlag(c, "timeout")
	if err != nil {
		return err
	}
	var of [2]*recorder.Recording
	for n, name := range x.Files {
		if of[n], err = readRecording(c, name); err != nil {
			return err
		}
		if missing := of[n].Missing; missing != nil {
			env.note(oneLine(fmt.Sprintf("%s: %v; what is before that is compared", name, missing)))
		}
	}
	var o rerun.Options
	for _, name := range c.StringSlice("module") {
		code, err := regular.Read(c.Context, name, mostModule)
		if err != nil {
			return usage("--module: %v", err)
		}
		o.Modules = append(o.Modules, code)
	}
	engine, err := replayEngine(c)
	if err != nil {
		return err
	}
	defer engine.Close(c.Context)
	ctx := c.Context
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	began := time.Now()
	if x.Comparison, err = rerun.Diff(ctx, engine, of[0], of[1], o); err != nil {
		return notRepeated(c, env, strings.Join(x.Files[:], ", "), err)
	}
	x.Same, x.TookMS = x.First == nil, float64(time.Since(began))/float64(time.Millisecond)
	if err := x.write(c, env); err != nil {
		return err
	}
	if !x.Same {
		return &codeError{exitLines}
	}
	return nil
}

func (x *compared) write(c *cli.Context, env *environment) error {
	if c.Bool("json") {
		text, err := json.Marshal(x)
		if err != nil {
			return err
		}
		return write(env.stdout, string(printable.JSON(text))+"\n")
	}
	var b strings.Builder
	for _, a := range x.NotCompared {
		fmt.Fprintln(&b, oneLine(fmt.Sprintf("not compared: %s: %s", a.Path, a.Why)))
	}
	d := x.First
	if d == nil {
		fmt.Fprintf(&b, "the same: %s compared\n", plural(x.Equal, "turn"))
		return write(env.stdout, b.String())
	}
	fmt.Fprintln(&b, oneLine(d.String()))
	for n, text := range d.Texts {
		if text != "" {
			fmt.Fprintln(&b, oneLine(fmt.Sprintf("  %s: %s", x.Files[n], text)))
		}
	}
	fmt.Fprintf(&b, "%s equal, %s with differences\n", plural(x.Equal, "turn"), plural(x.Differing, "actor"))
	return write(env.stdout, b.String())
}
