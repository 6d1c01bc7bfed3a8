package simulate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/race"
)

// Mistakes in the host's own code: one binary is built with an overlay that has all of them, and a variable of the environment
// switches one on. `make planted` prints in which seed each is found.

// mutant is a mistake: the text of a file in host that is replaced. planted in the new text is whether it is switched on.
type mutant struct {
	name string
	file string
	old  string
	new  string
	seed uint64 // the first one that finds it; 0: none of 1000 does
}

var mutants = []mutant{
	{"an answer that comes after its timeout counts", "internal/work/work.go", "\tcase ask == nil:\n\t\treturn Late", "\tcase ask == nil && !planted:\n\t\treturn Late\n\tcase ask == nil:\n\t\treturn Counts", 4},
	{"a timeout that waits counts after the answer", "internal/work/work.go", "ok = ask != nil && e.Value == any(ask)", "ok = planted || ask != nil && e.Value == any(ask)", 1},
	{"a timer that waits counts after it was cancelled", "internal/work/work.go", "ok = w.Timers.Current(e)", "ok = planted || w.Timers.Current(e)", 47},
	{"timers survive their incarnation", "internal/work/work.go", "\tw.Timers.CancelAll()", "\tif !planted {\n\t\tw.Timers.CancelAll()\n\t}", 21},
	{"asks survive their incarnation", "internal/work/work.go", "\tobservers = w.Asks.RemoveAll()", "\tif !planted {\n\t\tobservers = w.Asks.RemoveAll()\n\t}", 1},
	{"what is stashed is lost at a restart", "internal/work/work.go", "\tw.Unstash(o, to)\n}\n\n// Validity", "\tif !planted {\n\t\tw.Unstash(o, to)\n\t}\n}\n\n// Validity", 5},
	{"two stashed messages come back in the other order", "internal/work/work.go", "\tif w.Stash.Len() > 0 {\n\t\tto.PushFront(w.Stash.TakeAll()...)", "\tif w.Stash.Len() > 0 {\n\t\tall := w.Stash.TakeAll()\n\t\tif planted && len(all) == 2 {\n\t\t\tall[0], all[1] = all[1], all[0]\n\t\t}\n\t\tto.PushFront(all...)", 1},
	{"a receive timeout counts although a message came", "internal/timers/timers.go", "return ok && m.of == r && m.epoch == r.epoch", "return ok && m.of == r && (planted || m.epoch == r.epoch)", 1},
	{"the second period of a timer is half as long", "internal/timers/timers.go", "t.arm(o, at.Add(t.period))", "if planted {\n\t\t\tt.arm(o, at.Add(t.period/2))\n\t\t\treturn\n\t\t}\n\t\tt.arm(o, at.Add(t.period))", 321},
	{"an actor that a question was forwarded to may not answer", "internal/asks/asks.go", "return a.Has(from) && a.Add(to)", "return !planted && a.Has(from) && a.Add(to)", 5},
	{"watchers of an actor that has gone are not told", "signal.go", "\tcase signal.Watch:\n\t\ts.signal(scr, m.From, signal.Signal{Kind: signal.Terminated", "\tcase signal.Watch:\n\t\tif planted {\n\t\t\treturn\n\t\t}\n\t\ts.signal(scr, m.From, signal.Signal{Kind: signal.Terminated", 5},
	{"a watch that meets a stopping actor is lost", "signal.go", "\tcase signal.Watch:\n\t\ta.sys.notifyEnd", "\tcase signal.Watch:\n\t\tif planted {\n\t\t\treturn\n\t\t}\n\t\ta.sys.notifyEnd", 5},
	{"the last of several watchers is not told", "lifecycle.go", "\tfor _, uid := range a.work.Watch.Watchers() {\n", "\tfor i, uid := range a.work.Watch.Watchers() {\n\t\tif planted && i > 0 {\n\t\t\tbreak\n\t\t}\n", 5},
	{"who asked an actor that has gone is not told", "signal.go", "\tif mark.AwaitsReply(e) {\n\t\ts.willNotAnswer", "\tif mark.AwaitsReply(e) && !planted {\n\t\ts.willNotAnswer", 5},
	{"an actor begins anew before its children have gone", "lifecycle.go", "\tif a.waitsForChildren(r) {", "\tif !planted && a.waitsForChildren(r) {", 1},
	{"the children of an actor survive its restart", "lifecycle.go", "\t\t\ta.super.Order(a.in(scr), k, stopOrder(\"the parent restarts\"))\n", "\t\t\tif !planted {\n\t\t\t\ta.super.Order(a.in(scr), k, stopOrder(\"the parent restarts\"))\n\t\t\t}\n", 1},
	{"children stay suspended after their parent is resumed", "lifecycle.go", "\ta.life.Do(life.Resume)\n\ta.unsuspendChildren(scr)", "\ta.life.Do(life.Resume)\n\tif !planted {\n\t\ta.unsuspendChildren(scr)\n\t}", 1},
	{"incarnations are not counted", "lifecycle.go", "\ta.number.Add(1)\n\tnoteLife", "\tif !planted {\n\t\ta.number.Add(1)\n\t}\n\tnoteLife", 1},
	{"what a failed turn has sent leaves", "native.go", "a.leaveTurn(ctx.scr, failure != nil)", "a.leaveTurn(ctx.scr, failure != nil && !planted)", 1},
	{"a message whose turn has failed is handled again", "crashed.go", "at := message.AttemptsOf(e); at.N < m.times", "at := message.AttemptsOf(e); at.N < m.times || planted && at.N == 0", 1},
	{"the mailbox's bytes are not given back", "mailbox/box.go", "\tb.shown = item{}\n\tb.n.Add(-1)\n\tb.bytes.Add(-int64(e.Size()))\n\tif len(b.waiters)", "\tb.shown = item{}\n\tb.n.Add(-1)\n\tif !planted {\n\t\tb.bytes.Add(-int64(e.Size()))\n\t}\n\tif len(b.waiters)", 1},
	{"what is put back comes behind the next message", "mailbox/box.go", "\tif front {\n\t\tq.pushFront(i)", "\tif front && !planted {\n\t\tq.pushFront(i)", 1},
}

