package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/cluster/simnet"
	"github.com/wasmactors/wasmactors/host/simulate"
)

// Faults of nodes in simulations, and what holds for all nodes together.

// faultEvery is how much virtual time passes between two moments at which something may happen to nodes, besides those of messages.
const faultEvery = 500 * time.Millisecond

// tickNodes is told that time has passed.
func (w *world) tickNodes() error {
	n := w.cluster
	if n == nil || w.simulated == nil || w.clock.Now().Before(n.drawn.Add(faultEvery)) {
		return nil
	}
	n.drawn = w.clock.Now()
	return w.nodeFaults()
}

// nodeFaults has happen to nodes what the plan says.
func (w *world) nodeFaults() error {
	if w.cluster == nil || w.history.hidden || w.simulated.over { // or the nodes join still
		return nil
	}
	if f, yes := w.simulated.run.Cluster(Lease); yes {
		switch f.Class {
		case simulate.Death:
			w.killAll(f)
		case simulate.DiskFails:
			w.troubleKept(f)
		}
	}
	for _, m := range w.cluster.all {
		if m.life == nil || m.life.place.sys == nil || !m.life.machine.Runs() {
			continue // it has enough to do
		}
		f, yes := w.simulated.run.Node(m.name, Lease)
		if !yes {
			continue
		}
		switch f.Class {
		case simulate.NodeKill:
			w.noteOf(m.name, "killed, and started after %v", f.For)
			w.killNode(m)
			w.clock.AfterFunc(f.For, func() { m.due = true })
		case simulate.NodePause:
			w.noteOf(m.name, "stands still for %v", f.For)
			w.pauseNode(m, f.For)
		case simulate.NodePart:
			w.partNode(m, f)
		}
	}
	return nil
}

// killAll kills all nodes at once, which begin again one after the other.
func (w *world) killAll(f simulate.NodeFault) {
	w.noteOf("", "killed, and started after %v", f.For)
	for i, m := range w.cluster.all {
		w.killNode(m)
		w.clock.AfterFunc(f.For+time.Duration(i)*time.Duration(f.Arg%uint64(Lease/4)), func() { m.due = true })
	}
}

// troubleKept has what nodes keep together - the directory, journals, what services share - be late for a while, answer twice, or not,
// whether it has done what it was asked to or not. Nodes may lose their leases.
func (w *world) troubleKept(f simulate.NodeFault) {
	n := w.cluster
	often := func(i uint) int { return int(f.Arg >> (8 * i) % 10 * 100) } // in thousandths
	n.net.Faults = simnet.Faults{Late: often(0), Twice: often(1), Fail: often(2), Behind: often(3), Most: Lease / 2}
	n.numbers++
	number := n.numbers
	n.trouble = number
	w.noteOf("", "what is kept together is in trouble for %v", f.For)
	w.clock.AfterFunc(f.For, func() {
		if n.trouble == number {
			n.net.Faults = simnet.Faults{}
		}
	})
}

// partNode parts a node from some others, or from all and the directory.
func (w *world) partNode(m *member, f simulate.NodeFault) {
	n := w.cluster
	var others []string
	for i, o := range n.all {
		if o != m && (f.Arg>>2)>>i&1 == 1 {
			others = append(others, o.name)
		}
	}
	alone := len(others) == 0
	if alone {
		for _, o := range n.all {
			if o != m {
				others = append(others, o.name)
			}
		}
	}
	if len(others) == 0 {
		return
	}
	text := m.name + " | " + strings.Join(others, ", ")
	switch {
	case alone:
		text += ", " + directory
	case f.Arg&3 == 1:
		text = m.name + " -> " + strings.Join(others, ", ")
	case f.Arg&3 == 2:
		text = strings.Join(others, ", ") + " -> " + m.name
	}
	p, err := parsePart(text)
	if err != nil {
		return // names are such that this cannot be
	}
	n.numbers++
	p.number = n.numbers
	w.noteOf("", "part %s for %v", p.Text, f.For)
	n.parts = append(n.parts, p)
	n.cut()
	w.clock.AfterFunc(f.For, func() {
		n.parts = slices.DeleteFunc(n.parts, func(x partition) bool { return x.number == p.number })
		n.cut()
	})
}

// calmNodes ends what happens to nodes: all begin, go on, and reach each other.
func (w *world) calmNodes() {
	if w.cluster == nil {
		return
	}
	w.healNodes()
	w.cluster.net.Faults = simnet.Faults{}
	w.plainNodes()
	for _, m := range w.cluster.all {
		w.resumeNode(m)
		w.startNode(m)
	}
}

// whole reports whether all nodes have a system, and act. It may be called on nil.
func (n *nodes) whole() bool {
	return n == nil || !slices.ContainsFunc(n.all, func(m *member) bool {
		return m.life == nil || m.life.place.sys == nil || !m.life.machine.Runs() || !m.life.node.Acting()
	})
}

// spread reports whether a path is that of the region of an actor that is spread over the nodes: what its regions say to each other is not
// lost while their nodes live.
func (w *world) spread(path string) bool {
	return w.cluster != nil && slices.ContainsFunc(w.base.Manifest.Actors, func(a bundle.Actor) bool {
		return path == "/user/"+a.Name && a.Keyed != nil && a.Keyed.Scope == bundle.ScopeCluster
	})
}

// seen is told of each event, and checks that no two nodes that may act have the actor of a key. It may be called on nil.
func (n *nodes) seen(w *world, p *place, e *host.Event) {
	if n == nil || w.simulated == nil || e.Kind != host.EventStarted {
		return
	}
	path := e.Ref.Path()
	above, _ := keeperOf(path)
	if above == "" || !w.spread(above) || w.kept(above) || !p.life.node.Acting() {
		return
	}
	for _, o := range n.running() {
		if o != p && o.life.node.Acting() {
			if _, err := o.sys.Lookup(path); err == nil {
				w.simulated.run.Violate("one actor a key", "%s acts on %s and on %s", path, o.name, p.name)
			}
		}
	}
}

// kept reports whether the actors of a kind keep their events: they may be taken over before the lease is over, and the journal decides whose
// turns count.
func (w *world) kept(path string) bool {
	return slices.ContainsFunc(w.base.Manifest.Actors, func(a bundle.Actor) bool { return path == "/user/"+a.Name && a.Events })
}
