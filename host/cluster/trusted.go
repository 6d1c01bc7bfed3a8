package cluster

import "sync"

// Trusted is a node as what belongs to one bundle sees it: members that have no right to the bundle are not there. So they get none of its
// keys, children and topics, whatever they write into the directory. Its methods may be called by any goroutine.
type Trusted struct {
	*Node
	why func(Member) error

	mu    sync.Mutex
	known map[uint16]judged // at most one for each number
}

// judged is what was found out about a life of a node: its identity stays.
type judged struct {
	born uint64
	why  error
}

// Trusting is the node, for what may have to do with some members only. why says why one has no right to the bundle, nil if it has; it is asked
// once for each life of a node, by any goroutine, and must not block. Of a member only its Name, Number, Born and Identity count.
func (n *Node) Trusting(why func(Member) error) *Trusted {
	return &Trusted{Node: n, why: why, known: map[uint16]judged{}}
}

// Why says why a member has no right to the bundle; nil: it has.
func (t *Trusted) Why(m Member) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	j, ok := t.known[m.Number]
	if !ok || j.born != m.Born {
		j = judged{m.Born, t.why(m)}
		t.known[m.Number] = j
	}
	return j.why
}

// Trusts reports whether a member has a right to the bundle.
func (t *Trusted) Trusts(m Member) bool { return t.Why(m) == nil }

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