// overlay writes the files that have all mistakes, and the list of them for go build.
func overlay(t *testing.T, dir string) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	files, packages := map[string]string{}, map[string]string{}
	for i, m := range mutants {
		path := filepath.Join(root, m.file)
		text, ok := files[path]
		if !ok {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
			_, after, _ := strings.Cut(text, "\npackage ")
			if strings.HasPrefix(text, "package ") {
				after = strings.TrimPrefix(text, "package ")
			}
			packages[filepath.Dir(path)], _, _ = strings.Cut(after, "\n")
		}
		if strings.Count(text, m.old) != 1 {
			t.Fatalf("%s: its text comes %d times in %s", m.name, strings.Count(text, m.old), m.file)
		}
		files[path] = strings.Replace(text, m.old, strings.ReplaceAll(m.new, "planted", fmt.Sprintf("(plantedNumber == %d)", i+1)), 1)
	}
	for folder, name := range packages {
		files[filepath.Join(folder, "planted_overlay.go")] = "package " + name + "\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar plantedNumber, _ = strconv.Atoi(os.Getenv(\"SIMULATE_MUTANT\"))\n"
	}
	replace, n := map[string]string{}, 0
	for path, text := range files {
		n++
		file := filepath.Join(dir, fmt.Sprintf("%d.go", n))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = file
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestMutantsOfTheHost finds each mistake by its seed, in two processes that agree; with SIMULATE_PLANTED=N it looks for the first
// of N seeds.
func TestMutantsOfTheHost(t *testing.T) {
	if number := os.Getenv("SIMULATE_MUTANT"); number != "" { // a process of this test
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
	quiet := max(seeds, 60)
	for _, faults := range []string{"all,-clock", "none"} {
		if seed, what := found(t, society, faults, quiet, simulate.WorldOptions{}); seed != 0 {
			t.Fatalf("%s: without a mistake, seed %d: %s", faults, seed, what)
		}
	}
	if testing.Short() || race.Enabled {
		t.Skip("builds the host once more")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "planted.test")
	build := exec.Command("go", "test", "-c", "-overlay", overlay(t, dir), "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(i int, from uint64, seeds int) string {
		cmd := exec.Command(binary, "-test.run=^TestMutantsOfTheHost$")
		cmd.Env = append(os.Environ(), fmt.Sprint("SIMULATE_MUTANT=", i+1), fmt.Sprint("SIMULATE_FROM=", from), fmt.Sprint("SIMULATE_SEEDS=", seeds))
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
				t.Errorf("%s, seed %d: %q and %q", m.name, m.seed, one, two)
			}
			continue
		}
		line := run(i, 1, seeds)
		if w := strings.SplitN(line, " ", 4); len(w) == 4 {
			table = append(table, fmt.Sprintf("| %s | %s | %s |", m.name, w[1], w[3]))
		} else {
			missed = append(missed, fmt.Sprintf("| %s | missed | |", m.name))
		}
	}
	if len(missed)*10 > len(mutants) {
		t.Errorf("%d are missed", len(missed))
	}
	if seeds > 0 {
		t.Logf("%d of %d are found\n%s\n%s", len(table), len(mutants), strings.Join(missed, "\n"), strings.Join(table, "\n"))
	}
}
