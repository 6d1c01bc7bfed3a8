package bundle

import (
	"context"
	"errors"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/journal"
)

// Logs is where the nodes of a cluster keep the events of the bundle's keys; see [Bundle.Keep].
type Logs struct {
	// Open opens the log, and waits for those that keep it until ctx ends.
	Open func(ctx context.Context) (cluster.Log, error)
	// Clock runs what is tried again.
	Clock host.Clock
	// Refused is told of what was found in the log and is not what a node writes; nil: nobody is told. It must not block.
	Refused func(text string)
	// Manual is for simulations, see journal.Options.
	Manual bool
}

// Keep says where the events of actors are kept that are durable: events and spread over the cluster, and which keys live. It counts for systems that are
// started from now on, and only after Join. A bundle that has joined none keeps them in memory.
func (b *Bundle) Keep(l Logs) { b.logs = l }

// Kept is the journal of the keys whose events the nodes of the cluster keep, or that they remember, of the system that was started last; nil if there is none. It
// must not be called while the bundle is started or closed.
func (b *Bundle) Kept() *journal.Journal { return b.spreadLog }

// spreadEvents reports whether the events of some actors are kept by the nodes of the cluster, and spreadKeys whether they remember keys.
func (b *Bundle) spreadEvents() (some bool) {
	for i := range b.Manifest.Actors {
		a := &b.Manifest.Actors[i]
		some = some || a.Events && a.spread()
	}
	return some
}

func (b *Bundle) spreadKeys() (some bool) {
	for i := range b.Manifest.Actors {
		a := &b.Manifest.Actors[i]
		some = some || a.spread() && a.Keyed.Living
	}
	return some
}

// keepSpread opens the log, and has the next system keep events there.
func (b *Bundle) keepSpread(cfg host.Config) (host.Config, error) {
	if b.logs.Open == nil || b.logs.Clock == nil {
		return cfg, errors.New("the bundle has actors whose events the cluster keeps, or whose keys it remembers, and does not know where: call Bundle.Keep before Start")
	}
	log, err := b.logs.Open(context.Background())
	if err != nil {
		return cfg, err
	}
	if k := b.Manifest.Cluster; k != nil {
		log = cluster.Bounded(log, k.Journal)
	}
	self := b.node.Self()
	j, err := journal.New(journal.Options{Log: log, Node: self.Number, Born: self.Born, Sure: b.node.Sure, Clock: b.logs.Clock, Refused: b.logs.Refused, Manual: b.logs.Manual})
	if err != nil {
		return cfg, err
	}
	for i := range b.Manifest.Actors {
		a := &b.Manifest.Actors[i]
		if a.Events && a.spread() {
			j.Kind(a.Name, a.Keyed.Shards)
		}
		if a.spread() && a.Keyed.Living {
			j.Remembers(a.Name, a.Keyed.Shards)
		}
	}
	if b.spreadLog = j; !b.spreadEvents() {
		return cfg, nil // no turn waits for it
	}
	b.journal = j.Events()
	return cfg.WithStore(j), nil
}
