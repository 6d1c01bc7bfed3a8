package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/debug"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/regular"
	"github.com/wasmactors/wasmactors/runtime"
)

// mostScript is the most that a script may have, and a line of one, in bytes.
const (
	mostScript     = 1 << 20
	mostScriptLine = 64 << 10
)

const stepHelp = "--step steps through the file, forward and backward, from the failure on: help lists its commands. Its clock is fuel: a place is\n" +
	"a turn and what it has spent there, as 4711:33294. With --script it takes the commands from a file, and ends at the first one that\n" +
	"fails; --json prints a line for each. --timeout and Ctrl-C end the command under way."

// stepThrough is replay --step.
func stepThrough(c *cli.Context, env *environment, engine *runtime.Engine, f *blackbox.File, o replay.Options, timeout time.Duration) error {
	var script io.Reader
	switch name := c.String("script"); name {
	case "":
	case "-":
		script = io.LimitReader(env.stdin, mostScript)
	default:
		b, err := regular.Read(c.Context, name, mostScript)
		if err != nil {
			return usage("--script: %v", err)
		}
		script = bytes.NewReader(b)
	}
	p := &prompt{env: env, json: c.Bool("json"), timeout: timeout, ctx: c.Context}
	if script == nil {
		script, p.shown = env.stdin, !p.json
		if env.restore != nil {
			env.restore() // Ctrl-C ends a command, and without one the program
		}
		p.ctx = context.WithoutCancel(c.Context)
	}
	begin, cancel := p.limited()
	d, err := debug.Open(begin, engine, f, o)
	cancel()
	if err != nil {
		return notRepeated(c, env, c.Args().First(), err)
	}
	defer d.Close()
	if p.shown {
		if err := p.do(d, "stack"); err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(script)
	lines.Buffer(nil, mostScriptLine)
	for n := 1; p.prompt(d) && lines.Scan(); n++ {
		switch line := strings.TrimSpace(lines.Text()); line {
		case "quit", "q", "exit":
			return nil
		default:
			err := p.do(d, line)
			var out *outputError
			switch {
			case err == nil:
			case errors.As(err, &out) || c.Context.Err() != nil && !p.shown:
				return err
			case p.shown:
				fmt.Fprintln(env.stderr, "wasmactors: "+oneLine(err.Error()))
			default:
				return usage("line %d: %v", n, err)
			}
		}
	}
	return lines.Err()
}

// prompt reads commands and shows what they lead to.
type prompt struct {
	env     *environment
	ctx     context.Context
	timeout time.Duration
	json    bool
	shown   bool // for a person
}

// limited is the context of a command.
func (p *prompt) limited() (context.Context, func()) {
	ctx, stop := p.ctx, func() {}
	if p.shown {
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt)
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	return ctx, func() { cancel(); stop() }
}

// prompt shows where the debugger is; true.
func (p *prompt) prompt(d *debug.Debugger) bool {
	if p.shown {
		fmt.Fprintf(p.env.stdout, "%s> ", d.At())
	}
	return true
}

func (p *prompt) do(d *debug.Debugger, line string) error {
	ctx, cancel := p.limited()
	defer cancel()
	r, err := d.Do(ctx, line)
	if err != nil && p.json && !p.shown {
		text, jerr := json.Marshal(map[string]string{"command": line, "error": err.Error()})
		if jerr == nil {
			err = errors.Join(err, write(p.env.stdout, string(printable.JSON(text))+"\n"))
		}
		return err
	}
	switch {
	case err != nil:
		return err
	case r == nil:
		return nil
	case p.json:
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return write(p.env.stdout, string(printable.JSON(text))+"\n")
	}
	return write(p.env.stdout, r.String())
}
