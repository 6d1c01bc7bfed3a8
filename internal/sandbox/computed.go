package sandbox

// threadTime reads how long the calling thread has computed, in nanoseconds, and which one it is. ok is false
// where that cannot be known.
type threadTime func() (ns int64, thread int, ok bool)

// anchor is a reading of both clocks, by which it is known later how much of a long grant was computing. A
// reading takes 0.5 us, so there is one every anchorAge, and whenever the goroutine is likely to have moved to
// another thread.
type anchor struct {
	at       int64 // by the engine's clock; 0: there is none
	computed int64 // by the thread's
	thread   int
}

// long is what only an instance needs that has had a Run of more than one grant.
type long struct {
	anchor  anchor
	counted int64 // when its touched pages were counted last
}

func (x *Instance) longRun() *long {
	if x.long == nil {
		x.long = new(long)
	}
	return x.long
}

const (
	anchorAge = 4_000_000 // ns
	// moved is how long a yield takes if others have run, in nanoseconds.
	moved = 10_000
)

// anchored makes a new anchor if the present one is old, or now is wanted.
func (x *Instance) anchored(now int64, renew bool) {
	if age := now - x.longRun().anchor.at; !renew && age >= 0 && age < anchorAge {
		return
	}
	x.anchorNow(now)
}

func (x *Instance) anchorNow(now int64) (ok bool) {
	a := &x.longRun().anchor
	a.at = 0
	read := x.image.engine.thread
	if read == nil {
		return false
	}
	if a.computed, a.thread, ok = read(); ok {
		a.at = now
	}
	return ok
}

// computed is how many of the ns before now the thread has computed, at least; ok is false if that is
// not known. What it has computed between the anchor and then is at most what has passed.
func (x *Instance) computed(ns, now int64) (own int64, ok bool) {
	a := &x.longRun().anchor
	was := *a
	if was.at == 0 || !x.anchorNow(now) || a.thread != was.thread {
		return 0, false
	}
	began := now - ns
	own = a.computed - was.computed - max(0, began-was.at)
	return min(max(own, 0), ns), true
}
