package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/natscluster"
)

// clusterTime is how long a command waits for a cluster.
const clusterTime = 20 * time.Second

func clusterCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "cluster",
		Usage:     "make a cluster, let nodes join it, look at them, move what is on them",
		ArgsUsage: "init DIR | token DIR | ls DIR | evict DIR NODE | status [NODE] | ps | tree | events [ACTOR...] | top [ACTOR...] | where KIND KEY | move KIND KEY [NODE] | journal ls [KIND] | journal show KIND KEY | journal delete KIND KEY | drain [NODE] | leave | roll [NODE...]",
		Description: "A cluster joins bundles on several machines to one system. DIR is a node's folder: its keys, and the directory of the\n" +
			"cluster if it keeps that. Keep it as safe as a private key. init makes the folder of the first node, which has the authority and\n" +
			"makes tokens. token prints a token, with which one node of the name joins, once. ls lists the nodes. evict takes the number of a\n" +
			"node away before its lease is over; the node may act until then, so that what must happen once can happen twice.\n" +
			"A node joins with wasmactors run BUNDLE --join DIR, and leaves when the run ends.\n\n" +
			"The others talk to a node that runs here, which --bundle names. status says how it does and which shards it has, ps and tree what all\n" +
			"nodes say of themselves, events what has happened there last, with -f also from now on, top the busiest actors, each with the nodes that do\n" +
			"not answer within a second. where says which node has a key of a keyed actor; move has its\n" +
			"shard moved to a node, where it stays, or without NODE back to where its hash says. drain moves all shards of the node to others, and waits\n" +
			"until that is done; leave does so, and ends the bundle. A singleton is a kind with one key, which may be left out. roll replaces all\n" +
			"nodes, or those that are named, one at a time: it waits until all are ready, drains one, has it restarted by the command of --restart,\n" +
			"which gets its name as NODE, or by its operator, and waits until it is back. It stops at the first that fails. journal ls lists the\n" +
			"keys of which the cluster's journal has something, whether they live or not; journal show says how many events it has of a key; journal\n" +
			"delete deletes them while its actor is not there.\n\nExamples:\n\n" +
			"   wasmactors cluster init ./a --node a --keeper a=10.0.0.1:7420\n" +
			"   wasmactors run shop --join ./a\n" +
			"   wasmactors cluster token ./a --node b >token\n" +
			"   wasmactors run shop --join ./b --join-token token\n" +
			"   wasmactors cluster ls ./a\n" +
			"   wasmactors cluster evict ./a b --i-know\n" +
			"   wasmactors cluster events -f --kind failed --not-path '/user/noisy/**'\n" +
			"   wasmactors cluster where carts ann\n" +
			"   wasmactors cluster move carts ann b\n" +
			"   wasmactors cluster journal ls carts --prefix an\n" +
			"   wasmactors cluster journal show carts ann\n" +
			"   wasmactors cluster leave --bundle shop\n" +
			"   wasmactors cluster roll --restart 'ssh $NODE systemctl restart shop'",
		Flags: reachFlags(append(append(followFlags(), kindFlags()...),
			&cli.StringFlag{Name: "sort", Value: "rate", Usage: "top: sort by `WHAT`: " + joined(clusterSorts)},
			&cli.IntFlag{Name: "limit", Value: 40, Usage: "top: show `N` actors; journal ls: N keys (default: 1000)"},
			&cli.StringFlag{Name: "prefix", Usage: "journal ls: keys that begin with `TEXT`"},
			&cli.StringFlag{Name: "after", Usage: "journal ls: go on behind `KIND/NAME`, which a list before has ended with"},
			&cli.StringFlag{Name: "interval", Usage: "top: look every `DURATION` (default: 1s)"},
			&cli.BoolFlag{Name: "once", Usage: "top: print it once"},
			&cli.BoolFlag{Name: "undo", Usage: "drain: let the node have shards again"},
			&cli.StringFlag{Name: "wait", Value: "2m", Usage: "drain, leave: wait for `DURATION` for the shards to be gone; then leave does not end the bundle; roll: for each step"},
			&cli.StringFlag{Name: "restart", Usage: "roll: the shell's `COMMAND` that restarts the node NODE, whose number was NODE_NUMBER; default: roll waits until its operator has"},
			&cli.StringFlag{Name: "node", Usage: "init: the `NAME` of this node; token: of the one that may join"},
			&cli.StringFlag{Name: "name", Value: "cluster", Usage: "init: the `NAME` of the cluster, for people"},
			&cli.StringSliceFlag{Name: "keeper", Usage: "init: `NAME=HOST:PORT` keeps the directory, and listens there and at the port after it; 1, 3 or 5 times"},
			&cli.StringFlag{Name: "nats", Usage: "init: the `URL` of a NATS with JetStream that keeps the directory, instead of nodes; credentials are in DIR/nats.creds"},
			&cli.StringFlag{Name: "lease", Usage: "init: the `DURATION` for which a node may act without having renewed its number; at least, and by default, 4s, with --nats 12s"},
			&cli.StringFlag{Name: "valid", Value: "1h", Usage: "token: the `DURATION` for which it may be used, at most 720h"},
			&cli.StringSliceFlag{Name: "for", Usage: "token: the node may write what services share (kv and pubsub with scope: cluster) of the bundle `NAME` only; may be repeated; default: of all"},
			&cli.BoolFlag{Name: "i-know", Usage: "evict: I know that what must happen once can happen twice, until the node's lease is over"},
		)...),
		Action: func(c *cli.Context) error {
			args := c.Args().Slice()
			want, known := clusterVerbs[c.Args().First()]
			if _, live := liveVerbs[c.Args().First()]; live {
				return clusterLive(c, env, args)
			}
			switch {
			case !known:
				all := slices.Sorted(maps.Keys(clusterVerbs))
				all = append(all, slices.Sorted(maps.Keys(liveVerbs))...)
				return usage("cluster takes %s, not %q%s", strings.Join(all, ", "), c.Args().First(), didYouMean(c.Args().First(), all))
			case len(args)-1 != want:
				return usage("cluster %s: wrong number of arguments; see wasmactors cluster --help", args[0])
			}
			switch args[0] {
			case "init":
				return clusterInit(c, env, args[1])
			case "token":
				return clusterToken(c, env, args[1])
			case "evict":
				if !c.Bool("i-know") {
					return usage("evict takes the number of node %s away although its lease is not over. If the node is alive and only cut off, it acts until then: "+
						"a key may have two actors, a schedule may ring twice, an effect may happen twice. A node that is lost is evicted by itself after its lease. --i-know does it", args[2])
				}
			}
			return clusterReached(c, args[1], func(ctx context.Context, o *natscluster.Observer) error {
				if args[0] == "ls" {
					return clusterList(ctx, c, env, o)
				}
				return clusterEvict(ctx, c, env, o, args[2])
			})
		},
	}
}

