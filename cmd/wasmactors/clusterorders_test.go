package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/natscluster"
)

// ordering is a node in this process that runs bundle shop, or says so.
type ordering struct {
	*membership
	sys *host.System

	mu     sync.Mutex
	events []cluster.Event
}

func (o *ordering) saw(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if e.Kind == cluster.EventRefused && strings.Contains(e.Text, text) {
			return true
		}
	}
	return false
}

// joinedOrdering has a node of an identity join.
func joinedOrdering(t *testing.T, id *natscluster.Identity, no uint64) *ordering {
	t.Helper()
	o := &ordering{}
	event := func(e cluster.Event) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.events = append(o.events, e)
	}
	place, err := natscluster.Open(t.Context(), id, natscluster.Options{Events: event})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(place.Close)
	x := &membership{identity: id, bundle: "shop", manifest: &bundle.Cluster{Control: true}, running: t.Context(), place: place}
	n, trusted, err := x.make(cluster.Config{Name: id.Node, Identity: id.Certificate(), Lease: id.Lease, ID: no, Directory: place.Directory(), Links: place.Links(), Events: event})
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		m   cluster.Member
		err error
	}
	got := make(chan result, 1)
	n.Join(func(m cluster.Member, err error) { got <- result{m, err} })
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	x.node, x.trusted, x.self = n, trusted, r.m
	x.operator = &clusterAdmin{&live{membership: x}}
	if o.sys, err = host.New(host.NewConfig("shop").WithNode(r.m.Number)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.sys.Close(context.Background()) })
	if err := x.reportTo(o.sys); err != nil {
		t.Fatal(err)
	}
	if err := n.Attach(o.sys); err != nil {
		t.Fatal(err)
	}
	o.membership = x
	return o
}

// A member whose token was for another bundle can neither order a node of this one anything, nor ask how it does: whether it signs for itself,
// sends what is not signed, has what another one has signed, or makes up who has sent what it hands on.
func TestOrdersOfMembersOfOtherBundles(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	first, err := natscluster.Init(filepath.Join(dir, "a"), "a", natscluster.Description{Name: "test", Keepers: []natscluster.Keeper{{Name: "a", Address: address}}})
	if err != nil {
		t.Fatal(err)
	}
	third, err := first.Sibling(filepath.Join(dir, "c"), "c")
	if err != nil {
		t.Fatal(err)
	}
	a := joinedOrdering(t, first, 11)
	token, err := first.Token("b", time.Hour, "bank")
	if err != nil {
		t.Fatal(err)
	}
	bank, err := natscluster.Enrol(t.Context(), filepath.Join(dir, "b"), token, "")
	if err != nil {
		t.Fatal(err)
	}
	b, c := joinedOrdering(t, bank, 12), joinedOrdering(t, third, 13)
	for end := time.Now().Add(patience); len(a.node.Members()) < 3 || len(b.node.Members()) < 3 || len(c.node.Members()) < 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("they do not find each other")
		}
	}
	order, err := cbor.Marshal(nodeOrder{What: ordersErase, Kind: "carts", Key: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	sign := func(by *ordering, to cluster.Member) []byte {
		b, err := by.identity.SignOrder(to, "shop", order)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ask := func(by *ordering, what any) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ref, err := by.sys.Identify(ctx, reporterOf(by.sys, a.self))
		if err != nil {
			t.Fatal(err)
		}
		_, err = by.sys.Ask(ctx, ref, what)
		return err
	}

	// Who may: the order comes as far as the bundle, which does not run here. The same of the status; a report is answered.
	if err := ask(c, sign(c, a.self)); err == nil || !strings.Contains(err.Error(), errApart.Error()) {
		t.Errorf("an order of who may: %v", err)
	}
	if err := ask(c, true); err != nil {
		t.Error(err)
	}
	if err := ask(c, asksStatus); err != nil {
		t.Error(err)
	}

	const why = "the token of node b was for bundle bank only, not for shop"
	for name, what := range map[string]any{
		"signed by it": sign(b, a.self), "signed by another": sign(c, a.self), "not signed": ordersDrain, "not signed, back": ordersUndo,
		"a report": false, "the tree": true, "the status": asksStatus, "all events": asksEvents, "some events": eventsAsked{Kinds: []string{"failed"}},
	} {
		var said *host.ReplyError
		if err := ask(b, what); !errors.As(err, &said) || !strings.Contains(said.Reason, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !a.saw(why) {
		t.Errorf("no event says so: %v", a.events)
	}
	for name, what := range map[string]any{"not signed": ordersDrain, "for another node": sign(c, c.self), "of a start before": sign(c, func() cluster.Member { m := a.self; m.ID--; return m }())} {
		if err := ask(c, what); err == nil || !strings.Contains(err.Error(), "sign") {
			t.Errorf("%s, of who may: %v", name, err)
		}
	}

	// Nor can it stop an actor, whoever else may.
	victim, err := a.sys.Spawn("victim", host.Func(func(*host.Context, host.Message) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	ended, _ := a.sys.Ended(victim)
	b.sys.Stop(victim)
	for end := time.Now().Add(patience); !a.saw("the node may not stop actors here"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no event says that a stop was refused: %v", a.events)
		}
		b.sys.Stop(victim)
	}
	select {
	case <-ended:
		t.Error("it has stopped an actor")
	default:
	}
	c.sys.Stop(victim)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("who may stops nothing")
	}

	// It hands on what another node is the sender of: here that node sends what the member would make up.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reporterOfA, err := b.sys.Identify(ctx, reporterOf(b.sys, a.self))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.sys.Spawn("forger", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			return nil
		}
		return ctx.Forward(reporterOfA)
	})); err != nil {
		t.Fatal(err)
	}
	at, err := c.sys.Identify(ctx, fmt.Sprintf("wasm://shop@%d/user/forger", b.self.Number))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what any
		why  string
	}{{sign(b, a.self), why}, {ordersDrain, errUnsigned.Error()}, {ordersUndo, errUnsigned.Error()}} {
		if _, err := c.sys.Ask(ctx, at, x.what); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("handed on, %v: %v", x.what, err)
		}
	}
	for end := time.Now().Add(patience); !a.saw("an order was refused: " + errUnsigned.Error()); time.Sleep(50 * time.Millisecond) { // some events a second
		if time.Now().After(end) {
			t.Fatalf("no event says that what was handed on was not signed: %v", a.events)
		}
		_, _ = c.sys.Ask(ctx, at, ordersDrain)
	}
}
