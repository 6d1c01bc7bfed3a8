package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/rerun"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// mostRecording is the most that a recording may have to be repeated, in bytes.
const mostRecording = 4 << 30

// recordFlags are the flags for recordings of commands that run a bundle.
func recordFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "record", Usage: "record what all guests take in to `FILE`, which must not be there; wasmactors replay runs them again"},
		&cli.StringFlag{Name: "record-bytes", Usage: "the most that a recording takes, a `SIZE` such as 100MiB: at half of it FILE becomes FILE" + recorder.Old + ", and a further one begins (default: 1GiB)"},
	}
}

// openRecording is the recorder that the flags ask for; nil: none.
func openRecording(c *cli.Context, env *environment) (*recorder.Recorder, error) {
	path, size := c.String("record"), int64(0)
	if text := c.String("record-bytes"); text != "" {
		n, err := bundle.ParseSize(text)
		switch {
		case path == "":
			return nil, usage("--record-bytes is for --record")
		case err != nil || n < recorder.MinBytes || n > 1<<60:
			return nil, usage("--record-bytes: %q is not a size such as 100MiB, of at least %d bytes", text, recorder.MinBytes)
		}
		size = int64(n)
	}
	if path == "" {
		return nil, nil
	}
	r, err := recorder.Open(recorder.Config{Path: path, Bytes: size, Version: version, Ended: func(err error) {
		env.note(oneLine(fmt.Sprintf("the recording %s has ended, the run goes on: %v", path, err)))
	}})
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, usage("--record: %s exists, and a recording is a new file: name another one, or remove it", path)
	case err != nil:
		return nil, usage("--record: %v", err)
	}
	return r, nil
}

// closeRecording writes the end.
func closeRecording(env *environment, r *recorder.Recorder) {
	if r == nil {
		return
	}
	if err := r.Close(); err != nil {
		env.note(oneLine(fmt.Sprintf("the recording: %v", err)))
	}
}

// isRecording reports whether a file begins like a recording.
func isRecording(name string) bool {
	f, err := regular.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	n, _ := io.ReadFull(f, head[:])
	return n == len(head) && bytes.Equal(head[:], []byte("waRE"))
}

// readUntil reads --until: a time, a duration since the begin of the recording, failure, PATH or PATH:TURN.
func readUntil(text string, began time.Time) (u rerun.Until, err error) {
	switch {
	case text == "":
	case text == "failure":
		u.Failure = true
	case strings.HasPrefix(text, "/"):
		path, turn, numbered := strings.Cut(text, ":")
		if u.Path = path; numbered {
			if u.Turn, err = strconv.ParseUint(turn, 10, 64); err != nil {
				return u, usage("--until: %q is not the number of a turn", turn)
			}
		}
	default:
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				return u, usage("--until: %q is neither a time, a duration since the recording's begin, failure, PATH nor PATH:TURN", text)
			}
			at = began.Add(d)
		}
		u.Time = at.UnixNano()
	}
	return u, nil
}

// readRecording reads a file.
func readRecording(c *cli.Context, name string) (*recorder.Recording, error) {
	b, err := regular.Read(c.Context, name, mostRecording)
	if err != nil {
		return nil, usage("%v", err)
	}
	of, err := recorder.Read(b)
	if err != nil {
		return nil, usage("%s: %v", name, err)
	}
	return of, nil
}

// isRecorded reports whether a module is one of a recording.
func isRecorded(of *recorder.Recording, code []byte) bool {
	sum := sha256.Sum256(code)
	return slices.ContainsFunc(of.Images, func(i blackbox.Image) bool { return i.Module == sum })
}

// repeated is what replay prints as JSON of a recording.
type repeated struct {
	File  string    `json:"file"`
	Began time.Time `json:"began"`
	Host  string    `json:"host"`
	Cut   int       `json:"cut_at,omitempty"`
	*rerun.Report
	Reproduced bool    `json:"reproduced"`
	TookMS     float64 `json:"took_ms"`
}

