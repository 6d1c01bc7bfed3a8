package host

// Short turns in a row share one reading of the clock, which costs as much as the turn of a small guest: sameTurns at most,
// and only as long as none of them was long and the worker has not waited. So a turn's time is some microseconds old at
// most, unless the operating system has paused the thread. For one actor time never goes back.
const (
	sameTurns = 8
	longTurn  = 2000 // units of fuel, about a microsecond
)

// turnTime is the time of the actor's next turn.
func (g *guest) turnTime(scr *scratch) int64 {
	if scr.same > 0 && scr.blocks == scr.w.Waits() {
		scr.same--
	} else {
		scr.now, scr.same, scr.blocks, scr.read = g.actor.sys.time.Now(), 0, scr.w.Waits(), 0
		if g.actor.sys.time.Real() {
			scr.same, scr.read = sameTurns-1, scr.now
		}
	}
	g.turnAt = max(g.turnAt, scr.now)
	return g.turnAt
}
