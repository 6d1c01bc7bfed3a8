package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/host/scenario"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/regular"
	"github.com/wasmactors/wasmactors/runtime"
)

// Of replay.
const (
	mostModule    = 256 << 20 // bytes
	mostReplayed  = 2000      // of a message
	replayTimeout = time.Minute
)

func replayCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "repeat a failure of a guest from its crash file, or a whole run from its recording",
		ArgsUsage: "FILE",
		Description: "The file is one that run --black-box has written. Neither the bundle nor a service is needed, and nothing that the guest\n" +
			"asks for is carried out. The module is that of the file, of --module, or of the cache. With another module the same messages\n" +
			"are given to that: does it handle them, and what does it do differently?\n\n" +
			"FILE may also be a recording that run --record has written: then all its guests run again, and what they do is compared.\n\n" +
			stepHelp + "\n\n" +
			"Exit codes: 0 reproduced, or handled by another module; 3 not; 5 the module is missing; 2 the file or the module is wrong.\n\nExamples:\n\n" +
			"   wasmactors replay crash-20260101-120000.000000-cart-3f2a9c01.wacrash\n" +
			"   wasmactors replay crash.wacrash --module fixed.wasm\n" +
			"   wasmactors replay --step crash.wacrash\n" +
			"   wasmactors replay --serve 127.0.0.1:7777 run.wrec",
		Flags: append(cacheFlags(),
			&cli.StringFlag{Name: "module", Usage: "take the module in `FILE`; of a recording: give its messages to that, too, and compare (NAME=FILE if it is about several)"},
			&cli.StringFlag{Name: "until", Usage: "of a recording: stop at `PLACE`: a time, a duration since its begin, failure, or an actor's turn as /user/a:12"},
			&cli.StringFlag{Name: "actor", Usage: "of a recording: repeat only what leads to the turns of the actor at `PATH`, as /user/a"},
			&cli.StringFlag{Name: "serve", Usage: "of a recording: show it at a time of it, to the dashboard and to tree, top and trace, at `ADDRESS` on loopback with a token, as 127.0.0.1:7777 (port 0: any)"},
			&cli.StringFlag{Name: "admin-token-file", Usage: "with --serve: the token is in `FILE`, mode 0600, which is made if it is missing (default: a file beside the socket, for this run)"},
			&cli.StringFlag{Name: "admin-read-token-file", Usage: "with --serve: a read-only token, which moves nothing, is in `FILE`, which is made if it is missing"},
			&cli.BoolFlag{Name: "interpreter", Usage: "run it in the interpreter instead of compiled"},
			&cli.StringFlag{Name: "to-scenario", Usage: "instead of repeating it, write its messages as a scenario of wasmactors test to `FILE` (-: standard output), which fails until they are handled"},
			&cli.BoolFlag{Name: "events", Usage: "list all events before the failure that the file has, not only the last ones"},
			&cli.BoolFlag{Name: "step", Usage: "step through it"},
			&cli.StringFlag{Name: "script", Usage: "with --step: take the commands from `FILE` (-: standard input)"},
			&cli.StringFlag{Name: "timeout", Usage: "give up after `DURATION`, with --step each command (default: 1m; of a recording: none)"},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		),
		Action: func(c *cli.Context) error { return replayFile(c, env) },
	}
}

// replayed is what replay prints as JSON.
type replayed struct {
	File    string `json:"file"`
	Path    string `json:"path"`
	Type    string `json:"type"`
	Ref     string `json:"ref"`
	Life    uint64 `json:"incarnation"`
	Module  string `json:"module"` // SHA-256
	Image   string `json:"image"`
	Host    string `json:"host"`
	Turn    uint64 `json:"turn"`
	Exact   uint64 `json:"exact_from"` // number of a turn
	Message string `json:"message,omitempty"`
	Sender  uint64 `json:"sender,omitempty"`
	Inexact string `json:"inexact,omitempty"`
	Failure string `json:"failure"`
	Fuel    uint64 `json:"fuel"`
	Now     string `json:"now,omitempty"` // the failure of the repetition
	*replay.Report
	TookMS float64           `json:"took_ms"`
	Events []json.RawMessage `json:"events"` // of the system, before the failure
}

