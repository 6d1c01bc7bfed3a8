package scenario

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// played runs the scenarios of a file, each by itself.
func played(t *testing.T, bundlePath, file string) {
	t.Helper()
	st, b := opened(t, bundlePath)
	for _, s := range loaded(t, b, file) {
		t.Run(s.Name, func(t *testing.T) { holds(t, st.Run(t.Context(), b, s, Options{})) })
	}
}

// TestNodes: over several nodes all that a bundle spreads over a cluster works, and goes on when nodes are killed, stand still or are parted.
func TestNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	played(t, "testdata/nodes", "testdata/nodes/nodes_test.yaml")
}

// TestKeptNodes: keys that keep their events, or their latest state, go on from them on another node before the lease of the one that was killed is
// over, and lose nothing that was confirmed, whatever happens to nodes.
func TestKeptNodes(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("compiles a guest")
	}
	for bundlePath, file := range map[string]string{
		"testdata/kept": "testdata/kept/kept_test.yaml",
		"../../docs/examples/baskets/cluster.yaml": "../../docs/examples/baskets/cluster_test.yaml",
	} {
		played(t, bundlePath, file)
		st, b := opened(t, bundlePath)
		x := staging{st: st, b: b, s: loaded(t, b, file)[1]}
		x.o.For = simulatedFor
		for _, o := range swept(t, x, "all", thorough.SlowOf(10, 200)) {
			if o.Failed() {
				t.Errorf("%s, seed %d: %+v %v\n%s", bundlePath, o.Plan.Seed, o.Violation, o.Err, strings.Join(o.Tail, "\n"))
			}
		}
	}
}

// TestSimulatedNodes: the books of the ledger balance whatever happens to its nodes, and each seed has one history. An account that is in
// memory only is found: each class of faults that ends its life finds it by itself.
func TestSimulatedNodes(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("compiles a guest")
	}
	ledger := func(account string) staging {
		st, b := openedWith(t, "../../samples/ledger/cluster.yaml", func(name string) (string, bool) { return account, name == "ACCOUNT" })
		all := loaded(t, b, "../../samples/ledger/cluster_test.yaml")
		return staging{st: st, b: b, s: all[len(all)-1], o: Simulating{For: simulatedFor}}
	}
	right, met := ledger("kept"), map[simulate.Class]int{}
	one := swept(t, right, "all", thorough.SlowOf(12, 300))
	for _, o := range one {
		if o.Failed() {
			t.Errorf("seed %d: %+v %v\n%s", o.Plan.Seed, o.Violation, o.Err, strings.Join(o.Tail, "\n"))
		}
		for _, f := range o.Faults {
			met[f.Class]++
		}
	}
	for _, c := range []simulate.Class{simulate.NodeKill, simulate.NodePause, simulate.NodePart, simulate.Crash, simulate.Drop, simulate.Late} {
		if met[c] < len(one)/2 {
			t.Errorf("too few faults: %v", met)
		}
	}
	t.Logf("in %d runs there were %v", len(one), met)
	for i, o := range swept(t, ledger("kept"), "all", thorough.SlowOf(2, 5)) {
		if o.Chain != one[i].Chain {
			t.Errorf("seed %d: two histories", i+1)
		}
		if fixed := right.Play(t.Context(), o.Plan.Fix(o.Faults)); fixed.Chain != o.Chain || len(fixed.Faults) != len(o.Faults) {
			t.Errorf("seed %d: as data its faults are others: %d, %d", i+1, len(fixed.Faults), len(o.Faults))
		}
	}
	wrong := ledger("forgetful")
	// After a death of all nothing is missing: all begins anew.
	for _, class := range thorough.SlowOf([]string{"all"}, []string{"all", "node-kill", "node-pause", "node-part"}) {
		found := violations(swept(t, wrong, class, 6))
		if found["invariant no money is lost or made"] == 0 {
			t.Errorf("%s: an account that is in memory only is not found: %v", class, found)
		}
	}
	if found := violations(swept(t, wrong, "none", 3)); len(found) > 0 {
		t.Errorf("without faults nothing is lost: %v", found)
	}
}

