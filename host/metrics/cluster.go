package metrics

import (
	"cmp"
	"slices"

	"github.com/wasmactors/wasmactors/internal/histogram"
)

// Cluster is how a node of a cluster does, as its program knows it. Counters begin anew when a node is lost and joins again.
type Cluster struct {
	Acting    bool
	Left      float64 // seconds of the lease; 0 or less: it is over
	Up        bool    // the directory has answered the last change
	Members   int
	Renewed   uint64
	Unrenewed uint64 // renewals that were not confirmed
	Lost      uint64 // messages and signals
	Changes   histogram.Counts
	Events    map[string]uint64 // by what they are called; few
	Links     []ClusterLink
	Kinds     []ClusterKind

	Children         int             // of actors of other nodes, that are here
	Started, Refused uint64          // requests of other nodes for such children
	Journal          *ClusterJournal // of keys that keep events; nil: there is none
}

// ClusterJournal is how the journal of the bundle's keys does on this node.
type ClusterJournal struct {
	Stored, Fenced, Whole, Crowded, Bytes, Loaded, Held uint64
	Keys                                                int
	Kept, Waiting                                       int64 // bytes
	Confirm                                             histogram.Counts
	Used, Limit                                         uint64 // bytes; Limit 0: they are not known
}

// ClusterLink is what has passed between the node and another one.
type ClusterLink struct {
	Node                                     string
	Sent, Received, SentBytes, ReceivedBytes uint64
	Again, Refused                           uint64
	Queue                                    int // bytes
}

// ClusterKind is a kind whose keys are spread over the nodes.
type ClusterKind struct {
	Kind                         string
	Owned, Moving, Waiting, Keys int
	In, Out, GivenUp, Stolen     uint64
}

// Bounds of the series of a cluster.
const (
	MaxLinks  = 200 // nodes; further ones are counted together, as OtherType
	maxKinds  = 200
	maxEvents = 32
)

// WithCluster shows how the program does as a node of a cluster. f is called by any goroutine at each collection; it returns nil if the
// program is in none at the moment.
func (o Options) WithCluster(f func() *Cluster) Options { o.cluster = f; return o }

// cluster adds the figures of a node.
func (c *collector) cluster(x *Cluster) {
	c.add(clusterActing, truth(x.Acting))
	c.add(clusterLease, max(x.Left, 0))
	c.add(clusterMembers, float64(x.Members))
	c.add(clusterRenewals, float64(x.Renewed), "confirmed")
	c.add(clusterRenewals, float64(x.Unrenewed), "failed")
	c.add(clusterUp, truth(x.Up))
	if x.Changes.N() > 0 {
		c.histogram(clusterSeconds, x.Changes)
	}
	names := make([]string, 0, len(x.Events))
	for name := range x.Events {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxEvents)] {
		c.add(clusterEvents, float64(x.Events[name]), name)
	}
	c.add(clusterLost, float64(x.Lost))
	c.add(remoteChildren, float64(x.Children))
	c.add(remoteRequests, float64(x.Started), "started")
	c.add(remoteRequests, float64(x.Refused), "refused")
	for _, l := range bounded(x.Links) {
		c.add(linkMessages, float64(l.Sent), l.Node, "sent")
		c.add(linkMessages, float64(l.Received), l.Node, "received")
		c.add(linkBytes, float64(l.SentBytes), l.Node, "sent")
		c.add(linkBytes, float64(l.ReceivedBytes), l.Node, "received")
		c.add(linkAgain, float64(l.Again), l.Node)
		c.add(linkRefused, float64(l.Refused), l.Node)
		c.add(linkQueue, float64(l.Queue), l.Node)
	}
	for _, k := range x.Kinds[:min(len(x.Kinds), maxKinds)] {
		c.add(shardsOwned, float64(k.Owned), k.Kind)
		c.add(shardsMoving, float64(k.Moving), k.Kind)
		c.add(shardsWaiting, float64(k.Waiting), k.Kind)
		c.add(shardsKeys, float64(k.Keys), k.Kind)
		c.add(shardsMoves, float64(k.In), k.Kind, "in")
		c.add(shardsMoves, float64(k.Out), k.Kind, "out")
		c.add(shardsMoves, float64(k.GivenUp), k.Kind, "given up")
		c.add(shardsStolen, float64(k.Stolen), k.Kind)
	}
	if x.Journal != nil {
		c.journal(x.Journal)
	}
}

// journal adds the figures of the journal.
func (c *collector) journal(x *ClusterJournal) {
	c.add(journalRecords, float64(x.Stored), "confirmed")
	c.add(journalRecords, float64(x.Fenced), "fenced")
	c.add(journalRecords, float64(x.Whole), "whole")
	c.add(journalRecords, float64(x.Crowded), "crowded")
	c.add(journalBytes, float64(x.Bytes))
	c.add(journalKeys, float64(x.Keys))
	c.add(journalKept, float64(x.Kept))
	c.add(journalWaiting, float64(x.Waiting))
	if x.Confirm.N() > 0 {
		c.histogram(journalSeconds, x.Confirm)
	}
	if x.Limit > 0 {
		c.add(journalUsed, float64(x.Used))
		c.add(journalLimit, float64(x.Limit))
	}
	c.add(journalLoaded, float64(x.Loaded))
	c.add(journalHeld, float64(x.Held))
}

// bounded are the links by name, those beyond MaxLinks together.
func bounded(all []ClusterLink) []ClusterLink {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b ClusterLink) int { return cmp.Compare(a.Node, b.Node) })
	if len(all) <= MaxLinks {
		return all
	}
	rest := ClusterLink{Node: OtherType}
	for _, l := range all[MaxLinks:] {
		rest.Sent, rest.Received, rest.SentBytes, rest.ReceivedBytes = rest.Sent+l.Sent, rest.Received+l.Received, rest.SentBytes+l.SentBytes, rest.ReceivedBytes+l.ReceivedBytes
		rest.Again, rest.Refused, rest.Queue = rest.Again+l.Again, rest.Refused+l.Refused, rest.Queue+l.Queue
	}
	return append(all[:MaxLinks], rest)
}
