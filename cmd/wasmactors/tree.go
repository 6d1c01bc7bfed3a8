package main

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/observe"
)

func treeCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "tree",
		Usage:     "show the actors of a running bundle as the tree of supervision",
		ArgsUsage: "[ACTOR]",
		Description: "Each line has what an actor is doing: its state if that is not running, its turns, the messages that wait,\n" +
			"crashes, and the last failure.\n\nExamples:\n\n" +
			"   wasmactors tree\n" +
			"   wasmactors tree shop --depth 1\n" +
			"   wasmactors tree --sort crashes --desc --limit 20",
		Flags: reachFlags(
			&cli.IntFlag{Name: "depth", Usage: "show `N` levels (default: 3)"},
			&cli.IntFlag{Name: "limit", Usage: "show at most `N` children of each actor (default: 100)"},
			&cli.StringFlag{Name: "sort", Usage: "sort children by `WHAT`: " + joined(observe.Sorts())},
			&cli.BoolFlag{Name: "desc", Usage: "the largest first"},
		),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			q := url.Values{}
			if c.NArg() > 1 {
				return usage("tree takes one argument, an actor")
			}
			if c.NArg() == 1 {
				q.Set("under", pathOf(c.Args().First()))
			}
			for _, name := range []string{"depth", "limit"} {
				if c.IsSet(name) {
					q.Set(name, strconv.Itoa(c.Int(name)))
				}
			}
			sorting(c, q)
			return ask(c, r, "/v1/tree", q, func(n observe.TreeNode) error {
				if r.json {
					return nil
				}
				var b strings.Builder
				printTree(&b, n, "", "", "")
				return write(env.stdout, b.String())
			})
		}),
	}
}

func sorting(c *cli.Context, q url.Values) {
	if c.String("sort") != "" {
		q.Set("sort", c.String("sort"))
	}
	if c.Bool("desc") {
		q.Set("desc", "true")
	}
}

// printTree prints a node and its children. The arguments are the prefixes of their lines.
func printTree(b *strings.Builder, n observe.TreeNode, first, rest, under string) {
	name := n.Path
	if under != "" {
		name = strings.TrimPrefix(n.Path, under+"/")
	}
	fmt.Fprintf(b, "%s%s  %s\n", first, name, aboutActor(n.Actor))
	for i, k := range n.Nodes {
		lead, follow := "├─ ", "│  "
		if i == len(n.Nodes)-1 && n.More == 0 {
			lead, follow = "└─ ", "   "
		}
		printTree(b, k, rest+lead, rest+follow, n.Path)
	}
	if n.More > 0 {
		fmt.Fprintf(b, "%s└─ %d more", rest, n.More)
		if len(n.Nodes) == 0 {
			fmt.Fprintf(b, ", %s in all below %s", aggregate(n.Below), n.Path)
		}
		b.WriteByte('\n')
	}
}

// aboutActor describes an actor.
func aboutActor(a observe.Actor) string {
	parts := []string{}
	if a.Type != "" {
		parts = append(parts, a.Type)
	}
	if a.State != observe.Running {
		text := string(a.State)
		if a.DueNS > 0 {
			text += ", starts again in " + short(time.Duration(a.DueNS))
		}
		parts = append(parts, text)
	}
	if a.Paused && a.State != observe.Paused {
		parts = append(parts, "paused")
	}
	parts = append(parts, plural(int(a.Turns), "turn"))
	if a.Mailbox > 0 {
		text := fmt.Sprintf("%d waiting", a.Mailbox)
		if a.OldestNS > 0 {
			text += " for " + short(time.Duration(a.OldestNS))
		}
		parts = append(parts, text)
	}
	if a.Crashes > 0 {
		parts = append(parts, crashesText(a.Crashes))
	}
	if a.Failure != "" {
		parts = append(parts, "last: "+oneLine(a.Failure))
	}
	return strings.Join(parts, ", ")
}

func crashesText(n uint64) string {
	if n == 1 {
		return "1 crash"
	}
	return fmt.Sprintf("%d crashes", n)
}

// aggregate describes a sum.
func aggregate(x observe.Aggregate) string {
	text := plural(x.Actors, "actor")
	var states []string
	for s, n := range x.States {
		if s != observe.Running {
			states = append(states, fmt.Sprintf("%d %s", n, s))
		}
	}
	slices.Sort(states)
	return strings.Join(append([]string{text}, states...), ", ")
}
