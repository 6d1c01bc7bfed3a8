package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
)

func psCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "ps",
		Usage:     "list the bundles that run here",
		ArgsUsage: " ",
		Description: "Bundles of other users are not shown, nor those that were started with --admin off. What processes that\n" +
			"have gone have left behind is removed.\n\nExamples:\n\n" +
			"   wasmactors ps\n" +
			"   wasmactors ps --json | jq -r .bundles[].socket",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"}},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usage("ps takes no argument")
			}
			list, err := client.Running(c.Context)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				text, err := json.Marshal(endpoint.RunningList{Version: 1, Bundles: list})
				if err != nil {
					return err
				}
				return write(env.stdout, string(text)+"\n")
			}
			if len(list) == 0 {
				env.note("no bundle runs here that can be reached")
				return nil
			}
			w := tabwriter.NewWriter(env.stdout, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "PID\tBUNDLE\tSTATE\tUP\tACTORS\tCRASHES\tADDRESS\tCODE")
			for _, r := range list {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", r.PID, endpoint.Name(r.Bundle, r.Node), psState(r), upSince(r.Started), r.Actors, r.Crashes, orDash(r.Address), orDash(psCodes(r.Codes)))
			}
			if err := w.Flush(); err != nil {
				return &outputError{err}
			}
			return nil
		},
	}
}

// psCodes says which code the actors run: a module and the beginning of its hash. Code that was replaced comes with the number
// of actors that still run it.
func psCodes(codes []endpoint.RunningCode) string {
	var all []string
	for _, c := range codes {
		text := c.Module + "@" + c.Hash[:min(12, len(c.Hash))]
		if !c.Present {
			text += fmt.Sprintf(" (%d left)", c.Actors)
		}
		all = append(all, oneLine(text))
	}
	return strings.Join(all, ", ")
}

// psState describes the state of a bundle in a word or two.
func psState(r endpoint.Running) string {
	switch {
	case r.Error != "":
		return oneLine(r.Error)
	case !r.Ready:
		return "starting"
	case r.Suspended > 0:
		return fmt.Sprintf("ready, %d suspended", r.Suspended)
	}
	return "ready"
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// upSince is how long ago a time is that a program has written.
func upSince(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "-"
	}
	return short(time.Since(t))
}

// short is a duration in two places at the most.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
