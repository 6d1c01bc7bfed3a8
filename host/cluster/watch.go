package cluster

import "github.com/wasmactors/wasmactors/abi"

// What is built on nodes asks them this.

// Self is the node as a member; its Number is 0 before it has joined.
func (n *Node) Self() Member {
	n.mu.Lock()
	defer n.unlock()
	return n.self
}

// Directory is the directory of the node's cluster. The node writes the keys that begin with "node."; keys of others begin
// otherwise.
func (n *Node) Directory() Directory { return n.cfg.Directory }

// Gone reports whether a life of a node is known to be over: the directory says so, which it does only when the node does
// not act any more, or when somebody has evicted it by hand ([Node.Evict]). A life that the node has not heard of is not gone. It never becomes false again.
func (n *Node) Gone(number uint16, born uint64) bool {
	n.mu.Lock()
	defer n.unlock()
	m := n.members[number]
	return m != nil && (m.Born > born || m.Born == born && m.Gone)
}

// Member is the member with a number, as it is known now.
func (n *Node) Member(number uint16) (Member, bool) {
	n.mu.Lock()
	defer n.unlock()
	m := n.members[number]
	if number == 0 || number > abi.MaxNode || m == nil || m.Gone {
		return Member{}, false
	}
	return m.Member, true
}

// Common is the newest version of the protocol that all nodes understand that are there; 0 if this one does not act.
func (n *Node) Common() uint16 {
	n.mu.Lock()
	defer n.unlock()
	if n.state != acting {
		return 0
	}
	least := n.self.Newest
	for _, m := range n.members {
		if !m.Gone {
			least = min(least, m.Newest)
		}
	}
	return least
}

// Changes has f called, by any goroutine, after members have come or gone and when the node is lost. f must not block. stop
// ends that; a call may be under way then.
func (n *Node) Changes(f func()) (stop func()) {
	n.mu.Lock()
	defer n.unlock()
	n.listeners++
	key := n.listeners
	n.listening[key] = f
	return func() {
		n.mu.Lock()
		defer n.unlock()
		delete(n.listening, key)
	}
}

// changedMembers tells the listeners, in the order in which they came.
func (n *Node) changedMembers() {
	for key := range n.listeners {
		if f := n.listening[key+1]; f != nil {
			n.later = append(n.later, f)
		}
	}
}