// TestFaultsOfTheWholeCluster: code is exchanged on single nodes, and what nodes keep together is in trouble: leases are lost by that alone.
func TestFaultsOfTheWholeCluster(t *testing.T) {
	skipCompiling(t)
	st, b := opened(t, "../../samples/ledger/cluster.yaml")
	all := loaded(t, b, "../../samples/ledger/cluster_test.yaml")
	x := staging{st: st, b: b, s: all[len(all)-1], o: Simulating{For: simulatedFor}}
	for class, lines := range map[string][]string{
		"upgrade": {`a: upgrade: [1-9]\d* actors`, `b: upgrade: [1-9]\d* actors`, `c: upgrade: [1-9]\d* actors`},
		"disk":    {`all: what is kept together is in trouble for `, `: cluster: .*lease could not be renewed`},
		"death":   {`all: killed, and started after `},
	} {
		var tails []string
		for _, o := range swept(t, x, class, thorough.SlowOf(24, 60)) {
			if o.Failed() {
				t.Errorf("%s, seed %d: %+v %v\n%s", class, o.Plan.Seed, o.Violation, o.Err, strings.Join(o.Tail, "\n"))
			}
			tails = append(tails, o.Tail...)
		}
		for _, line := range lines {
			if !regexp.MustCompile(line).MatchString(strings.Join(tails, "\n")) {
				t.Errorf("%s: nowhere is there %q", class, line)
			}
		}
	}
}

// simulatedFor is virtual time in which nodes have time to fail and come back.
const simulatedFor = 15 * time.Second

