package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/natscluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Each node has an actor, /system/nodes, which says how the node does to whom asks: the operator of any node of the cluster.

const (
	reporter     = "nodes"
	reportTime   = time.Second
	reportAge    = 200 * time.Millisecond                               // for which a report is given again
	mostReported = 2000                                                 // actors of a tree
	mostReport   = 1 << 20                                              // bytes of them
	mostReports  = 32 << 20                                             // bytes of the trees of all nodes, as JSON; a client takes twice as much
	takesTrees   = "it takes whether the tree is wanted, true or false" // what it answers to anything else
)

// errEarlier is why a node that knows only trees does not tell its events.
var errEarlier = errors.New("it is of an earlier release, which does not tell its events")

// reportTo starts the actor.
func (x *membership) reportTo(sys *host.System) error {
	began := time.Now()
	kept := &lastEvents{}
	kept.follow(sys)
	var made [3]struct { // without a tree, with one, and with events
		at   time.Time
		text host.Raw
	}
	_, err := sys.SpawnService(reporter, host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage || m.Correlation == 0 {
			return nil
		}
		from := m.Sender.UID().Node()
		trees, what, events, signed, ok := readAsked(m)
		if !ok {
			return ctx.ReplyError(takesTrees + ", or " + asksEvents + ", " + asksStatus + ", " + ordersDrain + ", " + ordersUndo)
		}
		if (what != "" || events != nil || signed != nil) && m.Sender.Path() != "/temp" { // the path of Go code of any node; an actor always states its own
			return ctx.ReplyError("that is for operators")
		}
		if signed != nil {
			return x.obey(ctx, from, signed)
		}
		if err := x.mayAsk(from); err != nil {
			x.refused(from, "what it has asked", err)
			return ctx.ReplyError(err.Error())
		}
		if events != nil {
			wants, err := events.matcher()
			if err != nil {
				return ctx.ReplyError(err.Error())
			}
			r := x.report(ctx.System(), began, false)
			r.Events, r.Left, r.Next = kept.behind(events.After, wants)
			return ctx.Reply(r)
		}
		if what == asksStatus {
			return x.tellStatus(ctx, from)
		}
		if ordered(what) {
			x.refused(from, "an order", errUnsigned)
			return ctx.ReplyError(errUnsigned.Error())
		}
		last, now := &made[0], ctx.Now()
		switch {
		case trees:
			last = &made[1]
		case what != "":
			last = &made[2]
		}
		if age := now.Sub(last.at); last.text == nil || age < 0 || age >= reportAge {
			r := x.report(ctx.System(), began, trees)
			if what != "" {
				r.Events, r.Left, r.Next = kept.behind(0, nil)
			}
			text, err := host.Encode(r)
			if err != nil {
				return ctx.ReplyError(err.Error())
			}
			last.at, last.text = now, text
		}
		return ctx.Reply(last.text)
	}))
	return err
}

// readAsked is what the reporter is asked: a report with or without the tree, something by a word, chosen events, or a signed order.
func readAsked(m host.Message) (trees bool, what string, events *eventsAsked, signed []byte, ok bool) {
	if m.Decode(&trees) == nil {
		return trees, "", nil, nil, true
	}
	if m.Decode(&what) == nil {
		return false, what, nil, nil, what == asksEvents || ordered(what)
	}
	if len(m.Payload) <= natscluster.MaxSignedOrder+8 && m.Decode(&signed) == nil {
		return false, "", nil, signed, len(signed) > 0
	}
	events = &eventsAsked{}
	return false, "", events, nil, m.Decode(events) == nil
}

