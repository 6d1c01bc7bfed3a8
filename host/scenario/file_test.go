package scenario

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// What is wrong with a file is told at its place, with what to do.
func TestMistakes(t *testing.T) {
	steps := func(s string) string { return "scenarios:\n- name: a\n  steps:\n  - " + s + "\n" }
	for _, c := range []struct{ text, want string }{
		{"", "x:1:1: the scenario file is empty"},
		{"scenarios: [", "x:1:12: not YAML: this [ is not closed"},
		{"- a\n", "x:1:1: the scenario file must be a mapping (the scenarios of a bundle), not a list"},
		{"{}\n", `x:1:1: the scenario file lacks the key "scenarios"`},
		{"scenario: []\n", `x:1:1: unknown key "scenario" in the scenario file; did you mean "scenarios"?`},
		{"scenarios: []\n", "x:1:12: scenarios must have one at least"},
		{"scenarios: 5\n", "x:1:12: scenarios must be a list"},
		{"scenarios: [5]\n", "x:1:13: scenario must be a mapping (a scenario), not a number"},
		{"scenarios:\n- {name: a, steps: [advance: 1s]}\n---\na: 1\n", "x:3:1: a second document begins here"},
		{"scenarios:\n- {name: a, steps: [advance: 1s]}\n- {name: a, steps: [advance: 1s]}\n", `x:3:10: the name "a" comes twice, first in line 2`},
		{"scenarios:\n- {name: a, steps: []}\n", "x:2:20: steps must have one at least"},
		{"scenarios:\n- {name: 5, steps: [advance: 1s]}\n", "x:2:10: name must be a text (its name), not a number: quote it"},
		{"scenarios:\n- {name: a, seeed: 5, steps: [advance: 1s]}\n", `x:2:13: unknown key "seeed" in scenario; did you mean "seed"?`},
		{"scenarios:\n- {name: a, seed: -5, steps: [advance: 1s]}\n", "x:2:19: seed must be at least 0, not -5"},
		{"scenarios:\n- {name: a, seed: x, steps: [advance: 1s]}\n", "x:2:19: seed must be a whole number"},
		{"scenarios:\n- {name: a, start: today, steps: [advance: 1s]}\n", "x:2:20: start must be a time such as 2026-01-31T09:00:00Z"},
		{"scenarios:\n- {name: a, stand-ins: ['a b'], steps: [advance: 1s]}\n", `x:2:25: "a b" is neither the name of an actor nor a path`},
		{"scenarios:\n- {name: a, http: [{url: x, json: 1, body: y}], steps: [advance: 1s]}\n", "x:2:35: json and body cannot be combined"},
		{"scenarios:\n- {name: a, http: [{url: x, error: x, status: 500}], steps: [advance: 1s]}\n", "x:2:36: with error there is no answer"},
		{"scenarios:\n- {name: a, http: [{url: x, json: !ref x}], steps: [advance: 1s]}\n", "x:2:35: json: !ref is not for web servers"},
		{steps("hello"), "x:4:5: a step must be a mapping with one of these keys: send, ask, expect"},
		{steps("{to: a}"), "x:4:6: a step needs a key that says what it does: one of send, ask,"},
		{steps("{sned: a}"), `did you mean "send"?`},
		{steps("{send: a, advance: 1s, message: 1}"), `x:4:15: a step does one thing: "advance" cannot be combined with "send"`},
		{steps("{send: a}"), `x:4:5: send lacks the key "message" (the message, sent as CBOR)`},
		{steps("{send: a, message: 1, within: 1s}"), `x:4:27: unknown key "within" in send`},
		{steps("{advance: 5}"), `x:4:15: advance: "5" is not a duration such as`},
		{steps("{advance: 2000000h}"), "advance must be at most 876000h, not 2000000h"},
		{steps("{expect-event: crashed}"), `x:4:20: expect-event cannot be "crashed"`},
		{steps("{crash: a, kind: trapp}"), `x:4:22: kind cannot be "trapp"; did you mean "trap"?`},
		{steps("{expect: a, message: 1, match: 1}"), "x:4:36: message and match cannot be combined"},
		{steps("{ask: a, message: 1, match: 1, error: x}"), "match and error cannot be combined"},
		{steps("{ask: a, message: 1, answer: 1, match: 1}"), "answer and match cannot be combined"},
		{steps("{reply: a}"), "x:4:5: reply needs message, or error"},
		{steps("{expect-state: a}"), "x:4:5: expect-state needs at least one of alive, state"},
		{steps("{expect-state: a, alive: false, crashes: 1}"), "of an actor that is not alive there is nothing else to say"},
		{steps("{expect-restart: a, tolerance: 5%}"), "x:4:36: tolerance needs after"},
		{steps("{expect-restart: a, after: 1s, tolerance: five}"), `tolerance: "five" is not a duration`},
		{steps("{send: a, message: !glob x*}"), "x:4:24: !glob is for match: the value here must be exact"},
		{steps("{send: a, message: [!not 5]}"), "!not is for match"},
		{steps("{send: a, message: !what x}"), "x:4:24: the tag !what has no meaning here; there are !bytes, !ref"},
		{steps("{send: a, message: !bytes '%'}"), `!bytes: "%" is not base64`},
		{steps("{send: a, message: 99999999999999999999}"), "does not fit 64 bits"},
		{steps("{expect: a, match: !re '('}"), "x:4:24: !re: missing closing )"},
		{steps("{expect: a, match: !min x}"), `!min: "x" is not a number`},
		{steps("{expect: a, match: !type string}"), `!type: "string" is not one of text, integer`},
		{steps("{expect: a, match: !any x}"), "!any stands alone"},
		{steps("{expect: a, match: !glob [x]}"), "!glob is for a single value, not for a list"},
		{steps("{expect: a, headers: [x]}"), "headers must be a mapping"},
		{steps("{expect: a, headers: {x: 5}}"), "headers.x must be a text"},
		{steps("{send: &x a, message: 1}"), "anchors and aliases are not supported"},
		{steps("{send: '', message: 1}"), "x:4:12: send is empty"},
		{steps("{drop: a, messages: 0}"), "messages must be at least 1, not 0"},
		{steps("{drop: a, messages: 5, messages: 6}"), `the key "messages" comes twice`},
	} {
		_, err := Parse("x", []byte(c.text))
		var ds bundle.Diagnostics
		if !errors.As(err, &ds) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n%v\nwant %s", c.text, err, c.want)
		}
	}
	big := filepath.Join(t.TempDir(), "big_test.yaml")
	put(t, big, strings.Repeat("#", MaxFile+1))
	if _, err := Load(t.Context(), big); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Error(err)
	}
	if _, err := Load(t.Context(), big+"x"); !errors.Is(err, os.ErrNotExist) && (err == nil || !strings.Contains(err.Error(), "there is no such scenario file")) {
		t.Error(err)
	}
}

