package host

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

// Totals takes a snapshot.
func (s *System) Totals() Totals {
	t := Totals{
		Actors: s.table.Len(), Asleep: int(s.asleep.Load()), Crashes: s.totals.crashes.Load(), Restarts: s.totals.restarts.Load(),
		DeadLetters: s.dead.count(), Held: s.pool.Held(), Workers: s.disp.Stats().Workers,
	}
	t.HeldLimit, t.ActorLimit = s.pool.Bounds()
	t.DeadReasons = s.dead.reasons()
	t.TurnTimes = s.turnTimes.counts()
	s.totals.mu.Lock()
	defer s.totals.mu.Unlock()
	t.Ended = copied(s.totals.ended)
	return t
}