// report is how this node does.
func (x *membership) report(sys *host.System, began time.Time, trees bool) admin.NodeReport {
	x.mu.Lock()
	self := x.self
	x.mu.Unlock()
	t := sys.View().Totals()
	r := admin.NodeReport{Number: int(self.Number), Name: self.Name, Bundle: sys.Name(), UpSeconds: int64(time.Since(began) / time.Second), Actors: t.Actors, Crashes: t.Crashes, DeadLetters: t.DeadLetters}
	if trees {
		tree, whole := sys.View().TreeUpTo(mostReported)
		bytes := 0
		if !addTree(&r, tree, &bytes) || !whole {
			r.Left = max(1, t.Actors-len(r.Tree))
		}
	}
	return r
}

// addTree adds a node, and those below it, unless they are too many.
func addTree(r *admin.NodeReport, n view.Node, bytes *int) bool {
	path := n.Ref.Path()
	if *bytes += len(path) + len(n.Type) + 64; *bytes > mostReport {
		return false
	}
	r.Tree = append(r.Tree, admin.NodeActor{Path: path, Type: n.Type, State: n.State, Mailbox: n.Mailbox, Turns: n.Turns})
	for _, c := range n.Children {
		if !addTree(r, c, bytes) {
			return false
		}
	}
	return true
}

// Bounds of the texts in the report of another node, in bytes.
const (
	mostName   = 256
	mostReason = 1024
)

// taken is what another node has said when it was asked what, or why it has not, as far as it can be shown: its tree, or its events,
// take share bytes as JSON at most.
func taken(m cluster.Member, what any, r admin.NodeReport, err error, share int) admin.NodeReport {
	if what == asksEvents && err != nil && strings.Contains(err.Error(), takesTrees) {
		err = errEarlier
	}
	if err != nil {
		r = admin.NodeReport{Error: printable.Line(err.Error(), mostReason)}
	} else {
		r.Error = ""
	}
	r.Number, r.Name = int(m.Number), m.Name // whatever it says
	r.Bundle, r.Left = printable.Line(r.Bundle, mostName), max(0, r.Left)
	switch what { // it says no more than it was asked
	case true:
		r.Events, r.Next = nil, 0
	case asksEvents:
		var left int
		r.Tree = nil
		r.Events, left = takenEvents(r.Events, share)
		r.Left = sum(r.Left, left)
	default:
		r.Tree, r.Events, r.Left, r.Next = nil, nil, 0, 0
	}
	bytes := 0
	for i := range r.Tree {
		a := &r.Tree[i]
		a.Path, a.Type, a.State = printable.Line(a.Path, abi.MaxPath), printable.Line(a.Type, mostName), printable.Line(a.State, mostName)
		if bytes += 128 + inJSON(a.Path) + inJSON(a.Type) + inJSON(a.State); bytes > share || i == mostReported {
			r.Left = sum(r.Left, len(r.Tree)-i)
			r.Tree = r.Tree[:i]
			break
		}
	}
	return r
}

// sum is the sum of two counts, or the largest one.
func sum(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// inJSON is how many bytes a text takes as JSON, at most.
func inJSON(text string) (n int) {
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			n++
		} else {
			n += 6
		}
	}
	return n
}

// clusterAdmin implements admin.Nodes.
type clusterAdmin struct{ l *live }

// nodes is the run as a node of its cluster.
func (l *live) nodes() admin.Nodes { return &clusterAdmin{l} }

var errApart = errors.New("the node is not a member at the moment: it was lost, and joins again when the directory answers")

// at is the system, and the keys that are spread. It waits neither for a reload nor for a node that joins again.
func (a *clusterAdmin) at() (*host.System, []string, error) {
	s := a.l.seen.Load()
	if s == nil {
		return nil, nil, errApart
	}
	return s.sys, s.spread, nil
}

// member is the node.
func (a *clusterAdmin) member() *cluster.Node {
	x := a.l.membership
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.node
}

func (a *clusterAdmin) region(kind string) (*host.System, host.Ref, error) {
	sys, kinds, err := a.at()
	if err != nil {
		return nil, host.Ref{}, err
	}
	if !slices.Contains(kinds, kind) {
		return nil, host.Ref{}, fmt.Errorf("no keyed actor or singleton of the cluster is called %q: there are %s", oneLine(kind), orDash(strings.Join(kinds, ", ")))
	}
	ref, err := sys.Lookup("/user/" + kind)
	return sys, ref, err
}

