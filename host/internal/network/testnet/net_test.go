// Package testnet joins systems in one process under one virtual clock, for tests: what one sends to another arrives after
// a delay, in order, as frames.
package testnet

import (
	"fmt"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// Net is the network. Its systems are manual ones on its clock; all methods but those of the systems are for one
// goroutine.
type Net struct {
	Clock *host.VirtualClock
	Delay time.Duration // of each frame

	nodes []*node

	mu     sync.Mutex
	flying []flying // by their arrival: all take the same time
	lost   map[[2]uint16]bool
	count  int
}

type node struct {
	system *host.System
	port   network.Port
}

type flying struct {
	at       time.Time
	from, to uint16
	ref      abi.Ref
	frame    []byte
}

// New is a network without systems.
func New(start time.Time, delay time.Duration) *Net {
	return &Net{Clock: host.NewVirtualClock(start), Delay: delay, lost: map[[2]uint16]bool{}}
}

// Start makes a system on the next node, from 1.
func (n *Net) Start(c host.Config) (*host.System, error) {
	number := uint16(len(n.nodes) + 1)
	s, err := host.New(c.WithClock(n.Clock).WithManual().WithNode(number))
	if err != nil {
		return nil, err
	}
	p, err := network.Join(s, &wire{n, number})
	if err != nil {
		return nil, err
	}
	n.nodes = append(n.nodes, &node{s, p})
	return s, nil
}

// Cut loses what one node sends to another from now on, or with false no longer.
func (n *Net) Cut(from, to uint16, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost[[2]uint16{from, to}] = cut
}

// Frames is how many frames have been sent.
func (n *Net) Frames() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count
}

// wire is the network as a node's carrier.
type wire struct {
	net  *Net
	from uint16
}

// Carry implements network.Carrier.
func (w *wire) Carry(to abi.Ref, m *network.Message, s *signal.Signal) error {
	n := w.net
	var frame []byte
	if m != nil {
		frame = network.AppendMessage(nil, m)
	} else {
		frame = network.AppendSignal(nil, s)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if int(to.Node()) > len(n.nodes) {
		return fmt.Errorf("testnet: no node %d", to.Node())
	}
	n.count++
	if !n.lost[[2]uint16{w.from, to.Node()}] {
		n.flying = append(n.flying, flying{n.Clock.Now().Add(n.Delay), w.from, to.Node(), to, frame})
	}
	return nil
}

// arrived is the next frame that has arrived by now.
func (n *Net) arrived() (f flying, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.flying) == 0 || n.flying[0].at.After(n.Clock.Now()) {
		return flying{}, false
	}
	f, n.flying = n.flying[0], n.flying[1:]
	return f, true
}

// rest runs what can run now, and hands over what has arrived by now.
func (n *Net) rest() error {
	for {
		for _, x := range n.nodes {
			x.system.RunUntilIdle(1_000_000)
		}
		f, ok := n.arrived()
		if !ok {
			return nil
		}
		if err := n.nodes[f.to-1].port.Arrive(f.ref, f.frame); err != nil {
			return err
		}
	}
}

// Run lets d pass, in steps of the delay.
func (n *Net) Run(d time.Duration) error {
	for end := n.Clock.Now().Add(d); ; {
		if err := n.rest(); err != nil {
			return err
		}
		left := end.Sub(n.Clock.Now())
		if left <= 0 {
			return nil
		}
		n.Clock.Advance(min(left, n.Delay))
	}
}
