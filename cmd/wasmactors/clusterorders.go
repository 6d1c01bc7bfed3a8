package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/journal"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// An operator of one node may ask any node how it does, have it drained, and have what the journal has of its keys deleted: the reporter of
// that node does so. Who asks is told nothing if its token was for other bundles. What is to be done is signed: the sender of a message may be
// one that has been made up, by a node that hands it on.

// What the reporter is asked for.
const (
	asksStatus   = "status"
	ordersDrain  = "drain"
	ordersUndo   = "undrain"
	ordersErase  = "erase"
	mostOrders   = 4 // at a time; beyond it they are refused
	mostKinds    = 1000
	mostMembers  = 1023
	ordersTime   = 4 * time.Second // to carry one out
	busyReporter = "other operators ask it at the moment"
)

// nodeOrder is what a node is ordered to do, in CBOR, which is signed.
type nodeOrder struct {
	What string `cbor:"1,keyasint"`
	Kind string `cbor:"2,keyasint,omitempty"`
	Key  string `cbor:"3,keyasint,omitempty"`
}

// ordered reports whether the reporter is asked for the status, or told by a word to do something, as nodes of earlier releases do.
func ordered(what string) bool {
	return what == asksStatus || what == ordersDrain || what == ordersUndo
}

// errUnsigned is why an order is not carried out that anybody could have sent.
var errUnsigned = errors.New("an order has to be signed, which nodes of earlier releases do not: give it on a node of this release")

// mayAsk says why a node may not be told about this one; nil: it may.
func (x *membership) mayAsk(number uint16) error {
	x.mu.Lock()
	n, trusted, self := x.node, x.trusted, x.self.Number
	x.mu.Unlock()
	if n == nil || number == self {
		return nil
	}
	m, ok := n.Member(number)
	if !ok {
		return errors.New("the node that asks is not known")
	}
	return trusted.Why(m)
}

// refused tells that something another node has asked for was not done.
func (x *membership) refused(number uint16, what string, why error) {
	x.mu.Lock()
	n := x.node
	x.mu.Unlock()
	if n != nil {
		n.Refuse(number, printable.Line(what+" was refused: "+why.Error(), mostReason))
	}
}

// later answers with what f returns, which asks the regions: a few at a time.
func (x *membership) later(ctx *host.Context, f func(context.Context) (any, error)) error {
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
	go func() {
		defer x.orders.Add(-1)
		within, cancel := context.WithTimeout(x.running, ordersTime)
		defer cancel()
		v, err := f(within)
		if err != nil {
			_ = later.Fail(err.Error())
			return
		}
		_ = later.Send(v)
	}()
	return nil
}

// tellStatus answers with the status of this node.
func (x *membership) tellStatus(ctx *host.Context, number uint16) error {
	return x.later(ctx, func(within context.Context) (any, error) {
		s, err := x.operator.Status(within, "")
		if err == nil {
			err = x.mayAsk(number) // still: it may be another one by now
		}
		return s, err
	})
}

// obey carries a signed order out.
func (x *membership) obey(ctx *host.Context, number uint16, signed []byte) error {
	if err := x.mayAsk(number); err != nil {
		x.refused(number, "an order", err)
		return ctx.ReplyError(err.Error())
	}
	return x.later(ctx, func(within context.Context) (any, error) {
		x.mu.Lock()
		self := x.self
		x.mu.Unlock()
		b, by, err := x.identity.OpenOrder(self, x.bundle, signed)
		if err != nil {
			x.refused(number, "an order", err)
			return nil, fmt.Errorf("the order is refused: %w", err)
		}
		var o nodeOrder
		if err := strict.Unmarshal(b, &o); err != nil {
			return nil, errors.New("it takes no such order: it is of an earlier release")
		}
		switch o.What {
		case ordersDrain, ordersUndo:
			return x.operator.Drain(within, "", o.What == ordersDrain)
		case ordersErase:
			k, err := x.operator.eraseHere(within, o.Kind, o.Key, by)
			return k, err
		}
		return nil, errors.New("it takes no such order: it is of an earlier release")
	})
}

