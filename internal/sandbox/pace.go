package sandbox

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
)

// How often a running turn looks up. A unit of fuel is no time: what most code spends
// in 0.1 ms, some spends in 30 ms. So how much is granted at once follows the clock. It
// decides when a turn looks up, and nothing else: what it spends and where its fuel
// ends are the same with every grant.
const (
	// aim is the time between two looks, in nanoseconds.
	aim = 100_000
	// most is how long a grant may take even if the guest's slowest code, as far as it
	// is known, follows on its fastest.
	most = 1_000_000
	// leastGrant bounds a grant from below, in units of fuel.
	// The slowest code takes some 30 ns a unit; much more was not the guest's doing.
	leastGrant = 3000
	// leastMeasured is how much fuel tells anything about its rate: of less, the looks
	// at the clock themselves take most of the time.
	leastMeasured = leastGrant / 4
	// firstGrant is what an image begins with that has not been measured: 12 us as a
	// rule, some milliseconds at worst.
	firstGrant = 128 << 10
	// typicalRate is what is assumed before the first measurement, ns a unit.
	typicalRate = 0.1
	// shortest is the least time that a clock tells from none, in nanoseconds.
	shortest = 200
)

// pace is an instance's.
type pace struct {
	grain   uint64  // what is granted at once
	rate    float64 // ns a unit, the lower of the last two measurements
	latest  float64 // the last one
	looked  int64   // when the present grant began; 0: not known
	since   int64   // when this Run began, or its first look; 0: not known
	base    int64   // the guest's fuel then
	rested  int64   // when others could last run
	sampled bool    // the present Run is measured as a whole
	last    uint64  // fuel of the Run before
}

// slowest is an image's: the highest rate that was measured of late.
type slowest struct{ bits atomic.Uint64 }

func (s *slowest) rate() float64 { return math.Float64frombits(s.bits.Load()) }

// note takes a measurement in. What was slow once is forgotten slowly: by half in 45,000
// looks, some seconds of computing.
func (s *slowest) note(rate float64) {
	if was := s.rate(); rate > was {
		s.bits.Store(math.Float64bits(rate))
	} else if was > 2*rate {
		s.bits.Store(math.Float64bits(was - was/65536))
	}
}

// startPace is where an instance begins.
func (x *Instance) startPace() {
	x.pace = pace{grain: min(firstGrant, x.image.engine.cfg.quantum), rate: typicalRate, latest: typicalRate}
	if worst := x.image.slowest.rate(); worst > 0 {
		x.grain = max(min(x.grain, uint64(most/worst)), leastGrant)
	}
}

// sample decides whether the Run that begins is measured: one in eight of those that
// are likely to be long enough to matter. So an actor of short turns needs no clock, and one
// whose turns end just before they would look up is found out.
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
		return // a clock that stands still, or nothing but the look itself
	}
	// The system may have taken the processor away meanwhile. So what is remembered has
	// been measured twice; the present grant does not wait for that.
	rate := float64(max(ns, shortest)) / float64(units)
	x.rate, x.latest = min(rate, x.latest), rate
	worst := &x.image.slowest
	worst.note(x.rate)
	grain := min(aim/rate, most/worst.rate(), float64(2*x.grain), float64(x.image.engine.cfg.quantum))
	x.grain = max(uint64(grain), leastGrant)
}

// due reports whether others should run now. A clock that stands still cannot tell, so
// they should. At the first look of a Run nobody knows when it has begun. What it has
// spent tells, if the image was ever measured: grants may be so small that every turn
// looks up, and turns are short all the same. If that is wrong, the next look is not.
func (x *Instance) due(now int64) bool {
	if x.since != 0 {
		return now <= max(x.since, x.looked) || now-max(x.since, x.rested) >= aim*3/4
	}
	x.since = now
	fuel := x.globals().spent.Get() + x.earlier + x.spentNow()
	return x.image.slowest.rate() == 0 || x.worth(fuel) >= aim*3/4
}

// worth estimates how long fuel takes, in nanoseconds.
func (x *Instance) worth(fuel uint64) int64 { return int64(float64(fuel) * x.rate) }
