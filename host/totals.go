package host

// Totals takes a snapshot.
func (s *System) Totals() Totals {
	t := Totals{
		Actors: s.table.Len(), Asleep: int(s.asleep.Load()), Crashes: s.totals.Crashes.Load(), Restarts: s.totals.Restarts.Load(),
		DeadLetters: s.dead.N(), Held: s.pool.Held(), Workers: s.disp.Stats().Workers,
	}
	t.HeldLimit, t.ActorLimit = s.pool.Bounds()
	t.DeadReasons = s.dead.Reasons()
	t.TurnTimes = s.turnTimes.All()
	t.Ended = s.totals.Ended()
	return t
}
