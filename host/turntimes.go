package host

import (
	"time"

	"github.com/wasmactors/wasmactors/host/internal/look"
)

// How long turns take is sampled: one turn of an actor in timedEvery is timed, the first one at a number that
// depends on its ref, so that actors with few turns are sampled as often. Nothing is counted for it but turns.
const timedEvery = 127

// timedTurn handles a message, if there is one, times it, and returns how many were handled.
func (a *actor) timedTurn(scr *scratch) int {
	if a.box.Nothing() || !a.open() {
		return 0
	}
	a.timedNext = a.turns + timedEvery
	t := &a.sys.turnTimes
	begun := a.sys.time.Now()
	n := a.handleMessages(scr, 1)
	if n > 0 {
		t.Of(a.props.typ).Observe(time.Duration(a.sys.time.Now() - begun))
	}
	return n
}

// OtherTypes has the durations of turns of further types in [Totals].
const OtherTypes = look.OtherTypes
