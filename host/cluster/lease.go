package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// A node acts until its deadline: a lease after it has begun the last renewal that was confirmed. Another node evicts it
// when it has seen its entry unchanged for longer than that, by its own clock. It has seen the entry after the renewal had
// begun, and waits for an eighth more, which is more than clocks differ: so the node has stopped acting by then.

// patience is how long an entry may stay unchanged.
func (n *Node) patience() time.Duration { return n.cfg.Lease + n.cfg.Lease/8 }

// Join makes the node a member. joined is called once, with the member or with why it is none.
func (n *Node) Join(joined func(Member, error)) {
	n.mu.Lock()
	if n.state != 0 {
		n.unlock()
		joined(Member{}, errors.New("cluster: a node joins once"))
		return
	}
	n.state, n.joined = joining, joined
	n.unlock()
	n.links.Receive(n.receive)
	stop := n.cfg.Directory.Watch(n.changed)
	n.mu.Lock()
	n.stop = stop
	n.after(n.cfg.Lease/8, nil, n.take) // by then most of what there is has been seen
	n.unlock()
}

// take takes the number that was unused for longest.
func (n *Node) take() {
	if n.state != joining {
		return
	}
	if wait, err := n.mayJoin(); err != nil {
		n.fail(err)
		return
	} else if wait > 0 {
		if n.endLast() {
			wait = min(wait, n.cfg.Lease/32)
		}
		n.after(wait, nil, n.take)
		return
	}
	best, revision := uint16(0), ^uint64(0)
	for i := uint16(1); i <= abi.MaxNode; i++ {
		m := n.members[i]
		switch {
		case m == nil && !n.tried[i]:
			best, revision = i, 0
		case m != nil && m.Gone && m.revision < revision:
			best, revision = i, m.revision
			continue
		default:
			continue
		}
		break
	}
	if best == 0 {
		n.fail(ErrNoNumber)
		return
	}
	n.tried[best] = true
	self := Member{Number: best, ID: n.cfg.ID, Name: n.cfg.Name, Roles: n.cfg.Roles, Zone: n.cfg.Zone, Oldest: version, Newest: namesFailed, Identity: n.cfg.Identity}
	began, once := n.since(), false
	value := self.encode()
	n.later = append(n.later, func() {
		n.cfg.Directory.Put(memberKey(best), value, revision, func(at uint64, err error) {
			n.mu.Lock()
			defer n.unlock()
			if once || n.state != joining {
				return
			}
			once = true
			if err == nil {
				self.Born, self.revision = at, at
				n.begin(self, began)
				return
			}
			n.after(n.cfg.Lease/16, nil, n.take)
		})
	})
}

// mayJoin says whether the members that there are let the node join: not beside one of its name. One that has that name from
// before its last start is gone when its lease is over, whether or not somebody has evicted it.
func (n *Node) mayJoin() (wait time.Duration, err error) {
	for _, m := range n.members {
		expired := m.at + n.patience() - n.since()
		switch {
		case m.Gone || expired <= 0:
		case !m.understands(&Member{Oldest: version, Newest: version}):
			return 0, fmt.Errorf("%w: node %d (%s) versions %d to %d, this one %d", ErrProtocol, m.Number, m.Name, m.Oldest, m.Newest, version)
		case m.Name != n.cfg.Name:
		case m.renewed:
			return 0, fmt.Errorf("%w: node %d is %s", ErrName, m.Number, m.Name)
		default:
			wait = max(wait, min(expired, n.cfg.Lease/8))
		}
	}
	return wait, nil
}

// endLast takes the number of this node's last life away if that life is over for certain (Config.Over). The entry must be the very one
// that was seen: one that is renewed meanwhile stays. It reports whether there is such an entry.
func (n *Node) endLast() (some bool) {
	for i := uint16(1); i <= abi.MaxNode; i++ {
		m := n.members[i]
		if m == nil || m.Gone || n.cfg.Over == 0 || m.ID != n.cfg.Over || m.Name != n.cfg.Name {
			continue
		}
		e := m.Evicted()
		n.later = append(n.later, func() { n.cfg.Directory.Put(e.Key, e.Value, e.Revision, func(uint64, error) {}) })
		some = true
	}
	return some
}

// introduce tells the links who a node is.
func (n *Node) introduce(m Member) {
	if l, ok := n.links.(Introducer); ok {
		n.later = append(n.later, func() { l.Introduce(m) })
	}
}

