package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/printable"
)

func storeCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "store",
		Usage:     "show what the store of a bundle that does not run has of durable actors, check it, forget an actor",
		ArgsUsage: "ls [BUNDLE] | show BUNDLE ACTOR | events [BUNDLE] | check [BUNDLE] | forget BUNDLE ACTOR",
		Description: "ls lists the actors whose state is kept, show one of them and all below it. events lists what actors that are durable: events have\n" +
			"stored: by --id in the order of their numbers, by --tag in the order in which they were stored. check reads the whole store and says what is damaged. forget has an\n" +
			"actor at the top, and all below it, begin anew at the next start: for code that has changed. A bundle that runs\n" +
			"has its store to itself.\n\nExamples:\n\n" +
			"   wasmactors store ls shop --json\n" +
			"   wasmactors store show shop cart\n" +
			"   wasmactors store events shop --id /user/cart --from 100\n" +
			"   wasmactors store events shop --tag paid --json\n" +
			"   wasmactors store check shop\n" +
			"   wasmactors store forget shop cart",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "write JSON"},
			&cli.StringFlag{Name: "id", Usage: "events: those of the actor with this `PATH`"},
			&cli.StringFlag{Name: "tag", Usage: "events: those with this `TAG`"},
			&cli.Uint64Flag{Name: "from", Usage: "events: from this `NUMBER` on; with --tag, from this offset on"},
		}, bundleFlags()...),
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			most := map[string][2]int{"ls": {0, 1}, "show": {2, 2}, "events": {0, 1}, "check": {0, 1}, "forget": {2, 2}}
			n, known := most[c.Args().First()]
			switch {
			case !known:
				return usage("store takes ls, show, events, check or forget, not %q", c.Args().First())
			case len(args)-1 < n[0] || len(args)-1 > n[1]:
				return usage("store %s: wrong number of arguments; see wasmactors store --help", args[0])
			}
			path := "."
			if len(args) > 1 {
				path = args[1]
			}
			return storeAction(c, env, args[0], path, c.Args().Get(2))
		},
	}
}

func storeAction(c *cli.Context, env *environment, verb, path, actor string) error {
	m, err := load(c, path)
	if err != nil {
		return err
	}
	if m.Store == nil {
		return usage("%s has no key store", m.File)
	}
	options, err := bundleOptions(c, env)
	if err != nil {
		return err
	}
	if err := options.Consent(m); err != nil {
		return err
	}
	s, err := m.Store.Open()
	if err != nil {
		return err
	}
	err = func() error {
		if verb == "forget" {
			return s.Forget(c.Context, m.Name, actor)
		}
		if verb == "events" {
			return storeEvents(c, env, s)
		}
		all, err := s.Actors()
		if err != nil {
			return err
		}
		if verb == "show" {
			path := ref.Scheme + m.Name + "/user/" + strings.TrimPrefix(actor, "/user/")
			all = slices.DeleteFunc(all, func(a durable.Actor) bool { return a.Path != path && !strings.HasPrefix(a.Path, path+"/") })
			if len(all) == 0 {
				return fmt.Errorf("the store has no actor %s", path)
			}
		}
		return showStore(c, env, verb, s.Figures(), all)
	}()
	if closing := s.Close(); err == nil {
		err = closing
	}
	return err
}

func showStore(c *cli.Context, env *environment, verb string, f durable.Figures, all []durable.Actor) error {
	records := 0
	for _, a := range all {
		records += a.Records
	}
	switch {
	case c.Bool("json"):
		if all == nil {
			all = []durable.Actor{}
		}
		return json.NewEncoder(env.stdout).Encode(map[string]any{"bytes": f.Bytes, "limit": f.Limit, "records": records, "actors": all})
	case verb == "check":
		_, err := fmt.Fprintf(env.stdout, "the store is whole: %d actors, %d records, %d of %d bytes\n", len(all), records, f.Bytes, f.Limit)
		return err
	}
	w := tabwriter.NewWriter(env.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ACTOR\tTYPE\tTURNS\tCHECKPOINT\tRECORDS\tBYTES\tLAST\t")
	for _, a := range all {
		state, last := "", "in the checkpoint"
		if a.Last != 0 {
			last = time.Unix(0, a.Last).Format(time.DateTime)
		}
		if a.Ended {
			state = "stopped"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", printable.Text(a.Path), printable.Text(a.Type), a.Turns, a.Checkpoint, a.Records, a.Bytes, last, state)
	}
	return w.Flush()
}

// storeFailure is why the store of a bundle has failed: durable actors have stopped then.
func storeFailure(l *live) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bundle == nil {
		return nil
	}
	return l.bundle.StoreFailure()
}
