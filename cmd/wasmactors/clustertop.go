package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// clusterSorts are what cluster top sorts by.
var clusterSorts = []string{"rate", "turns", "mailbox", "path", "node"}

// clusterTop shows the busiest actors of all nodes.
type clusterTop struct {
	*reached
	paths func(string) bool
	types []string
	sort  string
	limit int

	before time.Time
	turns  map[placedActor]uint64 // at that time
}

// placedActor is an actor of a node.
type placedActor struct {
	node int
	path string
}

// topRow is an actor as it is shown.
type topRow struct {
	Node string `json:"node"`
	admin.NodeActor
	Rate float64 `json:"turns_per_second"`
}

func (r *reached) clusterTop(c *cli.Context, names []string) error {
	t := &clusterTop{reached: r, types: c.StringSlice("type"), sort: c.String("sort"), limit: c.Int("limit")}
	var patterns []string
	for _, name := range append(slices.Clone(names), c.StringSlice("path")...) {
		patterns = append(patterns, pathOf(name))
	}
	every, err := durationFlag(c, "interval")
	if err == nil {
		t.paths, err = observe.PathMatcher(patterns)
	}
	switch {
	case err != nil:
		return usage("%w", err)
	case !slices.Contains(clusterSorts, t.sort):
		return usage("--sort: %q is not one of %s%s", t.sort, joined(clusterSorts), didYouMean(t.sort, clusterSorts))
	case t.limit < 1:
		return usage("--limit must be at least 1")
	case every == 0:
		every = time.Second
	}
	once := r.json || c.Bool("once") || !drawable(r.env.raw)
	if _, err := t.look(c.Context); err != nil {
		return err
	}
	for {
		select {
		case <-c.Context.Done():
			return c.Context.Err()
		case <-time.After(every):
		}
		all, err := t.look(c.Context)
		if err != nil {
			return err
		}
		if once {
			return t.show(all, r.env.stdout, "")
		}
		if err := t.show(all, r.env.raw, "\x1b[H\x1b[2J"); err != nil {
			return err
		}
	}
}

// topNodes is one look at all nodes.
type topNodes struct {
	Version int                `json:"version"`
	Nodes   []admin.NodeReport `json:"nodes"` // without their trees
	Actors  []topRow           `json:"actors"`
	More    int                `json:"more"` // actors that are not among them
}

// look asks all nodes for their actors, and compares them with the last time.
func (t *clusterTop) look(ctx context.Context) (*topNodes, error) {
	ctx, cancel := context.WithTimeout(ctx, client.Patience)
	defer cancel()
	got, err := client.Get[admin.ClusterNodes](ctx, t.Client, "/v1/cluster/nodes", url.Values{"trees": {"true"}})
	if err != nil {
		return nil, refusal(err)
	}
	now, turns := time.Now(), map[placedActor]uint64{}
	all := &topNodes{Version: 1, Actors: []topRow{}}
	for _, x := range got.Nodes {
		all.More += x.Left
		for _, a := range x.Tree {
			at := placedActor{x.Number, a.Path}
			turns[at] = a.Turns
			if !t.paths(a.Path) || len(t.types) > 0 && !glob.MatchAny(t.types, a.Type) {
				continue
			}
			row := topRow{Node: x.Name, NodeActor: a}
			if before, there := t.turns[at]; there && a.Turns >= before && now.After(t.before) {
				row.Rate = float64(a.Turns-before) / now.Sub(t.before).Seconds()
			}
			all.Actors = append(all.Actors, row)
		}
		x.Tree, x.Left = nil, 0
		all.Nodes = append(all.Nodes, x)
	}
	t.before, t.turns = now, turns
	t.order(all.Actors)
	if n := len(all.Actors); n > t.limit {
		all.More += n - t.limit
		all.Actors = all.Actors[:t.limit]
	}
	return all, nil
}

func (t *clusterTop) order(rows []topRow) {
	slices.SortStableFunc(rows, func(a, b topRow) int {
		by := 0
		switch t.sort {
		case "rate":
			by = cmp.Compare(b.Rate, a.Rate)
		case "turns":
			by = cmp.Compare(b.Turns, a.Turns)
		case "mailbox":
			by = cmp.Compare(b.Mailbox, a.Mailbox)
		case "node":
			by = cmp.Compare(a.Node, b.Node)
		}
		return cmp.Or(by, cmp.Compare(a.Path, b.Path), cmp.Compare(a.Node, b.Node))
	})
}

func (t *clusterTop) show(all *topNodes, to io.Writer, before string) error {
	if t.json {
		return clusterJSON(t.env, all)
	}
	var b strings.Builder
	b.WriteString(before)
	const nodes = "%-12s %8s %8s %8s %12s\n"
	fmt.Fprintf(&b, nodes, "node", "up", "actors", "crashes", "dead letters")
	for _, x := range all.Nodes {
		if x.Error != "" {
			fmt.Fprintf(&b, "%-12s does not answer: %s\n", oneLine(x.Name), oneLine(x.Error))
			continue
		}
		fmt.Fprintf(&b, nodes, oneLine(x.Name), short(time.Duration(x.UpSeconds)*time.Second), siCount(float64(x.Actors)), siCount(float64(x.Crashes)), siCount(float64(x.DeadLetters)))
	}
	const actors = "%-12s %-10s %8s %8s %8s  %s\n"
	fmt.Fprintf(&b, "\n"+actors, "node", "state", "turns/s", "turns", "mailbox", "path (type)")
	for _, a := range all.Actors {
		fmt.Fprintf(&b, actors, oneLine(a.Node), oneLine(a.State), siCount(a.Rate), siCount(float64(a.Turns)), siCount(float64(a.Mailbox)), oneLine(a.Path+" ("+a.Type+")"))
	}
	if all.More > 0 {
		fmt.Fprintf(&b, "%d more\n", all.More)
	}
	return write(to, b.String())
}

func joined(names []string) string { return strings.Join(names, ", ") }
