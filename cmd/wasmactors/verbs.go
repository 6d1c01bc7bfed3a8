package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

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
		{"stop", "stop actors after their current turn, children first", "Messages in their mailboxes become dead letters. Permanent actors stay stopped, too.",
			[]string{"stop shop", "stop --path '/user/pool-*' --state suspended --dry-run", "stop --all --bundle shop"},
			[]cli.Flag{&cli.BoolFlag{Name: "all", Usage: "stop the bundle itself, in order, as Ctrl-C does, and wait until it has stopped"}}, nil},
		{"kill", "stop actors at once", "A running turn is interrupted and has no effect.",
			[]string{"kill shop", "kill --type 'hello/*' --state running"}, nil, nil},
		{"restart", "give actors a fresh incarnation, at once", "It is not a failure and does not count towards restart limits. A delay before a restart is cut short.",
			[]string{"restart shop", "restart --state delayed", "restart --all --bundle shop"},
			[]cli.Flag{&cli.BoolFlag{Name: "all", Usage: "restart the bundle itself from its files, in the same process; if the new version does not load, the old one stays"}}, nil},
		{"pause", "pause actors; their messages queue", "Messages stay in the mailboxes until unpause, within the mailbox limits.",
			[]string{"pause shop", "pause shop --subtree"}, []cli.Flag{subtree}, nil},
		{"unpause", "let paused actors handle messages again", "",
			[]string{"unpause shop --subtree", "unpause --state paused"}, []cli.Flag{subtree}, nil},
		{"crash", "make actors fail, to test supervision", "Their supervisors decide as about any other failure.",
			[]string{"crash shop", "crash shop --reason 'what if?'"}, []cli.Flag{reason, &cli.StringFlag{Name: "kind", Usage: "the `KIND` of failure, such as trap or panic"}}, nil},
		{"decide", "decide about actors that wait for an operator", "An actor waits if its supervisor has suspended it. The directive comes last, or first.",
			[]string{"decide shop resume", "decide restart --state suspended"}, nil, readDirective},
		{"reset-backoff", "forget the failures of actors", "The next delay is the first of the backoff again, and restart limits start over.",
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
	text := "ACTOR is the name of a top-level actor, or a path, also with patterns: '/user/pool-*', '/user/shop/**'. Flags narrow the\n" +
		"selection."
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
			if c.Bool("all") {
				if !cmd.Select.Empty() || cmd.DryRun {
					return usage("--all is the bundle as a whole: no actor, flag that selects some, or --dry-run goes with it")
				}
				if v.name == "restart" {
					return r.reload(c, admin.Reload{Restart: true})
				}
				return r.end(c)
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

// mostEnding is how long an orderly end may take: its own bound, and some.
const mostEnding = 30 * time.Second

// end ends the bundle, and waits until it has.
func (r *reached) end(c *cli.Context) error {
	return order(c, r, "/v1/shutdown", struct{}{}, func(e admin.Ending) error {
		ctx, cancel := context.WithTimeout(c.Context, mostEnding)
		defer cancel()
		for {
			if _, err := r.Raw(ctx, http.MethodGet, "/v1/server", nil, nil); err != nil && ctx.Err() == nil {
				break
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("process %d has not ended within %v", e.PID, mostEnding)
			}
		}
		if r.json {
			return nil
		}
		return write(r.env.stdout, fmt.Sprintf("process %d has ended\n", e.PID))
	})
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
