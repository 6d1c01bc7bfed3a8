package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Runs over several nodes of a cluster: each has a system, and all are under one plan.

// seat is a system of a run.
type seat struct {
	node   string // empty: it is the only one
	sys    *host.System
	events *host.Subscription
	runs   func() bool // nil: always
}

// BeginOn takes the system of a node, before any actor of it has been started. runs says whether it runs now, and does not stand still; nil:
// always.
func (r *Run) BeginOn(node string, sys *host.System, runs func() bool) {
	if node == "" {
		r.Begin(sys)
		return
	}
	r.seats = append(r.seats, &seat{node, sys, sys.Subscribe(mostEvents, nil), runs})
}

// Left takes a system out that has ended with its node: nothing of it counts any more.
func (r *Run) Left(sys *host.System) {
	i := slices.IndexFunc(r.seats, func(s *seat) bool { return s.sys == sys })
	if i < 0 {
		return
	}
	r.seats = slices.Delete(r.seats, i, i+1)
	user, err := sys.Lookup("/user")
	if err != nil {
		return
	}
	number := user.UID().Node()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.living, func(_ string, l living) bool { return l.ref.Node() == number })
	for _, uid := range slices.Sorted(maps.Keys(r.doors)) {
		d := r.doors[uid]
		if uid.Node() != number {
			continue
		}
		d.closed = true
		for _, es := range d.late {
			for _, e := range es {
				r.held -= e.Size()
			}
		}
		for _, e := range d.loose {
			r.held -= e.Size()
		}
		clear(d.late)
		d.loose = nil
		delete(r.doors, uid)
	}
}

// seatOf is the seat of an actor; nil: its system has ended.
func (r *Run) seatOf(uid abi.Ref) *seat {
	for _, s := range r.seats {
		if s.node == "" {
			return s
		}
		if user, err := s.sys.Lookup("/user"); err == nil && user.UID().Node() == uid.Node() {
			return s
		}
	}
	return nil
}

// wake has an actor look at its mailbox.
func (r *Run) wake(ref host.Ref) {
	if s := r.seatOf(ref.UID()); s != nil {
		s.sys.Wake(ref)
	}
}

// step runs one actor of the systems that run, beginning with one that the plan chooses.
func (r *Run) step() bool {
	if len(r.seats) == 1 && r.seats[0].runs == nil {
		return r.seats[0].sys.Step()
	}
	var up []*seat
	for _, s := range r.seats {
		if s.runs == nil || s.runs() {
			up = append(up, s)
		}
	}
	if len(up) == 0 {
		return false
	}
	r.mu.Lock()
	first := int(r.rnd.Uint64() % uint64(len(up)))
	r.mu.Unlock()
	for i := range up {
		if up[(first+i)%len(up)].sys.Step() {
			return true
		}
	}
	return false
}

// livingKey is the place of an actor: a path, on a node.
func livingKey(path string, uid abi.Ref) string {
	if uid.Node() == 0 {
		return path
	}
	return fmt.Sprintf("%s@%d", path, uid.Node())
}

// pathOf is how faults and reports call an actor: with its node, if there are several.
func (r *Run) pathOf(s *seat, path string) string {
	if s == nil || s.node == "" {
		return path
	}
	return s.node + ": " + path
}

// betweenSystems reports whether a message is one of a service to another of its kind, on another node: they are no requests.
func (r *Run) betweenSystems(from, to string) bool {
	return len(r.seats) > 0 && r.seats[0].node != "" && strings.HasPrefix(from, "/system/") && strings.HasPrefix(to, "/system/")
}

// NodeFault is what happens to a node.
type NodeFault struct {
	Class Class
	For   time.Duration // until it begins again, goes on, or is not parted any more
	Arg   uint64        // chooses with whom it is parted
}

// Cluster draws what happens to all nodes together, at a moment that whoever drives the run chooses: they die at once (Death), or what they
// keep together is late, or fails (DiskFails). lease is that of the nodes.
func (r *Run) Cluster(lease time.Duration) (f NodeFault, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range []Class{Death, DiskFails} {
		if arg, yes := r.meets(c, ""); yes {
			return NodeFault{Class: c, Arg: arg >> 32, For: time.Duration(1 + arg%uint64(2*lease))}, true
		}
	}
	return f, false
}

// Node draws what happens to a node, at a moment that whoever drives the run chooses; lease is that of the nodes. A pause, and a
// partition, are shorter than it or longer.
func (r *Run) Node(name string, lease time.Duration) (f NodeFault, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range []Class{NodeKill, NodePause, NodePart} {
		arg, yes := r.meets(c, name)
		if !yes {
			continue
		}
		f = NodeFault{Class: c, Arg: arg >> 32}
		switch short := arg%2 == 0; {
		case c == NodeKill:
			f.For = time.Duration(1 + arg%uint64(2*lease))
		case short:
			f.For = time.Duration(1 + arg%uint64(lease/2))
		default:
			f.For = lease + time.Duration(arg%uint64(2*lease))
		}
		return f, true
	}
	return f, false
}
