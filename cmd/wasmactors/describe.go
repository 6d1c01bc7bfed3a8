package main

import (
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/observe"
)

func describeCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "describe", Usage: "show all that is known of an actor of a running bundle", ArgsUsage: "ACTOR",
		Description: "State, figures, what it may do and use, who decides about its failures and how, and its last failure.\n\nExamples:\n\n" +
			"   wasmactors describe greeter\n" +
			"   wasmactors describe /system/kv --json | jq .held_parts",
		Flags: reachFlags(),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			name, err := oneArg(c, "an actor", "")
			if err != nil {
				return err
			}
			return ask(c, r, "/v1/actor", url.Values{"path": {pathOf(name)}}, func(d observe.Detail) error {
				if r.json {
					return nil
				}
				var b strings.Builder
				describe(&b, d)
				return write(env.stdout, b.String())
			})
		}),
	}
}

// describe prints an actor, a line for each thing that there is to say.
func describe(b *strings.Builder, d observe.Detail) {
	w := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	some := func(name string, list []string) {
		if len(list) > 0 {
			line(name, "%s", strings.Join(list, ", "))
		}
	}
	fmt.Fprintf(b, "%s  %s\n", d.Path, aboutActor(d.Actor))
	line("ref", "%s", d.Ref)
	line("lifetime", "%s, incarnation %d, %d restarts", d.Lifetime, d.Incarnation, d.Restarts)
	if d.Code != "" {
		line("code", "%s, module %s", d.Code, d.Module)
	}
	line("mailbox", "%d messages, %d bytes; limits %s and %s", d.Mailbox, d.MailboxBytes, bounded(int64(d.Limits.Mailbox)), bounded(d.Limits.MailboxBytes))
	line("fuel", "%d used; limit of a turn %s", d.Fuel, bounded(int64(d.Limits.Fuel)))
	line("held", "%d bytes; limit %s", d.Held, bounded(d.Limits.Held))
	if n := d.Counts; n != nil {
		line("open", "%d timers, %d asks, %d replies, %d watches, watched by %d, %d put aside", n.Timers, n.Asks, n.Replies, n.Watches, n.Watchers, n.Stash)
	}
	some("may send to", d.Capabilities.Send)
	some("may spawn", d.Capabilities.Spawn)
	some("may stop", d.Capabilities.Stop)
	line("supervisor", "%s", d.Supervisor)
	if s := d.Strategy; s != nil {
		limit := "any number of restarts"
		if s.MaxRestarts >= 0 {
			limit = plural(s.MaxRestarts, "restart")
			if s.WithinNS > 0 {
				limit += " within " + short(time.Duration(s.WithinNS))
			}
		}
		line("strategy", "%s, %s", s.Kind, limit)
		if s.Backoff != nil && len(s.Backoff.Curve) > 0 {
			var delays []string
			for i, p := range s.Backoff.Curve {
				if i == 5 {
					delays = append(delays, "...")
					break
				}
				delays = append(delays, short(time.Duration(p.DelayNS)))
			}
			line("delays", "%s", strings.Join(delays, ", "))
		}
	}
	if f := d.LastFailure; f != nil {
		line("last failure", "%s", d.Failure)
	}
	_ = w.Flush() // to a builder
}

// bounded is a limit; 0 is none of the actor's own.
func bounded(n int64) string {
	if n == 0 {
		return "none of its own"
	}
	return fmt.Sprint(n)
}
