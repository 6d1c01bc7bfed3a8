package scenario

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/planted"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// TestUpgradesInSimulations: the code of guests is exchanged at moments of the seed's, as it is and by what the guests save, their
// state goes over, and it happens again as data. Without the class, in places that are spared, and without guests it does not.
func TestUpgradesInSimulations(t *testing.T) {
	skipCompiling(t)
	x := bank(t, 0)
	count := func(of []*simulate.Outcome) (upgraded, kept int) {
		for _, o := range of {
			if o.Failed() {
				t.Errorf("seed %d: %+v %v\n%s", o.Plan.Seed, o.Violation, o.Err, strings.Join(o.Tail, "\n"))
			}
			for _, m := range regexp.MustCompile(`upgrade: (\d+) actors of planted have other code, (\d+) keep theirs`).FindAllStringSubmatch(strings.Join(o.Tail, "\n"), -1) {
				a, _ := strconv.Atoi(m[1])
				b, _ := strconv.Atoi(m[2])
				upgraded, kept = upgraded+a, kept+b
			}
		}
		return upgraded, kept
	}
	all := swept(t, x, "upgrade", 20)
	if upgraded, kept := count(all); upgraded < 20 || kept < 20 { // a front saves nothing, and keeps its code when other code comes
		t.Errorf("%d actors have got other code, %d kept theirs", upgraded, kept)
	}
	i := slices.IndexFunc(all, func(o *simulate.Outcome) bool { return len(o.Faults) > 0 })
	o := all[i]
	if slices.ContainsFunc(o.Faults, func(f simulate.Fault) bool { return f.Class != simulate.Upgrade }) {
		t.Errorf("other faults: %+v", o.Faults)
	}
	if again := x.Play(t.Context(), o.Plan.Fix(o.Faults)); again.Chain != o.Chain {
		t.Error("as data it is another run")
	}
	if two := bank(t, 0).Play(t.Context(), o.Plan); two.Chain != o.Chain {
		t.Error("in another stage it is another run")
	}
	if upgraded, kept := count(swept(t, x, "all,-upgrade", 10)); upgraded+kept > 0 {
		t.Error("without its class code is exchanged")
	}
	spared := *x.s
	spared.simulation.spare = append(slices.Clone(spared.simulation.spare), spareds("/user/**")...)
	if upgraded, _ := count(swept(t, staging{st: x.st, b: x.b, s: &spared}, "upgrade", 10)); upgraded > 0 {
		t.Error("what is spared gets other code")
	}
}

// TestUpgradesOfDurableActors: their code is exchanged, the process dies in between, and they come back with what they had; two stages
// agree, and so does the plan as data.
func TestUpgradesOfDurableActors(t *testing.T) {
	skipCompiling(t)
	for path, file := range map[string]string{"ledger/durable.yaml": "ledger/books_test.yaml", "accounts": "accounts/kept_test.yaml"} {
		t.Run(path, func(t *testing.T) {
			x := stored(t, path, file)
			seeds := thorough.SlowOf(24, 60)
			all := swept(t, x, "upgrade,death,disk", seeds)
			met, upgraded, early := map[simulate.Class]int{}, 0, 0
			var both []*simulate.Outcome
			for _, o := range all {
				tail := strings.Join(o.Tail, "\n")
				if o.Failed() {
					t.Errorf("seed %d: %+v %v\n%s", o.Plan.Seed, o.Violation, o.Err, tail)
				}
				has := map[simulate.Class]bool{}
				for _, f := range o.Faults {
					met[f.Class]++
					has[f.Class] = true
				}
				if has[simulate.Upgrade] && has[simulate.Death] {
					both = append(both, o)
				}
				for _, m := range regexp.MustCompile(`upgrade: (\d+) actors of \w+ have other code`).FindAllStringSubmatch(tail, -1) {
					n, _ := strconv.Atoi(m[1])
					upgraded += n
				}
				early += strings.Count(tail, "upgrade: it ends early")
			}
			t.Logf("%v, %d with both; %d actors have got other code; %d upgrades have ended early", met, len(both), upgraded, early)
			if met[simulate.Upgrade] < seeds/3 || met[simulate.Death] < seeds/3 || len(both) < 3 || upgraded < seeds/3 {
				t.Fatal("too little has happened")
			}
			for _, o := range both[:thorough.SlowOf(1, 3)] {
				if again := x.Play(t.Context(), o.Plan.Fix(o.Faults)); again.Chain != o.Chain {
					t.Errorf("seed %d: as data it is another run", o.Plan.Seed)
				}
				if two := stored(t, path, file).Play(t.Context(), o.Plan); two.Chain != o.Chain {
					t.Errorf("seed %d: in another stage it is another run", o.Plan.Seed)
				}
			}
		})
	}
}

func spareds(path string) []spared { return []spared{{path, []simulate.Class{simulate.Upgrade}}} }

