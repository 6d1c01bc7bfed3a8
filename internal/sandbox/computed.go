package sandbox

// threadTime reads how long the calling thread has computed, in nanoseconds, and the thread's number. ok is false where the
// system does not tell.
type threadTime func() (ns int64, thread int, ok bool)

// Anchor is a reading of the engine's clock and of the thread's. A later reading tells how much of a long fuel allowance was
// spent computing. Each goroutine that runs instances has its own Anchor. A reading takes 0.5 us, and 5 us more if the
// system switches to another thread then. So there is one every anchorAge of a long Run, and one whenever the goroutine has
// probably moved to another thread.
type Anchor struct {
	at       int64 // by the engine's clock; 0: no reading
	computed int64 // by the thread's
	thread   int
}

const (
	// anchorAge is in nanoseconds. Time that the thread has waited since the last reading may be mistaken for computing, so
	// anchorAge must be shorter than an allowance may last.
	anchorAge = 500_000
	// moved is how long a yield takes if others have run, in nanoseconds.
	moved = 10_000
)

// anchored takes a new reading if the anchor is old, or if renew asks for one.
func (x *Instance) anchored(now int64, renew bool) {
	if a := x.in.Anchor; a != nil {
		if age := now - a.at; renew || age < 0 || age >= anchorAge {
			x.image.engine.anchor(a, now)
		}
	}
}

// anchor takes a new reading. It keeps the old one if the thread's clock cannot be read.
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

// computed returns how many of the last ns nanoseconds before now the thread has computed, as a lower bound; ok is false if
// that is not known. It assumes that the thread computed all the time between the anchor and the beginning of those ns.
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
