package observe

import (
	"cmp"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Tree is a part of the tree, level by level. Nodes that are left out are
// counted where they would be, and in every sum.
func (o *Observer) Tree(q TreeQuery) (TreeNode, error) {
	if err := q.check(); err != nil {
		return TreeNode{}, err
	}
	ref, err := o.sys.Lookup(q.Under)
	if err != nil {
		return TreeNode{}, noActor(q.Under)
	}
	var root TreeNode
	o.view(func(s *snapshot) { root, err = s.tree(q, ref.UID()) })
	return root, err
}

// check puts the defaults in, or says what is wrong with a query.
func (q *TreeQuery) check() (err error) {
	if q.Limit, err = limitOf(q.Limit); err != nil {
		return err
	}
	q.Depth, q.Nodes, q.Under = cmp.Or(q.Depth, 3), cmp.Or(q.Nodes, 1000), cmp.Or(q.Under, "/user")
	switch {
	case q.Depth < 0 || q.Depth > 64:
		return invalid("a depth is from 1 to 64, not %d", q.Depth)
	case q.Nodes < 0 || q.Nodes > MaxTreeNodes:
		return invalid("a tree has 1 to %d nodes, not %d", MaxTreeNodes, q.Nodes)
	case q.Offset < 0 || q.Offset > 1<<30:
		return invalid("an offset of %d", q.Offset)
	}
	return nil
}

// tree is the tree below an actor, of a query that was checked.
func (s *snapshot) tree(q TreeQuery, root abi.Ref) (TreeNode, error) {
	by, err := s.order(q.Sort, q.Desc)
	if err != nil {
		return TreeNode{}, err
	}
	g := s.forest()
	at := g.index.find(root)
	if at < 0 { // it is younger than the snapshot, or has just ended
		return TreeNode{}, noActor(q.Under)
	}
	return g.grow(at, q.Depth, q.Limit, q.Nodes, q, by), nil
}

// forest is the parents and children of a snapshot.
type forest struct {
	s      *snapshot
	index  index
	parent []int32 // -1: none
	first  []int32 // child, -1: none
	next   []int32 // sibling, -1: none
}

// forest is computed once for all users of the snapshot.
func (s *snapshot) forest() *forest {
	s.once.Do(func() { s.trees = newForest(s) })
	return s.trees
}

func newForest(s *snapshot) *forest {
	n := len(s.infos)
	all := make([]int32, 3*n)
	x := indexOf(s.infos)
	g := &forest{s: s, index: x, parent: all[:n:n], first: all[n : 2*n : 2*n], next: all[2*n:]}
	for i := range g.first {
		g.first[i] = -1
	}
	for i := range s.infos {
		p := x.find(s.infos[i].Parent.UID())
		g.parent[i], g.next[i] = p, -1
		if p >= 0 {
			g.next[i], g.first[p] = g.first[p], int32(i)
		}
	}
	return g
}

// shown is a node that is shown; its number is its index in the list.
type shown struct {
	at     int32 // in the snapshot
	parent int   // number
	kids   []int
	all    int // children
	sum    sum
}

// grow makes the tree below an actor, with depth, limit and most already
// in their effective values.
func (g *forest) grow(root int32, depth, limit, most int, q TreeQuery, by order) TreeNode {
	nodes := []shown{{at: root, parent: -1}}
	place := make([]int32, len(g.s.infos)) // number+1 of the node that an actor counts for
	place[root] = 1
	for from, level := 0, 0; from < len(nodes) && level < depth; level++ {
		to := len(nodes)
		for n := from; n < to; n++ {
			room := min(limit, (most-len(nodes)+to-n-1)/(to-n))
			kids, page := 0, []int32(nil)
			if n == 0 && q.Offset > 0 {
				var all []int32
				for k := g.first[nodes[n].at]; k >= 0; k = g.next[k] {
					all = append(all, k)
				}
				kids, page = len(all), window(g.s.keys(all, q.Sort, q.Desc), by, q.Offset, room)
			} else {
				f := firsts{most: room, order: by}
				for k := g.first[nodes[n].at]; k >= 0; k = g.next[k] {
					f.add(k)
					kids++
				}
				page = f.sorted()
			}
			for _, k := range page {
				place[k] = int32(len(nodes) + 1)
				nodes[n].kids = append(nodes[n].kids, len(nodes))
				nodes = append(nodes, shown{at: k, parent: n})
			}
			nodes[n].all = kids
		}
		from = to
	}
	g.sumUp(nodes, place)
	return g.node(nodes, 0)
}

// sumUp adds every actor below the root to its nearest ancestor that is shown, and then each
// node to the one above.
func (g *forest) sumUp(nodes []shown, place []int32) {
	const outside = -1
	var way []int32
	for i := range g.s.infos {
		at, to := int32(i), int32(outside)
		way = way[:0]
		for at >= 0 {
			if place[at] != 0 {
				to = place[at]
				break
			}
			way = append(way, at)
			at = g.parent[at]
		}
		for _, w := range way {
			place[w] = to
		}
		if to > 0 {
			nodes[to-1].sum.add(&g.s.infos[i], g.s.oldest[i])
		}
	}
	for n := len(nodes) - 1; n >= 0; n-- {
		x := &nodes[n]
		if x.all == 0 { // beyond the depth
			for k := g.first[x.at]; k >= 0; k = g.next[k] {
				x.all++
			}
		}
		if x.parent >= 0 {
			nodes[x.parent].sum.merge(&x.sum)
		}
	}
}

// node is a node with all below it.
func (g *forest) node(nodes []shown, n int) TreeNode {
	x := &nodes[n]
	t := TreeNode{Actor: g.s.row(int(x.at)), More: x.all - len(x.kids), Below: x.sum.aggregate()}
	t.Children = x.all
	for _, k := range x.kids {
		t.Nodes = append(t.Nodes, g.node(nodes, k))
	}
	return t
}

// sum is an Aggregate that is being made.
type sum struct {
	Aggregate
	states [host.StateStopping + 1]int
	types  map[string]int
	last   string // a type that is not in types yet
	lastN  int
}

func (s *sum) add(i *host.Info, oldest int64) {
	s.Actors++
	s.states[i.State]++
	s.Mailbox += i.Mailbox
	s.OldestNS = max(s.OldestNS, oldest)
	s.Turns += i.Turns
	s.Fuel += i.Fuel
	s.Crashes += i.Crashes
	s.Restarts += i.Restarts
	s.Held += i.Held
	s.addType(i.Type, 1)
}

func (s *sum) addType(name string, n int) {
	if s.lastN > 0 && s.last != name {
		s.flush()
	}
	s.last = name
	s.lastN += n
}

func (s *sum) flush() {
	if s.lastN > 0 {
		if s.types == nil {
			s.types = map[string]int{}
		}
		s.types[s.last] += s.lastN
		s.lastN = 0
	}
}

func (s *sum) merge(t *sum) {
	s.Actors += t.Actors
	for i, n := range t.states {
		s.states[i] += n
	}
	s.Mailbox += t.Mailbox
	s.OldestNS = max(s.OldestNS, t.OldestNS)
	s.Turns += t.Turns
	s.Fuel += t.Fuel
	s.Crashes += t.Crashes
	s.Restarts += t.Restarts
	s.Held += t.Held
	t.flush()
	for name, n := range t.types {
		s.addType(name, n)
	}
}

// mostTypes bounds the types of an Aggregate.
const mostTypes = 32

func (s *sum) aggregate() Aggregate {
	a := s.Aggregate
	if a.Actors == 1 {
		return a
	}
	s.flush()
	a.States = map[State]int{}
	for i, n := range s.states {
		if n > 0 {
			a.States[stateOf(host.ActorState(i))] = n
		}
	}
	names := make([]string, 0, len(s.types))
	for name := range s.types {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(s.types[b]-s.types[a], cmp.Compare(a, b)) })
	a.Types = map[string]int{}
	for _, name := range names[:min(len(names), mostTypes)] {
		a.Types[name] = s.types[name]
	}
	return a
}
