package host

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/internal/histogram"
)

// How long turns take is sampled: one turn of an actor in timedEvery is timed, the first one at a number that
// depends on its ref, so that actors with few turns are sampled as often. Nothing is counted for it but turns.
const timedEvery = 127

// mostTimedTypes bounds the types that have durations of their own.
const mostTimedTypes = 1024

// OtherTypes has the durations of turns of further types in [Totals].
const OtherTypes = "(other)"

// TurnTimes are durations of turns of one type, a sample of them: the time from the turn's beginning
// until what it asks for has taken effect.
type TurnTimes = histogram.Counts

// turnTimes are those of a system.
type turnTimes struct {
	of sync.Map // type -> *histogram.Histogram
	n  atomic.Int64
}

// timedTurn handles a message, if there is one, times it, and returns how many were handled.
func (a *actor) timedTurn(scr *scratch) int {
	if a.box.nothing() || !a.open() {
		return 0
	}
	a.timedNext = a.turns + timedEvery
	t := &a.sys.turnTimes
	begun := a.sys.time.Now()
	n := a.handleMessages(scr, 1)
	if n > 0 {
		t.take(a.props.typ).Observe(time.Duration(a.sys.time.Now() - begun))
	}
	return n
}

// take is the histogram of a type.
func (t *turnTimes) take(typ string) *histogram.Histogram {
	if h, ok := t.of.Load(typ); ok {
		return h.(*histogram.Histogram)
	}
	if t.n.Load() >= mostTimedTypes {
		typ = OtherTypes
	}
	h, had := t.of.LoadOrStore(typ, &histogram.Histogram{})
	if !had {
		t.n.Add(1)
	}
	return h.(*histogram.Histogram)
}

func (t *turnTimes) counts() map[string]TurnTimes {
	out := map[string]TurnTimes{}
	t.of.Range(func(typ, h any) bool {
		out[typ.(string)] = h.(*histogram.Histogram).Counts()
		return true
	})
	return out
}