// stops is what the directory is needed for.
const stops = "until it answers no node joins or is replaced, no shard moves, and what services share takes no writes; a node stops acting when its lease is over"

// Apart implements admin.Nodes: a node that has not renewed its lease for half of it is about to stop.
func (a *clusterAdmin) Apart() string {
	x := a.l.membership
	n := a.member()
	if n == nil || a.l.seen.Load() == nil {
		return errApart.Error()
	}
	switch s := n.Status(); {
	case !s.Acting:
		return "the lease is over: the node must not act until it has joined again"
	case s.Left < x.identity.Lease/2:
		return "the lease was not renewed for half of its time: the directory does not answer, its majority may be lost; " + stops
	}
	return ""
}

// Status implements admin.Nodes.
func (a *clusterAdmin) Status(ctx context.Context, node string) (admin.ClusterStatus, error) {
	x := a.l.membership
	if node != "" && node != x.identity.Node {
		return a.statusOf(ctx, node)
	}
	x.mu.Lock()
	n, self := x.node, x.self
	x.mu.Unlock()
	s := admin.ClusterStatus{Version: 1, Number: int(self.Number), Name: x.identity.Node, Cluster: x.identity.Name, ID: x.identity.ID, Keepers: []string{}, Members: []admin.ClusterNode{}, Kinds: []admin.ClusterKind{}}
	for _, k := range x.identity.Keepers {
		s.Keepers = append(s.Keepers, k.Name)
	}
	if err := x.place.Silent(); err != nil {
		s.Silent, s.SilentMS = err.Error(), x.place.SilentFor().Milliseconds()
		s.Stops = stops + "; it needs " + x.place.Needs()
	}
	if n == nil {
		s.Unknown, s.Unready = errApart.Error(), errApart.Error()
		return s, nil
	}
	status := n.Status()
	s.Acting, s.LeaseMS, s.Unready = status.Acting, max(0, status.Left.Milliseconds()), a.unready()
	for _, m := range n.Members() {
		s.Members = append(s.Members, admin.ClusterNode{Number: int(m.Number), Name: m.Name, Roles: append([]string{}, m.Roles...), Zone: m.Zone, Waiting: int64(n.Waiting(m.Number))})
	}
	s.Code = codeOf(a.l.bundle, n)
	sys, kinds, err := a.at()
	if err != nil {
		s.Unknown = err.Error() // its members are known, and no more
		return s, nil
	}
	s.Draining = len(kinds) > 0
	for _, kind := range kinds {
		k := admin.ClusterKind{Kind: kind}
		ref, err := sys.Lookup("/user/" + kind)
		var x shard.State
		if err == nil {
			x, err = shard.Look(ctx, sys, ref)
		}
		if err != nil {
			k.Wrong = err.Error()
		} else {
			k.Shards, k.Owned, k.Moving, k.Waiting, k.Keys, k.Wrong = x.Shards, x.Owned, x.Moving, x.Waiting, x.Keys, x.Wrong
			k.Starting, k.Unstarted = x.Starting, x.Unstarted
			k.In, k.Out, k.GivenUp, k.Stolen = x.In, x.Out, x.GivenUp, x.Stolen
		}
		s.Draining = s.Draining && err == nil && x.Leaving
		for _, h := range x.Hosts { // the others know it, too
			s.Draining = s.Draining && (h.Node != self.Number || h.Leaving)
		}
		s.Kinds = append(s.Kinds, k)
	}
	return s, nil
}

func (a *clusterAdmin) Where(ctx context.Context, kind, key string) (admin.KeyPlace, error) {
	sys, ref, err := a.region(kind)
	if err != nil {
		return admin.KeyPlace{}, err
	}
	p, err := shard.Where(ctx, sys, ref, key)
	return a.placed(kind, key, p), err
}