// replayRecording is replay of a recording.
func replayRecording(c *cli.Context, env *environment, name string) error {
	for _, flag := range []string{"to-scenario", "step", "script"} {
		if c.IsSet(flag) {
			return usage("--%s is for crash files, %s is a recording", flag, name)
		}
	}
	of, err := readRecording(c, name)
	if err != nil {
		return err
	}
	o := rerun.Options{Actor: c.String("actor")}
	if o.Until, err = readUntil(c.String("until"), of.Began); err != nil {
		return err
	}
	if given := c.String("module"); given != "" {
		instead, path, named := strings.Cut(given, "=")
		if !named {
			instead, path = "", given
		}
		code, err := regular.Read(c.Context, path, mostModule)
		switch {
		case err != nil:
			return usage("--module: %v", err)
		case !named && isRecorded(of, code):
			o.Modules = [][]byte{code}
		default:
			o.Other, o.Instead = code, instead
		}
	}
	timeout, err := durationFlag(c, "timeout")
	if err != nil {
		return err
	}
	if err := checkServing(c, o); err != nil {
		return err
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
	if of.Missing != nil {
		env.note(oneLine(fmt.Sprintf("%s: %v; what is before that is repeated", name, of.Missing)))
	}
	if c.IsSet("serve") {
		return serveRecording(c, env, engine, name, of, o)
	}
	began := time.Now()
	r, err := rerun.Run(ctx, engine, of, o)
	if err != nil {
		return notRepeated(c, env, name, err)
	}
	x := repeated{
		File: name, Began: of.Began.UTC(), Host: of.Host, Cut: of.Cut, Report: r, Reproduced: r.Difference == nil,
		TookMS: float64(time.Since(began)) / float64(time.Millisecond),
	}
	if err := x.write(c, env, o); err != nil {
		return err
	}
	if !x.Reproduced {
		return &codeError{exitLines}
	}
	return nil
}

func (x *repeated) write(c *cli.Context, env *environment, o rerun.Options) error {
	if c.Bool("json") {
		text, err := json.Marshal(x)
		if err != nil {
			return err
		}
		return write(env.stdout, string(printable.JSON(text))+"\n")
	}
	var b strings.Builder
	for _, a := range x.NotRecorded {
		fmt.Fprintln(&b, oneLine(fmt.Sprintf("not recorded: %s: %s", a.Path, a.Why)))
	}
	for _, a := range x.Inexact {
		fmt.Fprintln(&b, oneLine(fmt.Sprintf("not exact: %s, %s", a.Path, a.Why)))
	}
	done := fmt.Sprintf("%s of %s", plural(x.Turns, "turn"), plural(x.Lives, "incarnation"))
	if x.Failed > 0 {
		done += fmt.Sprintf(", %s", plural(x.Failed, "failure"))
	}
	switch {
	case x.Reproduced && x.Unlike > 0:
		fmt.Fprintf(&b, "reproduced in %.0f ms: %s, equal chains; left out, because a masked secret leads elsewhere: %s\n", x.TookMS, done, plural(x.Unlike, "turn"))
	case x.Reproduced:
		fmt.Fprintf(&b, "reproduced in %.0f ms: %s, equal chains\n", x.TookMS, done)
	default:
		fmt.Fprintf(&b, "not reproduced, after %s\n  %s\n", done, oneLine(x.Difference.String()))
	}
	if x.Stopped != "" || c.String("until") != "" || o.Actor != "" {
		if x.Stopped != "" {
			fmt.Fprintln(&b, "stopped "+oneLine(x.Stopped))
		}
		for _, a := range x.Living {
			fmt.Fprintln(&b, oneLine(fmt.Sprintf("  %s (%s), incarnation %d: %d turns, chain %s", a.Path, a.Type, a.Incarnation, a.Turns, a.Chain)))
		}
	}
	if o.Other != nil {
		fmt.Fprintf(&b, "the other module: %s equal, %s\n", plural(x.Compared, "turn"), plural(len(x.Others)+x.More, "difference"))
		for i := range x.Others {
			fmt.Fprintln(&b, "  "+oneLine(x.Others[i].String()))
		}
	}
	return write(env.stdout, b.String())
}
