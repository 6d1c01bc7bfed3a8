package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
)

// roll replaces nodes of a cluster, one at a time. It talks to a node of this machine, its seat, and to another one while that is
// replaced.
type roll struct {
	*reached
	cluster string   // its ID
	seat    string   // the node that it talks to
	remote  bool     // the seat is reached by TCP
	names   []string // of the nodes that must be there
	restart string   // the command that replaces a node; "": its operator does
	wait    time.Duration

	report rolled
}

// rolled is what roll has done.
type rolled struct {
	Version int          `json:"version"`
	Nodes   []rolledNode `json:"nodes"`            // that were replaced
	Failed  string       `json:"failed,omitempty"` // the node at which it has stopped; also one of Nodes if shards still move
	Why     string       `json:"why,omitempty"`
	Left    []string     `json:"left"` // that were not, without the one that failed
}

type rolledNode struct {
	Node    string  `json:"node"`
	Before  int     `json:"before"` // its number
	Number  int     `json:"number"`
	Drained float64 `json:"drained_seconds"`
	Back    float64 `json:"back_seconds"` // from the order to restart it until it was ready
}

// rollEvery is how often roll looks.
const rollEvery = 100 * time.Millisecond

// roll replaces the nodes of these names, or all.
func (r *reached) roll(c *cli.Context, names []string, wait time.Duration) error {
	x := &roll{reached: r, restart: c.String("restart"), wait: wait, remote: strings.HasPrefix(c.String("bundle"), "tcp:"), report: rolled{Version: 1, Nodes: []rolledNode{}, Left: []string{}}}
	s, err := client.Get[admin.ClusterStatus](c.Context, r.Client, "/v1/cluster", nil)
	if err != nil {
		return refusal(err)
	}
	defer func() { x.Close() }() // which may be another one by then
	x.cluster, x.seat = s.ID, s.Name
	for _, m := range s.Members {
		x.names = append(x.names, m.Name)
	}
	slices.Sort(x.names)
	order := slices.Clone(x.names)
	for _, name := range s.Keepers { // without one that is away the directory may not do without another one
		if !slices.Contains(x.names, name) {
			x.names = append(x.names, name)
		}
	}
	if len(names) > 0 {
		order = names
	}
	for i, name := range order {
		if !slices.ContainsFunc(s.Members, func(m admin.ClusterNode) bool { return m.Name == name }) {
			return &unreachableError{fmt.Errorf("there is no node %q in the cluster; wasmactors cluster status lists them", name)}
		}
		if slices.Contains(order[:i], name) {
			return usage("cluster roll: node %s is named twice", name)
		}
	}
	if at := slices.Index(order, x.seat); at >= 0 && len(names) == 0 { // last: until then it is asked
		order = append(slices.Delete(slices.Clone(order), at, at+1), x.seat)
	}
	err = x.all(c.Context, order)
	if r.json {
		if e := clusterJSON(r.env, x.report); e != nil {
			return e
		}
	}
	return err
}

func (x *roll) all(ctx context.Context, order []string) error {
	for i, name := range order {
		if err := x.one(ctx, name); err != nil {
			x.report.Failed, x.report.Why, x.report.Left = name, err.Error(), append(x.report.Left, order[i+1:]...)
			text := fmt.Sprintf("node %s was not replaced: %s", name, oneLine(err.Error()))
			if len(x.report.Nodes) > i {
				text = fmt.Sprintf("node %s is replaced, but %s", name, oneLine(err.Error()))
			}
			if left := order[i+1:]; len(left) > 0 {
				text += "; nor were " + strings.Join(left, ", ") + ", which go on"
			}
			return errors.New(text)
		}
	}
	return x.say("%s replaced", plural(len(order), "node"))
}

// say prints a step.
func (x *roll) say(format string, args ...any) error {
	if x.json {
		x.env.writeJSON(map[string]any{"event": "roll", "text": fmt.Sprintf(format, args...)})
		return nil
	}
	return write(x.env.stdout, fmt.Sprintf(format, args...)+"\n")
}

// one replaces a node: all are ready, it is drained, it is restarted, it is back and ready, no shard moves any more.
func (x *roll) one(ctx context.Context, name string) error {
	before, err := x.ready(ctx, name)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := x.drained(ctx, name); err != nil {
		return x.undo(ctx, before, err)
	}
	took := time.Since(began)
	if err := x.say("node %d (%s) is drained, after %s", before.Number, name, short(took)); err != nil {
		return x.undo(ctx, before, err)
	}
	if x.seat == name {
		x.reseat(ctx, name)
	}
	began = time.Now()
	if err := x.replace(ctx, before); err != nil {
		return x.undo(ctx, before, err)
	}
	after, err := x.back(ctx, before)
	if err != nil {
		return x.undo(ctx, before, err)
	}
	back := time.Since(began)
	x.report.Nodes = append(x.report.Nodes, rolledNode{name, before.Number, after.Number, took.Seconds(), back.Seconds()})
	if err := x.settled(ctx); err != nil {
		return err
	}
	return x.say("node %s is back as number %d, and ready after %s", name, after.Number, short(back))
}

// until tries until what is asked is so, or the time is over; why is the last reason that it is not.
func (x *roll) until(ctx context.Context, ok func(context.Context) (why string)) error {
	within, cancel := context.WithTimeout(ctx, x.wait)
	defer cancel()
	why := "the time was too short"
	for {
		now := ok(within)
		if now == "" {
			return nil
		}
		if within.Err() == nil {
			why = now
		}
		select {
		case <-within.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("after %v %s", x.wait, why)
		case <-time.After(rollEvery):
		}
	}
}

