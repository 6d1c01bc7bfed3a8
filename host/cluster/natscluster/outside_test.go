package natscluster

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// A NATS that exists keeps the directory. It restarts, for less than the lease: no node is lost, and they talk again.
func TestAnOutsideNATSRestarts(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("a NATS that restarts takes some seconds")
	}
	address := freeAddress(t)
	hostName, port, err := cluster.HostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	run := func() *server.Server {
		s, err := server.NewServer(&server.Options{Host: hostName, Port: port, JetStream: true, StoreDir: store, NoLog: true, NoSigs: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(20 * time.Second) {
			t.Fatal("it does not listen")
		}
		return s
	}
	s := run()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	dir := t.TempDir()
	first, err := Init(filepath.Join(dir, "a"), "a", Description{Name: "outside", URL: "nats://" + address})
	if err != nil {
		t.Fatal(err)
	}
	if first.Lease != OutsideLease {
		t.Errorf("the lease is %v", first.Lease)
	}
	second, err := Enrol(within(t, 20*time.Second), filepath.Join(dir, "b"), enrolling(t, first), "")
	if err != nil {
		t.Fatal(err)
	}
	e := &events{}
	var nodes []*cluster.Node
	var systems []*host.System
	for i, c := range opened(t, []*Identity{first, second}, e) {
		n, sys, err := joined(t, c, e, uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		nodes, systems = append(nodes, n), append(systems, sys)
	}
	far, err := systems[1].Spawn("echo", host.Func(func(ctx *host.Context, _ host.Message) error { return ctx.Reply("yes") }))
	if err != nil {
		t.Fatal(err)
	}
	asks := func() bool {
		got, err := host.AskAs[string](within(t, 5*time.Second), systems[0], far, "?")
		return err == nil && got == "yes"
	}
	if !eventually(asks) {
		t.Fatalf("they do not talk: %v", e)
	}
	s.Shutdown()
	s.WaitForShutdown()
	if !eventually(func() bool { return e.has(cluster.EventSilent, "") }) {
		t.Errorf("no event says that it is silent: %v", e)
	}
	s = run()
	if !eventually(asks) {
		t.Errorf("they do not talk after the restart: %v", e)
	}
	for end := time.Now().Add(OutsideLease + OutsideLease/4); time.Now().Before(end) && !t.Failed(); time.Sleep(20 * time.Millisecond) {
		for i, n := range nodes {
			if !n.Acting() || len(n.Members()) != 2 {
				t.Errorf("node %d: acting %v, members %v; events: %v", i, n.Acting(), n.Members(), e)
			}
		}
	}
	if !asks() || e.has(cluster.EventLost, "") || !e.has(cluster.EventAnswers, "") {
		t.Errorf("events: %v", e)
	}
}

// On a NATS that exists a stream that was changed later is found, and what services share is left alone until it is right.
func TestAStreamThatIsChangedLater(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("it does not listen")
	}
	id, err := Init(filepath.Join(t.TempDir(), "a"), "a", Description{Name: "outside", URL: s.ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	e := &events{}
	c := opened(t, []*Identity{id}, e)[0]
	x := sharedOf(t, c, "kv", "shop")
	first := put(x, "shop.n.k", []byte("x"), 0, 0)
	if first.err != nil || !first.ok {
		t.Fatalf("%+v", first)
	}
	st, _ := c.shared.of["kv"].opened()
	if c.looksAt(t.Context(), st); st.wrong.Load() != nil || e.has(cluster.EventRefused, "") {
		t.Fatalf("it was not changed: %v", e)
	}
	js := mustStream(t, c)
	cfg := st.streamConfig(1)
	cfg.MaxAge = time.Hour
	for i, change := range []func() error{
		func() error { _, err := js.UpdateStream(within(t, 20*time.Second), cfg); return err },
		func() error { return js.DeleteStream(within(t, 20*time.Second), cfg.Name) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		c.looksAt(t.Context(), st)
		if o := put(x, "shop.n.l", nil, 0, 0); !errors.Is(o.err, service.ErrNotWritten) {
			t.Errorf("%d: it is written to: %+v", i, o)
		}
		if value, _, err := get(x, "shop.n.k"); err == nil {
			t.Errorf("%d: it is read: %q", i, value)
		}
		if !e.has(cluster.EventRefused, "was changed") {
			t.Errorf("%d: no event says so: %v", i, e)
		}
	}
	if _, err := js.CreateStream(within(t, 20*time.Second), st.streamConfig(1)); err != nil {
		t.Fatal(err)
	}
	c.looksAt(t.Context(), st)
	if o := put(x, "shop.n.l", []byte("y"), 0, 0); o.err != nil || !o.ok || !e.has(cluster.EventAnswers, "again") {
		t.Errorf("it is right again: %+v, %v", o, e)
	}
}

// enrolling is a token for node b of a cluster whose first node is about to take it.
func enrolling(t *testing.T, first *Identity) string {
	c, err := Open(within(t, 20*time.Second), first, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return tokenOf(t, first, "b")
}
