package sandbox

import (
	"math"
	"sync/atomic"
)

// slowest is the highest rate that was measured lately of an image's instances, and when: a 32-bit float, in
// ns a unit, over 32 bits of time, in ticks of 2^20 ns. The rate counts half as much after each slowHalf,
// and in between what lies on a straight line, whatever was measured meanwhile.
type slowest struct{ word atomic.Uint64 }

// slowHalf is in nanoseconds. Code that has taken 19 ms for a grant gets to 1 ms at most afterwards, to 2 ms after
// slowHalf, to 19 ms again after 4.2 times that: less than a hundredth of the time.
const slowHalf = 1_000_000_000

const tickShift = 20

func ticks(now int64) uint32 { return uint32(now >> tickShift) }

// last is the rate as it was noted; 0: nothing was measured.
func (s *slowest) last() float64 { return float64(math.Float32frombits(uint32(s.word.Load() >> 32))) }

// rate is what the rate counts at a time.
func (s *slowest) rate(now int64) float64 { return fadedRate(s.word.Load(), now) }

func fadedRate(word uint64, now int64) float64 {
	rate := float64(math.Float32frombits(uint32(word >> 32)))
	age := int64(int32(ticks(now)-uint32(word))) << tickShift
	if age < 0 {
		return rate
	}
	halves, part := age/slowHalf, age%slowHalf
	return rate / float64(uint64(1)<<min(halves, 63)) * (1 - float64(part)/(2*slowHalf))
}

// note takes a measurement into account.
func (s *slowest) note(rate float64, now int64) {
	for {
		was := s.word.Load()
		if rate <= fadedRate(was, now) {
			return
		}
		if s.word.CompareAndSwap(was, uint64(math.Float32bits(float32(rate)))<<32|uint64(ticks(now))) {
			return
		}
	}
}

// doubt is the highest rate that a single grant of an image has shown lately of which it is not known how much
// the thread has computed. It may have been the system, which
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
)

func (d *doubt) rate() float64 { return math.Float64frombits(d.bits.Load()) }

// note takes a grant into account that took longer than most. Of a large rate over a short time nothing
// follows: then little was measured, and most of it may have been an interruption.
func (d *doubt) note(rate float64) {
	if rate <= implausible && rate > d.rate() {
		d.bits.Store(math.Float64bits(rate))
	}
}

// fade is called after computing for ns.
func (d *doubt) fade(ns int64) {
	if was := d.rate(); was > 0 {
		d.bits.Store(math.Float64bits(was * math.Exp2(-float64(ns)/doubtHalf)))
	}
}
