package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// An operator of one node may ask any node how it does, and have it drained: the reporter of that node does so. A member could move
// each of its shards anyway.

// What the reporter is asked for.
const (
	asksStatus   = "status"
	ordersDrain  = "drain"
	ordersUndo   = "undrain"
	mostOrders   = 4 // at a time; beyond it they are refused
	mostKinds    = 1000
	mostMembers  = 1023
	ordersTime   = 4 * time.Second // to carry one out
	busyReporter = "other operators ask it at the moment"
)

// ordered reports whether what the reporter was asked is one of these.
func ordered(what string) bool {
	return what == asksStatus || what == ordersDrain || what == ordersUndo
}

// carryOut answers with the status of this node, after it was drained or may have shards again.
func (x *membership) carryOut(ctx *host.Context, what string) error {
	if x.operator == nil {
		return ctx.ReplyError(errApart.Error())
	}
	if x.orders.Add(1) > mostOrders {
		x.orders.Add(-1)
		return ctx.ReplyError(busyReporter)
	}
	later, err := ctx.Later()
	if err != nil {
		x.orders.Add(-1)
		return err
	}
	go func() { // it asks the regions
		defer x.orders.Add(-1)
		within, cancel := context.WithTimeout(x.running, ordersTime)
		defer cancel()
		var s admin.ClusterStatus
		var err error
		if what == asksStatus {
			s, err = x.operator.Status(within, "")
		} else {
			s, err = x.operator.Drain(within, "", what == ordersDrain)
		}
		if err != nil {
			_ = later.Fail(err.Error())
			return
		}
		_ = later.Send(s)
	}()
	return nil
}

// orderOther has another node carry an order out.
func (a *clusterAdmin) orderOther(ctx context.Context, node, what string) (admin.ClusterStatus, error) {
	sys, _, err := a.at()
	if err != nil {
		return admin.ClusterStatus{}, err
	}
	m, ok := memberOf(a.member().Members(), node)
	if !ok {
		return admin.ClusterStatus{}, &admin.Problem{Status: http.StatusNotFound, Code: noSuchNode, Message: fmt.Sprintf("there is no node %q in the cluster", oneLine(node)), Hint: "wasmactors cluster status lists them"}
	}
	ref, err := sys.Identify(ctx, reporterOf(sys, m))
	var s admin.ClusterStatus
	if err == nil {
		s, err = host.AskAs[admin.ClusterStatus](ctx, sys, ref, what)
	}
	if err != nil && strings.Contains(err.Error(), takesTrees) {
		err = &host.ReplyError{Reason: "it is of an earlier release, which takes no orders"}
	}
	if err != nil {
		return admin.ClusterStatus{}, unfulfilled(m.Name, err)
	}
	return takenStatus(m, s), nil
}

// Codes of problems with another node.
const (
	noSuchNode = "no_such_node"
	noAnswer   = "no_answer"
	busyNode   = "busy"
)

// unfulfilled is why a node has not carried an order out.
func unfulfilled(node string, err error) *admin.Problem {
	p := &admin.Problem{Status: http.StatusGatewayTimeout, Code: noAnswer, Message: "node " + node + ": " + printable.Line(err.Error(), mostReason)}
	var said *host.ReplyError
	switch {
	case !errors.As(err, &said):
	case said.Reason == busyReporter:
		p.Status, p.Code, p.Hint = http.StatusServiceUnavailable, busyNode, "try again when they have ended"
	default:
		p.Status, p.Code = http.StatusConflict, "refused"
	}
	return p
}

// passing reports whether a node may carry the same order out soon.
func passing(err error) bool {
	var p *admin.Problem
	return errors.As(err, &p) && (p.Code == noAnswer || p.Code == busyNode)
}

func memberOf(all []cluster.Member, node string) (cluster.Member, bool) {
	for _, m := range all {
		if m.Name == node {
			return m, true
		}
	}
	return cluster.Member{}, false
}

// reporterOf is the path of a node's reporter.
func reporterOf(sys *host.System, m cluster.Member) string {
	return fmt.Sprintf("wasm://%s@%d/system/%s", sys.Name(), m.Number, reporter)
}

// takenStatus is what another node has said of itself, as far as it can be shown.
func takenStatus(m cluster.Member, s admin.ClusterStatus) admin.ClusterStatus {
	s.Version, s.Number, s.Name = 1, int(m.Number), m.Name // whatever it says
	for _, text := range []*string{&s.Cluster, &s.ID, &s.Silent, &s.Stops, &s.Unknown, &s.Unready} {
		*text = printable.Line(*text, mostReason)
	}
	s.Keepers = s.Keepers[:min(len(s.Keepers), mostMembers)]
	if s.Keepers == nil {
		s.Keepers = []string{}
	}
	for i := range s.Keepers {
		s.Keepers[i] = printable.Line(s.Keepers[i], mostName)
	}
	s.Members, s.Kinds = s.Members[:min(len(s.Members), mostMembers)], s.Kinds[:min(len(s.Kinds), mostKinds)]
	if s.Members == nil {
		s.Members = []admin.ClusterNode{}
	}
	if s.Kinds == nil {
		s.Kinds = []admin.ClusterKind{}
	}
	for i := range s.Members {
		x := &s.Members[i]
		x.Name, x.Zone, x.Roles = printable.Line(x.Name, mostName), printable.Line(x.Zone, mostName), m.Roles
		if x.Name != m.Name {
			x.Roles = []string{} // what it says of others is not its to say
		}
	}
	for i := range s.Kinds {
		k := &s.Kinds[i]
		k.Kind, k.Wrong, k.Unstarted = printable.Line(k.Kind, mostName), printable.Line(k.Wrong, mostReason), printable.Line(k.Unstarted, mostReason)
	}
	return s
}