// What files say of nodes and cannot be is reported where it stands.
func TestNodesThatCannotBe(t *testing.T) {
	const nodes = "scenarios:\n- name: x\n  nodes: 3\n  steps:\n  "
	for text, want := range map[string]string{
		"scenarios: [{name: x, nodes: 17, steps: [{advance: 1s}]}]":                               "1:30: nodes must be from 1 to 16, not 17",
		"scenarios: [{name: x, nodes: 0, steps: [{advance: 1s}]}]":                                "1:30: nodes must be from 1 to 16, not 0",
		"scenarios: [{name: x, nodes: three, steps: [{advance: 1s}]}]":                            "1:30: nodes must be a number such as 3, or a list",
		"scenarios: [{name: x, nodes: [{nam: a}], steps: [{advance: 1s}]}]":                       `1:32: unknown key "nam" in a node; did you mean "name"?`,
		"scenarios: [{name: x, nodes: [{name: a b}], steps: [{advance: 1s}]}]":                    `1:38: the node's name "a b" must have letters`,
		"scenarios: [{name: x, nodes: [{name: directory}], steps: [{advance: 1s}]}]":              `1:38: the node's name "directory"`,
		"scenarios: [{name: x, nodes: [{name: b}, {name: b}], steps: [{advance: 1s}]}]":           `1:42: the node "b" comes twice`,
		"scenarios: [{name: x, nodes: [{roles: [a b]}], steps: [{advance: 1s}]}]":                 `1:40: the role "a b" must have letters`,
		"scenarios: [{name: x, steps: [{kill: a}]}]":                                              "1:31: kill is for nodes, and the scenario has none: nodes: 3",
		"scenarios: [{name: x, steps: [{heal: all}]}]":                                            "1:31: heal is for nodes, and the scenario has none: nodes: 3",
		"scenarios: [{name: x, steps: [{send: echo, message: 1, on: a}]}]":                        `1:60: "a" is no node: the scenario has none (nodes: 3)`,
		"scenarios: [{name: x, steps: [{advance: 1s}], simulation: {faults: 'crash,node-kill'}}]": "1:68: faults: node-kill is for scenarios with nodes, and this one has none: nodes: 3",
		"scenarios: [{name: x, steps: [{advance: 1s}], simulation: {faults: 'all,-node-kill'}}]":  "",
		nodes + "- {advance: 1s}\n  simulation: {faults: 'node-kill,death,disk,upgrade'}":         "",
		nodes + "- {kill: d}":                                      `5:12: there is no node "d": there are a, b, c`,
		nodes + "- {kill: b}\n  - {kill: b}":                       "6:12: kill: the node b was killed in line 5, and was not started again",
		nodes + "- {leave: b}\n  - {pause: b, for: 1s}":            "6:13: pause: the node b has left in line 5, and was not started again",
		nodes + "- {start: b}":                                     "5:13: start: the node b runs already",
		nodes + "- {kill: b}\n  - {send: echo, message: 1, on: b}": "6:34: send: the node b was killed in line 5",
		nodes + "- {kill: a}\n  - {kill: b}\n  - {kill: c}":        "7:5: kill: no node is left to go on with",
		nodes + "- {part: a}":                                      `5:12: part: "a" has one side: write a, b | c, or a -> b`,
		nodes + "- {part: a | a}":                                  `5:12: part: "a | a" names a twice`,
		nodes + "- {part: a | }":                                   `5:12: part: "a |" does not say who does not reach whom`,
		nodes + "- {part: a -> b -> c}":                            `5:12: part: "a -> b -> c": only two sides stand around ->`,
		nodes + "- {part: a -> directory}":                         `5:12: part: "a -> directory": the directory is reached or not`,
		nodes + "- {part: [a, b | x]}":                             `5:12: there is no node "x": there are a, b, c`,
		nodes + "- {part: {a: b}}":                                 "5:12: part must be a text such as a, b | c",
		nodes + "- {heal: b}":                                      `5:12: heal cannot be "b"`,
		nodes + "- {pause: b, for: soon}":                          "5:21: for: ",
		nodes + "- {kill: b, on: a}":                               `5:15: unknown key "on" in kill`,
		nodes + "- {kill: b}\n  - {expect-event: stopped, on: b}\n  - {start: b}\n  - {ask: echo, message: 1, on: b}": "",
	} {
		_, err := Parse("x", []byte(text))
		switch {
		case want == "" && err != nil, want != "" && err == nil:
			t.Errorf("%s: %v, not %q", text, err, want)
		case want != "" && !strings.HasPrefix(err.Error(), "x:"+want):
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
}

// What a file says of nodes must fit its bundle.
func TestNodesFit(t *testing.T) {
	alone := &bundle.Manifest{Actors: []bundle.Actor{{Name: "echo"}}}
	joins := &bundle.Manifest{Actors: []bundle.Actor{{Name: "echo"}}, Cluster: &bundle.Cluster{}}
	for _, c := range []struct {
		m          *bundle.Manifest
		text, want string
	}{
		{alone, "nodes: 3, steps: [{advance: 1s}]", "x:1:30: nodes are for bundles that may join a cluster, and the manifest has no cluster"},
		{joins, "nodes: 3, steps: [{advance: 1s}]", ""},
		{joins, "nodes: 3, steps: [{pause: b}]", "x:1:49: pause: the node b needs for, which says how long it stands still"},
		{joins, "nodes: 3, steps: [{pause: echo, on: b}]", ""},
	} {
		f, err := Parse("x", []byte("scenarios: [{name: x, "+c.text+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		if err = f.Fits(c.m); c.want == "" != (err == nil) || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, not %q", c.text, err, c.want)
		}
	}
}

// Who reaches whom, and the directory, when nodes are parted.
func TestPart(t *testing.T) {
	for _, c := range []struct {
		nodes int
		text  string
		cut   string // pairs
		none  string // nodes without the directory
	}{
		{3, "a, b | c", "ac bc ca cb", "c"},
		{3, "a | b", "ab ba", ""},
		{3, "a | b | c", "ab ac ba bc ca cb", "a b c"},
		{4, "a, b | c, d", "ac ad bc bd ca cb da db", "a b c d"},
		{2, "a | b", "ab ba", "a b"},
		{2, "a, directory | b", "ab ba", "b"},
		{3, "a, directory | b, c", "ab ac ba ca", "b c"},
		{3, "a, b, c | directory", "", "a b c"},
		{3, "a -> b, c", "ab ac", ""},
	} {
		p, err := parsePart(c.text)
		if err != nil {
			t.Fatal(err)
		}
		apart, without := map[[2]string]bool{}, map[string]bool{}
		p.Apart(c.nodes, apart, without)
		var pairs []string
		for pair := range apart {
			if pair[0] != directory && pair[1] != directory {
				pairs = append(pairs, pair[0]+pair[1])
			}
		}
		slices.Sort(pairs)
		if got := strings.Join(pairs, " "); got != c.cut {
			t.Errorf("%d nodes, %s: cut are %s, not %s", c.nodes, c.text, got, c.cut)
		}
		if got := strings.Join(sortedKeys(without), " "); got != c.none {
			t.Errorf("%d nodes, %s: without the directory are %s, not %s", c.nodes, c.text, got, c.none)
		}
	}
}

// nodeKeys are keys that need nodes, as in the table of TestEveryKeyTakesEffect.
var nodeKeys = []struct{ key, good, bad, says string }{
	{"scenario.nodes", "nodes: [{roles: [back]}]\nsteps: [{ask: clock, message: 1, answer: 1}]", "nodes: [{roles: [front]}]\nsteps: [{ask: clock, message: 1, answer: 1}]", "no answer from /user/clock"},
	{"send.on", "- {send: echo, message: 5, from: me, on: b}\n- {expect: me, on: b}", "- {send: echo, message: 5, from: me, on: a}\n- {expect: me, on: b}", "me got no message"},
	{"ask.on", "- {crash: echo, on: b}\n- {ask: echo, message: 5, answer: 5, within: 10ms, on: a}", "- {crash: echo, on: b}\n- {ask: echo, message: 5, answer: 5, within: 10ms, on: b}", "no answer"},
	{"expect.on", "- {send: echo, message: 5, from: me, on: b}\n- {expect: me, on: b}", "- {send: echo, message: 5, from: me, on: b}\n- {expect: me, on: a}", "me got no message"},
	{"expect-none.on", "- {send: echo, message: 5, from: me, on: b}\n- {expect-none: me, for: 1s, on: a}", "- {send: echo, message: 5, from: me, on: b}\n- {expect-none: me, for: 1s, on: b}", "me got a message"},
	{"crash.on", "- {crash: echo, on: b}\n- {expect-state: echo, crashes: 1, on: b}", "- {crash: echo, on: a}\n- {expect-state: echo, crashes: 1, on: b}", "crashes is 0, not 1"},
	{"stop.on", "- {stop: echo, on: b}\n- {expect-state: echo, alive: false, on: b}", "- {stop: echo, on: a}\n- {expect-state: echo, alive: false, on: b}", "/user/echo is there"},
	{"restart.on", "- {restart: echo, on: b}\n- {expect-state: echo, incarnation: 1, on: b}", "- {restart: echo, on: a}\n- {expect-state: echo, incarnation: 1, on: b}", "incarnation is 0, not 1"},
	{"pause.on", "- {pause: echo, on: b}\n- {expect-state: echo, state: paused, on: b}", "- {pause: echo, on: a}\n- {expect-state: echo, state: paused, on: b}", "state is running, not paused"},
	{"unpause.on", "- {pause: echo, on: b}\n- {pause: echo, on: a}\n- {unpause: echo, on: b}\n- {expect-state: echo, state: running, on: b}",
		"- {pause: echo, on: b}\n- {pause: echo, on: a}\n- {unpause: echo, on: a}\n- {expect-state: echo, state: running, on: b}", "state is paused, not running"},
	{"expect-restart.on", "- {crash: echo, on: b}\n- {expect-restart: echo, on: b}", "- {crash: echo, on: b}\n- {expect-restart: echo, on: a}", "/user/echo was not restarted"},
	{"expect-stopped.on", "- {stop: echo, on: b}\n- {expect-stopped: echo, on: b}", "- {stop: echo, on: b}\n- {expect-stopped: echo, on: a}", "there is no actor /user/echo"},
	{"expect-event.on", "- {crash: echo, on: b}\n- {expect-event: restarted, on: b}", "- {crash: echo, on: b}\n- {expect-event: restarted, on: a}", "there was no such event"},
	{"expect-state.on", "- {crash: echo, on: b}\n- {expect-state: echo, crashes: 1, on: b}", "- {crash: echo, on: b}\n- {expect-state: echo, crashes: 1, on: a}", "crashes is 0, not 1"},
	{"drop.on", "- {drop: echo, on: b}\n- {send: echo, message: 5, from: me, on: b}\n- {expect-none: me, for: 1s}", "- {drop: echo, on: a}\n- {send: echo, message: 5, from: me, on: b}\n- {expect-none: me, for: 1s}", "me got a message"},
	{"delay.on", "- {delay: echo, by: 1s, on: b}\n- {send: echo, message: 5, from: me, on: b}\n- {expect-none: me, for: 900ms}", "- {delay: echo, by: 1s, on: a}\n- {send: echo, message: 5, from: me, on: b}\n- {expect-none: me, for: 900ms}", "me got a message"},
	{"duplicate.on", "- {duplicate: echo, on: b}\n- {send: echo, message: 5, from: me, on: b}\n- {expect: me}\n- {expect: me}", "- {duplicate: echo, on: a}\n- {send: echo, message: 5, from: me, on: b}\n- {expect: me}\n- {expect: me}", "me got no message"},
	{"reorder.on", "- {reorder: echo, on: b}\n- {send: echo, message: 1, from: me, on: b}\n- {send: echo, message: 2, from: me, on: b}\n- {expect: me, message: 2}",
		"- {reorder: echo, on: a}\n- {send: echo, message: 1, from: me, on: b}\n- {send: echo, message: 2, from: me, on: b}\n- {expect: me, message: 2}", "it is 1, not 2"},
	{"http.on", "- {stop: api, on: b}\n- {http: GET /, status: 404, on: a}", "- {stop: api, on: b}\n- {http: GET /, status: 404, on: b}", "it has another status"},
	{"websocket.on", "- {stop: live, on: b}\n- {websocket: ann, open: /live, say: hello, answer: hello, on: a}", "- {stop: live, on: b}\n- {websocket: ann, open: /live, say: hello, answer: hello, on: b}", ""},
	{"kill.kill", "- {stop: echo, on: b}\n- {kill: b}\n- {start: b}\n- {advance: 10s}\n- {expect-state: echo, alive: true, on: b}", "- {stop: echo, on: b}\n- {kill: a}\n- {start: a}\n- {advance: 10s}\n- {expect-state: echo, alive: true, on: b}", "there is no actor /user/echo"},
	{"start.start", "- {kill: a}\n- {kill: b}\n- {start: b}\n- {advance: 10s}\n- {ask: echo, message: 1, answer: 1, on: b}", "- {kill: a}\n- {kill: b}\n- {start: b}\n- {ask: echo, message: 1, answer: 1, on: b}", "the node b has not joined yet"},
	{"leave.leave", "- {stop: echo, on: b}\n- {leave: b}\n- {start: b}\n- {advance: 10s}\n- {expect-state: echo, alive: true, on: b}", "- {stop: echo, on: b}\n- {leave: a}\n- {start: a}\n- {advance: 10s}\n- {expect-state: echo, alive: true, on: b}", "there is no actor /user/echo"},
	{"leave.within", "- {leave: b, within: 10s}", "- {leave: b, within: 1ms}", "still has"},
	{"pause.for", "- {pause: b, for: 10s}\n- {advance: 12s}\n- {expect-event: stopped, actor: echo, within: 0, on: b}", "- {pause: b, for: 2s}\n- {advance: 12s}\n- {expect-event: stopped, actor: echo, within: 0, on: b}", "there was no such event"},
	{"part.part", "- {part: 'b | a, c, directory'}\n- {expect-event: stopped, actor: echo, within: 10s, on: b}", "- {part: 'b, directory | a, c'}\n- {expect-event: stopped, actor: echo, within: 10s, on: b}", "there was no such event"},
	{"heal.heal", "- {part: [b | a, c]}\n- {advance: 6s}\n- {heal: all}\n- {advance: 6s}\n- {ask: echo, message: 1, answer: 1, on: b}", "- {part: [b | a, c]}\n- {advance: 12s}\n- {ask: echo, message: 1, answer: 1, on: b}", "the node b has not joined yet"},
}

// Every key that needs nodes does what it says.
func TestEveryKeyOfNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata/nodes")
	for _, k := range nodeKeys {
		t.Run(k.key, func(t *testing.T) {
			var results []Result
			for _, text := range []string{k.good, k.bad} {
				if !strings.Contains(text, "steps:") {
					text = "nodes: [{name: a, roles: [back]}, {name: b, roles: [back]}, {name: c, roles: [back]}]\nsteps:\n" + text
				}
				results = append(results, st.Run(t.Context(), b, scenarioOf(t, text), Options{}))
			}
			if results[0].Outcome == Failed {
				holds(t, results[0])
			}
			if f := results[1].Failure; f == nil || !strings.Contains(f.What, k.says) {
				t.Errorf("it fails with %+v, not with %q", f, k.says)
			}
		})
	}
}
