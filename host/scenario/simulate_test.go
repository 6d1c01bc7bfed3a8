package scenario

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// staging plays a scenario for package simulate.
type staging struct {
	st *Stage
	b  *bundle.Bundle
	s  *Scenario
	o  Simulating
}

func (x staging) Play(ctx context.Context, p simulate.Plan) *simulate.Outcome {
	return x.st.Simulate(ctx, x.b, x.s, p, x.o)
}

func (staging) Close() {}

// swept runs seeds of a scenario.
func swept(t testing.TB, x staging, faults string, seeds int) (out []*simulate.Outcome) {
	t.Helper()
	on, err := simulate.ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	on = x.s.Faults(on)
	for seed := range uint64(seeds) {
		out = append(out, x.Play(t.Context(), simulate.NewPlan(seed+1, on)))
	}
	return out
}

func violations(of []*simulate.Outcome) map[string]int {
	found := map[string]int{}
	for _, o := range of {
		if o.Violation != nil {
			found[o.Violation.Rule]++
		}
		if o.Err != nil {
			found[o.Err.Error()]++
		}
	}
	return found
}

// TestSimulatedLedger: the ledger's books agree whatever happens, two stages have the same histories of its seeds, without
// faults all its steps succeed, and each key of simulation takes effect.
func TestSimulatedLedger(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := sample(t, "ledger")
	s := loaded(t, b, "../../samples/ledger/books_test.yaml")[0]
	x := staging{st: st, b: b, s: s}
	one := swept(t, x, "all", thorough.SlowOf(15, 40))
	for _, o := range one {
		if o.Failed() {
			t.Errorf("seed %d: %+v %v\n%s", o.Plan.Seed, o.Violation, o.Err, strings.Join(o.Tail, "\n"))
		}
	}
	st2, b2 := sample(t, "ledger")
	for i, o := range swept(t, staging{st: st2, b: b2, s: s}, "all", thorough.SlowOf(4, 10)) {
		if o.Chain != one[i].Chain || o.Records != one[i].Records {
			t.Errorf("seed %d: another history, of %d and %d records", o.Plan.Seed, o.Records, one[i].Records)
		}
	}
	if found := violations(swept(t, x, "none", 3)); len(found) > 0 {
		t.Errorf("without faults: %v", found)
	}
	long := staging{st: st, b: b, s: s, o: Simulating{For: 60e9}}
	if o := swept(t, long, "none", 1)[0]; o.Virtual < 60e9 || o.Messages < 2*one[0].Messages || o.Failed() {
		t.Errorf("for a minute: %v, %d messages, %+v", o.Virtual, o.Messages, o.Violation)
	}
	bare := *s
	bare.simulation.spare = nil
	if found := violations(swept(t, staging{st: st, b: b, s: &bare}, "crash,drop", 30)); found["invariant no money is lost or made"] == 0 {
		t.Errorf("a bank that is not spared loses money: %v", found)
	}
	bare.simulation.faults = []simulate.Class{simulate.Order}
	if found := violations(swept(t, staging{st: st, b: b, s: &bare}, "all", 10)); len(found) > 0 {
		t.Errorf("in any order: %v", found)
	}
}

// TestEventually: an invariant that need not hold at once is asked every second, until settle is over. An account answers each
// withdrawal with what is left.
func TestEventually(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := sample(t, "ledger")
	for _, x := range []struct{ when, answer, says string }{
		{"end", "999990", "it is 999999, not 999990"},
		{"eventually", "999990", ""},
		{"eventually", "1", "20s after the end of the faults it is 999979, not 1"},
	} {
		f, err := Parse("it_test.yaml", []byte(`scenarios: [{name: x, simulation: {settle: 20s}, steps: [{advance: 1s}],
  invariants: [{name: it, ask: /user/bank/alice, message: -1, answer: `+x.answer+`, when: `+x.when+`}]}]`))
		if err != nil {
			t.Fatal(err)
		}
		o := swept(t, staging{st: st, b: b, s: f.Scenarios[0]}, "none", 1)[0]
		if o.Err != nil || (o.Violation == nil) != (x.says == "") || o.Violation != nil && !strings.HasPrefix(o.Violation.What, x.says) {
			t.Errorf("%s %s: %+v %v", x.when, x.answer, o.Violation, o.Err)
		}
	}
}

