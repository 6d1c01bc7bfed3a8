package clock

import (
	"math/bits"
	"sync"
	"time"
)

// Wheel is a clock on top of another one, for very many timers whose functions are short: setting
// and stopping one takes constant time, however many there are. It is a hierarchical timing wheel
// (Varghese and Lauck, Hashed and hierarchical timing wheels, 1987): a timer waits in a list of
// those that fall due in the same part of the future, which are sorted only when that part has come.
// It never fires early, and in the order of the deadlines: the parts say where a timer waits, not
// when it fires.
//
// Functions run one after the other on a goroutine of the clock below, and so must not block.
type Wheel struct {
	below Clock
	start time.Time

	mu      sync.Mutex
	at      int64 // the tick up to which lists were processed
	levels  [wheelLevels]wheelLevel
	soon    wheelHeap // of the present tick, and what is overdue
	n       int
	made    uint64
	alarm   Timer
	due     int64 // ns since start that the alarm is set to; 0 and no alarm: none
	ringing bool
}

const (
	wheelTick   = int64(1) << 20 // ns: about a millisecond
	wheelBits   = 8
	wheelSlots  = 1 << wheelBits
	wheelLevels = 6 // 2^48 ticks, 9,000 years
)

type wheelLevel struct {
	slots [wheelSlots]*wheelTimer // the first of each list
	used  [wheelSlots / 64]uint64 // which are not empty
}

// wheelTimer is in a list, in the heap (pos >= 0), or in neither.
type wheelTimer struct {
	wheel      *Wheel
	when       int64 // ns since start
	order      uint64
	f          func()
	next, prev *wheelTimer
	level      int8 // -1: in no list
	slot       uint8
	pos        int32
}

// NewWheel makes a Wheel over a clock, of which it uses one timer at a time.
func NewWheel(below Clock) *Wheel { return &Wheel{below: below, start: below.Now()} }

// Now is the time of the clock below.
func (w *Wheel) Now() time.Time { return w.below.Now() }

// Pending is the number of timers that have neither fired nor been stopped.
func (w *Wheel) Pending() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// AfterFunc implements Clock.
func (w *Wheel) AfterFunc(d time.Duration, f func()) Timer {
	if f == nil {
		panic("clock: AfterFunc of nil")
	}
	now := int64(w.below.Now().Sub(w.start))
	t := &wheelTimer{wheel: w, when: now + max(int64(d), 0), f: f, level: -1, pos: -1}
	if t.when < now { // beyond what can be counted
		t.when = 1<<63 - 1
	}
	w.mu.Lock()
	if w.n == 0 && !w.ringing {
		w.at = now / wheelTick // nobody waits in between
	}
	w.made++
	t.order = w.made
	w.n++
	w.put(t)
	if !w.ringing && (w.alarm == nil || t.when < w.due) {
		w.arm(t.when)
	}
	w.mu.Unlock()
	return t
}

// Stop implements Timer.
func (t *wheelTimer) Stop() bool {
	w := t.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case t.pos >= 0:
		w.soon.remove(int(t.pos))
	case t.level >= 0:
		w.unlink(t)
	default:
		return false
	}
	w.n--
	t.f = nil
	return true
}

// put inserts a timer: its level is that of the highest digit in which its tick differs from the
// present one.
func (w *Wheel) put(t *wheelTimer) {
	tick := t.when / wheelTick
	if tick <= w.at {
		w.soon.push(t)
		return
	}
	level := (bits.Len64(uint64(tick^w.at)) - 1) / wheelBits
	level = min(level, wheelLevels-1)
	slot := uint8(tick >> (level * wheelBits))
	l := &w.levels[level]
	t.level, t.slot, t.prev, t.next = int8(level), slot, nil, l.slots[slot]
	if t.next != nil {
		t.next.prev = t
	}
	l.slots[slot] = t
	l.used[slot/64] |= 1 << (slot % 64)
}

