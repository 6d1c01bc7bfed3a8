package bundle

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
)

// What the manifest says of children on other nodes is checked, each mistake at its place.
func TestAcceptKeys(t *testing.T) {
	with := func(text string) string { return minimal + "cluster: {accept: " + text + "}\n" }
	a := parse(t, with("{types: [t, 'm/*'], from: [front], max: 7, total: 9, memory: 1MiB, send: [/user/a]}")).Cluster.Accept
	want := &Accept{Types: []string{"m/t", "m/*"}, From: []string{"front"}, Max: 7, Total: 9, Memory: 1 << 20, Send: []string{"/user/a"}, Limits: host.Limits{Deadline: defaultDeadline}}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("%+v", a)
	}
	if a = parse(t, with("{types: [m/t]}")).Cluster.Accept; a.Max != 100 || a.Total != 1000 || a.Memory != 256<<20 || a.From != nil || a.Send != nil {
		t.Errorf("%+v", a)
	}
	if a = parse(t, with("{types: [t, u], fetch: [u]}")).Cluster.Accept; !slices.Equal(a.Fetch, []string{"m/u"}) {
		t.Errorf("%+v", a)
	}
	if parse(t, minimal+"cluster: {}\n").Cluster.Accept != nil {
		t.Error("it accepts children although nothing says so")
	}
	worker := func(spawn string) string {
		return strings.Replace(minimal, "{type: m/t}", "{type: m/t, capabilities: {spawn: ["+spawn+"]}}", 1)
	}
	supervised := func(strategy string) string {
		return strings.Replace(worker("t@back"), "}}", "}, supervision: "+strategy+"}", 1) + "cluster: {}\n"
	}
	for text, why := range map[string]string{
		with("{}"):                                                               `7:19: cluster.accept lacks the key "types"`,
		with("{types: []}"):                                                      "7:27: cluster.accept.types must name one type at least",
		with("{types: [x/t]}"):                                                   `7:28: there is no module "x"`,
		with("{types: [t], max: 10, total: 9}"):                                  "7:37: cluster.accept.max is 10, more than cluster.accept.total, which is 9",
		with("{types: [t], fetch: [t, x/t]}"):                                    `7:43: there is no module "x"`,
		with("{types: [t], fetch: ['m/*']}"):                                     "7:40: cluster.accept.fetch: m/* is not in cluster.accept.types",
		with("{types: [t], from: [a b]}"):                                        `"a b" is not a valid name`,
		with("{types: [t], send: [/system/kv]}"):                                 `"/system/kv" is not a path`,
		with("{types: [t], memory: 1}"):                                          "cluster.accept.memory must be at least",
		worker("t@back"):                                                         "6:41: actor a: capabilities.spawn: t@back needs the key cluster",
		supervised("{strategy: all-for-one}"):                                    "6:64: supervision: a child on another node (capabilities.spawn: t@back) is supervised there, without its parent: ",
		supervised("{strategy: rest-for-one}"):                                   "rest-for-one concerns its other children, too",
		supervised("{otherwise: ask}"):                                           "the parent itself decides about some failures",
		supervised("{decide: [{directive: ask}]}"):                               "the parent itself decides about some failures",
		supervised("{shared-window: true}"):                                      "the window of restarts is shared",
		supervised("{max-restarts: 3, within: 1m, backoff: {}}"):                 "",
		strings.Replace(supervised("{strategy: all-for-one}"), "t@back", "t", 1): "",
		worker("t@") + "cluster: {}\n":                                           `6:41: capabilities.spawn: "t@" must be TYPE@ROLE`,
		worker("'@back'") + "cluster: {}\n":                                      `must be TYPE@ROLE`,
		worker("t@b/c") + "cluster: {}\n":                                        `must be TYPE@ROLE`,
		worker("t@back, 't@*'") + "cluster: {}\n":                                "",
		worker("t, '*', '*@b*'") + "cluster: {}\n":                               "",
	} {
		_, err := Parse("bundle.yaml", []byte(text))
		if why == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
	old, now := parse(t, with("{types: [t]}")), parse(t, with("{types: [t], max: 7}"))
	if p := planOf(old, now); len(p.whole) != 1 {
		t.Error(p.whole)
	}
}

// placed are nodes of a simulated cluster, each with a bundle of its own.
type placed struct {
	*clustertest.World
	t     *testing.T
	nodes []*spread
}

