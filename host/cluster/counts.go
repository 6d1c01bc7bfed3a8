package cluster

import "github.com/wasmactors/wasmactors/abi"

// Counts are what has happened to a node since it has joined.
type Counts struct {
	Renewed   uint64 // renewals of the lease that were confirmed
	Unrenewed uint64 // and those that were not
	Lost      uint64 // frames that waited for nodes that were lost, or whose pair has begun anew
	Events    map[EventKind]uint64
}

// Link is what has passed between a node and another one since they have met.
type Link struct {
	Node                     Member
	Sent, Received           uint64 // messages and signals
	SentBytes, ReceivedBytes uint64 // of them
	Again                    uint64 // units that were sent again
	Refused                  uint64 // messages for which there was no room
	Queue                    int    // bytes that wait, or are under way and not confirmed
}

// Counts are what has happened so far.
func (n *Node) Counts() Counts {
	n.mu.Lock()
	defer n.unlock()
	c := n.counts
	c.Events = make(map[EventKind]uint64, len(n.counted))
	for kind, k := range n.counted {
		if k > 0 {
			c.Events[EventKind(kind)] = k
		}
	}
	return c
}

// Links are the pairs of this node with others, by their numbers.
func (n *Node) Links() (all []Link) {
	n.mu.Lock()
	defer n.unlock()
	for i := range uint16(abi.MaxNode) {
		if p := n.pairs[i+1]; p != nil {
			l := p.link
			l.Node, l.Queue = p.peer, p.bytes
			all = append(all, l)
		}
	}
	return all
}