// What a bundle does not have is told before anything runs.
func TestFits(t *testing.T) {
	m, err := bundle.LoadWith("testdata", nil, NewStage(all.Kinds()...).Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	hello, err := bundle.Load("../../samples/hello")
	if err != nil {
		t.Fatal(err)
	}
	words := bundle.Words{Mailboxes: map[string]func(host.MailboxLimits) host.Mailbox{"own": host.UsualMailbox}}
	own, err := words.Parse("x", []byte("wasmactors: 1\nname: x\nmodules: {m: {wasm: ./m.wasm}}\nactors:\n  a: {type: m/t, mailbox: {kind: own}}\n  k: {type: m/t, keyed: {header: id}, mailbox: {kind: own}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of         *bundle.Manifest
		text, want string
	}{
		{own, "steps: [{drop: a}]", "faults cannot apply to messages to an actor with a mailbox of an embedder, own: a"},
		{own, "steps: [{drop: k/1}]", "faults cannot apply to messages to an actor with a mailbox of an embedder, own: k/1"},
		{m, "steps: [{send: ecko, message: 1}]", `there is no actor "ecko"; did you mean "echo"?`},
		{m, "steps: [{send: /user/parnt/child, message: 1}]", `there is no actor "/user/parnt/child"`},
		{m, "steps: [{send: /system/http, message: 1}]", "is neither the name of an actor nor a path such as /user/a/b"},
		{m, "steps: [{expect: me}]", `no step sends from a probe "me", and it is not a stand-in`},
		{m, "steps: [{send: echo, message: 1, from: mee}, {expect: me}]", `did you mean "mee"?`},
		{m, "steps: [{send: echo, message: 1, from: /user/loner}]", "is not a stand-in; a probe has a name and no path"},
		{m, "steps: [{reply: echo, message: 1}]", `only a stand-in is asked anything: name "echo" in stand-ins`},
		{m, "stand-ins: [echo]\nsteps: [{drop: echo}]", "echo is a stand-in, which the scenario plays itself"},
		{m, "stand-ins: [/user/echo/x]\nsteps: [{drop: loner}]", "/user/echo/x is not an actor of the manifest"},
		{m, "steps: [{drop: echo/child}]", "faults apply to messages to actors of the manifest"},
		{m, "steps: [{delay: many, by: 1s}]", "faults cannot apply to messages to a router"},
		{hello, "config: {a: b}\nsteps: [{advance: 1s}]", "config is for the service config, which no actor of the bundle is granted"},
		{hello, "http: [{url: x}]\nsteps: [{advance: 1s}]", "http is for the service http"},
		{hello, "steps: [{expect-request: x}]", "expect-request is for the service http"},
	} {
		s := scenarioOf(t, c.text+"\n")
		err := (&File{"x", []*Scenario{s}}).Fits(c.of)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x:") {
			t.Errorf("%s:\n%v\nwant %s", c.text, err, c.want)
		}
	}
	ok := scenarioOf(t, "stand-ins: [new]\nsteps: [{send: /user/echo/spawned/later, message: [!ref me, !ref new]}, {expect: me}, {expect: new}]\n")
	if err := (&File{"x", []*Scenario{ok}}).Fits(m); err != nil {
		t.Error(err)
	}
}

// How values and patterns compare.
func TestDiffers(t *testing.T) {
	find := func(name string) (uint64, error) { return uint64(len(name)), nil }
	for _, c := range []struct {
		node    string
		got     any
		pattern bool
		want    string
	}{
		{"5", 5, false, ""}, {"5", 5.0, false, ""}, {"5", uint64(math.MaxUint64), false, "it is 18446744073709551615, not 5"},
		{"18446744073709551615", uint64(math.MaxUint64), false, ""}, {"-1", -1, false, ""}, {"x", "x", false, ""}, {"x", "y", false, `it is "y", not "x"`},
		{"true", true, false, ""}, {"null", nil, false, ""}, {"null", 0, false, "it is 0, not null"}, {"'5'", 5, false, `it is 5, not "5"`},
		{"!bytes eA==", []byte("x"), false, ""}, {"!bytes eA==", "x", false, "not !bytes eA=="}, {"!ref abc", 3, false, ""},
		{"!duration 1ms", 1_000_000, false, ""}, {"!size 1KiB", 1024, false, ""},
		{"[1, 2]", []any{1, 2}, false, ""}, {"[1, 2]", []any{1}, false, "it has 1 elements, not 2"}, {"[1]", []any{2}, true, "it[0] is 2, not 1"}, {"[1]", 1, false, "it is integer, not a list"},
		{"{a: 1}", map[string]any{"a": 1}, false, ""}, {"{a: 1}", map[string]any{"a": 1, "b": 1}, false, `it has the key "b"`}, {"{a: 1}", map[string]any{"a": 1, "b": 1}, true, ""},
		{"{a: {b: [!any , 2]}}", map[string]any{"a": map[string]any{"b": []any{1, 3}}}, true, "it.a.b[1] is 3, not 2"}, {"{a: 1}", map[string]any{}, true, `it lacks the key "a"`},
		{"{a: 1}", 5, true, "it is integer, not a map"},
		{"!any ", nil, true, ""}, {"!glob a*c", "abc", true, ""}, {"!glob a*c", "abd", true, `it is "abd", which is not !glob a*c`}, {"!glob a", 5, true, "which is not"},
		{"!re ^a", "ba", true, "which is not"}, {"!re a$", "ba", true, ""}, {"!min 5", 5, true, ""}, {"!min 5", 4.9, true, "which is not !min 5"}, {"!max 5", 5, true, ""}, {"!max 5", 6, true, "which is not"}, {"!max 5", "4", true, "which is not"},
		{"!min 5", math.NaN(), true, "which is not"},
		{"!type text", "x", true, ""}, {"!type number", 5, true, ""}, {"!type integer", 5.5, true, "which is not"}, {"!type bytes", []byte{}, true, ""}, {"!type map", map[string]any{}, true, ""}, {"!type list", []any{}, true, ""}, {"!type null", nil, true, ""}, {"!type boolean", true, true, ""},
		{"!not 5", 6, true, ""}, {"!not 5", 5, true, "which is not !not 5"}, {"!not {a: 1}", map[string]any{"a": 1, "b": 2}, true, "which is not"}, {"!not {a: 1}", map[string]any{"a": 2}, true, ""},
	} {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(c.node), &doc); err != nil {
			t.Fatal(err)
		}
		check := checkerOf("x")
		check.value(doc.Content[0], c.pattern)
		payload, err := host.Encode(c.got)
		if err != nil || len(check.Found) > 0 {
			t.Fatalf("%s: %v %v", c.node, err, check.Found)
		}
		got, err := decode(payload)
		if err != nil {
			t.Fatal(err)
		}
		if d := differs(doc.Content[0], got, c.pattern, find, "it"); (d == "") != (c.want == "") || !strings.Contains(d, c.want) {
			t.Errorf("%s and %v: %q, want %q", c.node, c.got, d, c.want)
		}
	}
}

