package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/printable"
)

func crashesCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "crashes",
		Usage:     "list the crash reports of a running bundle, or show one",
		ArgsUsage: "[ACTOR...] | show ID",
		Description: "Reports are kept apart from events, and each type and cause of failure has its share of the room.\n" +
			"show prints one in full: by its id, as in the header X-Crash-Report of a response of the gateway.\n" +
			"To keep reports on disk start the bundle with run --crash-reports DIR.\n\nExamples:\n\n" +
			"   wasmactors crashes\n" +
			"   wasmactors crashes '/user/pool-*' --since 1h\n" +
			"   wasmactors crashes --kind trap --cause '*unreachable*' --json\n" +
			"   wasmactors crashes --causes\n" +
			"   wasmactors crashes show 4f3a9c0d11e28b76",
		Flags: reachFlags(
			&cli.StringSliceFlag{Name: "path", Usage: "of actors whose path matches `GLOB`; as an argument"},
			&cli.StringSliceFlag{Name: "type", Usage: "of actors whose type matches `GLOB`"},
			&cli.StringSliceFlag{Name: "kind", Usage: "failures whose kind matches `GLOB`, such as trap or guest_panic"},
			&cli.StringSliceFlag{Name: "cause", Usage: "failures whose cause or reason matches `GLOB`"},
			&cli.StringFlag{Name: "since", Usage: "not older than `AGE`, such as 10m, or a time (default: all that are kept)"},
			&cli.BoolFlag{Name: "causes", Usage: "list causes, the most frequent first, with their newest report"},
			&cli.IntFlag{Name: "limit", Usage: "list at most `N` (default: 100)"},
		),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			if c.Args().First() == "show" {
				return showCrash(c, r)
			}
			return listCrashes(c, r)
		}),
	}
}

func listCrashes(c *cli.Context, r *reached) error {
	q := url.Values{}
	for name, values := range map[string][]string{
		"path": paths(append(c.StringSlice("path"), c.Args().Slice()...)), "type": c.StringSlice("type"), "kind": c.StringSlice("kind"), "cause": c.StringSlice("cause"),
	} {
		q[name] = values
	}
	if text := c.String("since"); text != "" {
		t, err := ago("since", text)
		if err != nil {
			return err
		}
		q.Set("since", t.Format(time.RFC3339Nano))
	}
	if c.IsSet("limit") {
		q.Set("limit", strconv.Itoa(c.Int("limit")))
	}
	return ask(c, r, "/v1/crashes", q, func(p observe.CrashPage) error {
		if r.json {
			return nil
		}
		var b strings.Builder
		if c.Bool("causes") {
			for _, x := range p.Causes {
				fmt.Fprintf(&b, "%d  %s  %s  last %s, %s\n", x.Ever, oneLine(x.Type), oneLine(x.Cause), x.Last.Local().Format(time.DateTime), x.ID)
			}
		} else {
			for _, x := range p.Crashes {
				fmt.Fprintf(&b, "%s  %s  %s (%s)  %s: %s", x.ID, x.Time.Local().Format(time.DateTime), oneLine(x.Path), oneLine(x.Type), x.Kind, oneLine(x.Reason))
				if x.Decided != "" {
					b.WriteString("  " + x.Decided)
				}
				b.WriteByte('\n')
			}
		}
		fmt.Fprintf(&b, "%d shown, %d kept, %d since start\n", len(p.Crashes), p.Total, p.Ever)
		return write(r.env.stdout, b.String())
	})
}

func showCrash(c *cli.Context, r *reached) error {
	ids := c.Args().Tail()
	if len(ids) != 1 {
		return usage("crashes show takes the id of one report")
	}
	return ask(c, r, "/v1/crashes/report", url.Values{"id": ids}, func(p observe.CrashReport) error {
		if r.json {
			return nil
		}
		text, err := reportText(p)
		if err != nil {
			return err
		}
		return write(r.env.stdout, text)
	})
}

// reportText is a crash report for a person.
func reportText(p observe.CrashReport) (string, error) {
	var e struct {
		Type     string `json:"type"`
		Failures int    `json:"failures"`
		Note     string `json:"note"`
		Memory   uint64 `json:"memory"`
		Waiting  *int   `json:"waiting"`
		TraceID  string `json:"trace_id"`
		File     string `json:"file"`
		Failure  struct {
			Kind       string   `json:"kind"`
			Reason     string   `json:"reason"`
			Message    string   `json:"message"`
			Stack      []string `json:"stack"`
			GuestStack string   `json:"guest_stack"`
			Turn       uint64   `json:"turn"`
			Fuel       uint64   `json:"fuel"`
		} `json:"failure"`
		Message *struct {
			Kind        string          `json:"kind"`
			Bytes       int             `json:"bytes"`
			Payload     json.RawMessage `json:"payload"`
			Redelivered int             `json:"redelivered"`
		} `json:"message"`
	}
	if err := json.Unmarshal(p.Report, &e); err != nil {
		return "", err
	}
	var b strings.Builder
	row := func(what, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", what, printable.Text(text))
		}
	}
	x := &p.Crash
	fmt.Fprintf(&b, "%s (%s) has failed: %s: %s\n", oneLine(x.Path), oneLine(x.Type), x.Kind, oneLine(x.Reason))
	row("report", x.ID)
	row("time", x.Time.Local().Format("2006-01-02 15:04:05.000"))
	row("life", fmt.Sprintf("incarnation %d, turn %d, failure %d since the count was reset", x.Incarnation, e.Failure.Turn, e.Failures))
	if m := e.Message; m != nil {
		text := fmt.Sprintf("%s, %d bytes", m.Kind, m.Bytes)
		if len(m.Payload) > 0 {
			text += ": " + printable.Line(string(m.Payload), 2000)
		}
		row("message", text)
		if m.Redelivered > 0 {
			row("delivered", fmt.Sprintf("%d times before", m.Redelivered))
		}
	}
	if e.Waiting != nil {
		row("waiting", fmt.Sprintf("%d messages", *e.Waiting))
	}
	if e.Memory > 0 {
		row("memory", fmt.Sprintf("%d KiB", e.Memory>>10))
	}
	if e.Failure.Fuel > 0 {
		row("fuel", fmt.Sprintf("%d units", e.Failure.Fuel))
	}
	if e.File != "" {
		row("repeat", "wasmactors replay "+e.File)
	}
	row("text", e.Failure.Message)
	lines := func(what string, list []string) {
		for _, s := range list {
			row(what, s)
			what = ""
		}
	}
	lines("stack", e.Failure.Stack)
	if s := strings.TrimRight(e.Failure.GuestStack, "\n"); s != "" {
		lines("trace", strings.Split(s, "\n"))
	}
	row("trace id", e.TraceID)
	then := x.Decided
	if x.DelayNS > 0 {
		then += " in " + time.Duration(x.DelayNS).String()
	}
	if e.Note != "" {
		then += " (" + e.Note + ")"
	}
	row("then", then)
	return b.String(), nil
}
