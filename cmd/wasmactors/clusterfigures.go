package main

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/metrics"
)

// figuresTime bounds what the regions of all kinds take to answer a collection of metrics.
const figuresTime = 500 * time.Millisecond

// figures are those of the run as a node of its cluster; nil: it is no member at the moment.
func (l *live) figures() *metrics.Cluster {
	x := l.membership
	x.mu.Lock()
	n := x.node
	x.mu.Unlock()
	if n == nil {
		return nil
	}
	s, counts := n.Status(), n.Counts()
	m := &metrics.Cluster{
		Acting: s.Acting, Left: s.Left.Seconds(), Up: x.place.Silent() == nil, Members: len(n.Members()), Renewed: counts.Renewed, Unrenewed: counts.Unrenewed, Lost: counts.Lost,
		Changes: x.place.Changes(), Events: map[string]uint64{},
	}
	r := l.bundle.Remote()
	m.Children, m.Started, m.Refused = int(r.Here.Load()), r.Started.Load(), r.Refused.Load()
	for kind := cluster.EventJoined; kind <= cluster.EventPassed; kind++ {
		m.Events[kind.String()] = counts.Events[kind]
	}
	for _, k := range n.Links() {
		m.Links = append(m.Links, metrics.ClusterLink{
			Node: k.Node.Name, Sent: k.Sent, Received: k.Received, SentBytes: k.SentBytes, ReceivedBytes: k.ReceivedBytes, Again: k.Again, Refused: k.Refused, Queue: k.Queue,
		})
	}
	at := l.seen.Load()
	if at == nil {
		return m
	}
	if at.kept != nil {
		f := at.kept.Figures()
		m.Journal = &metrics.ClusterJournal{
			Stored: f.Stored, Fenced: f.Refused, Whole: f.Whole, Crowded: f.Crowded, Bytes: f.Bytes, Loaded: f.Loaded, Held: f.Held,
			Keys: f.Keys, Kept: f.Kept, Waiting: f.Waiting, Confirm: f.Confirm, Used: f.Used, Limit: f.Most,
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), figuresTime)
	defer cancel()
	for _, kind := range at.spread {
		ref, err := at.sys.Lookup("/user/" + kind)
		if err != nil {
			continue
		}
		if x, err := shard.Look(ctx, at.sys, ref); err == nil {
			m.Kinds = append(m.Kinds, metrics.ClusterKind{
				Kind: kind, Owned: x.Owned, Moving: x.Moving, Waiting: x.Waiting, Keys: x.Keys, In: x.In, Out: x.Out, GivenUp: x.GivenUp, Stolen: x.Stolen,
			})
		}
	}
	return m
}
