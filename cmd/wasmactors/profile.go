package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
)

func profileCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "profile", Usage: "sample where the fuel of a running bundle goes, for pprof", ArgsUsage: "[ACTOR...]",
		Description: "Fuel is what guests pay for their instructions. Each sample has actor, type and the functions of the guest.\n\nExamples:\n\n" +
			"   wasmactors profile --for 10s --output fuel.pb.gz\n" +
			"   go tool pprof -top fuel.pb.gz\n" +
			"   wasmactors profile --type 'ledger/*' | go tool pprof -http : /dev/stdin",
		Flags: reachFlags(append(selectFlags(),
			&cli.StringFlag{Name: "for", Usage: "sample for `DURATION`, at most 1m (default: 5s)"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` (default: standard output, unless that is a terminal)"},
		)...),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			if r.json {
				return usage("a profile is not JSON: go tool pprof reads it")
			}
			d, err := durationFlag(c, "for")
			if err != nil {
				return err
			}
			if d == 0 {
				d = 5 * time.Second
			}
			sel, err := selected(c)
			if err != nil {
				return err
			}
			name := c.String("output")
			if name == "" && isTerminal(env.stdoutFile()) {
				return usage("a profile is binary: use --output FILE, or a pipe")
			}
			q := query(sel)
			q.Set("seconds", strconv.FormatFloat(d.Seconds(), 'f', -1, 64))
			data, err := r.Raw(c.Context, http.MethodGet, "/v1/profile", q, nil)
			if err != nil {
				return refusal(err)
			}
			var out io.Writer = env.raw
			if name != "" {
				f, err := os.Create(name)
				if err != nil {
					return &outputError{err}
				}
				defer f.Close()
				out = f
			}
			if _, err := out.Write(data); err != nil {
				return &outputError{err}
			}
			if name != "" {
				env.note(fmt.Sprintf("%s of fuel are in %s; go tool pprof reads it", short(d), name))
			}
			return nil
		}),
	}
}
