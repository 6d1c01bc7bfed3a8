package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/histogram"
)

// Latency is how long something took, as a histogram. Counters only grow: the difference of two
// looks is what happened between them.
type Latency struct {
	Kind    string   `json:"kind"` // turn, request, service
	Name    string   `json:"name"` // the type, the route, or the service and its operation
	Buckets []uint64 `json:"buckets"`
	SumNS   int64    `json:"sum_ns"`
}

// Latencies are all that are known. Durations of turns are a sample of them.
type Latencies struct {
	Version  int       `json:"version"`
	Now      time.Time `json:"now"`
	BoundsNS []int64   `json:"bounds_ns"` // upper bounds of the buckets; the last bucket has none
	Series   []Latency `json:"series"`    // by kind and name, at most MaxLimit
}

// LatencyOf is the series of some counts.
func LatencyOf(kind, name string, c histogram.Counts) Latency {
	return Latency{kind, name, c.Buckets, int64(c.Sum)}
}

// WithLatencies adds series of what is around the system, such as requests of a gateway.
func (o Options) WithLatencies(f func() []Latency) Options { o.latencies = f; return o }

// TurnTimes are durations of turns by type; see host.Totals.
func (o *Observer) TurnTimes() map[string]host.TurnTimes { return o.sys.View().Totals().TurnTimes }

// Latencies reads all series.
func (o *Observer) Latencies() Latencies {
	l := Latencies{Version: Version, Now: o.sys.Clock().Now().UTC(), Series: []Latency{}}
	for _, b := range histogram.Bounds() {
		l.BoundsNS = append(l.BoundsNS, int64(b))
	}
	for typ, c := range o.TurnTimes() {
		l.Series = append(l.Series, LatencyOf("turn", line(typ), c))
	}
	if o.o.latencies != nil {
		l.Series = append(l.Series, o.o.latencies()...)
	}
	slices.SortFunc(l.Series, func(a, b Latency) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	l.Series = l.Series[:min(len(l.Series), MaxLimit)]
	return l
}