func replayFile(c *cli.Context, env *environment) error {
	name, err := oneArg(c, "a crash file", "")
	if err != nil {
		return err
	}
	if isRecording(name) {
		return replayRecording(c, env, name)
	}
	for _, flag := range []string{"until", "actor", "serve", "admin-token-file", "admin-read-token-file"} {
		if c.IsSet(flag) {
			return usage("--%s is for recordings, %s is none", flag, name)
		}
	}
	timeout, err := durationFlag(c, "timeout")
	if err != nil {
		return err
	}
	b, err := regular.Read(c.Context, name, blackbox.MostBytes)
	if err != nil {
		return usage("%v", err)
	}
	f, err := blackbox.Decode(b)
	if err != nil {
		return usage("%s: %v", name, err)
	}
	if to := c.String("to-scenario"); to != "" {
		return writeScenario(env, name, f, to)
	}
	var o replay.Options
	if module := c.String("module"); module != "" {
		if o.Module, err = regular.Read(c.Context, module, mostModule); err != nil {
			return usage("--module: %v", err)
		}
	}
	engine, err := replayEngine(c)
	if err != nil {
		return err
	}
	defer engine.Close(c.Context)
	if timeout == 0 {
		timeout = replayTimeout
	}
	if c.Bool("step") {
		return stepThrough(c, env, engine, f, o, timeout)
	}
	if c.IsSet("script") {
		return usage("--script needs --step")
	}
	ctx, cancel := context.WithTimeout(c.Context, timeout)
	defer cancel()
	began := time.Now()
	r := &replay.Report{}
	if f.Inexact == "" {
		if r, err = replay.Run(ctx, engine, f, o); err != nil {
			return notRepeated(c, env, name, err)
		}
	}
	x := describeCrash(name, f)
	x.Report, x.TookMS = r, float64(time.Since(began))/float64(time.Millisecond)
	replay.Locate(ctx, engine, f, o, r)
	if r.Failure != nil {
		x.Now = r.Failure.Error()
	}
	if err := x.write(c, env, f); err != nil {
		return err
	}
	if f.Inexact != "" {
		return usage("%s: it cannot be repeated: %s", name, f.Inexact)
	}
	if !r.Reproduced && !r.Handled {
		return &codeError{exitLines}
	}
	return nil
}

// describeCrash is what a crash file has.
func describeCrash(name string, f *blackbox.File) *replayed {
	x := &replayed{
		File: name, Path: f.Path, Type: f.Type, Ref: fmt.Sprintf("%016x", uint64(f.Ref)), Life: f.Incarnation, Module: fmt.Sprintf("%x", f.Image.Module),
		Image: f.Image.Name, Host: f.Version, Turn: f.Failure.Turn, Exact: f.Exact, Inexact: f.Inexact, Failure: f.Failure.Error(), Fuel: f.Failure.Fuel,
		Events: []json.RawMessage{},
	}
	x.Message, x.Sender = failingMessage(f)
	for line := range bytes.Lines(f.Events) {
		x.Events = append(x.Events, bytes.TrimSpace(line))
	}
	return x
}

// replayEngine is an engine whose cache has the modules.
func replayEngine(c *cli.Context) (*runtime.Engine, error) {
	size, err := cacheSize(c)
	if err != nil {
		return nil, err
	}
	cache := bundle.Options{CacheDir: cacheDir(c), CacheBytes: size, CacheKey: c.String("cache-key")}
	return runtime.New(c.Context, cache.Runtime().WithInterpreter(c.Bool("interpreter")))
}

// notRepeated is the answer if a file cannot be repeated.
func notRepeated(c *cli.Context, env *environment, name string, err error) error {
	switch {
	case errors.Is(err, replay.ErrModule):
		env.report(fmt.Errorf("%s: %w; give it with --module", name, err), exitAbsent)
		return &codeError{exitAbsent}
	case c.Context.Err() != nil:
		return err
	}
	return usage("%s: %v", name, err)
}

