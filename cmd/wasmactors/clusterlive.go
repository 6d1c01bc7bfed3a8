package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
)

// The verbs of cluster that talk to a node that runs.

// liveVerbs are they, and how many arguments they take, at least and at most.
var liveVerbs = map[string][2]int{"status": {0, 1}, "ps": {0, 0}, "tree": {0, 0}, "events": {0, 100}, "top": {0, 100}, "where": {1, 2}, "move": {1, 3}, "journal": {1, 3}, "drain": {0, 1}, "leave": {0, 0}, "roll": {0, 1023}}

func clusterLive(c *cli.Context, env *environment, args []string) error {
	verb, rest := args[0], args[1:]
	if n := liveVerbs[verb]; len(rest) < n[0] || len(rest) > n[1] {
		return usage("cluster %s: wrong number of arguments; see wasmactors cluster --help", verb)
	}
	wait, err := durationFlag(c, "wait")
	if err != nil {
		return err
	}
	return reaching(env, func(c *cli.Context, r *reached) error {
		switch verb {
		case "status":
			return ask(c, r, "/v1/cluster", ofOther(at(rest, 0)), func(s admin.ClusterStatus) error { return r.clusterStatus(&s) })
		case "ps":
			return ask(c, r, "/v1/cluster/nodes", nil, func(n admin.ClusterNodes) error { return r.clusterNodes(&n) })
		case "tree":
			return ask(c, r, "/v1/cluster/nodes", url.Values{"trees": {"true"}}, func(n admin.ClusterNodes) error { return r.clusterTrees(&n) })
		case "events":
			q, err := clusterEventQuery(c, rest)
			if err != nil {
				return err
			}
			if c.Bool("follow") {
				return r.followCluster(c, q)
			}
			return ask(c, r, "/v1/cluster/events", q, func(n admin.ClusterNodes) error { return r.clusterEvents(&n) })
		case "top":
			return r.clusterTop(c, rest)
		case "where":
			return ask(c, r, "/v1/cluster/where", url.Values{"kind": {rest[0]}, "key": {at(rest, 1)}}, r.keyPlace)
		case "move":
			return order(c, r, "/v1/cluster/move", admin.MoveKey{Kind: rest[0], Key: at(rest, 1), Node: at(rest, 2)}, r.keyPlace)
		case "journal":
			return keyJournal(c, r, rest)
		case "roll":
			return r.roll(c, rest, wait)
		}
		if err := r.drain(c, at(rest, 0), !c.Bool("undo") || verb == "leave", wait); err != nil || verb == "drain" {
			return err
		}
		return r.end(c)
	})(c)
}

func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// ofOther asks about another node; "": the one that is asked.
func ofOther(node string) url.Values {
	if node == "" {
		return nil
	}
	return url.Values{"node": {node}}
}

// drain has the shards of a node moved, "": of the one that is asked, and waits until they are.
func (r *reached) drain(c *cli.Context, node string, on bool, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(c.Context, wait)
	defer cancel()
	began := time.Now()
	var s admin.ClusterStatus
	why := ""
	for told := false; ; {
		var next admin.ClusterStatus
		var err error
		if told {
			next, err = client.Get[admin.ClusterStatus](ctx, r.Client, "/v1/cluster", ofOther(node))
		} else {
			next, err = client.Post[admin.ClusterStatus](ctx, r.Client, "/v1/cluster/drain", admin.DrainNode{On: on, Node: node})
		}
		switch {
		case err == nil:
			s, told = next, true
			if why = ""; on {
				why = undrained(&s)
			}
		case passing(err):
			why = err.Error()
		case why == "" || ctx.Err() == nil || c.Context.Err() != nil:
			return refusal(err)
		}
		if why == "" {
			break // no pause
		}
		select {
		case <-ctx.Done():
			text := "; the node has not left"
			if !on {
				text = ""
			}
			return fmt.Errorf("after %v %s%s", wait, oneLine(why), text)
		case <-time.After(100 * time.Millisecond):
		}
	}
	if r.json {
		return clusterJSON(r.env, map[string]any{"version": 1, "node": s.Name, "draining": s.Draining, "owned": owned(&s), "seconds": time.Since(began).Seconds()})
	}
	text := fmt.Sprintf("node %d (%s) has no shards any more; that took %s\n", s.Number, s.Name, short(time.Since(began)))
	switch {
	case !on:
		text = fmt.Sprintf("node %d (%s) may have shards again\n", s.Number, s.Name)
	case len(s.Members) == 1:
		text = fmt.Sprintf("node %d (%s) is the only one, and keeps its shards\n", s.Number, s.Name)
	}
	return write(r.env.stdout, text)
}

// undrained is why it is not certain that a node has no shards any more; empty: it is, or there is no other node to have them.
func undrained(s *admin.ClusterStatus) string {
	switch {
	case s.Unknown != "":
		return "it is not known which shards are here: " + s.Unknown
	case !s.Acting:
		return "it is not known which shards are here: the lease is over"
	case len(s.Members) == 1:
		return ""
	}
	for _, k := range s.Kinds {
		if k.Wrong != "" {
			return fmt.Sprintf("it is not known which shards of %s are here: %s", k.Kind, k.Wrong)
		}
	}
	switch n := owned(s); {
	case n == 1:
		return "1 shard is still here"
	case n > 0:
		return fmt.Sprintf("%d shards are still here", n)
	case len(s.Kinds) > 0 && !s.Draining:
		return "the node may still get shards"
	}
	return ""
}

