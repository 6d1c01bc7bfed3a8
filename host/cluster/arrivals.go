package cluster

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// What is for the engine waits until the node's lock is free, and is handed over in order, by one goroutine at a time.

// Bounds of what may wait before packets are waited with; one packet may bring more. Arrivals keep the memory of the packets
// and frames that they have come in, whatever their own sizes.
const (
	mostArrivals = 4096
	mostArrived  = 16 << 20 // bytes of packets and frames that arrivals share
)

// keptArrivals is for how many memory is kept.
const keptArrivals = 1024

// arrivedMessage and arrivedSignal have the engine get one after those before.
func (n *Node) arrivedMessage(to abi.Ref, m *network.Message) {
	n.arrivals = append(n.arrivals, network.Arrival{To: to, Message: *m})
}

func (n *Node) arrivedSignal(to abi.Ref, g *signal.Signal) {
	n.arrivals = append(n.arrivals, network.Arrival{To: to, Signal: g})
}

// pinned counts bytes of a packet or a frame, if there are more arrivals than there were before it.
func (n *Node) pinned(bytes, before int) {
	if len(n.arrivals) > before {
		n.arrived += bytes
	}
}

// patient waits until another goroutine has handed over most of what has arrived.
func (n *Node) patient() {
	for n.running && (len(n.arrivals) > mostArrivals || n.arrived > mostArrived) {
		n.handed.Wait()
	}
}

// unlock gives the lock back, after what was noted is told to the engine and to the outside.
func (n *Node) unlock() {
	if n.running || len(n.arrivals) == 0 && len(n.later) == 0 {
		n.mu.Unlock()
		return
	}
	n.running = true
	for len(n.arrivals) > 0 || len(n.later) > 0 {
		port, arrived, calls := n.port, n.arrivals, n.later
		n.arrivals, n.later, n.arrived = n.spare, nil, 0
		n.spare = nil
		n.handed.Broadcast()
		n.mu.Unlock()
		for _, f := range calls {
			f()
		}
		if port != nil {
			port.Take(arrived, &n.envelopes) // all were checked, and are for this node
		}
		clear(arrived)
		n.mu.Lock()
		if cap(arrived) <= keptArrivals {
			n.spare = arrived[:0]
		}
	}
	n.running = false
	n.mu.Unlock()
}