func (a *clusterAdmin) Move(ctx context.Context, kind, key, node string) (admin.KeyPlace, error) {
	sys, ref, err := a.region(kind)
	if err != nil {
		return admin.KeyPlace{}, err
	}
	number := uint16(0)
	if node != "" {
		for _, m := range a.member().Members() {
			if m.Name == node {
				number = m.Number
			}
		}
		if number == 0 {
			return admin.KeyPlace{}, fmt.Errorf("there is no node %q in the cluster", oneLine(node))
		}
	}
	p, err := shard.Move(ctx, sys, ref, key, number)
	return a.placed(kind, key, p), err
}

func (a *clusterAdmin) placed(kind, key string, p shard.Place) admin.KeyPlace {
	out := admin.KeyPlace{Version: 1, Kind: kind, Key: key, Shard: p.Shard, Epoch: p.Epoch, Node: int(p.Node), From: int(p.From), Pinned: p.Pin != 0}
	if m, ok := a.member().Member(p.Node); ok {
		out.Name = m.Name
	}
	return out
}

// Drain implements admin.Nodes.
func (a *clusterAdmin) Drain(ctx context.Context, node string, on bool) (admin.ClusterStatus, error) {
	if node != "" && node != a.l.membership.identity.Node {
		if on {
			return a.drainOther(ctx, node, ordersDrain)
		}
		return a.drainOther(ctx, node, ordersUndo)
	}
	sys, kinds, err := a.at()
	if err != nil {
		return admin.ClusterStatus{}, err
	}
	a.l.membership.drains(on)
	if err := drainAll(ctx, sys, kinds, on); err != nil {
		return admin.ClusterStatus{}, err
	}
	return a.Status(ctx, "")
}

// unready is why this node should get no requests from outside; "": it may.
func (a *clusterAdmin) unready() string {
	if why := a.Apart(); why != "" {
		return why
	}
	at := a.l.seen.Load()
	if at == nil {
		return errApart.Error()
	}
	return at.unready()
}

// regionSoon is how long a region that has just started may need to begin.
const regionSoon = 10 * time.Millisecond

// drainAll has the shards of all kinds moved to other nodes, or with false lets the node have some again.
func drainAll(ctx context.Context, sys *host.System, kinds []string, on bool) error {
	var errs []error
	for _, kind := range kinds {
		ref, err := sys.Lookup("/user/" + kind)
		for err == nil {
			if _, err = shard.Drain(ctx, sys, ref, on); !errors.Is(err, shard.ErrNotBegun) {
				break
			}
			select { // the system has just started
			case <-ctx.Done():
			case <-time.After(regionSoon):
				err = nil
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", kind, err))
		}
	}
	return errors.Join(errs...)
}

func (a *clusterAdmin) All(ctx context.Context, trees bool) (admin.ClusterNodes, error) {
	return a.askAll(ctx, trees, func(cluster.Member) any { return trees })
}

// askAll asks the reporters of all nodes, each in its words.
func (a *clusterAdmin) askAll(ctx context.Context, what any, words func(cluster.Member) any) (admin.ClusterNodes, error) {
	sys, _, err := a.at()
	if err != nil {
		return admin.ClusterNodes{}, err
	}
	members := a.member().Members()
	out := admin.ClusterNodes{Version: 1, Nodes: make([]admin.NodeReport, len(members))}
	share := min(mostReport, mostReports/max(1, len(members)))
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	var wait sync.WaitGroup
	for i, m := range members {
		wait.Go(func() {
			r := admin.NodeReport{}
			ref, err := sys.Identify(ctx, reporterOf(sys, m))
			if err == nil {
				r, err = host.AskAs[admin.NodeReport](ctx, sys, ref, words(m))
			}
			out.Nodes[i] = taken(m, what, r, err, share)
		})
	}
	wait.Wait()
	return out, nil
}