// placedOn starts a node for each text that the manifest has behind its name, with the role n0, n1 and so on.
func placedOn(t *testing.T, texts ...string) *placed {
	t.Helper()
	return placedWith(t, func(_ int, c host.Config) host.Config { return c }, texts...)
}

// placedWith is placedOn with changed systems.
func placedWith(t *testing.T, change func(node int, c host.Config) host.Config, texts ...string) *placed {
	t.Helper()
	ctx := context.Background()
	built, err := build.Guest(ctx, servicetest.Dir(), build.Options{Compiler: guesttest.Compiler(), CacheDir: filepath.Join(servicetest.CacheDir(), "builds")})
	if err != nil {
		t.Fatal(err)
	}
	code, err := built.Code(ctx)
	if err != nil {
		t.Fatal(err)
	}
	echo, err := os.ReadFile("../testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	p := &placed{World: clustertest.New(1), t: t}
	for i, text := range texts {
		dir := t.TempDir()
		for name, b := range map[string][]byte{"g.wasm": code, "echo.wasm": echo, FileName: []byte("wasmactors: 1\nname: b\n" + text)} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := &spread{}
		machine := p.Machine(func() uint16 { return s.self.Number })
		role := "n" + string(rune('0'+i))
		s.node, err = cluster.New(cluster.Config{Name: role, Roles: []string{role}, ID: uint64(i + 1), Directory: machine, Links: machine, Clock: machine, Since: machine.Since})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if s.bundle, err = Open(ctx, m, Options{Allow: anywhere, CacheDir: servicetest.CacheDir()}); err != nil {
			t.Fatal(err)
		}
		s.node.Join(func(m cluster.Member, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			s.self = m
			if s.system, err = s.bundle.Start(func(c host.Config) host.Config {
				s.bundle.Join(s.node) // here, as the command does: the number is known now
				return change(i, c.WithManual().WithClock(machine).WithSeed(uint64(i)+1).WithNode(m.Number))
			}, func(sys *host.System) {
				if err := s.node.Attach(sys); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Error(err)
			}
		})
		p.nodes = append(p.nodes, s)
	}
	t.Cleanup(func() {
		for _, s := range p.nodes {
			if s.system != nil {
				_ = s.system.Close(ctx)
			}
			if err := s.bundle.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	p.pass(5 * time.Second)
	return p
}

func (p *placed) pass(d time.Duration) {
	for end := p.Clock.Now().Add(d); ; p.Clock.AdvanceToNext() {
		for again := true; again; {
			again = false
			for _, s := range p.nodes {
				again = s.system != nil && s.system.RunUntilIdle(10_000) > 0 || again
			}
		}
		if next, ok := p.Clock.Next(); !ok || next.After(end) {
			return
		}
	}
}

// ask asks an actor of the first node, and returns the text of the answer.
func (p *placed) ask(path string, v any) string {
	p.t.Helper()
	s := p.nodes[0].system
	to, err := s.Lookup(path)
	if err != nil {
		p.t.Fatal(err)
	}
	q, err := s.Request(to, v)
	if err != nil {
		p.t.Fatal(err)
	}
	p.pass(2 * time.Second)
	select {
	case m := <-q.Answer():
		var text string
		if m.Err() != nil {
			return m.Err().Error()
		}
		if err := m.Decode(&text); err != nil {
			p.t.Fatal(err)
		}
		return text
	default:
		p.t.Fatalf("%v: no answer", v)
		return ""
	}
}

const (
	parents = "modules: {m: {wasm: g.wasm}}\ncluster: {}\nactors:\n  parent: {type: m/spawn-parent, capabilities: {spawn: ['spawn-child@n1']}}\n"
	hosts   = "modules: {w: {wasm: g.wasm}}\nactors: {idle: {type: w/spawn-child}}\ncluster: {accept: {types: [w/spawn-child], from: [n0], max: 2}}\n"
)

// A guest has a child on the node with the role: it runs there, with the options of the spawn, and is the guest's child here.
func TestGuestsOnOtherNodes(t *testing.T) {
	p := placedOn(t, parents, hosts)
	box := map[string]any{"kind": "priority", "types": map[string]any{"stop": 0}}
	if why := p.ask("/user/parent", []any{"kid", box, nil, "n1"}); why != "" {
		t.Fatal(why)
	}
	there := p.nodes[1].system.Select("/system/remote.*/*/kid")
	if len(there) != 1 || p.nodes[1].bundle.Remote().Here.Load() != 1 {
		t.Fatalf("on the other node there are %v", there)
	}
	kid, err := p.nodes[0].system.Lookup("/user/parent/kid")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", "b", "stop", "c"} {
		if err := p.nodes[0].system.Tell(kid, text); err != nil {
			t.Error(err)
		}
	}
	p.pass(time.Second)
	if got := p.ask("/user/parent/kid", "heard"); len(got) != len("a b stop c") {
		t.Errorf("it has heard %q", got)
	}
	p.nodes[0].system.Stop(kid)
	p.pass(time.Second)
	if there = p.nodes[1].system.Select("/system/remote.*/*/kid"); len(there) != 0 || p.nodes[1].bundle.Remote().Here.Load() != 0 {
		t.Errorf("after its end there are %v", there)
	}
}

// What the two manifests do not both allow is refused, and the guest is told why.
func TestGuestsOnOtherNodesAreRefused(t *testing.T) {
	some := strings.Replace(parents, "'spawn-child@n1'", "'*', 'spawn-child@n[1]'", 1)
	some = strings.Replace(some, "'spawn-child@n[1]'", "'spawn-child@n1', 'spawn-child@n2', 'spawn-child@n3', 'spawn-child@n4', 'spawn-child@n9'", 1)
	p := placedOn(t, some, hosts,
		strings.Replace(hosts, "accept: {types: [w/spawn-child], from: [n0], max: 2}", "", 1),
		strings.Replace(hosts, "types: [w/spawn-child]", "types: [w/spawn-parent]", 1),
		"modules: {w: {wasm: echo.wasm}}\nactors: {idle: {type: w/echo}}\ncluster: {accept: {types: ['w/*']}}\n")
	for role, why := range map[string]string{
		"n0": "denied", // no capability names it
		"n2": "it accepts no children of other nodes",
		"n3": "cluster.accept.types has not w/spawn-child",
		"n4": "all nodes need the same build",
		"n9": `no node has the role "n9"`,
	} {
		if got := p.ask("/user/parent", []any{"kid-" + role, nil, nil, role}); !strings.Contains(got, why) {
			t.Errorf("%s: %q", role, got)
		}
	}
	for i, want := range []string{"", "", "cluster.accept.max"} {
		if got := p.ask("/user/parent", []any{"kid" + string(rune('0'+i)), nil, nil, "n1"}); want == "" != (got == "") || !strings.Contains(got, want) {
			t.Errorf("child %d: %q", i, got)
		}
	}
	for _, s := range p.nodes[2:] {
		if n := s.bundle.Remote().Started.Load(); n != 0 {
			t.Errorf("node %s has started %d", s.self.Name, n)
		}
	}
}

// Of several modules with the code one that accepts the type counts, and options give no more than the parent has.
func TestTwoModulesOfOneCode(t *testing.T) {
	p := placedOn(t, parents, strings.Replace(hosts, "{w: {wasm: g.wasm}}", "{a: {wasm: g.wasm}, w: {wasm: g.wasm}}", 1))
	if why := p.ask("/user/parent", []any{"kid", nil, nil, "n1"}); why != "" {
		t.Error(why)
	}
	if why := p.ask("/user/parent", []any{"greedy", nil, map[string]any{"throughput": 10_000}, "n1"}); !strings.Contains(why, "below this parent") {
		t.Errorf("%q", why)
	}
}

// Without a cluster the option is refused, and nothing is started here instead.
func TestPlacesWithoutACluster(t *testing.T) {
	s := newSpawning(t, host.NewConfig("t").WithSpawnOptions(SpawnOptions), host.Limits{}, host.Dispatcher{})
	if why := s.ask(s.parent, []any{"kid", nil, nil, "back"}); !strings.Contains(why, "denied") {
		t.Errorf("%q", why)
	}
	o, err := optionsOf(t, map[string]any{"place": map[string]any{"role": "back"}})
	if err != nil || o.Elsewhere == nil {
		t.Fatalf("%+v %v", o, err)
	}
	if _, err := o.Elsewhere.Props(host.Spawning{}); err == nil || !strings.Contains(err.Error(), "--join") {
		t.Error(err)
	}
	for _, wrong := range []any{map[string]any{"role": "a b"}, map[string]any{"zone": "x"}, "back"} {
		if _, err := optionsOf(t, map[string]any{"place": wrong}); err == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
	if refs := s.Select("/user/parent/*"); len(refs) != 0 {
		t.Errorf("%v were started", refs)
	}
}
