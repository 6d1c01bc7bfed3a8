package sandbox

import (
	"math/rand/v2"
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
	// leastGrant bounds a grant from below, in units of fuel. First touches of memory take
	// some 900 ns a unit.
	leastGrant = 1000
	// leastMeasured is the least fuel whose rate is measured: below it, most of the time is
	// that of reading the clock.
	leastMeasured = leastGrant / 4 * 3
	// firstGrant is granted before the clock was read: at the beginning of a Run that is likely to be short, and the
	// most while nothing of the image was measured. It is 5 us as a rule, and 1 ms if all of it is loads that miss
	// every cache.
	firstGrant = 40_000
	// growth is how much larger than the one before a grant may be.
	growth = 4
	// typicalRate is assumed before the first measurement, in ns a unit.
	typicalRate = 0.1
	// implausible is more than any code takes, in ns a unit: then it was the system, or first touches of memory.
	implausible = 32
	// shortest is the least time that a clock can measure, in nanoseconds.
	shortest = 200
)

// pace is what an instance knows of its speed.
type pace struct {
	last   uint32  // fuel of the Run before, or three quarters of what this was before it, if that is more
	rate   float32 // ns a unit, the lower of the last two measurements
	latest float32 // the last one
	touches
	hosted bool   // it is a host function that charges now
	grain  uint64 // the size of a grant
	looked int64  // when the present grant began; 0: not known
	since  int64  // when this Run began, or its first check; 0: not known
	base   int64  // the guest's fuel then
	rested int64  // when others were last let run
}

// startPace sets the pace of a new instance.
func (x *Instance) startPace() {
	x.pace = pace{grain: min(firstGrant, x.image.engine.cfg.quantum), rate: typicalRate, latest: typicalRate}
	if rate := x.image.slowest.last(); rate > 0 {
		x.grain = max(min(x.grain, uint64(most/rate)), leastGrant)
	}
}

// sample decides whether the Run that begins is measured as a whole. One that is likely to be long is: to read the
// clock takes a fifth of a call of refuel, and then it may begin with more. Of those of half a first grant it is one
// in eight; so an actor with short turns does not read the clock, and one whose turns all end just before
// their first check is measured, too. Of the others it is one in 64 or so, at random: long ones may hide behind short ones.
func (x *Instance) sample() {
	switch last := uint64(x.last); {
	case last > firstGrant:
		x.grantFirst(x.image.engine.cfg.quantum)
	case last > min(x.grain, firstGrant)/2:
		if rand.Uint32()%8 != 0 {
			return
		}
	case x.unseen > 0:
		x.unseen--
		return
	default:
		x.unseen = uint8(32 + rand.Uint32()%64)
	}
	x.looked = x.now()
	if uint64(x.last) > firstGrant { // the others take less than most as a rule, and to read the thread's clock is dear
		x.anchored(x.looked, false)
	}
	x.since, x.base = x.looked, int64(x.first)
}

// lookAtEnd measures what the Run that has ended has done since the last look. If there was none, or it has only been
// called in that time, it looks back at it if its memory is sparse: at some of the short ones, at random. If it has
// failed it is not known how much of its last grant it has spent; that counts if it has taken long.
func (x *Instance) lookAtEnd(out *Result) {
	failed := out.Failure != nil
	short := !failed && x.granted+x.earlier == 0 && out.Fuel < min(x.grain, firstGrant)/2
	switch {
	case x.sampling != nil:
	case x.looked != 0 && failed:
		if now := x.now(); now-x.looked > most {
			x.measure(0, now)
		}
	case x.looked != 0 && !short:
		x.measure(int64(x.hidden(hiddenFuel)), x.now())
	case !x.sparse() || x.began() == 0:
	case failed:
		x.lookBack(uint64(x.first), x.now())
	case out.Fuel >= firstGrant/4 || out.Fuel >= leastGrant && rand.Uint32()%16 == 0:
		x.lookBack(out.Fuel, x.now())
	}
}

// measure takes the time since the last look. Before the first one of a Run only that is known which other
// instances have shown.
func (x *Instance) measure(left, now int64) {
	if x.looked != 0 {
		x.adapt(uint64(x.base-left), now-x.looked, now)
		return
	}
	x.lookBack(uint64(x.first), now)
	x.grain = x.usual(float64(x.grain), now)
}

// adapt changes the grants after units of fuel have taken ns, up to now.
func (x *Instance) adapt(units uint64, ns, now int64) {
	if ns <= 0 || units < leastMeasured {
		return // the clock stands still, or most of the time was that of reading it
	}
	i, known := x.image, false
	if ns > most {
		// The system may have paused the thread since.
		if own, ok := x.computed(ns, now); ok {
			ns, known = own, true
		}
	}
	// Where it is not known whether it has, the rate is the lower of two measurements; the
	// present grant follows the last one at once, and the next ones for a while.
	rate := float64(max(ns, shortest)) / float64(units)
	x.rate, x.latest = min(float32(rate), x.latest), float32(rate)
	worst := float64(x.rate)
	i.doubt.fade(ns)
	if ns > most {
		x.lookForTouches(units, ns, now)
		if known {
			worst = rate
		} else {
			i.doubt.note(rate)
		}
	}
	if worst <= implausible {
		i.slowest.note(worst, now)
	}
	x.grain = x.usual(min(aim/rate, growth*float64(x.grain)), now)
}

// usual is how large grants are at most that should be so large: see longest.
func (x *Instance) usual(units float64, now int64) uint64 {
	return max(uint64(min(units, x.longest(now), float64(x.image.engine.cfg.quantum))), leastGrant)
}

// longest is how large grants may be, for what the image has shown to be slow.
func (x *Instance) longest(now int64) float64 {
	i := x.image
	if x.strict(now) {
		return leastGrant
	}
	return min(most/i.slowest.rate(now), mostDoubt/i.doubt.rate())
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
	return x.image.slowest.last() == 0 || x.worth(fuel) >= aim*3/4
}

// worth estimates how long fuel takes, in nanoseconds.
func (x *Instance) worth(fuel uint64) int64 { return int64(float64(fuel) * float64(x.rate)) }
