package bundle

import (
	"fmt"
	"strings"
	"testing"
)

const twoActors = `wasmactors: 1
name: b
modules:
  m: {wasm: ./m.wasm}
  n: {wasm: ./n.wasm}
actors:
  a:
    type: m/t
    args: {x: [1, two, !duration 3s]}
    limits: {fuel: 5M}
    capabilities: {send: [/user/c], spawn: [t]}
    supervision: {strategy: all-for-one, max-restarts: 3, within: 10s, backoff: {curve: table, delays: [1s, 2s]}, decide: [{kind: trap, reason: "a*", directive: stop}]}
    children:
      k: {type: m/t, args: 7}
  c: {type: n/t, resend: {slot: 1s}}
`

// What a change of the manifest means for those that run.
func TestPlan(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"nothing", "", "", ""},
		{"a comment", "name: b\n", "# hello\nname: b\n", ""},
		{"args", "x: [1,", "x: [2,", "a restarts: args"},
		{"args of another kind", "two,", "2.5,", "a restarts: args"},
		{"limits", "fuel: 5M", "fuel: 6M", "a restarts: limits"},
		{"the same limit in other words", "fuel: 5M", "fuel: 5000k", ""},
		{"limits of all", "name: b\n", "name: b\nlimits: {timers: 5}\n", "a restarts: limits, children.k (limits); c anew: limits"},
		{"capabilities", "spawn: [t]", "spawn: ['*']", "a restarts: capabilities"},
		{"two things", "spawn: [t]}", "spawn: []}\n    lifetime: permanent", "a anew: lifetime, capabilities"},
		{"mailbox", "fuel: 5M", "fuel: 5M, mailbox: 7", "a anew: limits.mailbox"},
		{"held", "fuel: 5M", "fuel: 5M, held: 7MiB", "a anew: limits.held"},
		{"tree", "fuel: 5M", "fuel: 5M, tree: {actors: 7}", "a anew: limits.tree"},
		{"supervision", "max-restarts: 3", "max-restarts: 4", "a anew: supervision"},
		{"a delay", "[1s, 2s]", "[1s, 3s]", "a anew: supervision"},
		{"a rule", `"a*"`, `"b*"`, "a anew: supervision"},
		{"args of a child", "args: 7", "args: 8", "a restarts: children.k (args)"},
		{"type of a child", "k: {type: m/t", "k: {type: n/t", "a anew: children.k (type)"},
		{"another child", "args: 7}\n", "args: 7}\n      l: {type: m/t}\n", "a restarts: children"},
		{"a child less", "    children:\n      k: {type: m/t, args: 7}\n", "", "a restarts: children"},
		{"resend", "slot: 1s", "slot: 2s", "c anew: resend"},
		{"args behind a resender", "{type: n/t,", "{type: n/t, args: 1,", "c anew: args"},
		{"another actor", "  c: {", "  z: {type: m/t}\n  c: {", "z comes"},
		{"another name", "  c: {type: n/t, resend: {slot: 1s}}\n", "  c: {type: n/t}\n  d: {type: n/t}\n", "c anew: resend; d comes"},
		{"an actor less", "capabilities: {send: [/user/c], spawn: [t]}\n    supervision: {strategy: all-for-one, max-restarts: 3, within: 10s, backoff: {curve: table, delays: [1s, 2s]}, decide: [{kind: trap, reason: \"a*\", directive: stop}]}\n    children:\n      k: {type: m/t, args: 7}\n  c: {type: n/t, resend: {slot: 1s}}\n", "", "a anew: supervision, capabilities, children; c goes"},
		{"the order of keys, and style", "{strategy: all-for-one, max-restarts: 3,", "{max-restarts: 3, strategy: 'all-for-one',", ""},
		{"the bundle's name", "name: b", "name: bb", "whole: name has changed, which concerns the whole bundle"},
		{"the guardian's strategy", "name: b\n", "name: b\nsupervision: {otherwise: stop}\n", "whole: supervision has changed, which concerns the whole bundle"},
		{"idle", "name: b\n", "name: b\nidle: {after: 1s}\n", "whole: idle has changed, which concerns the whole bundle"},
		{"a metric", "spawn: [t]}", "spawn: [t], metrics: {orders_total: {kind: counter, help: x}}}", "whole: capabilities.metrics has changed, which concerns the whole bundle; a restarts: capabilities"},
		{"the system", "name: b\n", "name: b\nsystem: {actors: 7}\n", "whole: system has changed, which concerns the whole bundle"},
		{"the end of the run", "name: b\n", "name: b\nrun: {main: a}\n", ""},
		{"the module of an entry", "n: {wasm: ./n.wasm}", "n: {wasm: ./m.wasm}", ""}, // that is the modules' concern
	} {
		t.Run(c.name, func(t *testing.T) {
			text := twoActors
			if c.old != "" {
				if !strings.Contains(text, c.old) {
					t.Fatalf("no %q in the manifest", c.old)
				}
				text = strings.Replace(text, c.old, c.new, 1)
			}
			if got := planText(planOf(parse(t, twoActors), parse(t, text))); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func planText(p plan) string {
	var parts []string
	for _, w := range p.whole {
		parts = append(parts, "whole: "+w)
	}
	for _, x := range p.steps {
		switch x.action {
		case added:
			parts = append(parts, x.name+" comes")
		case removed:
			parts = append(parts, x.name+" goes")
		default:
			parts = append(parts, fmt.Sprintf("%s %s: %s", x.name, map[action]string{restarts: "restarts", replaced: "anew"}[x.action], x.why))
		}
	}
	return strings.Join(parts, "; ")
}

// Under rest-for-one the order counts, and who starts later is the last one.
func TestPlanUnderRestForOne(t *testing.T) {
	manifest := func(names ...string) *Manifest {
		text := "wasmactors: 1\nname: b\nmodules: {m: {wasm: ./m.wasm}}\nsupervision: {strategy: rest-for-one}\nactors:\n"
		for _, n := range names {
			name, lifetime, _ := strings.Cut(n, "!")
			text += "  " + name + ": {type: m/t"
			if lifetime != "" {
				text += ", lifetime: " + lifetime
			}
			text += "}\n"
		}
		return parse(t, text)
	}
	for _, c := range []struct {
		now   []string
		whole bool
	}{
		{[]string{"a", "b", "c"}, false},
		{[]string{"a", "b", "c", "d"}, false},
		{[]string{"a", "c"}, false},
		{[]string{"a", "b", "c!permanent"}, false},
		{[]string{"a", "b!permanent", "c"}, true},
		{[]string{"b", "a", "c"}, true},
		{[]string{"d", "a", "b", "c"}, true},
		{[]string{"a", "b", "d"}, false},
	} {
		if p := planOf(manifest("a", "b", "c"), manifest(c.now...)); (len(p.whole) > 0) != c.whole {
			t.Errorf("%v: %q", c.now, p.whole)
		}
	}
}
