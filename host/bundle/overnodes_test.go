package bundle

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// What the manifest says of routers over nodes is checked, each mistake at its place.
func TestRoutersOverNodesKeys(t *testing.T) {
	with := func(entry string) string {
		return strings.Replace(minimal, "  a: {type: m/t}\n", "  a: {type: m/t}\n  r: "+entry+"\n", 1) + "cluster: {}\n"
	}
	r := parse(t, with("{type: m/t, pool: 4, routing: {nodes: back, per-node: 2}}")).Actors[1]
	if r.Routing.Nodes != "back" || r.Routing.PerNode != 2 || r.Shown() != "router/round-robin, a pool of 4 of m/t on nodes with the role back" {
		t.Errorf("%+v: %s", r.Routing, r.Shown())
	}
	if r = parse(t, with("{to: [/user/a], routing: {nodes: '*'}}")).Actors[1]; r.Shown() != "router/round-robin to /user/a on all nodes" {
		t.Errorf("%+v: %s", r.Routing, r.Shown())
	}
	for text, why := range map[string]string{
		strings.Replace(with("{to: [/user/a], routing: {nodes: back}}"), "cluster: {}", "", 1):        "7:39: actor r: routing.nodes needs the key cluster",
		with("{to: [/user/a], routing: {nodes: a b}}"):                                                "actors.r.routing.nodes",
		with("{to: [/user/a], routing: {per-node: 2}}"):                                               "7:42: routing.per-node needs pool and routing.nodes",
		with("{to: [/user/a], routing: {nodes: b, per-node: 2}}"):                                     "7:52: routing.per-node needs pool and routing.nodes",
		with("{type: m/t, pool: 2, routing: {per-node: 2}}"):                                          "routing.per-node needs pool and routing.nodes",
		with("{type: m/t, pool: 2, router: smallest-mailbox, routing: {nodes: b}}"):                   "7:35: router: smallest-mailbox cannot be combined with routing.nodes",
		with("{type: m/t, pool: 2, router: balancing, routing: {nodes: b}}"):                          "router: balancing cannot be combined with routing.nodes",
		with("{to: [/user/a], router: consistent-hashing, routing: {nodes: b, load: 2}}"):             "7:76: routing.load: what waits on other nodes (routing.nodes) is not known",
		with("{to: [/user/a], router: consistent-hashing, routing: {nodes: b}}"):                      "",
		with("{type: m/t, pool: 2, resizer: {}, routing: {nodes: b}}"):                                "resizer: what waits on other nodes",
		with("{type: m/t, pool: 2, lifetime: temporary, routing: {nodes: b}}"):                        "7:37: lifetime cannot be combined with routing.nodes",
		with("{type: m/t, pool: 2, mailbox: {kind: priority}, routing: {nodes: b}}"):                  "mailbox cannot be combined with routing.nodes",
		with("{type: m/t, pool: 2, dispatcher: {throughput: 2}, routing: {nodes: b}}"):                "dispatcher cannot be combined with routing.nodes",
		with("{type: m/t, pool: 2, crashed-message: drop, routing: {nodes: b}}"):                      "crashed-message cannot be combined with routing.nodes",
		with("{type: m/t, pool: 2, supervision: {strategy: all-for-one}, routing: {nodes: b}}"):       "supervision: a routee on another node (routing.nodes) is supervised there",
		with("{type: m/t, pool: 2, supervision: {max-restarts: 3, within: 1m}, routing: {nodes: b}}"): "",
	} {
		_, err := Parse("bundle.yaml", []byte(text))
		if why == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
	old, now := parse(t, with("{to: [/user/a], routing: {nodes: b}}")), parse(t, with("{to: [/user/a], routing: {nodes: c}}"))
	if p := planOf(old, now); len(p.steps) != 1 {
		t.Errorf("a change of routing.nodes changes nothing: %+v", p)
	}
}

// A pool has its routees on the nodes with the role, as their manifests allow, and a group reaches the actors there.
func TestRoutersOverNodes(t *testing.T) {
	fronts := "modules: {m: {wasm: g.wasm}}\ncluster: {}\nactors:\n" +
		"  pool: {type: m/spawn-child, pool: 4, routing: {nodes: n1, per-node: 2}}\n" +
		"  group: {to: [/user/idle], routing: {nodes: n1}}\n" +
		"  all: {to: [/user/idle], router: scatter-gather, routing: {nodes: '*', within: 1s}}\n"
	p := placedOn(t, fronts, strings.Replace(hosts, "max: 2", "max: 9", 1), strings.Replace(hosts, "max: 2", "max: 9", 1))
	if there := p.nodes[1].system.Select("/system/remote.*/*/*"); len(there) != 2 {
		t.Errorf("on the other node there are %v", there)
	}
	if there := p.nodes[2].system.Select("/system/remote.*/*/*"); len(there) != 0 {
		t.Errorf("on a node without the role there are %v", there)
	}
	if here := p.nodes[0].system.Select("/user/pool/*"); len(here) != 2 {
		t.Errorf("the pool has %v", here)
	}
	for _, text := range []string{"a", "b", "c", "d"} {
		if err := p.nodes[0].system.TellPath("/user/pool", text); err != nil {
			t.Error(err)
		}
	}
	p.pass(time.Second)
	for range 2 {
		if got := p.ask("/user/pool", "heard"); strings.Count(got, " ") != 1 {
			t.Errorf("a routee has heard %q", got)
		}
	}
	for _, path := range []string{"/user/group", "/user/all"} {
		if got := p.ask(path, "heard"); got != "" {
			t.Errorf("%s answers %q", path, got)
		}
	}
}

// Without a cluster all of it is on this node.
func TestRoutersOverNodesAlone(t *testing.T) {
	p := placedWith(t, func(_ int, c host.Config) host.Config { return c }, "modules: {m: {wasm: g.wasm}}\ncluster: {}\nactors:\n"+
		"  idle: {type: m/spawn-child}\n  group: {to: [/user/idle], routing: {nodes: far}}\n  pool: {type: m/spawn-child, pool: 3, routing: {nodes: far, per-node: 1}}\n")
	s := p.nodes[0]
	if err := s.system.Close(context.Background()); err != nil {
		t.Error(err)
	}
	s.bundle.Join(nil)
	var err error
	if s.system, err = s.bundle.Start(func(c host.Config) host.Config { return c.WithManual().WithClock(p.Clock) }, nil); err != nil {
		t.Fatal(err)
	}
	p.pass(time.Second)
	if all := s.system.Select("/user/pool/*"); len(all) != 3 {
		t.Errorf("the pool has %v", all)
	}
	for _, path := range []string{"/user/group", "/user/pool"} {
		if got := p.ask(path, "heard"); got != "" {
			t.Errorf("%s answers %q", path, got)
		}
	}
}
