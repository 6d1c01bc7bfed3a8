package window

import (
	"sync"

	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// FuelSample is the code position of a guest after it had spent some more fuel.
type FuelSample struct {
	Actor ref.Ref
	Type  string
	// Stack is the names of the guest's functions, innermost first; empty where they are not
	// available (on machines without wazero's compiler). The names are the module's: hostile.
	Stack []string
}

// MinFuelSample is the least distance between samples, in units of fuel.
const MinFuelSample = sandbox.MinSample

// SampleFuel calls f whenever a guest has spent about every units of fuel, at points drawn at
// random, until stop is called: each call stands for so many units, and short turns are sampled in
// proportion to their fuel. f is called by workers, within turns, also at the same time: it must
// be quick, and the stack is valid until it returns. Only one caller may sample at a time (ErrSampling),
// and guests of engines that come to the system meanwhile are not sampled.
func (v View) SampleFuel(every uint64, f func(*FuelSample)) (stop func(), err error) {
	p := &sandbox.Profiler{Every: max(every, MinFuelSample), Sample: func(log sandbox.LogSink, stack []string) {
		if a := v.of.Logs(log); a != nil {
			f(&FuelSample{Actor: a.Ref(), Type: a.Type(), Stack: stack})
		}
	}}
	engines := map[*sandbox.Engine]bool{}
	v.of.Each(func(a Actor) {
		if e := a.Engine(); e != nil {
			engines[e] = true
		}
	})
	var mine []*sandbox.Engine
	release := func() {
		for _, e := range mine {
			e.Profile(nil)
		}
	}
	for e := range engines {
		if !e.Profile(p) {
			release()
			return nil, ErrSampling
		}
		mine = append(mine, e)
	}
	marked := v.of.Audience().SampleFuel()
	return sync.OnceFunc(func() {
		release()
		marked()
	}), nil
}