// strict reads orders.
var strict = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 4, MaxArrayElements: 16, MaxMapPairs: 16, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// reporter finds the node of a name, and its reporter.
func (a *clusterAdmin) reporter(ctx context.Context, node string) (*host.System, cluster.Member, host.Ref, error) {
	sys, _, err := a.at()
	if err != nil {
		return nil, cluster.Member{}, host.Ref{}, err
	}
	m, ok := memberOf(a.member().Members(), node)
	if !ok {
		return nil, m, host.Ref{}, &admin.Problem{Status: http.StatusNotFound, Code: noSuchNode, Message: fmt.Sprintf("there is no node %q in the cluster", oneLine(node)), Hint: "wasmactors cluster status lists them"}
	}
	ref, err := sys.Identify(ctx, reporterOf(sys, m))
	if err != nil {
		err = unfulfilled(m.Name, err)
	}
	return sys, m, ref, err
}

// statusOf asks another node how it does.
func (a *clusterAdmin) statusOf(ctx context.Context, node string) (admin.ClusterStatus, error) {
	sys, m, ref, err := a.reporter(ctx, node)
	if err != nil {
		return admin.ClusterStatus{}, err
	}
	s, err := host.AskAs[admin.ClusterStatus](ctx, sys, ref, asksStatus)
	return statusSaid(m, s, err)
}

func statusSaid(m cluster.Member, s admin.ClusterStatus, err error) (admin.ClusterStatus, error) {
	if err != nil {
		return admin.ClusterStatus{}, unfulfilled(m.Name, ofEarlier(err))
	}
	return takenStatus(m, s), nil
}

// ofEarlier is an error that says so if a node of an earlier release has answered.
func ofEarlier(err error) error {
	if err != nil && strings.Contains(err.Error(), takesTrees) {
		return &host.ReplyError{Reason: "it is of an earlier release, which takes no such orders"}
	}
	return err
}

// ordersOther has another node carry an order out.
func ordersOther[T any](ctx context.Context, a *clusterAdmin, sys *host.System, m cluster.Member, ref host.Ref, o nodeOrder) (answer T, err error) {
	x := a.l.membership
	b, err := cbor.Marshal(o)
	if err != nil {
		return answer, err
	}
	signed, err := x.identity.SignOrder(m, x.bundle, b)
	if err != nil {
		return answer, err
	}
	return host.AskAs[T](ctx, sys, ref, signed)
}

// drainOther has another node drained, or take shards again.
func (a *clusterAdmin) drainOther(ctx context.Context, node, what string) (admin.ClusterStatus, error) {
	sys, m, ref, err := a.reporter(ctx, node)
	if err != nil {
		return admin.ClusterStatus{}, err
	}
	s, err := ordersOther[admin.ClusterStatus](ctx, a, sys, m, ref, nodeOrder{What: what})
	if err != nil && strings.Contains(err.Error(), takesTrees) { // it is of an earlier release, and takes the word
		s, err = host.AskAs[admin.ClusterStatus](ctx, sys, ref, what)
	}
	return statusSaid(m, s, err)
}

// eraseOther has the node that has a key delete what the journal has of it.
func (a *clusterAdmin) eraseOther(ctx context.Context, node, kind, key string) (admin.KeyJournal, error) {
	sys, m, ref, err := a.reporter(ctx, node)
	if err != nil {
		return admin.KeyJournal{}, err
	}
	k, err := ordersOther[admin.KeyJournal](ctx, a, sys, m, ref, nodeOrder{What: ordersErase, Kind: kind, Key: key})
	if err == nil {
		k.Version, k.Kind, k.Key = 1, kind, key // whatever it says
		return k, nil
	}
	for _, known := range []error{journal.ErrMoved, journal.ErrLives, journal.ErrNothing, journal.ErrSpoilt} {
		if strings.Contains(err.Error(), known.Error()) {
			return admin.KeyJournal{}, a.unread(fmt.Errorf("node %s: %w", m.Name, known))
		}
	}
	return admin.KeyJournal{}, unfulfilled(m.Name, ofEarlier(err))
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
	s.Code = takenCode(s.Code)
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
