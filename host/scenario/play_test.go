package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
)

// plays runs a file against the bundle of testdata.
func plays(t *testing.T, st *Stage, b *bundle.Bundle, text string) (results []Result) {
	t.Helper()
	f, err := Parse("it_test.yaml", []byte(text))
	if err == nil {
		err = f.Fits(b.Manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Scenarios {
		results = append(results, st.Run(t.Context(), b, s, Options{}))
	}
	return results
}

func TestScenariosOfServices(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata")
	for _, path := range []string{"testdata/services_test.yaml", "testdata/live_test.yaml"} { // the guide shows the second
		for _, s := range loaded(t, b, path) {
			holds(t, st.Run(t.Context(), b, s, Options{}))
		}
	}
}

// loaded are the scenarios of a file.
func loaded(t testing.TB, b *bundle.Bundle, path string) []*Scenario {
	t.Helper()
	f, err := Load(t.Context(), path)
	if err == nil {
		err = f.Fits(b.Manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f.Scenarios
}

// What is to be overtaken is delivered before time passes if nobody comes, is overtaken by what comes twice or
// ends in a crash, and waits for no message that is lost or late itself.
func TestReorder(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata")
	for _, r := range plays(t, st, b, `
scenarios:
- name: nobody comes
  steps:
  - {reorder: echo}
  - {send: echo, message: 1, from: me}
  - {expect-state: echo, mailbox: 0}
  - {expect: me, message: 1, within: 0}
- name: twice
  steps:
  - {reorder: echo}
  - {duplicate: echo}
  - {send: echo, message: 1, from: me}
  - {send: echo, message: 2, from: me}
  - {expect: me, message: 2}
  - {expect: me, message: 2}
  - {expect: me, message: 1}
- name: by one that is lost and one that is late
  steps:
  - {reorder: echo}
  - {drop: echo}
  - {delay: echo, by: 1ms}
  - {send: echo, message: 1, from: me}
  - {send: echo, message: 2, from: me}
  - {send: echo, message: 3, from: me}
  - {expect: me, message: 1, within: 0}
  - {expect: me, message: 3, within: 1ms}
  - {expect-none: me, for: 1s}
- name: by one that crashes
  steps:
  - {reorder: echo}
  - {crash: echo, on-message: 1}
  - {send: echo, message: 1, from: me}
  - {send: echo, message: 2, from: me}
  - {expect-restart: echo}
  - {expect: me, message: 1}
  - {expect-none: me, for: 1s}
`) {
		holds(t, r)
	}
}

func TestStandIns(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata")
	text := `
defaults: {stand-ins: [server, parent/child]}
scenarios:
- name: one that is asked answers
  steps:
  - {send: asker, message: [!ref server, buy, {n: 1}], from: me}
  - {expect: server, message: [buy, {n: 1}], from: asker}
  - {ask: parent, message: 5, answer: 5}
  - {expect-none: parent/child, for: 0}
  - {send: parent/child, message: 6}
  - {expect: /user/parent/child, message: 6}
- name: an answer to who waits
  steps:
  - {send: server, message: 1, from: me}
  - {expect: server, message: 1}
`
	for _, r := range plays(t, st, b, text) {
		holds(t, r)
	}
	// The forwarder of a question waits for its answer, or for the error.
	flaky, fb := sample(t, "flaky")
	for key, want := range map[string]string{"message: {id: 3, text: at last}": "{id: 3, text: at last, attempts: 1}", "error: gone": "{attempts: 2}"} {
		steps := fmt.Sprintf(`
scenarios:
- name: replies
  stand-ins: [service]
  steps:
  - {send: akka, message: {id: 3}, from: me}
  - {expect: service, match: {id: 3, attempt: 1}}
  - {reply: service, %s}
  - {send: akka, message: {id: 4}}
`, key)
		if strings.HasPrefix(key, "error") {
			steps += "  - {expect-event: failed, actor: akka/client, text: '*the service is gone'}\n  - {expect: service, match: {id: 3, attempt: 2}}\n  - {reply: service, message: {id: 3, text: ok}}\n"
		}
		steps += "  - {expect: me, match: " + want + "}\n"
		for _, r := range plays(t, flaky, fb, steps) {
			holds(t, r)
		}
	}
}

// One seed is one run, and another is another; --seed goes before that of the scenario.
func TestSeeds(t *testing.T) {
	st, b := sample(t, "ledger")
	at := func(settings string, o Options) (delays []string) {
		s := scenarioOf(t, settings+"steps:\n- {crash: gateway}\n- {expect-restart: gateway}\n- {crash: gateway}\n- {expect-restart: gateway}\n- {ask: bank, message: report}\n- {ask: bank, message: nothing, answer: 1, within: 1ms}")
		r := st.Run(t.Context(), b, s, o)
		if r.Failure == nil {
			t.Fatal("the last step is to fail")
		}
		return append(r.Failure.Before, r.Passed.String())
	}
	seven := uint64(7)
	one, again, two, given := at("", Options{}), at("seed: 1\n", Options{}), at("seed: 7\n", Options{}), at("seed: 1\n", Options{Seed: &seven})
	if !reflect.DeepEqual(one, again) {
		t.Errorf("%v\n%v", one, again)
	}
	if reflect.DeepEqual(one, two) || !reflect.DeepEqual(two, given) {
		t.Errorf("%v\n%v\n%v", one, two, given)
	}
}

// Defaults hold for scenarios that do not say otherwise, key by key of mappings.
func TestDefaults(t *testing.T) {
	f, err := Parse("x_test.yaml", []byte(`
defaults: {seed: 5, start: 2027-01-01T00:00:00Z, config: {a: 1x, b: 2x}, http: [{url: default}], stand-ins: [x]}
scenarios:
- {name: plain, steps: [advance: 1s]}
- {name: own, seed: 6, config: {b: 3x}, http: [{url: own}], stand-ins: [y], steps: [advance: 1s]}
`))
	if err != nil {
		t.Fatal(err)
	}
	plain, own := f.Scenarios[0], f.Scenarios[1]
	if plain.seed != 5 || plain.start.Year() != 2027 || plain.config["b"] != "2x" || len(plain.fakes) != 1 || !reflect.DeepEqual(plain.standIns, []string{"/user/x"}) {
		t.Errorf("%+v", plain)
	}
	if own.seed != 6 || own.config["a"] != "1x" || own.config["b"] != "3x" || own.fakes[0].url != "own" || own.fakes[1].url != "default" || len(own.standIns) != 2 {
		t.Errorf("%+v", own)
	}
}

// Actors that never come to rest, and turns that do not end, cost the scenario and nothing else.
func TestHostileGuestsEnd(t *testing.T) {
	for name, actor := range map[string]string{
		"loop":         "{type: m/hostile, limits: {fuel: 1000G, deadline: 0}}",
		"ask-forever":  "{type: m/hostile}",
		"send-flood":   "{type: m/hostile}",
		"log-flood":    "{type: m/hostile}",
		"panic-huge":   "{type: m/hostile}",
		"sleep":        "{type: m/hostile}",
		"clock-loop":   "{type: m/hostile, limits: {fuel: 1000G, deadline: 0}}",
		"stdout-flood": "{type: m/hostile}",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			manifest := "wasmactors: 1\nname: hostile\nmodules: {m: {wasm: " + abs(t, "../testdata/hostile/"+name+".wasm") + "}}\nactors: {a: " + actor + "}\n"
			put(t, dir+"/bundle.yaml", manifest)
			st, b := opened(t, dir)
			s := scenarioOf(t, "steps:\n- {send: a, message: 1}\n- {advance: 1h}\n- {send: a, message: 1}\n- {expect-state: a, alive: false}")
			began := time.Now()
			r := st.Run(t.Context(), b, s, Options{Timeout: 500 * time.Millisecond})
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if r.Failure != nil {
				size := len(r.Failure.What + r.Failure.Got)
				for _, l := range r.Failure.Before {
					size += len(l)
				}
				if size > 64<<10 {
					t.Errorf("the report has %d bytes", size)
				}
				t.Log(r.Failure.What, r.Took)
			}
			if name == "loop" && (r.Failure == nil || !strings.Contains(r.Failure.What, "500ms of real time")) {
				t.Errorf("%+v", r.Failure)
			}
		})
	}
}

// Scenarios end with the context of who runs them.
func TestRunEndsWithItsContext(t *testing.T) {
	st, b := sample(t, "hello")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := st.Run(ctx, b, scenarioOf(t, "steps:\n- {ask: greeter, message: Ada}"), Options{})
	if r.Failure == nil || !strings.Contains(r.Failure.What, "canceled") {
		t.Errorf("%+v", r.Failure)
	}
}

// The report of go test, and as JSON; what guests have written does nothing to a terminal.
func TestReport(t *testing.T) {
	s := &Scenario{Name: "it is fine", File: "a/b_test.yaml", Line: 3, Column: 5}
	failed := Result{s, Failed, time.Second, time.Minute, &Failure{
		File: "a/b_test.yaml", Line: 7, Column: 9, Step: 2, Verb: "ask", What: "it is \x1b[2J", Want: "5", Got: "\u202e6\nnext", Hint: "try", Before: []string{"+0s x\x07"},
	}}
	skipped := Result{&Scenario{Name: "later", File: "b_test.yaml", Skip: "not yet"}, Skipped, 0, 0, nil}
	for _, c := range []struct {
		verbose bool
		results []Result
		want    string
	}{
		{false, []Result{{s, Passed, 0, 0, nil}, skipped}, "ok  \tbook\t"},
		{false, nil, "[no scenarios to run]\n"},
		{true, []Result{{s, Passed, 0, time.Second, nil}}, "=== RUN   b/it is fine\n--- PASS: b/it is fine (0.00s, 1s of virtual time)\nPASS\nok  \tbook\t"},
		{true, []Result{skipped}, "=== RUN   b/later\n--- SKIP: b/later (0.00s)\n    not yet\nPASS\nok"},
		{false, []Result{failed}, "--- FAIL: b/it is fine (1.00s)\n    a/b_test.yaml:7:9: ask: it is \ufffd[2J\n        expected: 5\n        got:      \ufffd6 next\n        note:     try\n        what happened before:\n            +0s x\ufffd\nFAIL\nFAIL\tbook\t"},
	} {
		var out bytes.Buffer
		r := NewReport(&out, "book", c.verbose, false, nil)
		for _, x := range c.results {
			r.Begins(x.Scenario)
			r.Ended(x)
		}
		r.End()
		if !strings.Contains(out.String(), c.want) || r.Err() != nil {
			t.Errorf("%s, %v, want %s", &out, r.Err(), c.want)
		}
	}
	var out bytes.Buffer
	r := NewReport(&out, "book", false, true, strings.ToUpper)
	r.Begins(s)
	r.Ended(failed)
	r.Ended(skipped)
	r.End()
	if strings.ContainsAny(out.String(), "\x1b\x07\u202e") || r.Failed() != 1 {
		t.Errorf("%q", &out)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last map[string]any
	if err := json.Unmarshal([]byte(lines[3]), &last); err != nil || last["action"] != "fail" || last["failed"] != 1.0 || last["skipped"] != 1.0 || last["bundle"] != "book" {
		t.Errorf("%v %v", last, err)
	}
	var one struct {
		Action, Scenario, File string
		Failure                struct {
			Step           int
			Message, Verb  string
			Expected, Note string
		}
	}
	if err := json.Unmarshal([]byte(lines[1]), &one); err != nil || one.Action != "fail" || one.File != "A/B_TEST.YAML" || one.Failure.Message != "it is \x1b[2J" || one.Failure.Step != 2 || one.Failure.Expected != "5" {
		t.Errorf("%+v %v", one, err)
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	p, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A scenario that ends while services are at work ends at once.
func TestEndsWhileServicesWork(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata")
	began := time.Now()
	for range 2 {
		for _, r := range plays(t, st, b, `
scenarios:
- name: a run that nobody answers
  steps:
  - {ask: runner, message: every tick 60, match: !any }
  - {pause: runner}
  - {advance: 90s}
  - {expect-state: runner, mailbox: 1}
- name: a server that takes its time
  http: [{url: "*", delay: 1h}]
  steps:
  - {send: surfer, message: [get, "http://shop.example/", 0], from: me, times: 3}
  - {expect-request: "*"}
- name: a parent in a delay
  steps:
  - {crash: parent}
  - {crash: keeper}
  - {send: keeper, message: put a 1}
`) {
			holds(t, r)
		}
	}
	if took := time.Since(began); took > closeTime {
		t.Errorf("it took %v", took)
	}
}

// What actors make the runner keep is bounded in bytes.
func TestProbesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata")
	big := strings.Repeat("x", 10_000)
	for _, step := range []string{"send: asker, times: 1400, message: [!ref me, op, " + strings.Repeat(big, 5) + "]", "send: standin, times: 100, message: " + strings.Repeat(big, 70)} {
		s := scenarioOf(t, "- {"+step+"}\n")
		r := st.Run(t.Context(), b, s, Options{})
		if r.Failure == nil || !strings.Contains(r.Failure.What, "more than 64 MiB that were not expected") {
			t.Errorf("%s: %+v", step, r.Failure)
		}
	}
	few := scenarioOf(t, "- {send: echo, message: "+big+", times: 10, from: me}\n"+strings.Repeat("- {expect: me}\n", 10)+"- {expect-none: me, for: 0}\n")
	for range 3 {
		holds(t, st.Run(t.Context(), b, few, Options{}))
	}
}

// A failure that a guest describes at length is kept in short.
func TestHistoryIsBounded(t *testing.T) {
	var h history
	long := strings.Repeat("x", 1<<16)
	for i := range mostEvents + 10 {
		h.add(host.Event{Kind: host.EventFailed, Text: long, Note: long, Incarnation: uint64(i), Failure: &abi.Failure{Reason: long, Message: long, GuestStack: long}}, "")
	}
	size := 0
	for _, e := range h.events {
		size += len(e.Text) + len(e.Note) + len(e.Failure.Reason) + len(e.Failure.Message) + len(e.Failure.GuestStack)
	}
	if size > mostEvents*5*mostText || len(h.events) > mostEvents || len(h.tail(func(time.Time) time.Duration { return 0 })) > mostLines {
		t.Errorf("%d events of %d bytes", len(h.events), size)
	}
	last := h.last(func(*host.Event) bool { return true })
	if last.seen != mostEvents+10 || last.Incarnation != mostEvents+9 || h.find(last.seen-1, "", func(*host.Event) bool { return true }) == nil || h.find(last.seen, "", func(*host.Event) bool { return true }) != nil {
		t.Errorf("%d, %d", last.seen, last.Incarnation)
	}
}

// A restart that follows no failure of the actor's own has no time after it, whatever was before.
func TestRestartsByOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata")
	s := scenarioOf(t, "- {crash: echo}\n- {expect-restart: echo, after: 100ms, tolerance: 20%}\n- {restart: echo}\n- {expect-restart: echo, cause: '*by an operator'}\n"+
		"- {crash: echo}\n- {expect-restart: echo, after: 200ms, tolerance: 20%}\n- {restart: echo}\n- {expect-restart: echo, after: 100ms}\n")
	r := st.Run(t.Context(), b, s, Options{})
	if r.Failure == nil || r.Failure.Step != 8 || r.Failure.What != "/user/echo was restarted and had not failed itself" {
		t.Errorf("%+v", r.Failure)
	}
}
