package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/ref"
)

func storeCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "store",
		Usage:     "show what the store of a bundle has of durable actors, check it, take it elsewhere, forget an actor",
		ArgsUsage: "ls [BUNDLE] | show BUNDLE ACTOR | compact [BUNDLE] | events [BUNDLE] | check [BUNDLE] | export BUNDLE FILE | import BUNDLE FILE | fork BUNDLE DIR | forget BUNDLE ACTOR",
		Description: "ls lists the actors whose state is kept, show one of them and all below it; both, and events, ask the bundle if it runs. compact has a bundle that\n" +
			"runs write the state of all durable actors, and give back the space of what came before; it does so by itself when it is time.\n" +
			"The other verbs are for a bundle that does not run. events lists what actors that are durable: events have stored: by --id in the order\n" +
			"of their numbers, by --tag in the order in which they were stored, and with --follow what a bundle that runs stores from now on. check reads the whole store and says what is damaged.\n" +
			"export writes all of it into one file, import makes the store of another bundle or machine of that, which must not exist yet,\n" +
			"and fork copies it into the folder DIR, for a run that may go wrong, or with --at as it was then. All have the secret from which refs follow: keep them as safe\n" +
			"as the store. forget has an actor at the top, and all below it, begin anew at the next start: for code that has changed.\n\nExamples:\n\n" +
			"   wasmactors store ls shop --json\n" +
			"   wasmactors store show shop cart\n" +
			"   wasmactors store compact shop\n" +
			"   wasmactors store events shop --id /user/cart --from 100\n" +
			"   wasmactors store events shop --tag paid --json --follow\n" +
			"   wasmactors store check shop\n" +
			"   wasmactors store export shop shop.store\n" +
			"   wasmactors store import shop shop.store\n" +
			"   wasmactors store fork shop /tmp/copy\n" +
			"   wasmactors store fork shop /tmp/before --at 2h\n" +
			"   wasmactors store forget shop cart",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "write JSON"},
			&cli.StringFlag{Name: "id", Usage: "events: those of the actor with this `PATH`"},
			&cli.StringFlag{Name: "tag", Usage: "events: those with this `TAG`"},
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "events: go on with what is stored from now on"},
			&cli.StringFlag{Name: "at", Usage: "fork: as the store was at this `TIME` (RFC 3339), or so long ago, such as 2h; store.keep says how far that goes back"},
			&cli.Uint64Flag{Name: "from", Usage: "events: from this `NUMBER` on; with --tag, from this offset on"},
		}, bundleFlags()...),
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			n, known := storeVerbs[c.Args().First()]
			switch {
			case !known:
				return usage("store takes %s, not %q%s", oneOf(storeVerbs), c.Args().First(), didYouMean(c.Args().First(), slices.Sorted(maps.Keys(storeVerbs))))
			case len(args)-1 < n.least || len(args)-1 > n.most:
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

// storeVerbs are the verbs of store, and how many arguments they take.
var storeVerbs = map[string]struct{ least, most int }{
	"ls": {0, 1}, "show": {2, 2}, "compact": {0, 1}, "events": {0, 1}, "check": {0, 1},
	"export": {2, 2}, "import": {2, 2}, "fork": {2, 2}, "forget": {2, 2},
}

// oneOf lists the keys of a map for a text.
func oneOf[T any](m map[string]T) string {
	all := slices.Sorted(maps.Keys(m))
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

func storeAction(c *cli.Context, env *environment, verb, path, what string) error {
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
	if verb == "import" {
		return importStore(c, env, m, what)
	}
	if !durable.There(m.Store.Path) {
		return fmt.Errorf("there is no store in %s: the bundle has not run yet, or its store is elsewhere, see the key store.path and --env", m.Store.Path)
	}
	s, err := m.Store.Open()
	if errors.Is(err, durable.ErrLocked) {
		switch verb {
		case "ls", "show", "compact", "events":
			return runningStore(c, env, m, verb, what)
		}
		return fmt.Errorf("%w: the bundle %s runs; %s its store after that has ended", err, m.Name, verb)
	}
	if err != nil {
		return err
	}
	err = storeAtRest(c, env, m, s, verb, what)
	if closing := s.Close(); err == nil {
		err = closing
	}
	return err
}

// storeAtRest carries out a verb with the store of a bundle that does not run.
func storeAtRest(c *cli.Context, env *environment, m *bundle.Manifest, s *durable.Store, verb, what string) error {
	switch verb {
	case "compact":
		return errors.New("the bundle does not run: its store is compacted while it does. Start it with wasmactors run")
	case "forget":
		return s.Forget(c.Context, m.Name, what)
	case "events":
		return storeEvents(c, env, s)
	case "export":
		return exportStore(c, s, what)
	case "fork":
		return forkStore(c, env, m, s, what)
	}
	all, err := s.Actors(c.Context)
	keep, events := 0, 0
	if err == nil && verb == "check" {
		if err = s.CheckModules(c.Context); err == nil {
			keep, events, err = s.CheckEvents(c.Context)
		}
	}
	if err != nil {
		return err
	}
	if keep > 0 && !c.Bool("json") {
		fmt.Fprintf(env.stdout, "%s of %s can be read\n", plural(events, "event"), plural(keep, "actor"))
	}
	f := s.Figures()
	return showStore(c, env, m, verb, what, f.Bytes, f.Limit, all)
}

// keepsEvents reports whether an actor, or one below it, is durable: events.
func keepsEvents(a bundle.Actor) bool {
	return a.Events || slices.ContainsFunc(a.Children, keepsEvents)
}

// showStore prints what a store has: for show of one actor and all below it.
func showStore(c *cli.Context, env *environment, m *bundle.Manifest, verb, actor string, bytes, limit int64, all []durable.Actor) error {
	if verb == "show" {
		path := ref.Scheme + m.Name + "/user/" + durable.Name(m.Name, actor)
		all = slices.DeleteFunc(all, func(a durable.Actor) bool { return a.Path != path && !strings.HasPrefix(a.Path, path+"/") })
		if len(all) == 0 {
			return fmt.Errorf("the store has no actor %s", path)
		}
	}
	records := 0
	for _, a := range all {
		records += a.Records
	}
	switch {
	case c.Bool("json"):
		if all == nil {
			all = []durable.Actor{}
		}
		return json.NewEncoder(env.stdout).Encode(map[string]any{"bytes": bytes, "limit": limit, "records": records, "actors": all})
	case verb == "check":
		_, err := fmt.Fprintf(env.stdout, "the store is whole: %s, %s, %d of %d bytes\n", plural(len(all), "actor"), plural(records, "record"), bytes, limit)
		return err
	}
	if verb == "ls" && len(all) == 0 && slices.ContainsFunc(m.Actors, keepsEvents) {
		env.note("the store has no durable: true actor; what those with durable: events have stored is shown by wasmactors store events")
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
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", cell(a.Path), cell(a.Type), a.Turns, a.Checkpoint, a.Records, a.Bytes, last, state)
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
