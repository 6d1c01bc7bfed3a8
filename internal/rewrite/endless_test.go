package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// endlessFuel is what each step of an endless module gets.
const endlessFuel = 50_000

// endless runs a module that has no reason to end, on both engines: it is stopped
// before it has run more, or called the host more often, than it has paid for,
// and at the same place.
func endless(labs []*lab, choices []byte) (stopped int, err error) {
	gen := wasmgen.Generate(choices, wasmgen.Options{Endless: true})
	guest := counting(gen.Module)
	res, err := Instrument(guest, Options{MemoryPages: 8, TableLimit: 150, StackBytes: 64 << 10})
	if err != nil {
		return 0, err
	}
	var before []*moment
	for k, l := range labs {
		s, err := l.start(observed(res.Module, guest, false), gen.Batching)
		if err != nil {
			if _, ok := err.(*uninstantiable); ok {
				return 0, nil
			}
			return 0, err
		}
		defer s.close()
		count := uint64(0)
		for i, st := range script {
			phases := 1
			if gen.Batching {
				phases = 2*int(st.b) + 1
			}
			l.most = phases * endlessFuel / int(hostCost(wasmgen.HostModule, "h0"))
			m := s.run(st, endlessFuel)
			l.most = 0
			if m.trap == errFuel.Error() {
				stopped++
			}
			ran := m.state[len(m.state)-1] - count
			count += ran
			switch {
			case strings.Contains(m.trap, errCalls.Error()):
				return 0, fmt.Errorf("%s, step %v: more host calls than %d units pay for", l.engine, st, phases*endlessFuel)
			case ran*5 > uint64(phases*endlessFuel): // each with four that count it
				return 0, fmt.Errorf("%s, step %v: %d instructions have run for %d units", l.engine, st, ran*5, phases*endlessFuel)
			case m.pages > 8:
				return 0, fmt.Errorf("%s, step %v: %d pages", l.engine, st, m.pages)
			case k == 0:
				before = append(before, m)
			case !m.same(before[i]) || m.fuel != before[i].fuel:
				return 0, fmt.Errorf("step %v: the engines differ:\n%v\n%v", st, before[i], m)
			}
		}
		if gen.RawNaNs {
			break
		}
	}
	return stopped, nil
}

func TestEndlessModulesAreStopped(t *testing.T) {
	labs := newLabs(t)
	stopped := 0
	for seed := range uint64(long(thorough.SlowOf(80, 200))) {
		choices := wasmgen.Seed(seed)
		n, err := endless(labs, choices)
		if err != nil {
			fails := func(b []byte) bool { _, err := endless(labs, b); return err != nil }
			least := wasmgen.Shrink(choices, fails)
			_, again := endless(labs, least)
			t.Fatalf("seed %d: %v\nwith the fewest choices, %x:\n%v", seed, err, least, again)
		}
		stopped += n
	}
	t.Logf("%d steps were out of fuel", stopped)
	if stopped < 40 {
		t.Error("the generated modules have become too dull")
	}
}