// status is how a node does, "": the seat. If the seat does not answer another one is looked for.
func (x *roll) status(ctx context.Context, node string) (admin.ClusterStatus, error) {
	query := url.Values{}
	if node != "" {
		query.Set("node", node)
	}
	s, err := client.Get[admin.ClusterStatus](ctx, x.Client, "/v1/cluster", query)
	if unanswered(err) && x.reseat(ctx, "") {
		s, err = client.Get[admin.ClusterStatus](ctx, x.Client, "/v1/cluster", query)
	}
	return s, err
}

// unanswered reports whether an error is none of the server's.
func unanswered(err error) bool {
	var p *admin.Problem
	return err != nil && !errors.As(err, &p)
}

// reseat finds another node of the cluster on this machine, but not the one called not.
func (x *roll) reseat(ctx context.Context, not string) bool {
	if x.remote {
		return true // it is asked at the same address
	}
	all, err := client.Running(ctx)
	if err != nil {
		return false
	}
	for _, place := range all {
		c := client.Dial(place.Socket)
		s, err := client.Get[admin.ClusterStatus](ctx, c, "/v1/cluster", nil)
		if err != nil || s.ID != x.cluster || s.Name == not || !s.Acting {
			c.Close()
			continue
		}
		x.Close()
		x.Client, x.seat = c, s.Name
		return true
	}
	return false
}

// ready waits until all nodes of the cluster are, and returns how one of them does: to take another away would harm those that need it.
func (x *roll) ready(ctx context.Context, name string) (one admin.ClusterStatus, err error) {
	err = x.until(ctx, func(ctx context.Context) string {
		for _, node := range x.names {
			s, err := x.status(ctx, node)
			if err != nil {
				return fmt.Sprintf("node %s does not answer, and all must be there: %v", node, err)
			}
			if why := notReady(&s); why != "" {
				return fmt.Sprintf("node %s is not ready, and all must be: %s", node, why)
			}
			if node == name {
				one = s
			}
		}
		return ""
	})
	return one, err
}

// notReady is why a node is not ready; "": it is.
func notReady(s *admin.ClusterStatus) string {
	switch {
	case s.Unready != "":
		return s.Unready
	case !s.Acting:
		return "its lease is over"
	case s.Silent != "":
		return "the directory does not answer: " + s.Silent
	}
	return s.Unknown
}

// drained has a node drained, and waits until it has no shards.
func (x *roll) drained(ctx context.Context, name string) error {
	if _, err := client.Post[admin.ClusterStatus](ctx, x.Client, "/v1/cluster/drain", admin.DrainNode{On: true, Node: name}); err != nil {
		return err
	}
	return x.until(ctx, func(ctx context.Context) string {
		s, err := x.status(ctx, name)
		if err != nil {
			return err.Error()
		}
		return undrained(&s)
	})
}

// undo lets a node have shards again that was drained and not replaced. It returns err, and what has become of the node.
func (x *roll) undo(ctx context.Context, before admin.ClusterStatus, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), client.Patience)
	defer cancel()
	s, gone := x.status(ctx, before.Name)
	switch {
	case gone != nil:
		return fmt.Errorf("%w; it is not there any more (%v)", err, gone)
	case s.Number != before.Number && !s.Draining:
		return fmt.Errorf("%w; it has joined again as number %d", err, s.Number)
	}
	if _, e := client.Post[admin.ClusterStatus](ctx, x.Client, "/v1/cluster/drain", admin.DrainNode{Node: before.Name}); e != nil {
		return fmt.Errorf("%w; it is still drained: %w", err, e)
	}
	return fmt.Errorf("%w; it goes on, and may have shards again", err)
}

// replace has the node's process restarted, or says that it is to be.
func (x *roll) replace(ctx context.Context, before admin.ClusterStatus) error {
	if x.restart == "" {
		return x.say("node %s waits to be restarted, for %v", before.Name, x.wait)
	}
	ctx, cancel := context.WithTimeout(ctx, x.wait)
	defer cancel()
	shell := []string{"sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/c"}
	}
	cmd := exec.CommandContext(ctx, shell[0], shell[1], x.restart)
	cmd.Env = append(os.Environ(), "NODE="+before.Name, "NODE_NUMBER="+strconv.Itoa(before.Number))
	cmd.Stdout, cmd.Stderr = x.env.stderr, x.env.stderr
	cmd.WaitDelay = time.Second // what it has started may keep its output open
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("the command of --restart has failed: %w", err)
	}
	return nil
}

// back waits until a node has joined again, and is ready.
func (x *roll) back(ctx context.Context, before admin.ClusterStatus) (after admin.ClusterStatus, err error) {
	err = x.until(ctx, func(ctx context.Context) string {
		s, err := x.status(ctx, before.Name)
		switch {
		case err != nil:
			return "it has not come back: " + err.Error()
		case s.Number == before.Number:
			return "it still runs, and was not restarted"
		case s.Draining: // only a process that was drained is, also when it has lost its lease and joined again
			return fmt.Sprintf("it still runs, and was not restarted: it was lost, and has joined again as number %d", s.Number)
		}
		if why := notReady(&s); why != "" {
			return "it is back, and not ready: " + why
		}
		after = s
		return ""
	})
	return after, err
}

// settled waits until no shard moves.
func (x *roll) settled(ctx context.Context) error {
	return x.until(ctx, func(ctx context.Context) string {
		s, err := x.status(ctx, "")
		if err != nil {
			return err.Error()
		}
		for _, k := range s.Kinds {
			switch {
			case k.Wrong != "":
				return fmt.Sprintf("the shards of %s are not known: %s", k.Kind, k.Wrong)
			case k.Moving > 0:
				return fmt.Sprintf("%s of %s still move", plural(k.Moving, "shard"), k.Kind)
			}
		}
		return ""
	})
}
