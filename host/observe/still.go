package observe

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Still is a system at one moment, such as a time of a recording. It answers what an [Observer] answers of a system that runs, and
// changes nothing. Its methods are for any goroutine.
type Still struct {
	s      *snapshot
	system System
	detail func(abi.Ref, *Detail)
}

// NewStill shows actors at a moment, among them the parents of all others but for those at the top. ended is what actors have come to
// that are not there any more, by type. about has what is not known from these: Name, PID, Started, for instance. detail sets what
// is known of an actor beyond its Info; it may be nil, and is called by any goroutine. The infos must not be changed any more.
func NewStill(at time.Time, infos []host.Info, ended map[string]host.TypeStats, about System, detail func(abi.Ref, *Detail)) *Still {
	x := &Still{&snapshot{now: at, infos: infos, oldest: make([]int64, len(infos)), ended: ended}, about, detail}
	s := &x.system
	s.Version, s.States, s.Types = Version, map[State]int{}, []Type{}
	if s.DeadReasons == nil {
		s.DeadReasons = map[string]uint64{}
	}
	if s.Codes == nil {
		s.Codes = []Code{}
	}
	x.s.sum(s)
	for i := range s.Types {
		s.Crashes += s.Types[i].Crashes
		s.Restarts += s.Types[i].Restarts
	}
	return x
}

// System is the system as a whole. It shares memory with that of other callers.
func (x *Still) System() System { return x.system }

// Actors is a list of actors, without /user and /system.
func (x *Still) Actors(q Query) (Page, error) {
	m, limit, err := q.check()
	if err != nil {
		return Page{}, err
	}
	g := x.s.forest()
	return x.s.page(q, m, limit, func(at int32, row *Actor) { row.Children = g.children(at) })
}

// children is how many an actor has.
func (g *forest) children(at int32) (n int) {
	for k := g.first[at]; k >= 0; k = g.next[k] {
		n++
	}
	return n
}

// find is where the actor at a path is, -1 if it is not there.
func (x *Still) find(path string) int {
	path = pathOf(path)
	for i := range x.s.infos {
		if x.s.infos[i].Ref.Path() == path {
			return i
		}
	}
	return -1
}

// Tree is a part of the tree, as [Observer.Tree].
func (x *Still) Tree(q TreeQuery) (TreeNode, error) {
	if err := q.check(); err != nil {
		return TreeNode{}, err
	}
	at := x.find(q.Under)
	if at < 0 {
		return TreeNode{}, noActor(q.Under)
	}
	return x.s.tree(q, x.s.infos[at].Ref.UID())
}

// Actor is one actor, as far as it is known.
func (x *Still) Actor(path string) (Detail, error) {
	at := x.find(path)
	if at < 0 {
		return Detail{}, noActor(path)
	}
	i := &x.s.infos[at]
	d := Detail{Version: Version, Actor: x.s.row(at), Supervisor: i.Parent.Path()}
	d.Children = x.s.forest().children(int32(at))
	if l := i.Failure; l != nil {
		d.LastFailure = failureOf(l.At, &l.Failure)
	}
	if x.detail != nil {
		x.detail(i.Ref.UID(), &d)
	}
	return d, nil
}