// writeScenario is replay --to-scenario. It replaces no file.
func writeScenario(env *environment, name string, f *blackbox.File, to string) error {
	text, err := scenario.FromCrash(f)
	if err != nil {
		return usage("%s: %v", name, err)
	}
	if to == "-" {
		return write(env.stdout, string(text))
	}
	if !strings.HasSuffix(to, scenario.Suffix) {
		return usage("--to-scenario: the name of a scenario file ends with %s, as in crash%[1]s", scenario.Suffix)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // it has messages
	if err != nil {
		return usage("--to-scenario: %v", err)
	}
	_, err = out.Write(text)
	return errors.Join(err, out.Close())
}

// failingMessage is the message of the turn that has failed, as CBOR's diagnostic notation.
func failingMessage(f *blackbox.File) (text string, sender uint64) {
	e, ok := f.Failing()
	if !ok {
		return "", 0
	}
	n := 0
	e.Mail(func(env *abi.Envelope) bool {
		if n++; n <= e.Done {
			return true
		}
		text, sender = env.Kind.String(), uint64(env.Sender)
		if len(env.Payload) > mostReplayed {
			text += fmt.Sprintf(", %d bytes", len(env.Payload))
		} else if shown, err := cbor.Diagnose(env.Payload); err == nil {
			text += " " + printable.Line(shown, mostReplayed)
		}
		return false
	})
	return text, sender
}

func (x *replayed) write(c *cli.Context, env *environment, f *blackbox.File) error {
	if c.Bool("json") {
		text, err := json.Marshal(x)
		if err != nil {
			return err
		}
		return write(env.stdout, string(printable.JSON(text))+"\n")
	}
	var b strings.Builder
	x.head(&b, f)
	most := fewEvents
	if c.Bool("events") {
		most = len(x.Events)
	}
	x.events(&b, most)
	switch r := x.Report; {
	case x.Inexact != "":
	case r.Reproduced:
		fmt.Fprintf(&b, "reproduced in %.0f ms: same failure, same fuel (%d), %s before it equal\n", x.TookMS, x.Fuel, plural(r.Turns, "turn"))
	case r.Handled:
		fmt.Fprintf(&b, "the module %.8s handles it; %s equal, %s\n", r.Other, plural(r.Turns, "turn"), plural(len(r.Differences)+r.More, "difference"))
	case r.Other != "":
		fmt.Fprintf(&b, "the module %.8s does not handle it: %s\n", r.Other, oneLine(x.Now))
	default:
		fmt.Fprintf(&b, "not reproduced; %s before it equal\n", plural(r.Turns, "turn"))
	}
	for _, d := range x.Differences {
		fmt.Fprintln(&b, "  "+oneLine(d.String()))
	}
	if x.More > 0 {
		fmt.Fprintf(&b, "  and %d more\n", x.More)
	}
	if x.Note != "" {
		fmt.Fprintln(&b, "note: "+oneLine(x.Note))
	}
	return write(env.stdout, b.String())
}

// head is what has failed.
func (x *replayed) head(b *strings.Builder, f *blackbox.File) {
	fmt.Fprintf(b, "%s (%s) of %s %.8s, turn %d, %s\n", oneLine(x.Path), oneLine(x.Type), oneLine(x.Image), x.Module, x.Turn, x.Message)
	failed := oneLine(x.Failure)
	if at := replay.Culprit(x.Stack); at != nil && at.File != "" {
		failed = fmt.Sprintf("%-40s  %s", failed, at)
	}
	fmt.Fprintln(b, failed)
	for k := range x.Stack {
		fmt.Fprintln(b, "  "+x.Stack[k].String())
	}
	if len(x.Stack) == 0 {
		for _, frame := range f.Failure.Stack {
			fmt.Fprintln(b, "  "+oneLine(frame))
		}
	}
}
