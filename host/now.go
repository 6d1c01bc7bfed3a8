package host

import (
	"github.com/wasmactors/wasmactors/internal/clock"
)

// Short turns in a row share one reading of the clock, which costs as much as the turn of a small guest: sameTurns at most,
// and only as long as none of them was long and the worker has not waited. So a turn's time is some microseconds old at
// most, unless the operating system has paused the thread. For one actor time never goes back.
const (
	sameTurns = 8
	longTurn  = 2000 // units of fuel, about a microsecond
)

// turnTime is the time of a guest's last turn, ns since 1970.
type turnTime int64

// next is the time of its next turn, on the worker of scr.
func (at *turnTime) next(scr *scratch, time *clock.Nanos) int64 {
	if scr.same > 0 && scr.blocks == scr.w.Waits() {
		scr.same--
	} else {
		scr.now, scr.same, scr.blocks, scr.read = time.Now(), 0, scr.w.Waits(), 0
		if time.Real() {
			scr.same, scr.read = sameTurns-1, scr.now
		}
	}
	*at = max(*at, turnTime(scr.now))
	return int64(*at)
}
