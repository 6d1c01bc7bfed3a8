package simulate_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/planted"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// Mistakes in the host's own code: one binary is built with an overlay that has all of them, and a variable of the environment
// switches one on. `make planted` prints in which seed each is found.

// mutant is a mistake, and the first seed that finds it; 0: none of 1000 does.
type mutant struct {
	planted.Mistake
	seed uint64
}

var mutants = []mutant{
	{planted.Mistake{Name: "an answer that comes after its timeout counts", File: "internal/work/work.go", Old: "\tcase ask == nil:\n\t\treturn Late", New: "\tcase ask == nil && !planted:\n\t\treturn Late\n\tcase ask == nil:\n\t\treturn Counts"}, 4},
	{planted.Mistake{Name: "a timeout that waits counts after the answer", File: "internal/work/work.go", Old: "ok = ask != nil && e.Value == any(ask)", New: "ok = planted || ask != nil && e.Value == any(ask)"}, 1},
	{planted.Mistake{Name: "a timer that waits counts after it was cancelled", File: "internal/work/work.go", Old: "ok = w.Timers.Current(e)", New: "ok = planted || w.Timers.Current(e)"}, 47},
	{planted.Mistake{Name: "timers survive their incarnation", File: "internal/work/work.go", Old: "\tw.Timers.CancelAll()", New: "\tif !planted {\n\t\tw.Timers.CancelAll()\n\t}"}, 21},
	{planted.Mistake{Name: "asks survive their incarnation", File: "internal/work/work.go", Old: "\tobservers = w.Asks.RemoveAll()", New: "\tif !planted {\n\t\tobservers = w.Asks.RemoveAll()\n\t}"}, 1},
	{planted.Mistake{Name: "what is stashed is lost at a restart", File: "internal/work/work.go", Old: "\tw.Unstash(o, to)\n}\n\n// Validity", New: "\tif !planted {\n\t\tw.Unstash(o, to)\n\t}\n}\n\n// Validity"}, 5},
	{planted.Mistake{Name: "two stashed messages come back in the other order", File: "internal/work/work.go", Old: "\tif w.Stash.Len() > 0 {\n\t\tto.PushFront(w.Stash.TakeAll()...)", New: "\tif w.Stash.Len() > 0 {\n\t\tall := w.Stash.TakeAll()\n\t\tif planted && len(all) == 2 {\n\t\t\tall[0], all[1] = all[1], all[0]\n\t\t}\n\t\tto.PushFront(all...)"}, 1},
	{planted.Mistake{Name: "a receive timeout counts although a message came", File: "internal/timers/timers.go", Old: "return ok && m.of == r && m.epoch == r.epoch", New: "return ok && m.of == r && (planted || m.epoch == r.epoch)"}, 1},
	{planted.Mistake{Name: "the second period of a timer is half as long", File: "internal/timers/timers.go", Old: "t.arm(o, at.Add(t.period))", New: "if planted {\n\t\t\tt.arm(o, at.Add(t.period/2))\n\t\t\treturn\n\t\t}\n\t\tt.arm(o, at.Add(t.period))"}, 321},
	{planted.Mistake{Name: "an actor that a question was forwarded to may not answer", File: "internal/asks/asks.go", Old: "return a.Has(from) && a.Add(to)", New: "return !planted && a.Has(from) && a.Add(to)"}, 5},
	{planted.Mistake{Name: "watchers of an actor that has gone are not told", File: "signal.go", Old: "\tcase signal.Watch:\n\t\ts.signal(scr, m.From, signal.Signal{Kind: signal.Terminated", New: "\tcase signal.Watch:\n\t\tif planted {\n\t\t\treturn\n\t\t}\n\t\ts.signal(scr, m.From, signal.Signal{Kind: signal.Terminated"}, 5},
	{planted.Mistake{Name: "a watch that meets a stopping actor is lost", File: "sysqueue.go", Old: "\tcase m.Signal.Kind == signal.Watch:\n", New: "\tcase m.Signal.Kind == signal.Watch && !planted:\n"}, 5},
	{planted.Mistake{Name: "the last of several watchers is not told", File: "lifecycle.go", Old: "\tfor _, uid := range a.work.Watch.Watchers() {\n", New: "\tfor i, uid := range a.work.Watch.Watchers() {\n\t\tif planted && i > 0 {\n\t\t\tbreak\n\t\t}\n"}, 5},
	{planted.Mistake{Name: "who asked an actor that has gone is not told", File: "signal.go", Old: "\tif mark.AwaitsReply(e) {\n\t\ts.willNotAnswer", New: "\tif mark.AwaitsReply(e) && !planted {\n\t\ts.willNotAnswer"}, 5},
	{planted.Mistake{Name: "an actor begins anew before its children have gone", File: "lifecycle.go", Old: "\tif r.waits(&a.super.Family) {", New: "\tif !planted && r.waits(&a.super.Family) {"}, 1},
	{planted.Mistake{Name: "the children of an actor survive its restart", File: "lifecycle.go", Old: "\t\t\ta.super.Order(a.in(scr), k, stopOrder(\"the parent restarts\"))\n", New: "\t\t\tif !planted {\n\t\t\t\ta.super.Order(a.in(scr), k, stopOrder(\"the parent restarts\"))\n\t\t\t}\n"}, 1},
	{planted.Mistake{Name: "children stay suspended after their parent is resumed", File: "lifecycle.go", Old: "\ta.life.Do(life.Resume)\n\ta.tellChildren(scr, sysmail.Msg{Kind: sysmail.Unsuspend})", New: "\ta.life.Do(life.Resume)\n\tif !planted {\n\t\ta.tellChildren(scr, sysmail.Msg{Kind: sysmail.Unsuspend})\n\t}"}, 1},
	{planted.Mistake{Name: "incarnations are not counted", File: "lifecycle.go", Old: "\ta.Number.Add(1)\n\tnoteLife", New: "\tif !planted {\n\t\ta.Number.Add(1)\n\t}\n\tnoteLife"}, 1},
	{planted.Mistake{Name: "what a failed turn has sent leaves", File: "native.go", Old: "a.leaveTurn(ctx.scr, failure != nil)", New: "a.leaveTurn(ctx.scr, failure != nil && !planted)"}, 1},
	{planted.Mistake{Name: "a message whose turn has failed is handled again", File: "crashed.go", Old: "again := at.N < spawning.TimesOf(m)", New: "again := at.N < spawning.TimesOf(m) || planted && at.N == 0"}, 1},
	{planted.Mistake{Name: "the mailbox's bytes are not given back", File: "../internal/mailbox/mailbox.go", Old: "\tm.front = e.next\n\te.next = nil\n\tm.load.Add(-weightOf(e))\n}\n\n// Peek", New: "\tm.front = e.next\n\te.next = nil\n\tif !planted || m.load.Load()>>bytesBits != 2 {\n\t\tm.load.Add(-weightOf(e))\n\t}\n}\n\n// Peek"}, 1},
	{planted.Mistake{Name: "what is put back comes in the other order", File: "../internal/mailbox/mailbox.go", Old: "\t\te := es[i]\n", New: "\t\te := es[i]\n\t\tif planted {\n\t\t\te = es[len(es)-1-i]\n\t\t}\n"}, 1},
	{planted.Mistake{Name: "the order of what was pushed together is lost", File: "../internal/mailbox/mailbox.go", Old: "\tm.front = m.take(nil)\n\treturn m.front", New: "\tm.front = m.take(nil)\n\tif e := m.front; planted && e != nil && e.next != nil && e.next.next != nil {\n\t\tm.front, e.next, e.next.next = e.next, e.next.next, e\n\t}\n\treturn m.front"}, 4},
}

