package natscluster

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// A NATS that exists keeps the directory. It restarts, for less than the lease: no node is lost, and they talk again.
func TestAnOutsideNATSRestarts(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("a NATS that restarts takes some seconds")
	}
	address := freeAddress(t)
	hostName, port, err := hostPort(address)
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

// enrolling is a token for node b of a cluster whose first node is about to take it.
func enrolling(t *testing.T, first *Identity) string {
	c, err := Open(within(t, 20*time.Second), first, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return tokenOf(t, first, "b")
}
