package sandbox

import "sync/atomic"

// The first touch of a page of memory takes the system some microseconds, and the guest pays a few units
// for it: a thousand times what other code takes. No grant that is large enough for that code is short if all of
// it is first touches. But only a large memory that was not touched has many of them, and as a rule they come when
// an instance is new, was reset, or has grown. Then grants begin small. Code that comes with them later
// has one long grant, and makes the image strict: for a hundred times as long its grants stay small
// where there is much to touch.
const (
	// muchUntouched is how much memory must be untouched for first touches to matter, in bytes: 1024 pages, 1 to 4 ms
	// once in a life. Guests of standard Go begin with half of that.
	muchUntouched = 4 << 20
	// manyTouches is how much must have been touched in a long grant, or have grown since grants began small: 256
	// pages take about as long as a grant may.
	manyTouches = 1 << 20
	// A page of pageBytes takes less than touchTime ns, and at least touchUnits units.
	pageBytes, touchTime, touchUnits = 4096, 8000, 4
	// strictTimes is how much longer an image is strict than the grant took that has made it so.
	strictTimes = 100
	// recount is how often the touched pages of a strict instance are counted, in ticks of a millisecond.
	recount = 10
)

// touches is what an instance knows of its memory.
type touches struct {
	touched uint32 // KiB that were resident when last counted, or less
	grown   uint32 // KiB that the memory has grown by since grants began small
	growths uint32 // of the memory, in this Run
	counted uint32 // when the touched pages were counted last because the image was strict, in ticks
}

// strictness is until when an image is strict, ns by the engine's clock; 0: it is not.
type strictness struct{ until atomic.Int64 }

// sparse reports whether the instance has so much untouched memory that it matters. It may have less.
func (x *Instance) sparse() bool { return x.memory.Size() >= uint64(x.touched)<<10+muchUntouched }

// strict reports whether grants must be small, whatever was measured.
func (x *Instance) strict(now int64) bool {
	s := &x.image.strictness
	if s.until.Load() == 0 || !x.sparse() {
		return false
	}
	if until := s.until.Load(); now >= until {
		s.until.CompareAndSwap(until, 0)
		return false
	}
	if t := ticks(now); t-x.counted >= recount {
		x.counted = t
		x.count()
	}
	return x.sparse()
}

// count counts the touched pages. It returns how many bytes of them are new, 0 if that is not known.
func (x *Instance) count() (fresh uint64) {
	n, ok := x.memory.Resident()
	if !ok {
		return 0
	}
	was := uint64(x.touched) << 10
	x.touched = uint32(n >> 10)
	return max(n, was) - was
}

// lookForTouches makes the image strict if it may have been for first touches that units of fuel have taken ns, too long.
func (x *Instance) lookForTouches(units uint64, ns, now int64) {
	if !x.sparse() || ns > most+int64(units/touchUnits*touchTime) {
		return // of so many units not so much time is touches
	}
	fresh := x.count()
	if fresh < manyTouches {
		return
	}
	until := now + strictTimes*min(ns, int64(fresh/pageBytes*touchTime))
	s := &x.image.strictness
	for {
		was := s.until.Load()
		if until <= was || s.until.CompareAndSwap(was, until) {
			return
		}
	}
}

// beginSmall makes the next grant small, if there is much to touch. It is for an instance that does not run.
func (x *Instance) beginSmall() {
	x.grown = 0
	if x.sparse() {
		x.grain = leastGrant
	}
}

// untouched notes that the memory is that of a new instance, or was discarded.
func (x *Instance) untouched() {
	x.touched = 0
	if m := x.image.memory; m != nil {
		x.touched = uint32(m.NonZero() >> 10)
	}
	x.beginSmall()
}

// patched notes that the host has written to the memory.
func (x *Instance) patched() {
	if x.sparse() {
		x.count()
	}
}

// withdraw takes back what the present grant has beyond a small one, after the memory has grown by much. left is
// what is left of it; so is the result.
func (x *Instance) withdraw(left int64) int64 {
	if x.grown < manyTouches>>10 || x.sampling != nil {
		return left
	}
	x.beginSmall()
	if d := left - leastGrant; d > 0 {
		x.granted -= uint64(d)
		left = leastGrant
	}
	return left
}

// began is Entry.Began, or 0 if the engine's clock is not the machine's: the caller's may be another one.
func (x *Instance) began() int64 {
	if x.image.engine.thread == nil {
		return 0
	}
	return x.in.Began
}

// lookBack looks at what a Run has done with these units before its first look.
func (x *Instance) lookBack(units uint64, now int64) {
	if began := x.began(); began != 0 && now-began > most {
		x.lookForTouches(units, now-began, now)
	}
}
