package sandbox

import (
	"math"
	"math/rand/v2"
)

// Profiler samples where guests spend fuel: every Every units on average, at random points,
// so that each call of Sample stands for Every units. Without a profiler guests pay nothing:
// a turn checks for one where it reads the clock.
type Profiler struct {
	// Every is how many units a sample stands for; at least MinSample.
	Every uint64
	// Sample is called during Run, on the same goroutine. log is the Entry's; stack are the
	// names of the guest's functions, innermost first, empty where they cannot be had. It
	// must not keep the slice.
	Sample func(log LogSink, stack []string)
}

// MinSample is the least mean distance between samples, in units of fuel.
const MinSample = 30_000

// Profile sets the profiler of an engine's guests, nil for none; false if there is one
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

// sampling is the state of an instance that is profiled, nil until it was.
type sampling struct {
	of    *Profiler // that the distances were drawn for
	first uint64    // to the first sample of the Run, until its first grant is spent
	ahead uint64    // to the next sample when the present grant began
	addrs [mostFrames]uintptr
	names []string
}

// Profiled draws the distance to the first sample of the next Run's turns, if there is a
// profiler. Distances are exponentially distributed, which has no memory: so a turn that ends
// before its sample does not bias the next one.
func (x *Instance) Profiled() {
	if p := x.image.engine.profiler.Load(); p != nil {
		x.sampling = x.sampling.begin(p)
		x.sampling.first = x.sampling.draw()
		x.grain = min(x.usualGrant(x.now()), x.sampling.first)
	}
}

func (q *sampling) begin(p *Profiler) *sampling {
	if q == nil {
		q = &sampling{}
	}
	q.of = p
	return q
}

// draw draws a distance.
func (q *sampling) draw() uint64 {
	every := float64(q.of.Every)
	return uint64(min(-math.Log(1-rand.Float64())*every, 64*every)) + 1
}

// usualGrant is a grant without a profiler.
func (x *Instance) usualGrant(now int64) uint64 { return x.usual(aim/float64(x.rate), now) }

// lookForSample takes a sample if it is due, and makes the next grant end at the next sample.
// It is called when a grant is spent.
func (x *Instance) lookForSample(p *Profiler, now int64) {
	q := x.sampling
	if q == nil || q.of != p { // the grant does not end at a sample
		x.sampling = q.begin(p)
		q = x.sampling
		q.first, q.ahead = 0, q.draw()
		x.grain = min(x.usualGrant(now), q.ahead)
		return
	}
	spent := x.grain
	if q.first > 0 { // the Run's first grant
		spent, q.ahead, q.first = uint64(x.first), q.first, 0
	}
	if q.ahead > spent {
		q.ahead -= spent
	} else {
		if q.ahead > 0 {
			q.names = x.callStack(q.names[:0], q.addrs[:0])
			p.Sample(x.in.Log, q.names)
			clear(q.names)
		}
		q.ahead = q.draw()
	}
	x.grain = min(x.usualGrant(now), q.ahead)
}
