package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// Flow says which actors have sent what to which.
type Flow struct {
	Version    int       `json:"version"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	DurationNS int64     `json:"duration_ns"`
	Sampled    uint64    `json:"sampled"` // turns that were sampled
	OneIn      uint64    `json:"one_in"`  // one of so many turns was sampled, at the end
	Edges      []Edge    `json:"edges"`   // the most frequent first
	Left       uint64    `json:"left"`    // messages of edges that did not fit
}

// Edge is the messages of one kind from one actor to another. The numbers are estimates if
// messages were sampled.
type Edge struct {
	From  string `json:"from"` // path; "" is nobody, /temp is a sender outside
	To    string `json:"to"`
	Kind  string `json:"kind"`
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// Bounds of samples.
const (
	MaxSampleTime = time.Minute
	maxEdges      = 4096
	flowSamples   = 4096 // at a rate, before it is halved
)

// edgeKey is an edge with refs; all those outside are one.
type edgeKey struct {
	from, to string
	kind     string
}

// Flow samples for a while, at most MaxSampleTime, which actors send what to which: all messages if
// there are few. Only one caller may sample at a time: ErrBusy. If ctx ends first it returns what it has seen
// until then.
func (o *Observer) Flow(ctx context.Context, d time.Duration) (Flow, error) {
	if d <= 0 || d > MaxSampleTime {
		return Flow{}, invalid("a flow is sampled for at most %v, not %v", MaxSampleTime, d)
	}
	end, err := o.sampleFlow()
	if err != nil {
		return Flow{}, err
	}
	wait(ctx, d)
	return end(), nil
}

// sampleFlow samples until end is called.
func (o *Observer) sampleFlow() (end func() Flow, err error) {
	f := Flow{Version: Version, OneIn: 1, Edges: []Edge{}}
	var mu sync.Mutex
	edges, over := map[edgeKey]*Edge{}, false
	began := time.Now()
	stop, err := o.sys.View().SampleFlow(flowSamples, func(m *host.Flowed) {
		mu.Lock()
		defer mu.Unlock()
		if over { // a worker may still call this
			return
		}
		if m.First {
			f.Sampled++
		}
		f.OneIn = max(f.OneIn, m.OneIn)
		k := edgeKey{m.From.Path(), m.To.Path(), m.Kind.String()}
		e := edges[k]
		if e == nil {
			if len(edges) >= maxEdges {
				f.Left += m.OneIn
				return
			}
			e = &Edge{From: k.from, To: k.to, Kind: k.kind}
			edges[k] = e
		}
		e.Count += m.OneIn
		e.Bytes += m.OneIn * uint64(m.Size)
	})
	if err != nil {
		return nil, ErrBusy
	}
	f.From = o.sys.Clock().Now().UTC()
	return func() Flow {
		stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
		f.To = o.sys.Clock().Now().UTC()
		f.DurationNS = int64(time.Since(began))
		for _, e := range edges {
			f.Edges = append(f.Edges, *e)
		}
		slices.SortFunc(f.Edges, func(a, b Edge) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
		})
		return f
	}, nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