// begin makes the node act.
func (n *Node) begin(self Member, began time.Duration) {
	if n.since() >= began+n.cfg.Lease {
		n.fail(fmt.Errorf("%w: the directory has answered after more than the lease", ErrLost))
		return
	}
	if _, err := n.mayJoin(); err != nil {
		n.giveBack(self)
		n.fail(err)
		return
	}
	n.state, n.self, n.deadline = acting, self, began+n.cfg.Lease
	n.introduce(self)
	for _, m := range n.members {
		if !m.Gone && m.Number != self.Number {
			n.meet(m.Member)
		}
	}
	n.tell(self, nil)
	n.watchDeadline()
	n.after(n.cfg.Lease/4, nil, n.renewLease)
}

// meet begins to talk to a node.
func (n *Node) meet(m Member) {
	if !m.understands(&n.self) {
		n.refuse(m.Number, fmt.Sprintf("it speaks versions %d to %d of the protocol, this node %d", m.Oldest, m.Newest, version))
		return
	}
	n.introduce(m)
	n.pairs[m.Number] = newPair(n, m)
}

// giveBack gives a number back that the node has just taken.
func (n *Node) giveBack(self Member) {
	self.Gone = true
	value := self.encode()
	n.later = append(n.later, func() { n.cfg.Directory.Put(memberKey(self.Number), value, self.revision, func(uint64, error) {}) })
}

func (n *Node) tell(m Member, err error) {
	if joined := n.joined; joined != nil {
		n.joined = nil
		n.later = append(n.later, func() { joined(m, err) })
	}
}

func (n *Node) watchDeadline() {
	n.after(max(n.deadline-n.since(), 0), nil, func() {
		if n.state != acting {
			return
		}
		if n.since() >= n.deadline {
			n.fail(fmt.Errorf("%w: its lease could not be renewed in time", ErrLost))
			return
		}
		n.watchDeadline()
	})
}

// renewLease begins a renewal, and has the next begun.
func (n *Node) renewLease() {
	if n.state != acting {
		return
	}
	n.after(n.cfg.Lease/4, nil, n.renewLease)
	n.renew()
}

func (n *Node) renew() {
	next := n.self
	next.Beat++
	began, value, revision := n.since(), next.encode(), n.self.revision
	n.later = append(n.later, func() {
		n.cfg.Directory.Put(memberKey(next.Number), value, revision, func(at uint64, err error) {
			n.mu.Lock()
			defer n.unlock()
			if n.state != acting {
				return
			}
			if err != nil || at <= revision {
				n.counts.Unrenewed++
				return // not known: the entry that is seen decides about the next one
			}
			n.self.Beat, n.self.revision = max(next.Beat, n.self.Beat), max(at, n.self.revision)
			n.deadline = max(n.deadline, began+n.cfg.Lease)
			n.counts.Renewed++
		})
	})
}

// fail ends the node's acting, which nobody has asked for.
func (n *Node) fail(err error) {
	if n.state == lost {
		return
	}
	n.tellHeld()
	n.event(Event{Kind: EventLost, Node: n.self.Number, Text: err.Error()})
	if n.state == acting && n.cfg.Lost != nil {
		n.later = append(n.later, func() { n.cfg.Lost(err) })
	}
	n.end(err)
}

// end ends the node's acting.
func (n *Node) end(err error) {
	n.state = lost
	n.changedMembers()
	for i := uint16(1); i <= abi.MaxNode; i++ {
		if p := n.pairs[i]; p != nil {
			p.lost()
		}
	}
	n.pairs = map[uint16]*pair{}
	if stop := n.stop; stop != nil {
		n.stop = nil
		n.later = append(n.later, stop)
	}
	n.tell(Member{}, err)
}

// Leave gives the number back. The system should be closed before: the others take its actors for ended.
func (n *Node) Leave(done func(error)) {
	n.mu.Lock()
	defer n.unlock()
	if n.state != acting {
		n.later = append(n.later, func() { done(ErrLost) })
		return
	}
	gone := n.self
	gone.Gone = true
	n.confirmAll()
	n.tellHeld()
	n.event(Event{Kind: EventLeft, Node: gone.Number})
	n.end(errors.New("cluster: the node has left"))
	value, once := gone.encode(), false
	n.later = append(n.later, func() {
		n.cfg.Directory.Put(memberKey(gone.Number), value, gone.revision, func(_ uint64, err error) {
			if !once {
				once = true
				done(err)
			}
		})
	})
}

// confirmAll confirms what has come, so that the others do not take it for lost.
func (n *Node) confirmAll() {
	if !n.acting() || n.port == nil {
		return
	}
	for i := uint16(1); i <= abi.MaxNode; i++ {
		if p := n.pairs[i]; p != nil && p.owes > 0 {
			n.links.Send(i, p.packet(0, nil))
			p.confirmed()
		}
	}
}

