package natscluster

import (
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// refusals tells of what anybody may send and was not taken, ten times a second at most: Count says of how many an event is.
type refusals struct {
	event func(cluster.Event)

	mu    sync.Mutex
	told  time.Time
	count uint64 // since then
}

func (r *refusals) tell(node uint16, why string) {
	now := time.Now()
	r.mu.Lock()
	r.count++
	n := r.count
	due := now.Sub(r.told) >= 100*time.Millisecond || now.Before(r.told)
	if due {
		r.told, r.count = now, 0
	}
	r.mu.Unlock()
	if due {
		r.event(cluster.Event{Kind: cluster.EventRefused, Node: node, Count: n, Text: why})
	}
}
