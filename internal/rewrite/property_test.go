package rewrite

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/internal/direct"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

const plenty = 1 << 40

// deepStack is more than generated modules need, so that only wazero's limits
// could show.
const deepStack = 1 << 30

// trial is one generated module, and what is known of it.
type trial struct {
	labs []*lab
	gen  *wasmgen.Module
	res  *Result
	full []*moment // of the rewritten, on labs[0]
	code map[*lab]wazero.CompiledModule
	stat *statistics
}

// statistics say whether the generated modules are worth anything.
type statistics struct {
	modules, steps, traps, uninstantiable, frozen, direct, counted, outOfFuel, stackExceeded int
	calls                                                                                    int
	fuel, instrs                                                                             uint64
}

func (s *statistics) String() string {
	return fmt.Sprintf("%d modules (%d not instantiated), %d steps, %d of them trap, %d host calls; %d frozen, %d direct, %d counted (%.2f units an instruction), %d out of fuel, %d out of stack",
		s.modules, s.uninstantiable, s.steps, s.traps, s.calls, s.frozen, s.direct, s.counted, float64(s.fuel)/float64(max(1, s.instrs)), s.outOfFuel, s.stackExceeded)
}

// check puts the module of these choices through all properties.
func check(labs []*lab, choices []byte, stat *statistics) error {
	gen := wasmgen.Generate(choices, wasmgen.Options{})
	src, err := wasm.Decode(gen.Encode())
	if err != nil {
		return err
	}
	res, err := Instrument(src, Options{StackBytes: deepStack})
	if err != nil {
		return err
	}
	t := &trial{labs: labs, gen: gen, res: res, stat: stat, code: map[*lab]wazero.CompiledModule{}}
	defer t.close()
	stat.modules++
	err = t.sameAsOriginal()
	var failed *uninstantiable
	switch {
	case errors.As(err, &failed) && t.full == nil:
		stat.uninstantiable++
		return nil
	case err != nil:
		return err
	}
	for _, p := range []func() error{t.neverPaidTooLittle, t.smallQuanta, t.fuelRunsOut, t.stackRunsOut, t.frozen, t.direct} {
		if err := p(); err != nil {
			return err
		}
	}
	return nil
}

// rewritten makes an instance of the rewritten module, which is compiled once.
func (t *trial) rewritten(l *lab) (*subject, error) {
	if t.code[l] == nil {
		c, err := l.runtime.CompileModule(l.context(), observed(t.res.Module, t.gen.Module, true).Encode())
		if err != nil {
			return nil, fmt.Errorf("%s refuses the rewritten: %w", l.engine, err)
		}
		t.code[l] = c
	}
	return l.instance(t.code[l], t.gen.Batching)
}

func (t *trial) close() {
	for l, c := range t.code {
		c.Close(l.context())
	}
}

// play takes all steps of the script with a new instance.
func (t *trial) play(s *subject, err error) ([]*moment, error) {
	if err != nil {
		return nil, err
	}
	l := s.lab
	defer s.close()
	var all []*moment
	first := s.observe()
	for _, st := range script {
		m := s.run(st, plenty)
		all = append(all, m)
		if s.enter == nil {
			continue
		}
		dirty := s.global(GlobalDirty)
		if dirty&DirtyTable == 0 && !slices.Equal(m.state[s.globals:], first[s.globals:]) {
			return all, fmt.Errorf("%s: step %v has changed a table, and it is not dirty", l.engine, st)
		}
		if m.pages != t.gen.Memories[0].Min && dirty&DirtyMemory == 0 {
			return all, fmt.Errorf("%s: step %v has grown the memory, and it is not dirty", l.engine, st)
		}
	}
	return all, nil
}

func differ(what string, a, b []*moment) error {
	for i := range a {
		if !a[i].same(b[i]) {
			return fmt.Errorf("%s, step %v:\n%v\n%v", what, script[i], a[i], b[i])
		}
	}
	return nil
}

func differInFuel(what string, a, b []*moment) error {
	for i := range a {
		if a[i].fuel != b[i].fuel {
			return fmt.Errorf("%s, step %v: fuel %d and %d", what, script[i], a[i].fuel, b[i].fuel)
		}
	}
	return nil
}

