package look

import (
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/internal/histogram"
)

// mostTimedTypes bounds the types that have durations of their own.
const mostTimedTypes = 1024

// OtherTypes has the durations of turns of further types in [Totals].
const OtherTypes = "(other)"

// TurnTimes are durations of turns of one type, a sample of them: the time from the turn's beginning
// until what it asks for has taken effect.
type TurnTimes = histogram.Counts

// TurnTimesOf are those of a system.
type TurnTimesOf struct {
	of sync.Map // type -> *histogram.Histogram
	n  atomic.Int64
}

// Of is the histogram of a type.
func (t *TurnTimesOf) Of(typ string) *histogram.Histogram {
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

func (t *TurnTimesOf) All() map[string]TurnTimes {
	out := map[string]TurnTimes{}
	t.of.Range(func(typ, h any) bool {
		out[typ.(string)] = h.(*histogram.Histogram).Counts()
		return true
	})
	return out
}
