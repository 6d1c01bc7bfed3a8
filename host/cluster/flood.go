package cluster

import "time"

// Another node can have packets refused, leave gaps, and begin anew as fast as it likes. Of each of these there is one event at once,
// and then one in floodEvery, whose Count says of how many it is: that of the last one has its node and its text.

const floodEvery = 100 * time.Millisecond

// flood are events that are held back; with the node's lock.
type flood struct{ refused, gaps, broken backlog }

// backlog is the next event of a kind.
type backlog struct {
	next  Event
	any   bool // there is one
	quiet bool // one was told a short while ago
}

func (n *Node) refuse(of uint16, why string) {
	n.flooded(&n.flood.refused, Event{Kind: EventRefused, Node: of, Count: 1, Text: why})
}

func (n *Node) gap(of uint16, units uint64) {
	n.flooded(&n.flood.gaps, Event{Kind: EventGap, Node: of, Count: units, Text: "packets were lost; they are asked for again"})
}

func (n *Node) broken(of uint16, units uint64, why string) {
	n.flooded(&n.flood.broken, Event{Kind: EventBroken, Node: of, Count: units, Text: why})
}

// flooded tells of an event, or adds it to the next one.
func (n *Node) flooded(h *backlog, e Event) {
	if e.Count += h.next.Count; e.Count < h.next.Count {
		e.Count = h.next.Count // it has more digits than anybody counts
	}
	if h.next, h.any = e, true; !h.quiet {
		n.tellNext(h)
	}
}

func (n *Node) tellNext(h *backlog) {
	n.event(h.next)
	h.next, h.any, h.quiet = Event{}, false, true
	n.after(floodEvery, nil, func() {
		if h.quiet = false; h.any {
			n.tellNext(h)
		}
	})
}
