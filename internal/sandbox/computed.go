package sandbox

// threadTime reads how long the calling thread has computed, in nanoseconds, and which one it is. ok is false
// where that cannot be known.
type threadTime func() (ns int64, thread int, ok bool)

// Anchor is a reading of the engine's clock and the thread's, by which it is known later how much of a long grant
// was computing. Who runs instances has one for each goroutine that does, and no others use it meanwhile. A reading
// takes 0.5 us, and five more where the system uses it to let another thread run, so there is one every anchorAge of
// a long Run, and whenever the goroutine is likely to have moved to another thread.
type Anchor struct {
	at       int64 // by the engine's clock; 0: there is none
	computed int64 // by the thread's
	thread   int
}

const (
	// anchorAge is in nanoseconds. What the thread has waited since the last reading may be taken for a part of a
	// grant, so it is to be less than a grant may take.
	anchorAge = 500_000
	// moved is how long a yield takes if others have run, in nanoseconds.
	moved = 10_000
)

// anchored makes a new anchor if the present one is old, or a new one is wanted.
func (x *Instance) anchored(now int64, renew bool) {
	if a := x.in.Anchor; a != nil {
		if age := now - a.at; renew || age < 0 || age >= anchorAge {
			x.image.engine.anchor(a, now)
		}
	}
}

// anchor makes a new one, and leaves the old one if the thread's clock cannot be read.
func (e *Engine) anchor(a *Anchor, now int64) bool {
	if e.thread == nil {
		return false
	}
	ns, thread, ok := e.thread()
	if ok {
		*a = Anchor{now, ns, thread}
	}
	return ok
}

// computed is how many of the ns before now the thread has computed, at least; ok is false if that is
// not known. What it has computed between the anchor and then is at most what has passed.
func (x *Instance) computed(ns, now int64) (own int64, ok bool) {
	a := x.in.Anchor
	if a == nil || a.at == 0 {
		return 0, false
	}
	was := *a
	began := now - ns
	if !x.image.engine.anchor(a, now) || a.thread != was.thread || began-was.at > anchorAge {
		return 0, false // or the thread may have waited before
	}
	own = a.computed - was.computed - max(0, began-was.at)
	return min(max(own, 0), ns), true
}
