package natscluster

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
)

// joined makes a system of the cluster's node.
func joined(t *testing.T, c *Cluster, e *events, id uint64) (*cluster.Node, *host.System, error) {
	t.Helper()
	n, err := cluster.New(cluster.Config{
		Name: c.id.Node, ID: id, Identity: c.id.Certificate(), Lease: c.id.Lease, Directory: c.Directory(), Links: c.Links(), Events: e.add,
	})
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
		return n, nil, r.err
	}
	s, err := host.New(host.NewConfig("nodes").WithNode(r.m.Number))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	if err := n.Attach(s); err != nil {
		t.Fatal(err)
	}
	return n, s, nil
}

// Actors of two nodes ask each other, by the embedded NATS; a third process of a name that is there is refused.
func TestANameTwice(t *testing.T) {
	ids := founded(t, 1, 2)
	e := &events{}
	all := opened(t, ids, e)
	var nodes []*cluster.Node
	var systems []*host.System
	for i, c := range all {
		n, s, err := joined(t, c, e, uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		nodes, systems = append(nodes, n), append(systems, s)
	}
	if !eventually(func() bool { return len(nodes[0].Members()) == 2 && len(nodes[1].Members()) == 2 }) {
		t.Fatalf("they do not see each other: %v", e)
	}
	far, err := systems[1].Spawn("echo", host.Func(func(ctx *host.Context, m host.Message) error {
		var n int
		if err := m.Decode(&n); err != nil {
			return err
		}
		return ctx.Reply(n + 1)
	}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		got, err := host.AskAs[int](within(t, 20*time.Second), systems[0], far, i)
		if err != nil || got != i+1 {
			t.Fatalf("%d: %d, %v; events: %v", i, got, err, e)
		}
	}
	again := opened(t, ids[1:], e)[0]
	if _, _, err := joined(t, again, e, 9); !errors.Is(err, cluster.ErrName) {
		t.Errorf("a name twice: %v", err)
	}
	left := make(chan error, 1)
	nodes[1].Leave(func(err error) { left <- err })
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	if _, _, err := joined(t, again, e, 10); err != nil {
		t.Errorf("the name is free again: %v", err)
	}
}

func TestDirectoriesOfOthers(t *testing.T) {
	ids := founded(t, 1, 1)
	c := opened(t, ids, &events{})[0]
	for name, there := range map[string]string{
		"another authority": `{"protocol":1,"authority":"00"}`, "another protocol": strings.Replace(string(c.own()), `"protocol":1`, `"protocol":2`, 1), "nothing": "",
	} {
		err := checkOther([]byte(there), c.own())
		if !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// An authority of the same ID, as only a copy of a folder could have made it.
	d := ids[0].Description
	other, err := Init(filepath.Join(t.TempDir(), "x"), "n0", d)
	if err != nil {
		t.Fatal(err)
	}
	other.ID = ids[0].ID
	forged := &Cluster{id: other, nodes: c.nodes, dir: c.dir, event: func(cluster.Event) {}}
	if err := forged.checkDescription(within(t, 20*time.Second)); !errors.Is(err, ErrOther) {
		t.Errorf("a directory of another authority: %v", err)
	}
}

// Keepers that begin at a time write the description at a time. One whose write is refused may find nothing for a moment, since the
// other one's is not on the disks of a majority yet.
func TestADescriptionThatIsBeingWritten(t *testing.T) {
	own := []byte(`{"protocol":1,"authority":"00"}`)
	conflict := func() error { return cluster.ErrConflict }
	found := func(text string, revision uint64) func() ([]byte, uint64, error) {
		return func() ([]byte, uint64, error) { return []byte(text), revision, nil }
	}
	if err := describe(own, conflict, found("", 0)); !errors.Is(err, errNotThere) || errors.Is(err, ErrOther) {
		t.Errorf("nothing is there yet: %v", err)
	}
	if err := describe(own, conflict, found(string(own), 7)); err != nil {
		t.Error(err)
	}
	if err := describe(own, conflict, found(`{"protocol":1,"authority":"01"}`, 7)); !errors.Is(err, ErrOther) {
		t.Errorf("another authority: %v", err)
	}
	if err := describe(own, func() error { return nil }, nil); err != nil {
		t.Error(err)
	}
}

// A node that has only a token gets its folder through the keeper, once.
func TestEnrol(t *testing.T) {
	ids := founded(t, 1, 1)
	e := &events{}
	opened(t, ids, e)
	text := tokenOf(t, ids[0], "b")
	dir := t.TempDir()
	b, err := Enrol(within(t, 20*time.Second), filepath.Join(dir, "b"), text, "")
	if err != nil {
		t.Fatal(err)
	}
	opened(t, []*Identity{b}, e)
	if _, err := Enrol(within(t, 20*time.Second), filepath.Join(dir, "thief"), text, ""); err == nil || !strings.Contains(err.Error(), "used before") {
		t.Errorf("a token that was used: %v", err)
	}
	if !e.has(cluster.EventRefused, "used before") {
		t.Errorf("no event says so: %v", e)
	}
	other := founded(t, 1, 1)[0]
	forged := strings.TrimPrefix(tokenOf(t, other, "b"), tokenPrefix)
	x, err := parseToken(tokenPrefix + forged)
	if err != nil {
		t.Fatal(err)
	}
	x.Addresses = []string{ids[0].Keepers[0].Address}
	if _, err := Enrol(within(t, 3*time.Second), filepath.Join(dir, "forged"), textOf(x), ""); err == nil {
		t.Error("another cluster's token is good here")
	}
}

// Who has no certificate may ask with a token only, with few subscriptions.
func TestStrangersAreBounded(t *testing.T) {
	ids := founded(t, 1, 1)
	opened(t, ids, &events{})
	nc, err := nats.Connect("tls://"+ids[0].Keepers[0].Address, nats.Secure(&tls.Config{InsecureSkipVerify: true}), nats.UserInfo(accountEnrol, ""), nats.NoReconnect(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for range 10 {
		if _, err := nc.SubscribeSync(nats.NewInbox()); err != nil {
			t.Fatal(err)
		}
	}
	_ = nc.Flush()
	if !eventually(func() bool { return nc.LastError() != nil }) || !strings.Contains(nc.LastError().Error(), "subscriptions") {
		t.Errorf("ten subscriptions: %v", nc.LastError())
	}
	for _, account := range []string{accountDirectory, accountLinks, accountSystem, ""} {
		if other, err := nats.Connect("tls://"+ids[0].Keepers[0].Address, nats.Secure(&tls.Config{InsecureSkipVerify: true}), nats.UserInfo(account, ""), nats.NoReconnect()); err == nil {
			other.Close()
			t.Errorf("account %q", account)
		}
	}
}

// A member changes entries of the directory, but neither deletes nor empties it, and keeps nothing else there.
func TestAMemberHasOnlyTheDirectory(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	js, err := jetstream.New(all[1].nodes)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := js.Stream(within(t, 20*time.Second), all[1].dir.stream); err != nil {
		t.Error(err)
	} else if err := s.Purge(within(t, time.Second)); err == nil {
		t.Error("the directory is empty")
	}
	if err := js.DeleteStream(within(t, time.Second), all[1].dir.stream); err == nil {
		t.Error("the directory is deleted")
	}
	if _, err := js.CreateStream(within(t, time.Second), jetstream.StreamConfig{Name: "X", Subjects: []string{"x"}}); err == nil {
		t.Error("there is another stream")
	}
	for _, key := range []string{"x", "nodes.1", "node", "node.1.2", "shard.a.b.c", "clusters"} {
		if _, err := all[1].dir.put(key, nil, 0, 0); err == nil {
			t.Errorf("it keeps something as %s, which no node writes", key)
		}
	}
	for _, key := range []string{"node.7", shard.Key("carts"), shard.Key("my.carts~2"), shard.KeyOf("shop", "carts"), shard.KeyOf(strings.Repeat("~", abi.MaxName), strings.Repeat("~", abi.MaxName))} {
		if _, err := all[1].dir.put(key, nil, 0, 0); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// Tables of kinds whose names have characters that no subject has are told to all.
func TestNamesThatAreNoTokens(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	key, told := shard.Key("my.carts~2"), make(chan string, 8)
	defer all[1].Directory().Watch(func(e cluster.Entry) { told <- e.Key })()
	if _, err := all[0].dir.put(key, []byte("table"), 0, 0); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case got := <-told:
			if got == key {
				return
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the other node is not told")
		}
	}
}

// What is not reached is named, and why.
func TestNobodyAnswers(t *testing.T) {
	ids := founded(t, 1, 2)
	for name, f := range map[string]func(context.Context) error{
		"a node": func(ctx context.Context) error { _, err := Open(ctx, ids[1], Options{}); return err },
		"ls":     func(ctx context.Context) error { _, err := Observe(ctx, ids[0]); return err },
		"a token": func(ctx context.Context) error {
			_, err := Enrol(ctx, filepath.Join(t.TempDir(), "b"), tokenOf(t, ids[0], "b"), "")
			return err
		},
	} {
		err := f(within(t, 2*time.Second))
		if err == nil || !strings.Contains(err.Error(), "nothing answers at "+ids[0].Keepers[0].Address) || strings.Contains(err.Error(), "buffer") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func textOf(x *token) string {
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(mustEncode(x))
}

// A node of another authority cannot connect.
func TestWrongAuthority(t *testing.T) {
	ids, other := founded(t, 1, 1), founded(t, 1, 1)
	opened(t, ids, &events{})
	stranger := *other[0]
	stranger.Node, stranger.Keepers = "n9", ids[0].Keepers
	if c, err := Open(within(t, 2*time.Second), &stranger, Options{}); err == nil {
		c.Close()
		t.Error("a node of another authority has joined")
	}
}