// TestSimulatedKeys: what an invariant and a simulation say takes effect.
func TestSimulatedKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	st, b := opened(t, "testdata")
	for name, x := range map[string]struct{ extra, step, faults, says string }{
		"holds":     {`invariants: [{name: it, ask: echo, message: 1, answer: 1}]`, `{send: echo, message: 2}`, "none", ""},
		"answer":    {`invariants: [{name: it, ask: echo, message: 1, answer: 2}]`, `{send: echo, message: 2}`, "none", "invariant it"},
		"match":     {`invariants: [{name: it, ask: echo, message: [1, 2], match: !sum 4}]`, `{send: echo, message: 2}`, "none", "invariant it"},
		"sum":       {`invariants: [{name: it, ask: echo, message: [1, 2], match: !sum 3}]`, `{send: echo, message: 2}`, "none", ""},
		"always":    {`invariants: [{name: it, ask: echo, message: 1, answer: 2, when: always}]`, `{send: echo, message: 2, times: 50}`, "none", "invariant it"},
		"grows":     {`invariants: [{name: it, ask: echo, message: 5, grows: true, when: always}]`, `{send: echo, message: 2, times: 50}`, "none", ""},
		"no number": {`invariants: [{name: it, ask: echo, message: [1], grows: true}]`, `{send: echo, message: 2}`, "none", "invariant it"},
		"auditor":   {`invariants: [{name: it, auditor: echo}]`, `{crash: echo}`, "none", "auditor /user/echo"},
		"faults":    {`simulation: {faults: none}`, `{expect-none: me, for: 1s}`, "all", ""},
		"judged":    {``, `{expect: me, message: 1}`, "none", "step 1"},
		"excused":   {``, `{expect: me, message: 1}`, "order", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("it_test.yaml", []byte("scenarios: [{name: x, steps: ["+x.step+"], "+x.extra+"}]"))
			if err != nil {
				t.Fatal(err)
			}
			found := violations(swept(t, staging{st: st, b: b, s: f.Scenarios[0]}, x.faults, 3))
			if x.says == "" && len(found) > 0 || x.says != "" && found[x.says] == 0 {
				t.Errorf("%v, not %q", found, x.says)
			}
		})
	}
}

// TestSimulatedSamples: the scenarios of all samples hold what always must, under all faults.
func TestSimulatedSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles guests")
	}
	for _, name := range []string{"hello", "flaky", "chat", "crawler", "webhooks", "redis"} {
		t.Run(name, func(t *testing.T) {
			st, b := sample(t, name)
			paths, err := Find(b.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				for _, s := range loaded(t, b, path) {
					if s.Skip != "" {
						continue
					}
					for _, o := range swept(t, staging{st: st, b: b, s: s}, "all", 2) {
						if o.Failed() {
							t.Errorf("%s, seed %d: %+v %v\n%s", s.ID(), o.Plan.Seed, o.Violation, o.Err, strings.Join(o.Tail, "\n"))
						}
					}
				}
			}
		})
	}
}

func TestSimulationMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`steps: [{advance: 1s}], invariants: [{name: a}]`:                                  "either ask or auditor",
		`steps: [{advance: 1s}], invariants: [{name: a, ask: b}]`:                          "ask needs message",
		`steps: [{advance: 1s}], invariants: [{name: a, auditor: b, match: 1}]`:            "beside auditor",
		`steps: [{advance: 1s}], invariants: [{name: a, ask: b, message: !pick [1]}]`:      "always the same",
		`steps: [{advance: 1s}], invariants: [{name: a, asks: b}]`:                         `did you mean "ask"?`,
		`steps: [{advance: 1s}], simulation: {faults: "all,-krash"}`:                       `did you mean "crash"?`,
		`steps: [{advance: 1s}], simulation: {fault: all}`:                                 `did you mean "faults"?`,
		`steps: [{advance: 1s}], simulation: {spare: {a: dorp}}`:                           `did you mean "drop"?`,
		`steps: [{send: a, message: !between 5..1 }]`:                                      "two whole numbers",
		`steps: [{send: a, message: !pick []}]`:                                            "a list of values",
		`steps: [{send: a, message: !serial 7}]`:                                           "stands alone",
		`steps: [{ask: a, message: 1, answer: !serial }]`:                                  "are for messages",
		`steps: [{ask: a, message: 1, match: !sum x}]`:                                     "is not a number",
		`steps: [{advance: 1s}], simulation: {settle: 900000h}`:                            "at most 876000h",
		`steps: [{advance: 1s}], invariants: [{name: a, ask: b, message: 1, when: never}]`: `cannot be "never"`,
		`steps: [{advance: 1s}], invariants: [{name: a, ask: "b c", message: 1}]`:          "neither the name",
	} {
		_, err := Parse("it_test.yaml", []byte("scenarios: [{name: x, "+text+"}]"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
}

// TestDrawn: the seed and the number of the message choose values, and nothing else does.
func TestDrawn(t *testing.T) {
	f, err := Parse("it_test.yaml", []byte(`scenarios: [{name: x, steps: [{send: a, message: {a: !between -2..2, b: !pick [x, [y]], c: !serial , d: 5}}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for seed := range uint64(20) {
		for n := range uint64(20) {
			s := *f.Scenarios[0]
			s.seed = seed
			w := &world{scenario: &s}
			value := func() string {
				v, err := valueOf(w.drawn(grammar.At(s.steps[0].n, "message"), n), nil)
				if err != nil {
					t.Fatal(err)
				}
				return show(v)
			}
			one := value()
			if one != value() || !strings.Contains(one, fmt.Sprintf("c: %d", n)) {
				t.Fatalf("%s, then %s", one, value())
			}
			all[strings.Replace(one, fmt.Sprintf("c: %d,", n), "", 1)]++
		}
	}
	if len(all) != 10 {
		t.Errorf("%d values: %v", len(all), all)
	}
}
