package cluster

import "time"

// What is fenced, as the events of keys are by their journal, may be taken from a node before its lease is over: whatever it stores is
// refused then. What it only reads is not refused, so it must not believe for too long that it has what it had. A node is sure of that for a
// brief time after it has begun a renewal that was confirmed. Others pass it over when they have seen its entry unchanged for an eighth longer,
// and hear nothing of it: one of them notes its doubt in the entry, and another one that agrees notes that it was passed. Both change the
// entry by compare-and-set, so the node cannot have renewed in between, and cannot renew before it has seen that.
//
// The node goes on, and keeps its number and its lease: a pause that ends within the lease is no end. What it had of what is fenced it has lost,
// and takes again under the next count.

// doubts are what this node makes of another one whose entry does not change.
type doubts struct {
	probed  time.Duration // since when it was asked for a sign of life, see brisk; 0: it was not
	noting  bool          // a change of the entry is under way
	settled bool          // it was passed, and has not renewed since
}

// doubted reports whether an entry has changed, but not by its node.
func doubted(before *seen, m Member) bool {
	return before != nil && !before.Gone && !m.Gone && before.Born == m.Born && before.Beat == m.Beat && (m.Passed > 0 || m.Doubter > 0)
}

// doubtful is how long an entry may stay unchanged before its node is doubted.
func (n *Node) doubtful() time.Duration { return n.cfg.Brief + n.cfg.Brief/8 }

// doubt looks after a member whose entry does not change.
func (n *Node) doubt(m *seen) {
	if n.cfg.Brief == 0 || n.members[m.Number] != m || m.Gone || m.settled || m.Number == n.self.Number {
		return
	}
	left := m.at + n.doubtful() - n.since()
	p := n.pairs[m.Number]
	switch {
	case left > 2*pings:
		n.after(left-2*pings, nil, func() { n.doubt(m) })
		return
	case p == nil || n.port == nil || !n.acting():
		n.after(pings, nil, func() { n.doubt(m) })
		return
	}
	now := max(n.brisk(), 1)
	if m.probed == 0 || p.sign >= m.probed {
		m.probed = now
	}
	if left <= 0 && now-m.probed >= 2*pings && !m.noting && m.Doubter != n.self.Number && n.legible() {
		n.note(m)
	}
	n.links.Send(m.Number, p.packet(flagAnswer, nil))
	p.confirmed()
	n.after(pings, nil, func() { n.doubt(m) })
}

// legible reports whether all nodes that are there can read an entry with a doubt. One that cannot would not see how it goes on, and not
// renew its own any more.
func (n *Node) legible() bool {
	for _, m := range n.members {
		if !m.Gone && m.Newest < withDoubts {
			return false
		}
	}
	return true
}

// note writes a doubt down, or that another one has the same.
func (n *Node) note(m *seen) {
	m.noting = true
	next := m.Member
	if next.Doubter == 0 {
		next.Doubter = n.self.Number
	} else {
		next.Doubter, next.Passed = 0, next.Passed+1
	}
	value := next.encode()
	n.later = append(n.later, func() {
		n.cfg.Directory.Put(memberKey(next.Number), value, m.revision, func(uint64, error) {
			n.mu.Lock()
			defer n.unlock()
			m.noting = false
		})
	})
}

// passed is called when a member was passed.
func (n *Node) passed(m *seen) {
	m.settled = true
	n.event(Event{Kind: EventPassed, Node: m.Number, Text: m.Name})
	n.changedMembers()
}

// Passed is how often others have agreed to take what is fenced from a life of a node. It never goes back. Who has something under a lesser
// count has lost it.
func (n *Node) Passed(number uint16, born uint64) uint64 {
	n.mu.Lock()
	defer n.unlock()
	if m := n.members[number]; m != nil && m.Born == born {
		return m.Passed
	}
	return 0
}

// Sure reports whether others cannot have taken yet what is fenced, if this node has it under the count of Passed: it has begun a renewal that
// was confirmed less than Config.Brief ago. Without Brief it is sure while it acts.
func (n *Node) Sure() (passed uint64, ok bool) {
	n.mu.Lock()
	defer n.unlock()
	ok = n.acting() && (n.cfg.Brief == 0 || n.since() < n.deadline-n.cfg.Lease+n.cfg.Brief)
	return n.self.Passed, ok
}
