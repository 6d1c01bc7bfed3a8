package cluster

import (
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Another node can have packets refused, leave gaps, and begin anew as fast as it likes. Of each of these there is one event at once,
// and then one in floodEvery, each of another node if several have caused some: Count says of how many it is, and the text is that of
// the last one.

const floodEvery = 100 * time.Millisecond

// flood are events that are held back; with the node's lock.
type flood struct{ refused, gaps, broken backlog }

// backlog are the next events of a kind, at most one of each node, in the order in which they will be told.
type backlog struct {
	next  []Event
	quiet bool // one was told a short while ago
}

func (n *Node) refuse(of uint16, why string) {
	n.flooded(&n.flood.refused, Event{Kind: EventRefused, Node: of, Count: 1, Text: why})
}

// Refuse tells, as EventRefused, what of a node a package above has not taken.
func (n *Node) Refuse(of uint16, why string) {
	n.mu.Lock()
	defer n.unlock()
	n.refuse(of, why)
}

func (n *Node) gap(of uint16, units uint64) {
	n.flooded(&n.flood.gaps, Event{Kind: EventGap, Node: of, Count: units, Text: "packets were lost; they are asked for again"})
}

func (n *Node) broken(of uint16, units uint64, why string) {
	n.flooded(&n.flood.broken, Event{Kind: EventBroken, Node: of, Count: units, Text: why})
}

// flooded tells of an event, or adds it to the next one of its node.
func (n *Node) flooded(h *backlog, e Event) {
	if e.Node > abi.MaxNode {
		e.Node = 0
	}
	if i := slices.IndexFunc(h.next, func(o Event) bool { return o.Node == e.Node }); i < 0 {
		h.next = append(h.next, e)
	} else {
		if e.Count += h.next[i].Count; e.Count < h.next[i].Count {
			e.Count = h.next[i].Count // it has more digits than anybody counts
		}
		h.next[i] = e
	}
	if !h.quiet {
		n.tellNext(h)
	}
}

func (n *Node) tellNext(h *backlog) {
	n.event(h.next[0])
	h.next, h.quiet = slices.Delete(h.next, 0, 1), true
	n.after(floodEvery, nil, func() {
		if h.quiet = false; len(h.next) > 0 {
			n.tellNext(h)
		}
	})
}

// tellHeld tells what is held back, before the node ends.
func (n *Node) tellHeld() {
	for _, h := range []*backlog{&n.flood.refused, &n.flood.gaps, &n.flood.broken} {
		for _, e := range h.next {
			n.event(e)
		}
		h.next = nil
	}
}
