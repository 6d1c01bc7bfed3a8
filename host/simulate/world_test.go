package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/simulate"
)

// counter counts in steps: it tells another actor what it was told, and that one answers.
func counter(ctx *host.Context, m host.Message) error {
	var n int
	if m.Decode(&n) == nil {
		return ctx.Reply(n + 1)
	}
	return host.ErrUnhandled
}

// talk is a body whose actors talk, wait and fail.
func talk(w *simulate.World) {
	c := w.Spawn("counter", host.Func(counter))
	asker := w.Spawn("asker", host.Func(func(ctx *host.Context, m host.Message) error {
		var n int
		if m.Decode(&n) != nil || m.Kind == abi.KindReply || m.Kind == abi.KindReplyError {
			return nil
		}
		if m.Kind == abi.KindTimer {
			return ctx.Tell(c, n)
		}
		if n%7 == 0 {
			ctx.After(uint64(n)+1, time.Duration(n)*time.Millisecond, 0, n+1)
			return nil
		}
		return ctx.Forward(c)
	}))
	for i := range 30 {
		w.Ask(asker, i, nil)
		w.Tell(c, i)
	}
}

func all(t testing.TB, text string) []simulate.Class {
	t.Helper()
	on, err := simulate.ParseFaults(text)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func sweep(t testing.TB, body simulate.Body, faults string, seeds, jobs int, o simulate.WorldOptions) (out []*simulate.Outcome) {
	t.Helper()
	on := all(t, faults)
	s := simulate.Sweeping{From: 1, Seeds: seeds, Jobs: jobs, Plan: func(seed uint64) simulate.Plan { return simulate.NewPlan(seed, on) }}
	err := simulate.Sweep(t.Context(), s, func() (simulate.Player, error) { return simulate.Bodies{Body: body, Options: o}, nil },
		func(o *simulate.Outcome) bool { out = append(out, o); return true })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func chains(of []*simulate.Outcome) string {
	var b strings.Builder
	for _, o := range of {
		fmt.Fprintln(&b, o.Plan.Seed, o.Chain, o.Records)
	}
	return b.String()
}

// TestSameSeedSameBytes: the history of a seed is the same with one and with eight jobs, and in another process.
func TestSameSeedSameBytes(t *testing.T) {
	one := chains(sweep(t, talk, "all", 40, 1, simulate.WorldOptions{}))
	if file := os.Getenv("SIMULATE_CHAINS"); file != "" {
		if err := os.WriteFile(file, []byte(one), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if eight := chains(sweep(t, talk, "all", 40, 8, simulate.WorldOptions{})); one != eight {
		t.Fatal("with eight jobs the histories are others")
	}
	lines := strings.Fields(one)
	if lines[1] == lines[4] {
		t.Fatal("two seeds have the same history")
	}
	file := t.TempDir() + "/chains"
	cmd := exec.Command(os.Args[0], "-test.run=^TestSameSeedSameBytes$")
	cmd.Env = append(os.Environ(), "SIMULATE_CHAINS="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if other, err := os.ReadFile(file); err != nil || string(other) != one {
		t.Fatalf("in another process the histories are others: %v", err)
	}
}

// TestNothingIsViolated: actors without mistakes violate nothing, whatever happens to them.
func TestNothingIsViolated(t *testing.T) {
	kinds := map[simulate.Class]int{}
	for _, o := range sweep(t, talk, "all", 200, 2, simulate.WorldOptions{}) {
		if o.Failed() {
			t.Errorf("seed %d: %+v %v\n%s", o.Plan.Seed, o.Violation, o.Err, strings.Join(o.Tail, "\n"))
		}
		for _, c := range o.Plan.On() {
			kinds[c]++
		}
	}
	for _, c := range simulate.Classes() {
		if kinds[c] == 0 {
			t.Errorf("no seed of 200 has %s", c)
		}
	}
}

// TestFaultsByClass: each class makes faults, and without it there are none.
func TestFaultsByClass(t *testing.T) {
	lossy := simulate.WorldOptions{Places: simulate.Places{Lossy: func(path string) bool { return path == "/user/counter" }}}
	for _, c := range []simulate.Class{simulate.Crash, simulate.Full, simulate.Drop, simulate.Late, simulate.Twice, simulate.Overtaken, simulate.Clock} {
		n := 0
		on := []simulate.Class{c}
		for seed := range uint64(20) {
			o := simulate.Bodies{Body: talk, Options: lossy}.Play(t.Context(), simulate.NewPlan(seed, on))
			for _, f := range o.Faults {
				if f.Class != c {
					t.Fatalf("%s is off, and has happened", f.Class)
				}
				n++
			}
			if o.Failed() {
				t.Errorf("%s, seed %d: %+v %v", c, seed, o.Violation, o.Err)
			}
		}
		if n == 0 {
			t.Errorf("%s: no fault in 20 seeds", c)
		}
	}
	if o := (simulate.Bodies{Body: talk}).Play(t.Context(), simulate.NewPlan(1, nil)); len(o.Faults) > 0 {
		t.Errorf("without classes there are faults: %v", o.Faults)
	}
}

// TestFindsAndShrinks: an actor that forgets what it has promised when an answer is missing is found, and the case is one fault and
// one message.
func TestFindsAndShrinks(t *testing.T) {
	o := first(t, sweep(t, forgets, "all", 300, 1, simulate.WorldOptions{}))
	s := simulate.Shrink(t.Context(), simulate.Bodies{Body: forgets}, o, simulate.DefaultShrinking)
	if s.Drawn || s.Violation == nil || s.Violation.Rule != "kept" || len(s.Plan.Faults) != 1 {
		t.Fatalf("%d runs: %+v: %+v", s.Runs, s.Violation, s.Plan)
	}
	if sent := s.Messages - uint64(len(s.Plan.Skip)); sent != 1 {
		t.Errorf("%d messages are left: %+v", sent, s.Plan)
	}
	file := t.TempDir() + "/case.json"
	if err := s.Plan.Save(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := simulate.ParsePlan(data)
	if err != nil {
		t.Fatal(err)
	}
	if again := (simulate.Bodies{Body: forgets}).Play(t.Context(), p); again.Chain != s.Chain {
		t.Error("from the file it is another history")
	}
}

func first(t testing.TB, of []*simulate.Outcome) *simulate.Outcome {
	t.Helper()
	i := slices.IndexFunc(of, func(o *simulate.Outcome) bool { return o.Violation != nil })
	if i < 0 {
		t.Fatal("no seed finds it")
	}
	return of[i]
}

// forgets: a message that was taken is passed on, and nobody looks whether it has arrived.
func forgets(w *simulate.World) {
	got := 0
	store := w.Spawn("store", host.Func(func(ctx *host.Context, m host.Message) error { got++; return nil }))
	taken := 0
	front := w.Spawn("front", host.Func(func(ctx *host.Context, m host.Message) error {
		taken++
		return ctx.Tell(store, "x")
	}))
	for range 10 {
		w.Tell(front, "y")
	}
	w.Settled("kept", func() error {
		if got < taken {
			return fmt.Errorf("%d of %d", got, taken)
		}
		return nil
	})
}

// TestEndlessAndEarly: a run that does not come to rest ends with an error, and so does a sweep whose context ends.
func TestEndsOfASweep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	s := simulate.Sweeping{Seeds: 100, Jobs: 3, Plan: func(seed uint64) simulate.Plan { return simulate.NewPlan(seed, nil) }}
	players := func() (simulate.Player, error) { return simulate.Bodies{Body: talk}, nil }
	err := simulate.Sweep(ctx, s, players, func(o *simulate.Outcome) bool { n++; return n < 5 })
	if err != nil || n != 5 {
		t.Errorf("%d outcomes, %v", n, err)
	}
	cancel()
	if err := simulate.Sweep(ctx, s, players, func(*simulate.Outcome) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestParseFaults(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"none", "[]"}, {"crash,drop", "[crash drop]"}, {"none,late", "[late]"}, {"all,-all,full", "[full]"},
	} {
		if got, err := simulate.ParseFaults(x.text); err != nil || fmt.Sprint(got) != x.want {
			t.Errorf("%s: %v, %v", x.text, got, err)
		}
	}
	for _, text := range []string{"all", "all,-clock", "-clock"} {
		got, err := simulate.ParseFaults(text)
		if err != nil || len(got) != len(simulate.Classes())-strings.Count(text, "-") {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"krash": `did you mean "crash"?`, "": "empty part", "all,": "empty part", "drop,none": "stands alone", "xyzzyxyzzy": "valid here: crash, fuel",
	} {
		if _, err := simulate.ParseFaults(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParsePlan(t *testing.T) {
	for data, want := range map[string]string{
		`{`: "byte", `{"spell":1,"rates":{"dorp":0.1}}`: `did you mean "drop"?`, `{"spell":1,"rates":{"drop":7}}`: "from 0 to 1", `{"spell":0}`: "spell",
		`{"spell":1,"faults":[{"class":"x"}]}`: "number 1", `{"spell":1,"prefer":"newes"}`: `"newest"`, `{"spell":1,"skip":[2,1]}`: "ascend", `{"spell":1,"awake":-1}`: "awake",
	} {
		if _, err := simulate.ParsePlan([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add([]byte(`{"host":"x/1","seed":4711,"rates":{"drop":0.5},"spell":4,"faults":[{"class":"crash","place":"/user/a","n":3,"arg":9}],"skip":[1,2]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := simulate.ParsePlan(data)
		if err == nil {
			p.On()
			p.Without(simulate.Drop)
		}
	})
}