func owned(s *admin.ClusterStatus) (n int) {
	for _, k := range s.Kinds {
		n += k.Owned
	}
	return n
}

func (r *reached) keyPlace(p admin.KeyPlace) error {
	if r.json {
		return nil
	}
	text := fmt.Sprintf("/user/%s/%s is on node %d (%s): shard %d, epoch %d", p.Kind, p.Key, p.Node, orDash(p.Name), p.Shard, p.Epoch)
	if p.Key == "" {
		text = strings.Replace(text, "/ is", " is", 1)
	}
	if p.From != 0 {
		text += fmt.Sprintf(", which node %d hands over", p.From)
	}
	if p.Pinned {
		text += ", moved there by hand"
	}
	return write(r.env.stdout, oneLine(text)+"\n")
}

func (r *reached) table(head string, rows func(w *tabwriter.Writer)) error {
	w := tabwriter.NewWriter(r.env.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, head)
	rows(w)
	if err := w.Flush(); err != nil {
		return &outputError{err}
	}
	return nil
}

func (r *reached) clusterStatus(s *admin.ClusterStatus) error {
	if r.json {
		return nil
	}
	state := "may act for " + short(time.Duration(s.LeaseMS)*time.Millisecond)
	if !s.Acting {
		state = "must not act: its lease is over"
	}
	if s.Draining {
		state += "; its shards are moved to others"
	}
	text := fmt.Sprintf("node %d (%s) of cluster %s %s\n", s.Number, s.Name, s.Cluster, state)
	if s.Unknown != "" {
		text += "which shards are here is not known: " + oneLine(s.Unknown) + "\n"
	}
	if s.Silent != "" {
		text += "the directory has not answered for " + short(time.Duration(s.SilentMS)*time.Millisecond) + ": " + oneLine(s.Silent) + "\n" + oneLine(s.Stops) + "\n"
	}
	if err := write(r.env.stdout, text); err != nil {
		return err
	}
	if err := r.table("NUMBER\tNODE\tROLES\tZONE\tWAITING", func(w *tabwriter.Writer) {
		for _, m := range s.Members {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d bytes\n", m.Number, m.Name, orDash(strings.Join(m.Roles, ",")), orDash(m.Zone), m.Waiting)
		}
	}); err != nil {
		return err
	}
	if err := r.clusterCode(s.Code); err != nil || len(s.Kinds) == 0 {
		return err
	}
	for _, k := range s.Kinds {
		if k.Stolen > 0 {
			text := fmt.Sprintf("%d times a member has taken shards of %s from this node, which has kept them: see docs/security.md", k.Stolen, k.Kind)
			if err := write(r.env.stdout, oneLine(text)+"\n"); err != nil {
				return err
			}
		}
	}
	for _, k := range s.Kinds {
		if k.Starting > 0 {
			text := fmt.Sprintf("%d keys of %s are remembered and wait for their start here", k.Starting, k.Kind)
			if k.Unstarted != "" {
				text += ": " + k.Unstarted
			}
			if err := write(r.env.stdout, oneLine(text)+"\n"); err != nil {
				return err
			}
		}
	}
	return r.table("KIND\tSHARDS\tHERE\tMOVING\tWAITING\tKEYS\tSTATE", func(w *tabwriter.Writer) {
		for _, k := range s.Kinds {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", k.Kind, k.Shards, k.Owned, k.Moving, k.Waiting, k.Keys, orDash(oneLine(k.Wrong)))
		}
	})
}

func (r *reached) clusterNodes(n *admin.ClusterNodes) error {
	if r.json {
		return nil
	}
	return r.table("NUMBER\tNODE\tBUNDLE\tUP\tACTORS\tCRASHES\tDEAD LETTERS", func(w *tabwriter.Writer) {
		for _, x := range n.Nodes {
			if x.Error != "" {
				fmt.Fprintf(w, "%d\t%s\tdoes not answer: %s\n", x.Number, x.Name, oneLine(x.Error))
				continue
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\t%d\n", x.Number, x.Name, oneLine(x.Bundle), short(time.Duration(x.UpSeconds)*time.Second), x.Actors, x.Crashes, x.DeadLetters)
		}
	})
}

func (r *reached) clusterTrees(n *admin.ClusterNodes) error {
	if r.json {
		return nil
	}
	for _, x := range n.Nodes {
		text := "node " + strconv.Itoa(x.Number) + " (" + x.Name + ")"
		if x.Error != "" {
			text += " does not answer: " + oneLine(x.Error)
		}
		text += "\n"
		for _, a := range x.Tree {
			text += fmt.Sprintf("%s%s  %s, %s, %d turns, %d waiting\n", strings.Repeat("  ", strings.Count(a.Path, "/")), oneLine(a.Path), oneLine(a.Type), oneLine(a.State), a.Turns, a.Mailbox)
		}
		if x.Left > 0 {
			text += fmt.Sprintf("  and %d more\n", x.Left)
		}
		if err := write(r.env.stdout, text); err != nil {
			return err
		}
	}
	return nil
}
