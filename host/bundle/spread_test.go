package bundle

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// spread is a bundle on a node of a simulated cluster.
type spread struct {
	node   *cluster.Node
	self   cluster.Member
	bundle *Bundle
	system *host.System
}

// spreadOver starts a bundle with a keyed guest and a singleton on nodes with the roles; after '@' a role has the name of another bundle.
func spreadOver(t *testing.T, roles ...string) (w *clustertest.World, all []*spread, pass func(time.Duration)) {
	t.Helper()
	code, err := os.ReadFile("../testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"echo.wasm": string(code), FileName: "wasmactors: 1\nname: b\nmodules: {m: {wasm: ./echo.wasm}}\nactors:\n  carts: {type: m/echo, keyed: {}}\n  clock: {type: m/echo, keyed: {}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w = clustertest.New(1)
	for i, role := range roles {
		s := &spread{}
		role, name, _ := strings.Cut(role, "@")
		machine := w.Machine(func() uint16 { return s.self.Number })
		s.node, err = cluster.New(cluster.Config{
			Name: "n" + string(rune('a'+i)), Roles: []string{role}, ID: uint64(i + 1), Directory: machine, Links: machine, Clock: machine, Since: machine.Since,
		})
		if err != nil {
			t.Fatal(err)
		}
		if s.bundle, err = open(t, dir); err != nil {
			t.Fatal(err)
		}
		if name != "" {
			s.bundle.Manifest.Name = name
		}
		carts, clock := s.bundle.Manifest.Actors[0].Keyed, s.bundle.Manifest.Actors[1].Keyed
		carts.Scope, carts.Shards, carts.Role = ScopeCluster, 16, "back"
		clock.Scope, clock.Shards, clock.Role, clock.Single = ScopeCluster, 1, "back", true
		s.node.Join(func(m cluster.Member, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			s.self = m
			change := func(c host.Config) host.Config {
				return c.WithManual().WithClock(machine).WithSeed(uint64(i) + 1).WithNode(m.Number)
			}
			if _, err := s.bundle.Start(change, nil); err == nil || !strings.Contains(err.Error(), "Bundle.Join") {
				t.Errorf("it starts without its node: %v", err)
			}
			s.bundle.Join(s.node)
			if s.system, err = s.bundle.Start(change, func(sys *host.System) {
				if err := s.node.Attach(sys); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Error(err)
			}
		})
		all = append(all, s)
	}
	t.Cleanup(func() {
		for _, s := range all {
			if s.system != nil {
				_ = s.system.Close(context.Background())
			}
		}
	})
	pass = func(d time.Duration) {
		for end := w.Clock.Now().Add(d); ; w.Clock.AdvanceToNext() {
			for again := true; again; {
				again = false
				for _, s := range all {
					again = s.system != nil && s.system.RunUntilIdle(10_000) > 0 || again
				}
			}
			if next, ok := w.Clock.Next(); !ok || next.After(end) {
				return
			}
		}
	}
	pass(5 * time.Second)
	return w, all, pass
}

// The same path is the same actor on every node: a key has one guest in the cluster, on a node with the role, whoever sends, and
// by path or by header. So does a singleton.
func TestKeysOfTheCluster(t *testing.T) {
	_, all, pass := spreadOver(t, "back", "back", "front")
	there := func(pattern string) (paths []string) {
		for i, s := range all {
			for _, ref := range s.system.Select(pattern) {
				paths = append(paths, ref.Path())
				if i == 2 {
					t.Errorf("%s is on a node without the role", ref)
				}
			}
		}
		return paths
	}
	if got := there("/user/clock/*"); len(got) != 1 {
		t.Fatalf("the singletons are %v", got)
	}
	ask := func(s *spread, to host.Ref, v any) {
		t.Helper()
		p, err := s.system.Request(to, v)
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		select {
		case m := <-p.Answer():
			if m.Err() != nil {
				t.Error(m.Err())
			}
		default:
			t.Error("no answer")
		}
	}
	for n, key := range []string{"ann", "bob", "eve", "joe", "sue", "tom"} {
		for i, s := range all {
			at, err := s.system.AddressOf("/user/carts/" + key)
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				ask(s, at.To, at.Message("x"))
			} else {
				ask(s, at.To, keyed.For(key, "x"))
			}
		}
		if got := there("/user/carts/*"); len(got) != n+1 {
			t.Fatalf("%d keys: the actors are %v", n+1, got)
		}
	}
	nodes := 0
	for _, s := range all {
		if len(s.system.Select("/user/carts/*")) > 0 {
			nodes++
		}
		ask(s, lookup(t, s.system, "/user/clock"), "x")
	}
	if nodes != 2 {
		t.Errorf("all are on %d nodes", nodes)
	}
	if got := there("/user/clock/*"); len(got) != 1 {
		t.Errorf("the singletons are %v", got)
	}
}

// Two bundles that have a keyed actor and a singleton of the same name have each their own.
func TestKindsOfTwoBundles(t *testing.T) {
	_, all, pass := spreadOver(t, "back", "back@other", "back")
	for i, s := range all {
		if got := len(s.system.Select("/user/clock/*")); i == 1 && got != 1 {
			t.Errorf("the other bundle has %d singletons", got)
		}
		p, err := s.system.Request(lookup(t, s.system, "/user/carts"), keyed.For("ann", "x"))
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		select {
		case m := <-p.Answer():
			if m.Err() != nil {
				t.Error(m.Err())
			}
		default:
			t.Error("no answer")
		}
	}
	if n := len(all[1].system.Select("/user/carts/ann")); n != 1 {
		t.Errorf("the key is %d times in the other bundle", n)
	}
	if n := len(all[0].system.Select("/user/carts/ann")) + len(all[2].system.Select("/user/carts/ann")); n != 1 {
		t.Errorf("the key is %d times in the first bundle", n)
	}
}
