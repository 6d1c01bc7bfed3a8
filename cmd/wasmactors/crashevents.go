package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// fewEvents is how many events of a crash file are shown if not all are asked for.
const fewEvents = 5

// mostEventText bounds the text of an event in a line, in bytes.
const mostEventText = 200

// events lists the last events before the failure.
func (x *replayed) events(b *strings.Builder, most int) {
	n := len(x.Events)
	if most = min(most, n); most == 0 {
		return
	}
	fmt.Fprintf(b, "the last events before it, %d of %d:\n", most, n)
	for _, line := range x.Events[n-most:] {
		fmt.Fprintln(b, "  "+eventLine(line))
	}
}

// eventLine is an event in a line. It comes from a file that may be forged.
func eventLine(line []byte) string {
	var e struct {
		Time    time.Time `json:"time"`
		Event   string    `json:"event"`
		Actor   string    `json:"actor"`
		Level   string    `json:"level"`
		Text    string    `json:"text"`
		Reason  string    `json:"reason"`
		To      string    `json:"to"`
		Note    string    `json:"note"`
		Failure *struct {
			Kind   string `json:"kind"`
			Reason string `json:"reason"`
		} `json:"failure"`
		Refused *struct {
			What   string `json:"what"`
			Reason string `json:"reason"`
		} `json:"refused"`
	}
	if json.Unmarshal(line, &e) != nil {
		return printable.Line(string(line), mostEventText)
	}
	s := []string{e.Time.UTC().Format("15:04:05.000"), e.Event, e.Actor, e.Level, e.Text, e.Reason}
	if e.To != "" {
		s = append(s, "to "+e.To)
	}
	if f := e.Failure; f != nil {
		s = append(s, f.Kind+": "+f.Reason)
	}
	if r := e.Refused; r != nil {
		s = append(s, r.What+": "+r.Reason)
	}
	if e.Note != "" {
		s = append(s, "("+e.Note+")")
	}
	return printable.Line(strings.Join(strings.Fields(strings.Join(s, " ")), " "), mostEventText)
}

// explainCrash is explain of a crash file: what it has. Nothing is repeated.
func explainCrash(c *cli.Context, env *environment, name string) error {
	b, err := regular.Read(c.Context, name, blackbox.MostBytes)
	if err != nil {
		return usage("%v", err)
	}
	f, err := blackbox.Decode(b)
	if err != nil {
		return usage("%s: %v", name, err)
	}
	x := describeCrash(name, f)
	x.Report = &replay.Report{}
	var out strings.Builder
	x.head(&out, f)
	turns := 0
	f.Entries(func(e *blackbox.Entry) bool {
		turns += e.Done
		return true
	})
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&out, "  %-8s %s\n", what, oneLine(fmt.Sprintf(format, args...)))
	}
	row("time", "%s, host %s", time.Unix(0, f.Time).UTC().Format(time.RFC3339Nano), f.Version)
	row("life", "incarnation %d, ref %s", f.Incarnation, x.Ref)
	switch {
	case f.Inexact != "":
		row("repeat", "no: %s", f.Inexact)
	case f.FromStart:
		row("repeat", "wasmactors replay %s: from its start, %s before the failing one", name, plural(turns, "turn"))
	default:
		row("repeat", "wasmactors replay %s: from a snapshot before turn %d, %s before the failing one", name, f.Exact, plural(turns, "turn"))
	}
	module := "not in the file"
	if len(f.Module) > 0 {
		module = fmt.Sprintf("in the file, %d bytes", len(f.Module))
	}
	row("module", "SHA-256 %s, %s", x.Module, module)
	x.events(&out, len(x.Events))
	return write(env.stdout, out.String())
}

// isCrashFile reports whether a name is that of a crash file.
func isCrashFile(name string) bool { return strings.HasSuffix(name, blackbox.Suffix) }