// clusterVerbs are the verbs of cluster, and how many arguments they take.
var clusterVerbs = map[string]int{"init": 1, "token": 1, "ls": 1, "evict": 2}

func clusterInit(c *cli.Context, env *environment, dir string) error {
	lease, err := durationFlag(c, "lease")
	if err != nil {
		return err
	}
	d := natscluster.Description{Name: c.String("name"), URL: c.String("nats"), Lease: lease}
	for _, text := range c.StringSlice("keeper") {
		name, address, ok := strings.Cut(text, "=")
		if !ok {
			return usage("--keeper %q: write NAME=HOST:PORT", text)
		}
		d.Keepers = append(d.Keepers, natscluster.Keeper{Name: name, Address: address})
	}
	switch {
	case c.String("node") == "":
		return usage("cluster init needs --node: the name of this node")
	case d.URL == "" && len(d.Keepers) == 0:
		return usage("cluster init needs --keeper %s=HOST:PORT: the address at which other nodes reach this one; or --nats URL", c.String("node"))
	}
	id, err := natscluster.Init(dir, c.String("node"), d)
	if err != nil {
		return usage("%w", err)
	}
	if c.Bool("json") {
		return clusterJSON(env, map[string]any{"version": 1, "id": id.ID, "name": id.Name, "node": id.Node, "lease": id.Lease.String()})
	}
	return write(env.stdout, fmt.Sprintf("%s is the folder of node %s of cluster %s (%s)\n", dir, id.Node, id.Name, id.ID))
}