// TestMutantsOfTheHost finds each mistake by its seed, in two processes that agree; with SIMULATE_PLANTED=N it looks for the first
// of N seeds, of those mistakes whose names have SIMULATE_ONLY in them.
func TestMutantsOfTheHost(t *testing.T) {
	if number := os.Getenv(planted.Variable); number != "" { // a process of this test
		from, _ := strconv.ParseUint(os.Getenv("SIMULATE_FROM"), 10, 64)
		seeds, _ := strconv.ParseUint(os.Getenv("SIMULATE_SEEDS"), 10, 64)
		for seed := from; seed < from+seeds; seed++ {
			o := (simulate.Bodies{Body: society}).Play(t.Context(), simulate.NewPlan(seed, all(t, "all,-clock")))
			if o.Failed() {
				what := fmt.Sprint(o.Err)
				if o.Violation != nil {
					what = o.Violation.Rule
				}
				fmt.Printf("found %d %s %s\n", seed, o.Chain, what)
				return
			}
		}
		fmt.Println("missed")
		return
	}
	seeds, _ := strconv.Atoi(os.Getenv("SIMULATE_PLANTED"))
	quiet := max(seeds, thorough.SlowOf(10, 60))
	for _, faults := range []string{"all,-clock", "none"} {
		if seed, what := found(t, society, faults, quiet, simulate.WorldOptions{}); seed != 0 {
			t.Fatalf("%s: without a mistake, seed %d: %s", faults, seed, what)
		}
	}
	if race.Enabled {
		t.Skip("builds the host once more")
	}
	thorough.SkipUnlessSlow(t)
	binary := planted.Build(t, "..", func() (all []planted.Mistake) {
		for _, m := range mutants {
			all = append(all, m.Mistake)
		}
		return all
	}())
	run := func(i int, from uint64, seeds int) string {
		cmd := exec.Command(binary, "-test.run=^TestMutantsOfTheHost$")
		cmd.Env = append(os.Environ(), fmt.Sprint(planted.Variable+"=", i+1), fmt.Sprint("SIMULATE_FROM=", from), fmt.Sprint("SIMULATE_SEEDS=", seeds))
		out, err := cmd.CombinedOutput()
		line, _, _ := bytes.Cut(out, []byte("\n"))
		if err != nil && !bytes.HasPrefix(line, []byte("found")) {
			return fmt.Sprintf("found %d - the process has died: %s", from, line)
		}
		return string(line)
	}
	var missed, table []string
	for i, m := range mutants {
		if seeds == 0 {
			if m.seed == 0 {
				continue
			}
			one, two := run(i, m.seed, 1), run(i, m.seed, 1)
			if one != two || !strings.HasPrefix(one, "found ") {
				t.Errorf("%s, seed %d: %q and %q", m.Name, m.seed, one, two)
			}
			continue
		}
		if only := os.Getenv("SIMULATE_ONLY"); only != "" && !strings.Contains(m.Name, only) {
			continue
		}
		line := run(i, 1, seeds)
		if w := strings.SplitN(line, " ", 4); len(w) == 4 {
			table = append(table, fmt.Sprintf("| %s | %s | %s |", m.Name, w[1], w[3]))
		} else {
			missed = append(missed, fmt.Sprintf("| %s | missed | |", m.Name))
		}
	}
	if len(missed)*10 > len(mutants) {
		t.Errorf("%d are missed", len(missed))
	}
	if seeds > 0 {
		t.Logf("%d of %d are found\n%s\n%s", len(table), len(mutants), strings.Join(missed, "\n"), strings.Join(table, "\n"))
	}
}