// Whatever a file holds, it is refused with places, or it is a file whose scenarios can be looked at.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"../../samples/hello/greeter_test.yaml", "../../samples/ledger/ledger_test.yaml", "../../samples/flaky/styles_test.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, k := range keys {
		f.Add([]byte("scenarios:\n- name: it\n  steps:\n  " + strings.ReplaceAll(k.good, "\n", "\n  ")))
	}
	m, err := bundle.LoadWith("testdata", nil, NewStage(all.Kinds()...).Kinds()...)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("x", data)
		if err != nil {
			var ds bundle.Diagnostics
			if !errors.As(err, &ds) || len(ds) == 0 {
				t.Fatalf("%v", err)
			}
			for _, d := range ds {
				if d.Line < 1 || d.Column < 1 || d.Message == "" {
					t.Errorf("%+v", d)
				}
			}
			return
		}
		_ = file.Fits(m)
		for _, s := range file.Scenarios {
			_ = s.ID()
			for i := range s.steps {
				x := &s.steps[i]
				_ = x.span("within", 0) + x.slack()
				for _, key := range []string{"message", "match", "answer"} {
					if n := grammar.At(x.n, key); n != nil {
						_ = source(n)
						_ = differs(n, map[string]any{"a": 5, "b": "x"}, key == "match", func(string) (uint64, error) { return 1, nil }, "it")
						_, _ = valueOf(n, func(string) (uint64, error) { return 1, fmt.Errorf("no") })
					}
				}
			}
		}
	})
}
