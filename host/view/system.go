package view

import (
	"github.com/wasmactors/wasmactors/host/internal/look"
)

// Stats are totals since the start, of actors that have stopped, too.
type Stats struct {
	Actors      int // living
	Asleep      int // idle guests that have given their instances back
	Turns       uint64
	Crashes     uint64
	Restarts    uint64
	DeadLetters uint64
	Fuel        uint64 // spent by completed turns of guests
	// Types are the same by actor type; that of actors in Go is "native".
	Types map[string]TypeStats
}

// TypeStats are totals of the actors of one type: Actors (living), Turns, Crashes, Restarts, Fuel.
type TypeStats = look.TypeStats

// Totals are figures of a system that cost nothing to read, however many actors there are.
type Totals struct {
	Actors      int // living, /user and /system included
	Asleep      int // idle guests that have given their instances back
	Crashes     uint64
	Restarts    uint64
	DeadLetters uint64
	Held        int64 // bytes, as accounted for all actors
	HeldLimit   int64 // 0: no bound
	ActorLimit  int64 // 0: no bound
	Workers     int   // turns that run at a time

	// DeadReasons is DeadLetters by the names of the reasons, all of them.
	DeadReasons map[string]uint64

	// TurnTimes are durations of turns by type, of at most 1024 types and OtherTypes.
	TurnTimes map[string]TurnTimes

	// Ended is what actors that have stopped had done, by type.
	Ended map[string]TypeStats
}

// TurnTimes are durations of turns of one type, a sample of them: the time from the turn's beginning
// until what it asks for has taken effect.
type TurnTimes = look.TurnTimes
