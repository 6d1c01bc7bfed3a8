package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
	"github.com/wasmactors/wasmactors/host/observe"
)

// ErrNotFound is a bundle that does not run here.
var ErrNotFound = errors.New("not found")

// look is how long a bundle has to say how it is, and hint how long for the text of an error, which names those that have not.
const (
	look = 2 * time.Second
	hint = time.Second
)

// Running is every bundle of the user that runs here, by process. Sockets of processes that
// have ended are removed.
func Running(ctx context.Context) ([]endpoint.Running, error) {
	places, err := endpoint.List()
	if len(places) == 0 {
		return []endpoint.Running{}, err
	}
	found := make([]*endpoint.Running, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() { found[i] = ask(ctx, p) })
	}
	wg.Wait()
	list := []endpoint.Running{}
	for _, r := range found {
		if r != nil {
			list = append(list, *r)
		}
	}
	return list, nil
}

// ask asks a bundle how it is; nil: it has ended.
func ask(ctx context.Context, p endpoint.Place) *endpoint.Running {
	if endpoint.Sweep(p) {
		return nil
	}
	c := Dial(p.Path)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	r := &endpoint.Running{PID: p.PID, Bundle: p.Bundle, Socket: p.Path}
	about, err := Get[admin.About](ctx, c, "/v1/server", nil)
	var sys observe.System
	if err == nil {
		sys, err = Get[observe.System](ctx, c, "/v1/system", nil)
	}
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Node = about.Node
	r.Address, r.Bundle, r.Dir, r.Ready, r.Started = about.Address, sys.Name, sys.Dir, sys.Ready, sys.Started.Format(time.RFC3339)
	r.Actors, r.Crashes, r.Suspended = sys.Actors, sys.Crashes, sys.States[observe.Suspended]
	for _, c := range sys.Codes {
		r.Codes = append(r.Codes, endpoint.RunningCode(c))
	}
	return r
}

// Find is the bundle with a name, a process number, or a socket path; "" is the only one that runs. NAME@NODE is the one that has joined
// a cluster as that node, and @NODE a node of any bundle: those that run are asked, for two seconds at most. ErrNotFound: there is none, or
// more than one.
func Find(which string) (endpoint.Place, error) {
	if strings.ContainsRune(which, os.PathSeparator) {
		if _, err := os.Stat(which); err != nil {
			return endpoint.Place{}, fmt.Errorf("%w: %w", ErrNotFound, err)
		}
		return endpoint.Place{Path: which}, nil
	}
	places, err := endpoint.List()
	if err != nil && len(places) == 0 {
		return endpoint.Place{}, err
	}
	places = slices.DeleteFunc(places, endpoint.Sweep)
	bundle, node, asNode := strings.Cut(which, "@")
	meant := slices.DeleteFunc(slices.Clone(places), func(p endpoint.Place) bool { return bundle != "" && !p.Matches(bundle) })
	var nodes []said
	switch {
	case asNode:
		meant, nodes = among(meant, nodesOf(meant, look), node)
	case len(meant) > 1:
		nodes = nodesOf(meant, hint)
	}
	switch {
	case len(meant) == 1:
		return meant[0], nil
	case len(meant) > 1 && slices.ContainsFunc(nodes, func(s said) bool { return s.node != "" }):
		return endpoint.Place{}, fmt.Errorf("%w: several bundles run here: %s; say which one with --bundle NAME@NODE or PID", ErrNotFound, names(meant, nodes))
	case len(meant) > 1:
		return endpoint.Place{}, fmt.Errorf("%w: several bundles run here: %s; say which one with --bundle NAME or PID", ErrNotFound, names(meant, nodes))
	case which == "" && len(places) == 0:
		return endpoint.Place{}, fmt.Errorf("%w: no bundle runs here that can be reached; wasmactors run starts one", ErrNotFound)
	case len(places) == 0:
		return endpoint.Place{}, fmt.Errorf("%w: no bundle %q runs here, nor any other", ErrNotFound, which)
	}
	return endpoint.Place{}, fmt.Errorf("%w: no bundle %q runs here, but %s", ErrNotFound, which, names(places, nodesOf(places, hint)))
}

// said is what one that runs says of itself.
type said struct {
	node   string // its name in a cluster; "": it is in none
	silent bool   // it does not answer
}

// nodesOf asks those at some places, all at once, how they are called in a cluster.
func nodesOf(places []endpoint.Place, within time.Duration) []said {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	all := make([]said, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() {
			c := Dial(p.Path)
			defer c.Close()
			about, err := Get[admin.About](ctx, c, "/v1/server", nil)
			all[i] = said{about.Node, err != nil}
		})
	}
	wg.Wait()
	return all
}

// among are the places of a node.
func among(places []endpoint.Place, all []said, node string) (found []endpoint.Place, its []said) {
	for i, p := range places {
		if all[i].node == node && node != "" {
			found, its = append(found, p), append(its, all[i])
		}
	}
	return found, its
}

// mostNames bounds a list in an error.
const mostNames = 10

func names(places []endpoint.Place, all []said) string {
	var list []string
	for i, p := range places {
		if i == mostNames {
			list = append(list, fmt.Sprintf("%d more", len(places)-i))
			break
		}
		about := strconv.Itoa(p.PID)
		if all[i].silent {
			about += ", which does not answer"
		}
		list = append(list, endpoint.Name(p.Bundle, all[i].node)+" ("+about+")")
	}
	return strings.Join(list, ", ")
}