// mistakesOfUpgrades are in the host's own code. A seed is the first one that finds it.
var mistakesOfUpgrades = []struct {
	planted.Mistake
	seed  uint64
	store bool // it is found in a bundle with durable actors whose process dies
}{
	{planted.Mistake{Name: "an actor stays held after its code was exchanged", File: "swap.go", Old: "a.life.LetGo(life.Swapping)", New: "if !planted { a.life.LetGo(life.Swapping) }"}, 3, false},
	{planted.Mistake{Name: "other code lets timers end", File: "exchanged.go", Old: "\tg.inst.FallAsleep(state)\n", New: "\tg.inst.FallAsleep(state)\n\tif planted {\n\t\ta.work.Timers.CancelAll()\n\t}\n"}, 14, false},
	{planted.Mistake{Name: "other code has no questions", File: "exchanged.go", Old: "\tg.inst.ForgetSleep()\n", New: "\tg.inst.ForgetSleep()\n\tif planted {\n\t\ta.work.Asks.RemoveAll()\n\t}\n"}, 10, false},
	{planted.Mistake{Name: "a message that waits is lost with the old code", File: "exchanged.go", Old: "\tsetCode(g, image)\n", New: "\tsetCode(g, image)\n\tif planted {\n\t\ta.box.Pop()\n\t}\n"}, 10, false},
	{planted.Mistake{Name: "other code begins without a state", File: "upgrade/convert.go", Old: "\tstart.State = saved\n", New: "\tif !planted {\n\t\tstart.State = saved\n\t}\n"}, 3, false},
	{planted.Mistake{Name: "the same code begins without a state", File: "upgrade/convert.go", Old: "\treturn sandbox.DecodeSnapshot(image, b, t.Entry.MemoryLimit)\n", New: "\tif planted {\n\t\tx, err := sandbox.Get(image)\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tdefer x.Put()\n\t\ts, _, err := swap.Load(x, &t.Start, entryOf(t))\n\t\treturn s, err\n\t}\n\treturn sandbox.DecodeSnapshot(image, b, t.Entry.MemoryLimit)\n"}, 12, false},
	{planted.Mistake{Name: "after a death other code has no state", File: "exchanged.go", Old: "\tstart.State = &abi.State{Version: own.Version, Payload: own.Saved, Own: own.Own}\n", New: "\tif !planted {\n\t\tstart.State = &abi.State{Version: own.Version, Payload: own.Saved, Own: own.Own}\n\t}\n"}, 22, true},
	{planted.Mistake{Name: "what the SDK has saved is not in the log", File: "durable/exchange.go", Old: "\tx.State = clone(", New: "\tif planted {\n\t\tx.Own = nil\n\t}\n\tx.State = clone("}, 22, true},
	{planted.Mistake{Name: "other code is not in the log", File: "internal/swap/records.go", Old: "\tcase to.Same:\n", New: "\tcase planted || to.Same:\n"}, 29, true},
	{planted.Mistake{Name: "after a death an actor has its module's code", File: "internal/rebuild/code.go", Old: "\tif is(own, fingerprint) {\n", New: "\tif planted || is(own, fingerprint) {\n"}, 17, true},
}

// The mistakes are in the host's code as it is, and the guide has each with its file and seed.
func TestMistakesOfUpgradesAreThere(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mistakesOfUpgrades {
		if err := m.Applies(".."); err != nil {
			t.Error(err)
		}
		if row := fmt.Sprintf("\n| %s | `host/%s` | %d | ", m.Name, m.File, m.seed); !strings.Contains(string(guide), row) {
			t.Errorf("docs/guide/simulate.md does not have %q", row)
		}
	}
}

// TestMistakesOfUpgrades finds each by its seed, in two processes that agree; with SIMULATE_PLANTED=N it looks for the first of N
// seeds.
func TestMistakesOfUpgrades(t *testing.T) {
	skipCompiling(t)
	seeds, _ := strconv.ParseUint(os.Getenv("SIMULATE_PLANTED"), 10, 64)
	if seeds == 0 && !thorough.Enabled && os.Getenv(planted.Variable) == "" {
		t.Skip("it builds the host once more, and runs each mistake twice: make thorough, or make planted")
	}
	if os.Getenv(planted.Variable) != "" { // a process of this test
		from, _ := strconv.ParseUint(os.Getenv("SIMULATE_FROM"), 10, 64)
		number, _ := strconv.Atoi(os.Getenv(planted.Variable))
		x, on := bank(t, 0), []simulate.Class{simulate.Upgrade, simulate.Late}
		if mistakesOfUpgrades[number-1].store {
			x, on = stored(t, "ledger/durable.yaml", "ledger/books_test.yaml"), []simulate.Class{simulate.Upgrade, simulate.Death}
		}
		for seed := from; seed < from+max(seeds, 1); seed++ {
			o := x.Play(t.Context(), simulate.NewPlan(seed, on))
			if what := broken(o); what != "" {
				fmt.Printf("found %d %s %s\n", seed, o.Chain, what)
				return
			}
		}
		fmt.Println("missed")
		return
	}
	var all []planted.Mistake
	for _, m := range mistakesOfUpgrades {
		all = append(all, m.Mistake)
	}
	binary := planted.Build(t, "..", all)
	run := func(i int, from uint64) string {
		cmd := exec.Command(binary, "-test.run=^TestMistakesOfUpgrades$")
		cmd.Env = append(os.Environ(), fmt.Sprint(planted.Variable+"=", i+1), fmt.Sprint("SIMULATE_FROM=", from))
		out, err := cmd.CombinedOutput()
		line, _, _ := strings.Cut(string(out), "\n")
		if err != nil {
			t.Logf("%s: %v: %s", all[i].Name, err, line)
		}
		return line
	}
	for i, m := range mistakesOfUpgrades {
		if only := os.Getenv("SIMULATE_ONLY"); !strings.Contains(m.Name, only) {
			continue
		}
		if seeds > 0 {
			t.Logf("| %s | %s |", m.Name, run(i, 1))
			continue
		}
		if one, two := run(i, m.seed), run(i, m.seed); one != two || !strings.HasPrefix(one, "found ") {
			t.Errorf("%s, seed %d: %q and %q", m.Name, m.seed, one, two)
		}
	}
}
