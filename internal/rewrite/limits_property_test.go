package rewrite

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/internal/wasm"
)

// fuelRunsOut stops the module half-way through each step: what it has done by
// then is the beginning of what it does with enough, the same on both engines.
func (t *trial) fuelRunsOut() error {
	for at := range script {
		var ends []*moment
		for _, l := range t.labs {
			m, fuel, err := t.stopIn(l, at)
			if err != nil {
				return err
			}
			ends = append(ends, m)
			full := t.full[at]
			switch {
			case m.trap == errFuel.Error():
				t.stat.outOfFuel++
			case t.gen.Batching: // every turn has a quantum of its own
			case m.fuel <= fuel && full.fuel > fuel:
				return fmt.Errorf("%s, step %v: %d of %d units were enough: %v", l.engine, script[at], fuel, full.fuel, m)
			}
			if t.gen.RawNaNs {
				break
			}
			if len(m.calls) > len(full.calls) {
				return fmt.Errorf("%s, step %v: %d host calls with less fuel, %d with enough", l.engine, script[at], len(m.calls), len(full.calls))
			}
			for i := range m.calls {
				if m.calls[i] != full.calls[i] {
					return fmt.Errorf("%s, step %v: host call %d is another one with less fuel", l.engine, script[at], i)
				}
			}
		}
		if len(ends) == 2 && (!ends[0].same(ends[1]) || ends[0].fuel != ends[1].fuel) {
			return fmt.Errorf("step %v: the engines stop at different places:\n%v\n%v", script[at], ends[0], ends[1])
		}
	}
	return nil
}

// stopIn runs the script up to step at, and gives that half of what it takes. What
// grows something is only charged afterwards; that is noticed by the next charge,
// or not at all.
func (t *trial) stopIn(l *lab, at int) (*moment, uint64, error) {
	s, err := t.rewritten(l)
	if err != nil {
		return nil, 0, err
	}
	defer s.close()
	for _, st := range script[:at] {
		s.run(st, plenty)
	}
	fuel := t.full[at].fuel / 2
	m := s.run(script[at], fuel)
	if m.trap != errFuel.Error() && m.fuel > fuel && !t.gen.Batching && s.global(GlobalDirty)&(DirtyMemory|DirtyTable) == 0 {
		return nil, 0, fmt.Errorf("%s, step %v: %d of %d units were spent, nobody noticed", l.engine, script[at], m.fuel, fuel)
	}
	return m, fuel, nil
}

// stackRunsOut gives the module little stack: it does the same as with much, or
// says so, at the same place on both engines.
func (t *trial) stackRunsOut() error {
	res, err := Instrument(t.gen.Module, Options{StackBytes: 900})
	if err != nil {
		return err
	}
	var runs [][]*moment
	for _, l := range t.labs {
		s, err := l.start(observed(res.Module, t.gen.Module, true), t.gen.Batching)
		if err != nil {
			return err
		}
		var run []*moment
		for _, st := range script {
			m := s.run(st, plenty)
			run = append(run, m)
			if m.trap == errStack.Error() {
				t.stat.stackExceeded++
				break
			}
		}
		s.close()
		runs = append(runs, run)
		if t.gen.RawNaNs {
			break
		}
	}
	for i, m := range runs[0] {
		if m.trap != errStack.Error() && !m.same(t.full[i]) {
			return fmt.Errorf("step %v: another outcome with little stack:\n%v\n%v", script[i], t.full[i], m)
		}
	}
	if len(runs) == 2 {
		if len(runs[0]) != len(runs[1]) {
			return errors.New("the engines' stacks run out in different steps")
		}
		return errors.Join(differ("little stack", runs[0], runs[1]), differInFuel("little stack", runs[0], runs[1]))
	}
	return nil
}

// frozen freezes the module behind its initialisation, and expects the same turns
// from it, twice.
func (t *trial) frozen() error {
	l := t.labs[0]
	s, err := t.rewritten(l)
	if err != nil {
		return err
	}
	defer s.close()
	for _, st := range script[:firstTurn] {
		s.run(st, plenty)
	}
	memory := append([]byte(nil), l.memory()...)
	state := State{Pages: uint32(len(memory) >> 16), Dirty: uint32(s.global(GlobalDirty))}
	for g := range t.res.Mutable {
		lo, hi, err := s.enterGlobal(g)
		if err != nil {
			return err
		}
		state.Globals = append(state.Globals, Value{lo, hi})
	}
	m, err := Freeze(t.res, state)
	if errors.Is(err, ErrNotFreezable) {
		return nil
	}
	if err != nil {
		return err
	}
	t.stat.frozen++
	for _, engine := range t.labs {
		if err := t.thaw(engine, m, memory); err != nil || t.gen.RawNaNs {
			return err
		}
	}
	return nil
}

func (t *trial) thaw(l *lab, m *wasm.Module, memory []byte) error {
	s, err := l.start(observed(m, t.gen.Module, true), t.gen.Batching)
	if err != nil {
		return err
	}
	defer s.close()
	for _, life := range []string{"frozen", "reset"} {
		s.mod.Memory().Write(0, memory)
		var got []*moment
		for _, st := range script[firstTurn:] {
			got = append(got, s.run(st, plenty))
		}
		want := t.full[firstTurn:]
		if err := errors.Join(differ(l.engine+": "+life, want, got), differInFuel(l.engine+": "+life, want, got)); err != nil {
			return err
		}
		if s.global(GlobalDirty) != 0 {
			return nil // it cannot be used again
		}
		if _, err := s.enter.Call(l.context(), EnterReset, 0, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) enterGlobal(g int) (lo, hi uint64, err error) {
	res, err := s.enter.Call(s.lab.context(), EnterGlobal, uint64(g), 0, 0)
	if err != nil {
		return 0, 0, err
	}
	return res[0], res[1], nil
}
