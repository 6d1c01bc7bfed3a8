package look

import (
	"sync"
	"sync/atomic"
)

// TypeStats are totals of the actors of one type.
type TypeStats struct {
	Actors   int // living
	Turns    uint64
	Crashes  uint64
	Restarts uint64
	Fuel     uint64
}

// Tally is what one actor has done. Any goroutine may read it.
type Tally struct {
	Turns    atomic.Uint64 // until the last Run
	Fuel     atomic.Uint64 // spent by completed turns, until the last Run
	Restarts atomic.Uint64
	Crashes  atomic.Uint64
}

// Counted says how an actor stands in a census. The zero value: in none.
type Counted struct{ by atomic.Uint32 }

// Add adds what an actor has done.
func (t *TypeStats) Add(a *Tally) {
	t.Turns += a.Turns.Load()
	t.Crashes += a.Crashes.Load()
	t.Restarts += a.Restarts.Load()
	t.Fuel += a.Fuel.Load()
}

// Join adds what other actors of the type have done.
func (t *TypeStats) Join(others TypeStats) {
	t.Turns += others.Turns
	t.Crashes += others.Crashes
	t.Restarts += others.Restarts
	t.Fuel += others.Fuel
}

// Totals are what a system has counted.
type Totals struct {
	Crashes, Restarts atomic.Uint64
	Ending, Gone      atomic.Uint64 // actors that have begun their last step, and that have done it

	mu     sync.Mutex
	ended  map[string]*TypeStats // of actors that have stopped
	census *Census               // that goes on; nil: none does

	counting sync.Mutex // one census at a time
	number   uint32     // of the last census; only whoever counts uses it
}

// Add adds up an actor that is about to leave the table, of a type.
func (t *Totals) Add(typ string, a *Tally, c *Counted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	OfType(&t.ended, typ).Add(a)
	if seen := c.by.Swap(countedAsEnded); t.census != nil && seen != t.census.number {
		OfType(&t.census.ended, typ).Add(a)
	}
}

// Crashed counts a failure that was decided about. Its actor may have stopped meanwhile.
func (t *Totals) Crashed(typ string, a *Tally, c *Counted) {
	t.Crashes.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	a.Crashes.Add(1)
	if c.by.Load() == countedAsEnded {
		OfType(&t.ended, typ).Crashes++
	}
}

// Ended is what actors that have stopped had done, by type.
func (t *Totals) Ended() map[string]TypeStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return copied(t.ended)
}

// OfType is the entry of a type, which it makes if need be.
func OfType(m *map[string]*TypeStats, typ string) *TypeStats {
	if *m == nil {
		*m = map[string]*TypeStats{}
	}
	s := (*m)[typ]
	if s == nil {
		s = &TypeStats{}
		(*m)[typ] = s
	}
	return s
}

// copied is a copy of totals.
func copied(m map[string]*TypeStats) map[string]TypeStats {
	out := make(map[string]TypeStats, len(m))
	for typ, t := range m {
		out[typ] = *t
	}
	return out
}

// Census counts every actor once, although actors run and stop during the count: one that stops is either
// met in the table before it is added up as ended, or not met at all. Which of the two it was stands in
// its Counted.
type Census struct {
	number uint32
	ended  map[string]*TypeStats // of the actors that it has not met and will not meet
}

// countedAsEnded is in Counted when the actor was added up. Other values are the number of the
// last census that has met it.
const countedAsEnded = ^uint32(0)

// Meets reports whether an actor of the table counts as living.
func (c *Census) Meets(a *Counted) bool {
	for {
		seen := a.by.Load()
		if seen == countedAsEnded {
			return false
		}
		if a.by.CompareAndSwap(seen, c.number) {
			return true
		}
	}
}

// Count calls f with a census, and returns what the actors have done that it has not met.
func (t *Totals) Count(f func(*Census)) (ended map[string]TypeStats) {
	t.counting.Lock()
	defer t.counting.Unlock()
	if t.number++; t.number == countedAsEnded {
		t.number = 1 // 0 means none's
	}
	c := &Census{number: t.number, ended: map[string]*TypeStats{}}
	t.mu.Lock()
	for typ, e := range t.ended {
		own := *e
		c.ended[typ] = &own
	}
	t.census = c
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.census = nil
		ended = copied(c.ended)
	}()
	f(c)
	return nil
}
