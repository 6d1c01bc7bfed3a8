package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// remembered is a bundle with a keyed guest on nodes of a simulated cluster, one after the other.
type remembered struct {
	t     *testing.T
	world *clustertest.World
	dir   string
	alive []*spread
	count uint64
}

// start has another node join, and waits until it has.
func (r *remembered) start() (*spread, *clustertest.Machine) {
	s := &spread{}
	machine := r.world.Machine(func() uint16 { return s.self.Number })
	var err error
	r.count++
	id := r.count
	if s.node, err = cluster.New(cluster.Config{Name: fmt.Sprint("n", id), ID: id, Directory: machine, Links: machine, Clock: machine, Since: machine.Since}); err != nil {
		r.t.Fatal(err)
	}
	if s.bundle, err = open(r.t, r.dir); err != nil {
		r.t.Fatal(err)
	}
	s.node.Join(func(m cluster.Member, err error) {
		if err != nil {
			r.t.Error(err)
			return
		}
		s.self = m
		s.bundle.Join(s.node)
		s.bundle.Keep(Logs{Open: func(context.Context) (cluster.Log, error) { return machine.Log(), nil }, Clock: machine, Manual: true, Refused: func(text string) { r.t.Error(text) }})
		s.system, err = s.bundle.Start(func(c host.Config) host.Config {
			return c.WithManual().WithClock(machine).WithSeed(id).WithNode(m.Number)
		}, func(sys *host.System) {
			if err := s.node.Attach(sys); err != nil {
				r.t.Error(err)
			}
		})
		if err != nil {
			r.t.Error(err)
		}
	})
	r.alive = append(r.alive, s)
	r.pass(5 * time.Second)
	if s.system == nil {
		r.t.Fatal("it does not start")
	}
	r.t.Cleanup(func() { _ = s.system.Close(context.Background()) })
	return s, machine
}

func (r *remembered) pass(d time.Duration) {
	r.world.Clock.AfterFunc(d, func() {})
	for end := r.world.Clock.Now().Add(d); ; r.world.Clock.AdvanceToNext() {
		for again := true; again; {
			again = false
			for _, s := range r.alive {
				again = s.system != nil && s.system.RunUntilIdle(10_000) > 0 || again
			}
		}
		if next, ok := r.world.Clock.Next(); !ok || next.After(end) {
			return
		}
	}
}

// With remember: true the keys that live are started by the node that takes them over, so many a second as starts says, and also when no
// node was there in between. Otherwise they are not.
func TestRememberTakesEffect(t *testing.T) {
	code, err := os.ReadFile("../testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		keyed              string
		least, most, later int // keys that live on the next node, soon and later
	}{
		{"{scope: cluster, shards: 4}", 0, 0, 0},
		{"{scope: cluster, shards: 4, remember: 7}", 0, 0, 0},
		{"{scope: cluster, shards: 4, remember: true}", 12, 12, 12},
		{"{scope: cluster, shards: 4, remember: true, starts: 2}", 1, 10, 12},
		{"{scope: cluster, shards: 4, remember: true, idle: 1s}", 0, 0, 0}, // they have ended by then, and are forgotten
	} {
		t.Run(c.keyed, func(t *testing.T) {
			r := &remembered{t: t, world: clustertest.New(1), dir: t.TempDir()}
			text := "wasmactors: 1\nname: b\nmodules: {m: {wasm: ./echo.wasm}}\ncluster: {}\nactors:\n  carts: {type: m/echo, keyed: " + c.keyed + "}\n"
			for name, b := range map[string][]byte{"echo.wasm": code, FileName: []byte(text)} {
				if err := os.WriteFile(filepath.Join(r.dir, name), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, machine := r.start()
			for i := range 12 {
				if err := s.system.Tell(lookup(t, s.system, "/user/carts"), keyed.For(fmt.Sprint("k", i), "x")); err != nil {
					t.Fatal(err)
				}
			}
			r.pass(3 * time.Second)
			if n := len(s.system.Select("/user/carts/*")); n != 12 && c.later > 0 {
				t.Fatalf("%d keys live", n)
			}
			machine.Crash()
			r.alive = nil
			r.pass(30 * time.Second)
			s, _ = r.start()
			if n := len(s.system.Select("/user/carts/*")); n < c.least || n > c.most {
				t.Errorf("soon %d keys live again, want %d to %d", n, c.least, c.most)
			}
			r.pass(20 * time.Second)
			if n := len(s.system.Select("/user/carts/*")); n != c.later {
				t.Errorf("%d keys live again, want %d", n, c.later)
			}
		})
	}
}
