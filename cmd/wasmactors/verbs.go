package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/observe"
)

// verb is a command that does something to actors.
type verb struct {
	name, usage, about string
	examples           []string
	flags              []cli.Flag
	read               func(c *cli.Context, cmd *admin.Command) error
}

func verbs() []verb {
	reason := &cli.StringFlag{Name: "reason", Usage: "`TEXT` that the failure says"}
	subtree := &cli.BoolFlag{Name: "subtree", Aliases: []string{"r"}, Usage: "and all actors below"}
	return []verb{
		{"stop", "stop actors after their current turn, children first", "What waits in their mailboxes becomes dead letters. Permanent actors stay stopped, too: an operator has said so.",
			[]string{"stop shop", "stop --path '/user/pool-*' --state suspended --dry-run"}, nil, nil},
		{"kill", "stop actors at once", "A guest's turn that runs is ended, and has done nothing.",
			[]string{"kill shop", "kill --type 'hello/*' --state running"}, nil, nil},
		{"restart", "give actors a fresh incarnation, at once", "It is an operator's wish and no failure: it counts in no limit. One that waits for its delay does not wait any longer.",
			[]string{"restart shop", "restart --state delayed"}, nil, nil},
		{"pause", "let the messages of actors wait", "What is sent to them stays in their mailboxes until unpause, within the bounds of these.",
			[]string{"pause shop", "pause shop --subtree"}, []cli.Flag{subtree}, nil},
		{"unpause", "go on with the messages of paused actors", "",
			[]string{"unpause shop --subtree", "unpause --state paused"}, []cli.Flag{subtree}, nil},
		{"crash", "let actors fail as if a turn had", "Their supervisors decide as about any failure: to see that they do what was meant.",
			[]string{"crash shop", "crash shop --reason 'what if?'"}, []cli.Flag{reason, &cli.StringFlag{Name: "kind", Usage: "the `KIND` of failure, such as trap or panic"}}, nil},
		{"decide", "decide about actors that wait for an operator", "An actor waits if its supervisor has suspended it. The directive comes last, or first.",
			[]string{"decide shop resume", "decide restart --state suspended"}, nil, readDirective},
		{"reset-backoff", "forget the failures of actors", "The next delay is the first of the curve again, and limits of restarts start over.",
			[]string{"reset-backoff shop", "reset-backoff --path '/user/**'"}, nil, nil},
	}
}

func verbCommands(env *environment) (list []*cli.Command) {
	for _, v := range verbs() {
		list = append(list, v.command(env))
	}
	return list
}

func (v verb) command(env *environment) *cli.Command {
	args := "[ACTOR...]"
	if v.name == "decide" {
		args = "[ACTOR...] resume|restart|stop"
	}
	text := "ACTOR is the name of a top-level actor, or a path, also with patterns: '/user/pool-*', '/user/shop/**'. What the flags name\n" +
		"must hold besides."
	if v.about != "" {
		text = v.about + "\n" + text
	}
	text += "\n\nExamples:\n\n"
	for _, e := range v.examples {
		text += "   wasmactors " + e + "\n"
	}
	return &cli.Command{
		Category: running, Name: v.name, Usage: v.usage, ArgsUsage: args, Description: strings.TrimSuffix(text, "\n"),
		Flags: reachFlags(append(append(selectFlags(), v.flags...), &cli.BoolFlag{Name: "dry-run", Usage: "say what would be done, and do nothing"})...),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			cmd := admin.Command{DryRun: c.Bool("dry-run"), Subtree: c.Bool("subtree"), Reason: c.String("reason"), Kind: c.String("kind")}
			var err error
			if cmd.Select, err = selected(c); err != nil {
				return err
			}
			if v.read != nil {
				if err := v.read(c, &cmd); err != nil {
					return err
				}
			}
			if cmd.Select.Empty() {
				return usage("%s needs an actor, or --path, --type, --state or --ref; '/user/**' selects all", v.name)
			}
			return order(c, r, "/v1/"+v.name, cmd, r.outcome)
		}),
	}
}

// readDirective takes the directive out of the arguments.
func readDirective(c *cli.Context, cmd *admin.Command) error {
	directives := []string{"resume", "restart", "stop"}
	at := slices.IndexFunc(cmd.Select.Paths, func(p string) bool { return slices.Contains(directives, strings.TrimPrefix(p, "/user/")) })
	if at < 0 {
		return usage("decide needs a directive: %s", strings.Join(directives, ", "))
	}
	cmd.Directive = strings.TrimPrefix(cmd.Select.Paths[at], "/user/")
	cmd.Select.Paths = slices.Delete(cmd.Select.Paths, at, at+1)
	return nil
}

// mostShown bounds the lines about one command.
const mostShown = 100

// outcome prints what was changed. It is an error if no actor was selected, or if the command
// failed for some.
func (r *reached) outcome(o observe.Outcome) error {
	if !r.json {
		var b strings.Builder
		for i, ch := range o.Changed {
			if i == mostShown {
				fmt.Fprintf(&b, "and %d more; --json shows all\n", len(o.Changed)-i)
				break
			}
			switch {
			case ch.Error != "":
				fmt.Fprintf(&b, "%s  failed: %s\n", ch.Path, oneLine(ch.Error))
			case o.DryRun:
				fmt.Fprintf(&b, "%s  would be: %s%s\n", ch.Path, oneLine(ch.Did), before(ch))
			default:
				fmt.Fprintf(&b, "%s  %s%s\n", ch.Path, oneLine(ch.Did), before(ch))
			}
		}
		if err := write(r.env.stdout, b.String()); err != nil {
			return err
		}
	}
	switch {
	case o.Total == 0:
		return &unreachableError{fmt.Errorf("no actor matches; wasmactors tree lists the actors")}
	case o.Failed > 0:
		return fmt.Errorf("%s: %d of %d failed", o.Verb, o.Failed, o.Total)
	}
	return nil
}

func before(ch observe.Change) string {
	if ch.State == "" {
		return ""
	}
	return " (was " + string(ch.State) + ")"
}
