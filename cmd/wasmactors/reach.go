package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// running is the heading in help of the commands for running bundles.
const running = "Running bundles"

// reached is a running bundle that a command talks to.
type reached struct {
	*client.Client
	env  *environment
	json bool
}

// reach connects to the bundle that the flags name.
func reach(c *cli.Context, env *environment) (*reached, error) {
	r := &reached{env: env, json: c.Bool("json")}
	which := c.String("bundle")
	if address, ok := strings.CutPrefix(which, "tcp:"); ok {
		if c.String("token-file") == "" {
			return nil, usage("--bundle %s needs --token-file: the file of its --admin-token-file, or the one that it named when it started", which)
		}
		token, err := admin.TokenFile(c.String("token-file"))
		if err != nil {
			return nil, usage("--token-file: %v", err)
		}
		r.Client = client.DialTCP(address, token)
		return r, nil
	}
	place, err := client.Find(which)
	if err != nil {
		return nil, &unreachableError{errors.New(strings.TrimPrefix(err.Error(), client.ErrNotFound.Error()+": "))}
	}
	r.Client = client.Dial(place.Path)
	return r, nil
}

// reaching is the action of a command that talks to a running bundle.
func reaching(env *environment, action func(c *cli.Context, r *reached) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		r, err := reach(c, env)
		if err != nil {
			return err
		}
		defer r.Close()
		err = action(c, r)
		if absent := (*unreachableError)(nil); errors.As(err, &absent) {
			if like := r.like(c); like != "" {
				return &unreachableError{fmt.Errorf("%w%s", absent.err, like)}
			}
		}
		return err
	}
}

// like suggests an actor instead of the first one that a command names and that does not exist.
func (r *reached) like(c *cli.Context) string {
	ctx, cancel := context.WithTimeout(c.Context, completeTime)
	defer cancel()
	page, err := client.Get[observe.Page](ctx, r.Client, "/v1/actors", url.Values{"limit": {"1000"}})
	if err != nil {
		return ""
	}
	paths := make([]string, len(page.Actors))
	for i, a := range page.Actors {
		paths[i] = a.Path
	}
	names := c.Args().Slice()
	for _, f := range c.Command.Flags {
		if f.Names()[0] == "path" {
			names = append(names, c.StringSlice("path")...)
		}
	}
	for _, name := range names {
		if glob.HasMeta(name) || slices.Contains(paths, pathOf(name)) {
			continue
		}
		if found := grammar.Nearest(pathOf(name), paths); found != "" {
			if !strings.HasPrefix(name, "/") {
				found = strings.TrimPrefix(found, "/user/")
			}
			return fmt.Sprintf("; did you mean %q?", found)
		}
	}
	return ""
}

// absent is the error for names of which no actor has been heard: none exists, and there was nothing to show.
func (r *reached) absent(c *cli.Context, q url.Values) error {
	if len(q["path"]) == 0 {
		return nil
	}
	page, err := client.Get[observe.Page](c.Context, r.Client, "/v1/actors", url.Values{"path": q["path"], "limit": {"1"}})
	if err != nil || page.Total > 0 {
		return nil // what was asked for was answered
	}
	return &unreachableError{fmt.Errorf("no actor matches, nor is anything of one kept; wasmactors tree lists the actors")}
}

// ask sends a GET request. With --json the answer is printed as it is, and show is not called.
func ask[T any](c *cli.Context, r *reached, path string, query url.Values, show func(T) error) error {
	return answered(r, show)(r.Raw(c.Context, http.MethodGet, path, query, nil))
}

// order is ask with a POST request.
func order[T any](c *cli.Context, r *reached, path string, body any, show func(T) error) error {
	return answered(r, show)(r.Raw(c.Context, http.MethodPost, path, nil, body))
}

func answered[T any](r *reached, show func(T) error) func([]byte, error) error {
	return func(text []byte, err error) error {
		if err != nil {
			return refusal(err)
		}
		var v T
		if err := json.Unmarshal(text, &v); err != nil {
			return err
		}
		if r.json {
			if err := write(r.env.stdout, strings.TrimSuffix(string(text), "\n")+"\n"); err != nil {
				return err
			}
		}
		return show(v)
	}
}

// pathOf is the path of an actor; a bare name is a top-level actor's.
func pathOf(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/user/" + name
}

// selectFlags choose actors.
func selectFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "path", Usage: "actors whose path matches `GLOB`: /user/pool-*, /user/shop/** for all below; as an argument"},
		&cli.StringSliceFlag{Name: "type", Usage: "actors whose type matches `GLOB`"},
		&cli.StringSliceFlag{Name: "state", Usage: "actors that are in `STATE`: " + strings.Join(states(), ", ")},
		&cli.StringSliceFlag{Name: "ref", Usage: "the actor with the ref `HEX`"},
	}
}

func states() (names []string) {
	for _, s := range observe.States() {
		names = append(names, string(s))
	}
	return names
}

// selected is the selection by arguments and flags.
func selected(c *cli.Context) (sel observe.Select, err error) {
	for _, name := range append(c.Args().Slice(), c.StringSlice("path")...) {
		sel.Paths = append(sel.Paths, pathOf(name))
	}
	sel.Types, sel.Refs = c.StringSlice("type"), c.StringSlice("ref")
	for _, name := range c.StringSlice("state") {
		if !slices.Contains(states(), name) {
			return sel, usage("--state: %q is not one of %s%s", name, strings.Join(states(), ", "), didYouMean(name, states()))
		}
		sel.States = append(sel.States, observe.State(name))
	}
	return sel, nil
}

// query is a selection as parameters of a URL.
func query(sel observe.Select) url.Values {
	q := url.Values{}
	for name, values := range map[string][]string{"path": sel.Paths, "type": sel.Types, "ref": sel.Refs} {
		for _, v := range values {
			q.Add(name, v)
		}
	}
	for _, s := range sel.States {
		q.Add("state", string(s))
	}
	return q
}