// sameAsOriginal compares the rewritten module with the original, on each engine,
// and the engines.
func (t *trial) sameAsOriginal() error {
	plain := original(t.gen.Module)
	var before, after [][]*moment
	for _, l := range t.labs {
		x, errX := t.play(l.start(observed(plain, t.gen.Module, true), t.gen.Batching))
		y, errY := t.play(t.rewritten(l))
		if errX != nil || errY != nil {
			if errX == nil || errY == nil || errX.Error() != errY.Error() {
				return fmt.Errorf("%s: the original %v, the rewritten %v", l.engine, errX, errY)
			}
			return errX
		}
		if err := differ(l.engine+": original and rewritten", x, y); err != nil {
			return err
		}
		before, after = append(before, x), append(after, y)
	}
	t.full = after[0]
	if !t.gen.RawNaNs {
		if err := differ("the engines' originals (not the rewriter's fault)", before[0], before[1]); err != nil {
			return err
		}
		if err := differInFuel("the engines", after[0], after[1]); err != nil {
			return err
		}
	}
	for _, m := range t.full {
		t.stat.steps++
		t.stat.calls += len(m.calls)
		if m.trap != "" {
			t.stat.traps++
		}
	}
	return nil
}

// neverPaidTooLittle compares the fuel with the instructions that have run. In
// batching modules a turn's first region is paid for before the turn begins.
func (t *trial) neverPaidTooLittle() error {
	if t.gen.Batching {
		return nil
	}
	s, err := t.labs[0].start(observed(counting(original(t.gen.Module)), t.gen.Module, false), t.gen.Batching)
	if err != nil {
		return err
	}
	defer s.close()
	before := uint64(0)
	for i, st := range script {
		m := s.run(st, 0)
		count := s.global(obsCount)
		if m.trap != t.full[i].trap || m.memory != t.full[i].memory {
			return fmt.Errorf("step %v: counted differently:\n%v\n%v", st, m, t.full[i])
		}
		// Of a turn that traps, the fuel of the loop that it was in is not reported.
		if ran := count - before; ran > t.full[i].fuel && m.trap == "" {
			return fmt.Errorf("step %v: %d instructions have run for %d units of fuel", st, ran, t.full[i].fuel)
		}
		t.stat.fuel += t.full[i].fuel
		t.stat.instrs += count - before
		before = count
	}
	t.stat.counted++
	return nil
}

// smallQuanta runs the module again, with fuel in small portions.
func (t *trial) smallQuanta() error {
	for _, l := range t.labs {
		s, err := t.rewritten(l)
		if err != nil {
			return err
		}
		defer s.close()
		l.quantum = 100
		var again []*moment
		for _, st := range script {
			again = append(again, s.run(st, 100))
		}
		l.quantum = 0
		if l.engine == t.labs[0].engine || !t.gen.RawNaNs {
			err = errors.Join(differ(l.engine+": in small quanta", t.full, again), differInFuel(l.engine+": in small quanta", t.full, again))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// direct turns indirect calls into direct ones, as the runtime does.
func (t *trial) direct() error {
	m := direct.Calls(t.res.Module)
	if m == t.res.Module {
		return nil
	}
	t.stat.direct++
	for i, l := range t.labs {
		got, err := t.play(l.start(observed(m, t.gen.Module, false), t.gen.Batching))
		if err != nil {
			return err
		}
		if i > 0 && t.gen.RawNaNs {
			break
		}
		globals := append([]*moment(nil), t.full...)
		for k := range globals {
			short := *globals[k]
			short.state = short.state[:len(got[k].state)]
			globals[k] = &short
		}
		if err := errors.Join(differ(l.engine+": direct calls", globals, got), differInFuel(l.engine+": direct calls", globals, got)); err != nil {
			return err
		}
	}
	return nil
}

// long is how many modules a test tries: WASMACTORS_LONG, if it is set.
func long(modules int) int {
	if n, err := strconv.Atoi(os.Getenv("WASMACTORS_LONG")); err == nil {
		return max(n, modules)
	}
	return modules
}

// TestRewrittenModulesDoTheSame is the proof by example that rewriting changes
// nothing but what it should.
func TestRewrittenModulesDoTheSame(t *testing.T) {
	modules := long(thorough.SlowOf(40, 100))
	labs, stat := newLabs(t), &statistics{}
	for seed := range uint64(modules) {
		choices := wasmgen.Seed(seed)
		if err := check(labs, choices, stat); err != nil {
			fails := func(b []byte) bool { return check(labs, b, &statistics{}) != nil }
			least := wasmgen.Shrink(choices, fails)
			t.Fatalf("seed %d: %v\nwith the fewest choices, %x:\n%v", seed, err, least, check(labs, least, stat))
		}
	}
	t.Log(stat)
	if stat.traps*3 > stat.steps || stat.frozen < modules/10 || stat.direct < modules/20 || stat.calls < modules {
		t.Error("the generated modules have become too dull")
	}
}
