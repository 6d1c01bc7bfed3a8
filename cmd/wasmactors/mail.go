package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/bundle"
)

const messageHelp = "MESSAGE is JSON; - reads it from standard input. What is not JSON is a mistake, so a text is quoted: '\"Ada\"'.\n" +
	"ACTOR is the name of a top-level actor, or a path"

func sendCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "send", Usage: "send a message to actors of a running bundle", ArgsUsage: "[ACTOR] MESSAGE",
		Description: messageHelp + ", also with patterns: '/user/pool-*'.\n\nExamples:\n\n" +
			"   wasmactors send greeter '\"Ada\"'\n" +
			"   wasmactors send '/user/pool-*' '{\"flush\": true}' --dry-run\n" +
			"   echo '{\"amount\": 5}' | wasmactors send /user/bank/alice -",
		Flags: reachFlags(append(selectFlags(), &cli.BoolFlag{Name: "dry-run", Usage: "say who would get it, and send nothing"})...),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			m := admin.Mail{DryRun: c.Bool("dry-run")}
			text := c.Args().Get(c.NArg() - 1)
			byFlags := len(c.StringSlice("path"))+len(c.StringSlice("type"))+len(c.StringSlice("state"))+len(c.StringSlice("ref")) > 0
			switch {
			case c.NArg() == 2 && !byFlags:
				m.To = c.Args().First()
			case c.NArg() == 1 && byFlags:
				sel, err := selected(c)
				if err != nil {
					return err
				}
				m.Select = sel
				m.Select.Paths = paths(c.StringSlice("path"))
			default:
				return usage("send needs an actor and a message; see wasmactors send --help")
			}
			var err error
			if m.Message, err = readMessage(env, text); err != nil {
				return err
			}
			return order(c, r, "/v1/send", m, r.outcome)
		}),
	}
}

func askCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "ask", Usage: "send a message to an actor of a running bundle and print the answer", ArgsUsage: "ACTOR MESSAGE",
		Description: messageHelp + ".\nThe answer is printed as JSON. What is not an answer is an error: the actor's, a failure, none in time.\n\nExamples:\n\n" +
			"   wasmactors ask greeter '\"Ada\"'\n" +
			"   wasmactors ask /user/bank/alice '{\"balance\": true}' --timeout 5s --json",
		Flags: reachFlags(&cli.StringFlag{Name: "timeout", Usage: "wait at most `DURATION` (default: 1m)"}),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			if c.NArg() != 2 {
				return usage("ask needs an actor and a message; see wasmactors ask --help")
			}
			wait, err := durationFlag(c, "timeout")
			if err != nil {
				return err
			}
			message, err := readMessage(env, c.Args().Get(1))
			if err != nil {
				return err
			}
			return order(c, r, "/v1/ask", admin.Question{To: c.Args().First(), Message: message, TimeoutNS: wait.Nanoseconds()}, func(a admin.Answer) error {
				if a.Kind != bundle.KindReply {
					return fmt.Errorf("%s: no reply from %s: %s", a.Kind, a.To, oneLine(a.Reason))
				}
				if r.json {
					return nil
				}
				return write(env.stdout, strings.TrimSpace(string(a.Reply))+"\n")
			})
		}),
	}
}

// maxMessage bounds a message from standard input, in bytes: the server's limit.
const maxMessage = 16 << 20

// readMessage reads JSON from an argument or from standard input.
func readMessage(env *environment, text string) (json.RawMessage, error) {
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(env.stdin, maxMessage+1))
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		if len(data) > maxMessage {
			return nil, usage("the message has more than %d bytes", maxMessage)
		}
		text = strings.TrimSpace(string(data))
	}
	if _, err := bundle.FromJSON([]byte(text)); err != nil {
		hint := ""
		if !strings.ContainsAny(text, `"{[`) {
			hint = fmt.Sprintf("; a text is quoted: '%q'", text)
		}
		return nil, usage("the message is not JSON: %v%s", err, hint)
	}
	return json.RawMessage(text), nil
}

// ago parses a time: a duration before now, or RFC 3339.
func ago(name, text string) (time.Time, error) {
	if d, err := parseAge(text); err == nil {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usage("--%s must be an age such as 10m or 2d, or a time such as 2026-01-02T15:04:05Z, not %q", name, text)
	}
	return t, nil
}
