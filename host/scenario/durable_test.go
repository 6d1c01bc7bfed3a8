package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// TestSimulatedStores: what durable actors, actors with events and those that keep their state have said is not lost, and nothing is done twice, however
// often the process dies and whatever call of its disk fails.
func TestSimulatedStores(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles guests")
	}
	const baskets = "../docs/examples/baskets"
	for path, file := range map[string]string{"ledger/durable.yaml": "ledger/books_test.yaml", "accounts": "accounts/kept_test.yaml", baskets: baskets + "/kept_test.yaml"} {
		t.Run(path, func(t *testing.T) {
			x := stored(t, path, file)
			met := map[simulate.Class]int{}
			all, of := thorough.SlowOf(25, 100), thorough.SlowOf(2, 10)
			for _, o := range swept(t, x, "all", all) {
				if o.Failed() {
					t.Errorf("seed %d: %+v %v\n%s", o.Plan.Seed, o.Violation, o.Err, strings.Join(o.Tail, "\n"))
				}
				for _, f := range o.Faults {
					met[f.Class]++
				}
			}
			if met[simulate.Death] < all/4 || met[simulate.DiskFails] < all/10 {
				t.Errorf("too few deaths, or failures of the disk: %v", met)
			}
			if found := violations(swept(t, x, "none", 5)); len(found) > 0 {
				t.Errorf("without faults: %v", found)
			}
			one, two := swept(t, x, "death,disk", of), swept(t, stored(t, path, file), "death,disk", of)
			for i := range one {
				if one[i].Chain != two[i].Chain {
					t.Errorf("seed %d: two histories", i+1)
				}
			}
		})
	}
}

// TestSeedsOfStores: seeds that have failed once. In the ledger's the store fails during an upgrade, and all actors stop
// before the process ends. In the others' the order of turns depended on how many steps a process takes to end.
func TestSeedsOfStores(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles guests")
	}
	for _, c := range []struct {
		path, file string
		seeds      []uint64
	}{
		{"ledger/durable.yaml", "ledger/books_test.yaml", []uint64{62, 71, 90, 14000318, 14000791, 14000884, 14001314, 14001537, 14002094}},
		{"accounts", "accounts/kept_test.yaml", []uint64{13000150, 13002484}},
	} {
		x := stored(t, c.path, c.file)
		on, err := simulate.ParseFaults("all")
		if err != nil {
			t.Fatal(err)
		}
		on = x.s.Faults(on)
		for _, seed := range c.seeds {
			chain := ""
			for range thorough.SlowOf(2, 4) {
				o := x.Play(t.Context(), simulate.NewPlan(seed, on))
				if o.Failed() || chain != "" && o.Chain != chain {
					t.Errorf("%s, seed %d: %+v %v, histories %.8s and %.8s", c.path, seed, o.Violation, o.Err, chain, o.Chain)
				}
				chain = o.Chain
			}
		}
	}
}

// stored is a sample with a store, and a scenario of it.
func stored(t *testing.T, path, file string) staging {
	t.Helper()
	st, b := openedWith(t, "../../samples/"+path, func(name string) (string, bool) { return "1000000", name == "OPENING" })
	return staging{st: st, b: b, s: loaded(t, b, "../../samples/"+file)[0]}
}

// TestStoreClasses: each class of faults of a store takes effect, alone and as data.
func TestStoreClasses(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a guest")
	}
	x := stored(t, "accounts", "accounts/kept_test.yaml")
	for class, says := range map[simulate.Class]string{simulate.Death: "the process dies", simulate.DiskFails: "the store has failed"} {
		said := false
		for _, o := range swept(t, x, string(class), 30) {
			if slices.ContainsFunc(o.Faults, func(f simulate.Fault) bool { return f.Class != class }) {
				t.Fatalf("%s: other faults: %+v", class, o.Faults)
			}
			if said = len(o.Faults) > 0 && strings.Contains(strings.Join(o.Tail, "\n"), says); !said {
				continue
			}
			again := x.Play(t.Context(), o.Plan.Fix(o.Faults))
			if again.Failed() || len(again.Faults) != len(o.Faults) || again.Chain != o.Chain {
				t.Errorf("%s: as data there are %d faults, and were %d", class, len(again.Faults), len(o.Faults))
			}
			break
		}
		if !said {
			t.Errorf("%s has no effect", class)
		}
	}
	for _, o := range swept(t, x, "all,-death,-disk", 20) {
		if strings.Contains(strings.Join(o.Tail, "\n"), "the process dies") {
			t.Error("without its class the process has died")
		}
	}
	if _, err := simulate.ParseFaults("deaht"); err == nil || !strings.Contains(err.Error(), `"death"`) {
		t.Error(err)
	}
}