func (w *Wheel) unlink(t *wheelTimer) {
	l := &w.levels[t.level]
	if t.prev != nil {
		t.prev.next = t.next
	} else if l.slots[t.slot] = t.next; t.next == nil {
		l.used[t.slot/64] &^= 1 << (t.slot % 64)
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.next, t.prev, t.level = nil, nil, -1
}

// next is the tick at which the first list that is not empty begins; false if all are.
func (w *Wheel) next() (tick int64, ok bool) {
	for level := range w.levels {
		l := &w.levels[level]
		from := int(w.at>>(level*wheelBits))&(wheelSlots-1) + 1
		for i := from; i < wheelSlots; i = (i/64 + 1) * 64 {
			if word := l.used[i/64] >> (i % 64); word != 0 {
				slot := int64(i + bits.TrailingZeros64(word))
				above := w.at >> ((level + 1) * wheelBits) << ((level + 1) * wheelBits)
				return above | slot<<(level*wheelBits), true
			}
		}
	}
	return 0, false
}

// turn processes the lists up to a tick.
func (w *Wheel) turn(to int64) {
	for {
		tick, ok := w.next()
		if !ok || tick > to {
			w.at = max(w.at, to)
			return
		}
		w.at = tick
		for level := range w.levels {
			slot := uint8(tick >> (level * wheelBits))
			l := &w.levels[level]
			t := l.slots[slot]
			l.slots[slot] = nil
			l.used[slot/64] &^= 1 << (slot % 64)
			for t != nil {
				next := t.next
				t.next, t.prev, t.level = nil, nil, -1
				w.put(t)
				t = next
			}
			if tick&(1<<((level+1)*wheelBits)-1) != 0 {
				break // no list of the next level begins here
			}
		}
	}
}

// arm sets the alarm; the lock is held.
func (w *Wheel) arm(when int64) {
	if w.alarm != nil {
		w.alarm.Stop()
	}
	w.due = when
	w.alarm = w.below.AfterFunc(time.Duration(max(when-int64(w.below.Now().Sub(w.start)), 0)), w.ring)
}

// ring runs what is due, and sets the alarm to what comes next: a timer, or the beginning of a list.
func (w *Wheel) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ringing {
		return
	}
	if w.alarm != nil {
		w.alarm.Stop() // this call may be that of one before it
	}
	w.ringing, w.alarm = true, nil
	defer func() { w.ringing = false }()
	for {
		now := int64(w.below.Now().Sub(w.start))
		w.turn(now / wheelTick)
		ran := false
		for len(w.soon) > 0 && w.soon[0].when <= now {
			t := w.soon.remove(0)
			f := t.f
			t.f = nil
			w.n--
			w.mu.Unlock()
			f()
			w.mu.Lock()
			ran = true
		}
		if ran {
			continue // it has taken time
		}
		if len(w.soon) > 0 {
			w.arm(w.soon[0].when)
		} else if tick, ok := w.next(); ok {
			w.arm(tick * wheelTick)
		}
		return
	}
}

// wheelHeap is a binary heap by deadline and order of making whose entries know their places.
type wheelHeap []*wheelTimer

func (h wheelHeap) less(i, j int) bool {
	return h[i].when < h[j].when || h[i].when == h[j].when && h[i].order < h[j].order
}

func (h wheelHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = int32(i), int32(j)
}

func (h *wheelHeap) push(t *wheelTimer) {
	t.pos = int32(len(*h))
	*h = append(*h, t)
	h.up(int(t.pos))
}

func (h *wheelHeap) remove(i int) *wheelTimer {
	last := len(*h) - 1
	t := (*h)[i]
	if i != last {
		h.swap(i, last)
	}
	(*h)[last] = nil
	*h = (*h)[:last]
	if i != last {
		h.down(i)
		h.up(i)
	}
	t.pos = -1
	return t
}

func (h wheelHeap) up(i int) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (h wheelHeap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
