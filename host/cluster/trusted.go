package cluster

import "sync"

// Trusted is a node as what belongs to one bundle sees it: members that have no right to the bundle are not there. So they get none of its
// keys, children and topics, whatever they write into the directory. Its methods may be called by any goroutine.
type Trusted struct {
	*Node
	may func(Member) bool

	mu    sync.Mutex
	known map[uint16]judged // at most one for each number
}

// judged is what was found out about a life of a node: its identity stays.
type judged struct {
	born uint64
	ok   bool
}

// Trusting is the node, for what may have to do with some members only. may is asked once for each life of a node, by any goroutine, and must
// not block; of a member only its Name, Number, Born and Identity count.
func (n *Node) Trusting(may func(Member) bool) *Trusted {
	return &Trusted{Node: n, may: may, known: map[uint16]judged{}}
}

// Trusts reports whether a member has a right to the bundle. This node itself has.
func (t *Trusted) Trusts(m Member) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	j, ok := t.known[m.Number]
	if !ok || j.born != m.Born {
		j = judged{m.Born, t.may(m)}
		t.known[m.Number] = j
	}
	return j.ok
}

// Members are the nodes that are there and have a right to the bundle, by their numbers.
func (t *Trusted) Members() (all []Member) {
	self := t.Self().Number
	for _, m := range t.Node.Members() {
		if m.Number == self || t.Trusts(m) {
			all = append(all, m)
		}
	}
	return all
}

// Gone reports whether a life of a node is over, as [Node.Gone] does, or is that of a member that has no right to the bundle.
func (t *Trusted) Gone(number uint16, born uint64) bool {
	return t.Node.Gone(number, born) || t.Stranger(number)
}

// Stranger reports whether a member is there that has no right to the bundle.
func (t *Trusted) Stranger(number uint16) bool {
	m, there := t.Member(number)
	return there && number != t.Self().Number && !t.Trusts(m)
}