func clusterJSON(env *environment, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return write(env.stdout, string(text)+"\n")
}

func clusterToken(c *cli.Context, env *environment, dir string) error {
	valid, err := durationFlag(c, "valid")
	if err != nil {
		return err
	}
	if c.String("node") == "" {
		return usage("cluster token needs --node: the name of the node that may join")
	}
	id, err := natscluster.LoadIdentity(dir)
	if err != nil {
		return usage("%w", err)
	}
	text, err := id.Token(c.String("node"), valid, c.StringSlice("for")...)
	if err != nil {
		return usage("%w", err)
	}
	if c.Bool("json") {
		return clusterJSON(env, map[string]any{"version": 1, "node": c.String("node"), "token": text, "valid": valid.String()})
	}
	return write(env.stdout, text+"\n")
}

// clusterReached connects to a cluster by a node's folder, without being a node.
func clusterReached(c *cli.Context, dir string, f func(context.Context, *natscluster.Observer) error) error {
	id, err := natscluster.LoadIdentity(dir)
	if err != nil {
		return usage("%w", err)
	}
	ctx, cancel := context.WithTimeout(c.Context, clusterTime)
	defer cancel()
	o, err := natscluster.Observe(ctx, id)
	if err != nil {
		return &unreachableError{err}
	}
	defer o.Close()
	return f(ctx, o)
}

// clusterMember is a node as ls shows it.
type clusterMember struct {
	Number uint16   `json:"number"`
	Name   string   `json:"name"`
	Roles  []string `json:"roles"`
	Zone   string   `json:"zone"`
	Keeper bool     `json:"keeper"`
	Beat   uint64   `json:"beat"` // how often it has renewed its lease
}

func clusterList(ctx context.Context, c *cli.Context, env *environment, o *natscluster.Observer) error {
	all, err := o.Members(ctx)
	if err != nil {
		return &unreachableError{err}
	}
	list := []clusterMember{}
	for _, m := range all {
		list = append(list, clusterMember{m.Number, m.Name, append([]string{}, m.Roles...), m.Zone, o.Keeps(m.Name), m.Beat})
	}
	if c.Bool("json") {
		return clusterJSON(env, map[string]any{"version": 1, "nodes": list})
	}
	w := tabwriter.NewWriter(env.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NUMBER\tNODE\tROLES\tZONE\tDIRECTORY")
	for _, m := range list {
		keeps := "-"
		if m.Keeper {
			keeps = "keeps it"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", m.Number, m.Name, orDash(strings.Join(m.Roles, ",")), orDash(m.Zone), keeps)
	}
	if err := w.Flush(); err != nil {
		return &outputError{err}
	}
	return nil
}

func clusterEvict(ctx context.Context, c *cli.Context, env *environment, o *natscluster.Observer, node string) error {
	m, err := o.Evict(ctx, node)
	switch {
	case errors.Is(err, cluster.ErrNoMember):
		return &unreachableError{fmt.Errorf("there is no node %q in the cluster; wasmactors cluster ls lists them", node)}
	case err != nil:
		return &unreachableError{err}
	}
	if c.Bool("json") {
		return clusterJSON(env, map[string]any{"version": 1, "evicted": m.Name, "number": m.Number})
	}
	return write(env.stdout, fmt.Sprintf("node %d (%s) is evicted\n", m.Number, m.Name))
}
