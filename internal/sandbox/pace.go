package sandbox

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
)

// How much fuel is granted at once, and so how often a running turn reads the clock and
// checks for a kill. Units of fuel take different times: some code takes 30 ms for what other
// code spends in 0.1 ms. So the size of grants follows the clock. Nothing else depends on it:
// what a turn spends, and where its fuel ends, are the same with every grant.
const (
	// aim is the time between two checks, in nanoseconds.
	aim = 100_000
	// most is how long a grant may take, in nanoseconds, if the slowest code that was
	// measured of the image follows the fastest.
	most = 1_000_000
	// leastGrant bounds a grant from below, in units of fuel. The slowest code takes some
	// 30 ns a unit; if a measurement says much more, the system has interrupted it.
	leastGrant = 3000
	// leastMeasured is the least fuel whose rate is measured: below it, most of the time is
	// that of reading the clock.
	leastMeasured = leastGrant / 4
	// firstGrant is the grant while nothing of the image was measured: 12 us as a rule,
	// some milliseconds at worst.
	firstGrant = 128 << 10
	// typicalRate is assumed before the first measurement, in ns a unit.
	typicalRate = 0.1
	// shortest is the least time that a clock can measure, in nanoseconds.
	shortest = 200
)

// pace is what an instance knows of its speed.
type pace struct {
	grain  uint64  // the size of a grant
	rate   float64 // ns a unit, the lower of the last two measurements
	latest float64 // the last one
	looked int64   // when the present grant began; 0: not known
	since  int64   // when this Run began, or its first check; 0: not known
	base   int64   // the guest's fuel then
	rested int64   // when others were last let run
	last   uint64  // fuel of the Run before
}

// slowest is the highest rate that was measured lately of an image's instances.
type slowest struct{ bits atomic.Uint64 }

func (s *slowest) rate() float64 { return math.Float64frombits(s.bits.Load()) }

// note takes a measurement into account. A high rate decays by half in 45,000
// measurements, some seconds of computing.
func (s *slowest) note(rate float64) {
	if was := s.rate(); rate > was {
		s.bits.Store(math.Float64bits(rate))
	} else if was > 2*rate {
		s.bits.Store(math.Float64bits(was - was/65536))
	}
}

// doubt is the highest rate that a single grant of an image has shown lately. It may have been the system, which
// has taken the processor away; it may be code that is slow once, and quick until its grants are large again.
// So it counts, but for a short time: a high one decays by half in doubtHalf of computing.
type doubt struct{ bits atomic.Uint64 }

const (
	// doubtHalf is in nanoseconds. Code that has taken 19 ms for a grant, and may take 3 ms after it, can do so
	// again after 2.7 times that: it has some 7 % of its time in such grants.
	doubtHalf = 100_000_000
	// mostDoubt is how long a grant may take, in nanoseconds, if what has been slow once is so again. With most
	// instead, computing took some 4 % more time where a dozen others wanted each processor.
	mostDoubt = 3 * most
	// implausible is more than any code takes, in ns a unit: then it was the system.
	implausible = 32
)

func (d *doubt) rate() float64 { return math.Float64frombits(d.bits.Load()) }

// note takes a measurement that took ns into account. Of a large rate over a short time nothing
// follows: then little was measured, and most of it may have been an interruption.
func (d *doubt) note(rate float64, ns int64) {
	was := d.rate()
	was *= math.Exp2(-float64(ns) / doubtHalf)
	if rate <= implausible && ns > most {
		was = max(was, rate)
	}
	d.bits.Store(math.Float64bits(was))
}

// longest is how large grants of the image may be, for what it has shown to be slow.
func (i *Image) longest() float64 { return min(most/i.slowest.rate(), mostDoubt/i.doubt.rate()) }

// startPace sets the pace of a new instance.
func (x *Instance) startPace() {
	x.pace = pace{grain: min(firstGrant, x.image.engine.cfg.quantum), rate: typicalRate, latest: typicalRate}
	x.sampled = false
	if longest := x.image.longest(); longest < float64(x.grain) {
		x.grain = max(uint64(longest), leastGrant)
	}
}

// sample decides whether the Run that begins is measured as a whole: one in eight of those
// that are likely to be long enough to matter. So an actor with short turns does not read
// the clock, and one whose turns all end just before their first check is measured, too.
func (x *Instance) sample() {
	if rand.Uint32()%8 == 0 {
		x.sampled = true
		x.looked = x.now()
		x.since = x.looked
	}
}

// sampleEnd measures the Run that has ended, if nothing has interrupted it.
func (x *Instance) sampleEnd(fuel uint64) {
	x.sampled = false
	if x.looked != 0 && x.granted+x.earlier == 0 {
		x.adapt(fuel, x.now()-x.looked)
	}
}

// measure takes the time since the last look.
func (x *Instance) measure(left, now int64) {
	if x.looked != 0 {
		x.adapt(uint64(x.base-left), now-x.looked)
	}
}

// adapt changes the grants after units of fuel have taken ns.
func (x *Instance) adapt(units uint64, ns int64) {
	if ns <= 0 || units < leastMeasured {
		return // the clock stands still, or most of the time was that of reading it
	}
	// The system may have taken the processor away meanwhile. So the rate is the lower of
	// two measurements; the present grant follows the last one at once, and the next ones for a while.
	rate := float64(max(ns, shortest)) / float64(units)
	x.rate, x.latest = min(rate, x.latest), rate
	worst := &x.image.slowest
	worst.note(x.rate)
	x.image.doubt.note(rate, ns)
	grain := min(aim/rate, x.image.longest(), float64(2*x.grain), float64(x.image.engine.cfg.quantum))
	x.grain = max(uint64(grain), leastGrant)
}

// due reports whether others should run now. If the clock stands still, they should. At the
// first check of a Run it is not known when the Run began; then its time is estimated from
// its fuel, if the image was ever measured, because grants may be so small that even a short
// turn gets to a check. If the estimate is wrong, the next check corrects it.
func (x *Instance) due(now int64) bool {
	if x.since != 0 {
		return now <= max(x.since, x.looked) || now-max(x.since, x.rested) >= aim*3/4
	}
	x.since = now
	fuel := x.hidden(hiddenSpent) + x.earlier + x.spentNow()
	return x.image.slowest.rate() == 0 || x.worth(fuel) >= aim*3/4
}

// worth estimates how long fuel takes, in nanoseconds.
func (x *Instance) worth(fuel uint64) int64 { return int64(float64(fuel) * x.rate) }
