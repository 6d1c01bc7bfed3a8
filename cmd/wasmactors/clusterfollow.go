package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
)

// clusterEventQuery reads the flags of events, and the actors that are named.
func clusterEventQuery(c *cli.Context, names []string) (url.Values, error) {
	q := url.Values{}
	for _, p := range append(slices.Clone(names), c.StringSlice("path")...) {
		q.Add("path", pathOf(p))
	}
	for _, t := range c.StringSlice("type") {
		q.Add("type", t)
	}
	if err := addKinds(c, q); err != nil {
		return nil, err
	}
	return q, addFilters(c, q)
}

// followEvery is how often nodes are asked for new events.
const followEvery = 500 * time.Millisecond

// follower shows the events of all nodes as they come.
type follower struct {
	*reached
	query url.Values
	names map[int]string // of the nodes that were there
	next  map[int]uint64 // the number of the last event of each
	away  map[int]string // why a node does not answer
}

// followCluster shows the events of all nodes, and new ones until the context ends.
func (r *reached) followCluster(c *cli.Context, q url.Values) error {
	f := &follower{r, q, nil, map[int]uint64{}, map[int]string{}}
	for {
		if err := f.look(c.Context); err != nil {
			return err
		}
		select {
		case <-c.Context.Done():
			return c.Context.Err()
		case <-time.After(followEvery):
		}
	}
}

func (f *follower) look(ctx context.Context) error {
	q := maps.Clone(f.query)
	for _, node := range slices.Sorted(maps.Keys(f.next)) {
		q.Add("after", strconv.Itoa(node)+":"+strconv.FormatUint(f.next[node], 10))
	}
	ctx, cancel := context.WithTimeout(ctx, client.Patience)
	defer cancel()
	all, err := client.Get[admin.ClusterNodes](ctx, f.Client, "/v1/cluster/events", q)
	if err != nil {
		return refusal(err)
	}
	f.tell(&all)
	if f.json {
		return f.lines(&all)
	}
	return f.showEvents(&all)
}

// tell says what is new about the nodes themselves.
func (f *follower) tell(all *admin.ClusterNodes) {
	names, next := map[int]string{}, map[int]uint64{}
	for i := range all.Nodes {
		x := &all.Nodes[i]
		names[x.Number] = x.Name
		if f.names != nil && f.names[x.Number] != x.Name {
			f.say(x.Name, fmt.Sprintf("node %d (%s) is there", x.Number, oneLine(x.Name)))
		}
		switch why := f.away[x.Number]; {
		case x.Error != "" && why == "":
			f.say(x.Name, fmt.Sprintf("node %s does not answer: %s", oneLine(x.Name), oneLine(x.Error)))
		case x.Error == "" && why != "":
			f.say(x.Name, fmt.Sprintf("node %s answers again", oneLine(x.Name)))
		}
		if f.away[x.Number] = x.Error; x.Error != "" {
			next[x.Number] = f.next[x.Number]
			continue
		}
		if x.Left > 0 {
			f.say(x.Name, fmt.Sprintf("node %s has had %d more events, which are not kept", oneLine(x.Name), x.Left))
		}
		next[x.Number] = x.Next
	}
	for _, number := range slices.Sorted(maps.Keys(f.names)) {
		if names[number] == "" {
			f.say(f.names[number], fmt.Sprintf("node %d (%s) is gone", number, oneLine(f.names[number])))
			delete(f.away, number)
		}
	}
	f.names, f.next = names, next
}

func (f *follower) say(node, text string) {
	if f.json {
		f.env.writeJSON(map[string]any{"event": "node", "node": node, "text": text})
		return
	}
	f.env.note(text)
}

// lines prints the events as JSON, each with its node first.
func (f *follower) lines(all *admin.ClusterNodes) error {
	for i := range all.Nodes {
		name, err := json.Marshal(all.Nodes[i].Name)
		if err != nil {
			return err
		}
		for _, text := range all.Nodes[i].Events {
			if len(text) < 2 || text[0] != '{' {
				continue
			}
			if err := write(f.env.stdout, `{"node":`+string(name)+","+string(text[1:])+"\n"); err != nil {
				return err
			}
		}
	}
	return nil
}
