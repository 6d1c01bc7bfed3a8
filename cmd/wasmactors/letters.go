package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/printable"
)

func deadLettersCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "dead-letters",
		Usage:     "list messages that were not delivered, or deliver them again",
		ArgsUsage: "[redeliver [ID...]]",
		Description: "The bundle keeps a bounded number of the latest dead letters. redeliver sends them again: those with the\n" +
			"given numbers, those that the flags choose, or --all. Each goes to the actor that has the recipient's path now.\n\nExamples:\n\n" +
			"   wasmactors dead-letters\n" +
			"   wasmactors dead-letters --reason 'mailbox full' --json\n" +
			"   wasmactors dead-letters redeliver 12 13\n" +
			"   wasmactors dead-letters redeliver --to '/user/shop/**' --dry-run",
		Flags: reachFlags(
			&cli.StringSliceFlag{Name: "to", Usage: "those for recipients whose path matches `GLOB`"},
			&cli.StringSliceFlag{Name: "from", Usage: "those of senders whose path matches `GLOB`"},
			&cli.StringSliceFlag{Name: "reason", Usage: "those with the reason `TEXT`, as in the list"},
			&cli.IntFlag{Name: "limit", Usage: "list at most `N` (default: 100)"},
			&cli.BoolFlag{Name: "all", Usage: "redeliver all that are kept"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be delivered, and deliver nothing"},
		),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			switch c.Args().First() {
			case "", "list":
				return listDead(c, r)
			case "redeliver":
				return redeliver(c, r)
			}
			return usage("dead-letters takes list or redeliver, not %q", c.Args().First())
		}),
	}
}

func paths(names []string) (list []string) {
	for _, n := range names {
		list = append(list, pathOf(n))
	}
	return list
}

func listDead(c *cli.Context, r *reached) error {
	q := url.Values{}
	for name, values := range map[string][]string{"to": paths(c.StringSlice("to")), "from": paths(c.StringSlice("from")), "reason": c.StringSlice("reason")} {
		for _, v := range values {
			q.Add(name, v)
		}
	}
	if c.IsSet("limit") {
		q.Set("limit", strconv.Itoa(c.Int("limit")))
	}
	return ask(c, r, "/v1/dead-letters", q, func(p observe.DeadPage) error {
		if r.json {
			return nil
		}
		var b strings.Builder
		for _, l := range p.Letters {
			from := l.From
			if from == "" {
				from = "nobody"
			}
			fmt.Fprintf(&b, "%d  %s  %s -> %s  %s, %d bytes", l.ID, l.Time.Local().Format(time.TimeOnly), oneLine(from), oneLine(l.To), l.Reason, l.Size)
			if l.Key != "" {
				fmt.Fprintf(&b, " (%s)", l.Key)
			}
			if len(l.Payload) > 0 {
				fmt.Fprintf(&b, "  %s", printable.Line(string(l.Payload), 120))
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d shown, %d kept, %d since start\n", len(p.Letters), p.Total, p.Ever)
		return write(r.env.stdout, b.String())
	})
}

func redeliver(c *cli.Context, r *reached) error {
	body := admin.Redelivery{To: paths(c.StringSlice("to")), From: paths(c.StringSlice("from")), Reasons: c.StringSlice("reason"), All: c.Bool("all"), DryRun: c.Bool("dry-run")}
	for _, text := range c.Args().Tail() {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return usage("redeliver: %q is not the number of a dead letter", text)
		}
		body.IDs = append(body.IDs, n)
	}
	if len(body.IDs)+len(body.To)+len(body.From)+len(body.Reasons) == 0 && !body.All {
		return usage("redeliver needs numbers, --to, --from, --reason or --all")
	}
	return order(c, r, "/v1/dead-letters/redeliver", body, r.outcome)
}
