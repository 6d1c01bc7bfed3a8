package sandbox

import (
	"math"
	"math/rand/v2"
)

// Profiler is told where guests spend fuel: about every Every units of it, at points drawn at
// random, so that each call of Sample stands for Every units. It costs guests nothing while
// there is none: a turn looks for it where it looks at the clock.
type Profiler struct {
	// Every is how many units a sample stands for; at least MinSample.
	Every uint64
	// Sample is called during Run, on the same goroutine. log is the Entry's; stack are the
	// names of the guest's functions, innermost first, empty where they cannot be had. It
	// must not keep the slice.
	Sample func(log LogSink, stack []string)
}

// MinSample is the least distance between samples, in units of fuel: a grant is not smaller.
const MinSample = 10 * leastGrant

// Profile sets who is told of an engine's guests, nil for nobody; false if somebody is told
// already.
func (e *Engine) Profile(p *Profiler) bool {
	if p == nil {
		e.profiler.Store(nil)
		return true
	}
	return e.profiler.CompareAndSwap(nil, p)
}

// Engine is what has loaded the image.
func (i *Image) Engine() *Engine { return i.engine }

// sampling is an instance's part, nil until it was sampled.
type sampling struct {
	of    *Profiler // whom the distances were drawn for
	first uint64    // to the first sample of each turn of a Run
	ahead uint64    // to the next sample when the present grant began
	addrs [mostFrames]uintptr
	names []string
}

// Profiled draws how far the first sample of the next Run's turns is, if there is a profiler.
// Fuel has no memory: a turn that ends before its sample comes need not be remembered.
func (x *Instance) Profiled() {
	if p := x.image.engine.profiler.Load(); p != nil {
		x.sampling = x.sampling.begin(p)
		x.sampling.first = x.sampling.draw()
		x.grain = min(x.usualGrant(), x.sampling.first)
	}
}

func (q *sampling) begin(p *Profiler) *sampling {
	if q == nil {
		q = &sampling{}
	}
	q.of = p
	return q
}

// draw is a distance.
func (q *sampling) draw() uint64 {
	every := float64(q.of.Every)
	return uint64(min(-math.Log(1-rand.Float64())*every, 64*every)) + 1
}

// usualGrant is a grant without a profiler.
func (x *Instance) usualGrant() uint64 {
	usual := min(uint64(aim/x.rate), x.image.engine.cfg.quantum)
	if worst := x.image.slowest.rate(); worst > 0 {
		usual = min(usual, uint64(most/worst))
	}
	return max(usual, leastGrant)
}

// lookForSample takes a sample if it is due, and has the next grant end at the next one. It
// is called when a grant is spent.
func (x *Instance) lookForSample(p *Profiler) {
	q := x.sampling
	if q == nil || q.of != p { // the grant was not aimed at anything
		x.sampling = q.begin(p)
		q = x.sampling
		q.first, q.ahead = 0, q.draw()
		x.grain = min(x.usualGrant(), q.ahead)
		return
	}
	spent := x.grain
	if x.granted == 0 { // the turn's first grant
		spent, q.ahead = x.first, q.first
	}
	if q.ahead > spent {
		q.ahead -= spent
	} else {
		if q.ahead > 0 {
			q.names = x.callStack(q.names[:0])
			p.Sample(x.in.Log, q.names)
			clear(q.names)
		}
		q.ahead = q.draw()
	}
	x.grain = min(x.usualGrant(), q.ahead)
}