// Evict takes a node's number away before its lease is over. It may still act until then, so that what must happen once can
// happen twice.
func (n *Node) Evict(number uint16, done func(error)) {
	n.mu.Lock()
	defer n.unlock()
	m := n.members[number]
	if n.state != acting || m == nil || m.Gone {
		err := ErrNoMember
		if n.state != acting {
			err = ErrLost
		}
		n.later = append(n.later, func() { done(err) })
		return
	}
	gone, once := m.Member, false
	gone.Gone = true
	value := gone.encode()
	n.later = append(n.later, func() {
		n.cfg.Directory.Put(memberKey(number), value, gone.revision, func(_ uint64, err error) {
			if !once {
				once = true
				done(err)
			}
		})
	})
}

// changed is told of each entry of the directory.
func (n *Node) changed(e Entry) {
	if !strings.HasPrefix(e.Key, memberKeys) {
		return // somebody else's
	}
	n.mu.Lock()
	defer n.unlock()
	m, err := decodeMember(e)
	if err != nil {
		n.event(Event{Kind: EventRefused, Text: err.Error()})
		return
	}
	before := n.members[m.Number]
	if n.state == lost || before != nil && before.revision >= m.revision {
		return
	}
	if before != nil && before.Born == m.Born {
		m.Passed = max(m.Passed, before.Passed)                                 // no node writes less
		if m.Name != before.Name || !bytes.Equal(m.Identity, before.Identity) { // its links know it by that
			n.refuse(m.Number, "its entry has another name or certificate than before, which no node writes")
			m.Name, m.Identity = before.Name, before.Identity
		}
	}
	now := &seen{Member: m, at: n.since(), renewed: before != nil && before.Born == m.Born}
	if doubted(before, m) {
		now.at, now.renewed, now.doubts = before.at, before.renewed, before.doubts
		now.noting = false
	}
	n.members[m.Number] = now
	if n.state == acting && m.Number == n.self.Number && m.revision > n.self.revision {
		if m.ID != n.self.ID || m.Gone {
			n.fail(fmt.Errorf("%w: it was evicted", ErrLost))
			return
		}
		n.self.revision, n.self.Beat, n.self.Passed = m.revision, m.Beat, m.Passed // its own renewal, of which it has not heard yet, or a doubt
		if doubted(before, m) {
			n.renew() // the one that may be under way fails
		}
	}
	if before != nil && !before.Gone && (m.Gone || m.Born != before.Born) {
		n.goneAway(m.Number)
		n.changedMembers()
	}
	if m.Gone {
		return
	}
	// A doubt of others in the entry of a life before is no sign of it.
	renewed := before == nil || before.Born != m.Born || before.Beat != m.Beat
	if n.state == acting && m.Name == n.self.Name && m.Number != n.self.Number && m.Born < n.self.Born && renewed {
		n.giveBack(n.self)
		n.fail(fmt.Errorf("%w: node %d is %s, and was there before", ErrName, m.Number, m.Name))
		return
	}
	if before == nil || before.Gone || m.Born != before.Born {
		n.event(Event{Kind: EventJoined, Node: m.Number, Text: m.Name})
		n.changedMembers()
		if n.state == acting && m.Number != n.self.Number {
			n.meet(m)
		}
	}
	n.after(max(now.at+n.patience()-n.since(), 0), nil, func() { n.expire(now) })
	if before != nil && before.Born == m.Born && m.Passed > before.Passed {
		n.passed(now)
	}
	n.doubt(now)
}

func (n *Node) goneAway(number uint16) {
	n.event(Event{Kind: EventGone, Node: number})
	n.introduce(Member{Number: number, Gone: true})
	if p := n.pairs[number]; p != nil {
		n.counts.Lost += p.frames()
		p.lost()
		delete(n.pairs, number)
	}
}

// expire evicts a member whose entry has stayed as it is for too long.
func (n *Node) expire(m *seen) {
	if n.members[m.Number] != m || n.state == acting && m.Number == n.self.Number {
		return
	}
	if n.state == joining {
		n.after(n.cfg.Lease, nil, func() { n.expire(m) })
		return
	}
	if left := m.at + n.patience() - n.since(); left > 0 {
		n.after(left, nil, func() { n.expire(m) })
		return
	}
	gone := m.Member
	gone.Gone = true
	value := gone.encode()
	n.event(Event{Kind: EventEvicted, Node: m.Number, Text: m.Name})
	n.later = append(n.later, func() { n.cfg.Directory.Put(memberKey(gone.Number), value, gone.revision, func(uint64, error) {}) })
	n.after(n.cfg.Lease/4, nil, func() { n.expire(m) }) // if that fails
}
