package scenario

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// Mistakes in guests: testdata/planted is a bank whose guests make the mistake of a number, and its invariants are those that a
// user would write. `make planted` prints in which seed each is found.

// guestMistakes are in the order of their numbers, from 1.
var guestMistakes = []struct {
	name string
	seed uint64 // the first one that finds it; 0: none of 1000 does
}{
	{"half a transfer: what is not confirmed at once is left", 18},
	{"a retry has another key", 13},
	{"the deposit does not wait for the withdrawal", 1},
	{"a withdrawal without an answer counts as refused", 13},
	{"the deposit is given up after two tries", 222},
	{"an account refuses what it has done already", 6},
	{"an account remembers its last key only", 6},
	{"a stop overtakes what was sent earlier", 1},
	{"a timer survives what it was for", 345},
	{"the key is the amount", 4},
	{"a refusal is taken for success", 1},
	{"a balance is looked up, and taken later", 1},
	{"a transfer that comes twice is made twice", 14},
	{"the deposit is not confirmed", 18},
	{"numbers begin anew after a crash", 10},
	{"a lost update: a balance is looked up, and written later", 1},
	{"what an account has done does not go over to other code", 9},
}

// bank is the bank with a mistake; 0: it has none.
func bank(t testing.TB, number int) staging {
	t.Helper()
	st, b := openedWith(t, "testdata/planted", func(name string) (string, bool) { return strconv.Itoa(number), name == "MISTAKE" })
	return staging{st: st, b: b, s: loaded(t, b, "testdata/planted/books_test.yaml")[0]}
}

// seeded runs one seed, with all faults.
func (x staging) seeded(t testing.TB, seed uint64) *simulate.Outcome {
	return x.Play(t.Context(), simulate.NewPlan(seed, x.s.Faults(simulate.Classes())))
}

// broken is the rule that does not hold in a run; "" if all do.
func broken(o *simulate.Outcome) string {
	switch {
	case o.Err != nil:
		return "error: " + o.Err.Error()
	case o.Violation != nil:
		return o.Violation.Rule
	}
	return ""
}

func skipCompiling(t *testing.T) {
	t.Helper()
	if testing.Short() || race.Enabled {
		t.Skip("compiles a guest")
	}
}

// fixedSeeds runs the seed of each mistake, and says what has come of it.
func fixedSeeds(t testing.TB) (lines []string) {
	for i, m := range guestMistakes {
		if m.seed != 0 {
			o := bank(t, i+1).seeded(t, m.seed)
			lines = append(lines, fmt.Sprintf("found %d %d %s %s", i+1, m.seed, o.Chain, broken(o)))
		}
	}
	return lines
}

// quiet checks that nothing is found without a mistake, with faults and without.
func quiet(t *testing.T, seeds uint64) {
	t.Helper()
	right := bank(t, 0)
	for seed := uint64(1); seed <= max(seeds, 40); seed++ {
		if o := right.seeded(t, seed); o.Failed() {
			t.Errorf("without a mistake, seed %d: %+v %v\n%s", seed, o.Violation, o.Err, strings.Join(o.Tail, "\n"))
		}
	}
	if found := violations(swept(t, right, "none", int(max(seeds, 20)))); len(found) > 0 {
		t.Errorf("without a mistake and without faults: %v", found)
	}
}

// TestMistakesOfGuests finds each mistake by its seed, in two processes that agree; with SIMULATE_PLANTED=N it looks for the
// first of N seeds, of those whose names have SIMULATE_ONLY in them.
func TestMistakesOfGuests(t *testing.T) {
	skipCompiling(t)
	if os.Getenv("SIMULATE_GUESTS") != "" { // a process of this test
		for _, line := range fixedSeeds(t) {
			fmt.Println(line)
		}
		return
	}
	seeds, _ := strconv.ParseUint(os.Getenv("SIMULATE_PLANTED"), 10, 64)
	defer quiet(t, seeds)
	if seeds == 0 {
		thorough.SkipUnlessSlow(t)
		lines := fixedSeeds(t)
		for _, line := range lines {
			if w := strings.SplitN(line, " ", 5); w[4] == "" || strings.HasPrefix(w[4], "error") {
				t.Errorf("not found any more: %s", line)
			}
		}
		if missed := len(guestMistakes) - len(lines); missed > 1 {
			t.Errorf("%d are missed", missed)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestMistakesOfGuests$")
		cmd.Env = append(os.Environ(), "SIMULATE_GUESTS=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), strings.Join(lines, "\n")+"\n") {
			t.Errorf("another process: %v\n%s\nand here\n%s", err, out, strings.Join(lines, "\n"))
		}
		return
	}
	var missed, table []string
	for i, m := range guestMistakes {
		if only := os.Getenv("SIMULATE_ONLY"); !strings.Contains(m.name, only) {
			continue
		}
		x, row := bank(t, i+1), ""
		for seed := uint64(1); seed <= seeds && row == ""; seed++ {
			if what := broken(x.seeded(t, seed)); what != "" {
				row = fmt.Sprintf("| %s | %d | %s |", m.name, seed, strings.TrimPrefix(what, "invariant "))
			}
		}
		if row == "" {
			missed = append(missed, "| "+m.name+" | missed | |")
			continue
		}
		table = append(table, row)
	}
	if len(missed)*10 > len(guestMistakes) {
		t.Errorf("%d are missed", len(missed))
	}
	t.Logf("%d of %d are found\n%s\n%s", len(table), len(guestMistakes), strings.Join(missed, "\n"), strings.Join(table, "\n"))
}
