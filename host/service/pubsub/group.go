package pubsub

import (
	"cmp"
	"slices"
)

// Of the subscriptions of a group with the same pattern one gets each event: the next one in turn that has room for it. In a cluster the
// node of the publisher chooses among those of all nodes.

// mostGroups bounds the groups that have subscriptions on a node.
const mostGroups = 1024

type groupKey struct {
	_       struct{} `cbor:",toarray"`
	Pattern string
	Group   string
}

// group are its subscriptions here, and how many there are on other nodes.
type group struct {
	key   groupKey
	id    uint64 // in the index
	local []*subscription
	far   []members // sorted by node
	total int       // of far
	next  uint64
}

// members are how many subscriptions of a group a node has.
type members struct {
	at *farNode
	n  int
}

func (s *subscription) groupKey() groupKey { return groupKey{Pattern: s.pattern, Group: s.group} }

// groupOf is a group, which is made if there is none; with the lock.
func (b *broker) groupOf(key groupKey) *group {
	g := b.byGroup[key]
	if g == nil {
		g = &group{key: key}
		g.id = b.groups.Add(key.Pattern, g)
		b.byGroup[key] = g
	}
	return g
}

// tidy drops a group that nobody is in.
func (b *broker) tidy(g *group) {
	if len(g.local) == 0 && len(g.far) == 0 {
		b.groups.Remove(g.key.Pattern, g.id)
		delete(b.byGroup, g.key)
	}
}

// enter adds a subscription to its group.
func (b *broker) enter(s *subscription) {
	g := b.groupOf(s.groupKey())
	g.local = append(g.local, s)
}

// leave takes a subscription out of its group, and reports whether it was in it.
func (b *broker) leave(s *subscription) bool {
	g := b.byGroup[s.groupKey()]
	if g == nil {
		return false
	}
	i := slices.Index(g.local, s)
	if i < 0 {
		return false
	}
	g.local = slices.Delete(g.local, i, i+1)
	b.tidy(g)
	return true
}

// counts says how many subscriptions of a group a node has.
func (b *broker) counts(key groupKey, at *farNode, n int) {
	g := b.groupOf(key)
	i, found := slices.BinarySearchFunc(g.far, at.number, func(m members, number uint16) int { return cmp.Compare(m.at.number, number) })
	if found {
		g.total -= g.far[i].n
		g.far = slices.Delete(g.far, i, i+1)
	}
	if n > 0 {
		g.far = slices.Insert(g.far, i, members{at, n})
		g.total += n
	}
	b.tidy(g)
}

// pick gives an event to one of a group, beginning with the next in turn: to a subscription here that takes it, or to a node.
func (g *group) pick(e *Event) (taken bool, at *farNode) {
	all := len(g.local) + g.total
	if all == 0 {
		return false, nil
	}
	start := int(g.next % uint64(all))
	g.next++
	for i := range all {
		k := (start + i) % all
		if k < len(g.local) {
			if g.local[k].Offer(e) {
				return true, nil
			}
			continue
		}
		k -= len(g.local)
		for _, m := range g.far {
			if k -= m.n; k < 0 {
				return true, m.at
			}
		}
	}
	return false, nil
}

// pickHere gives an event to a subscription of a group on this node.
func (g *group) pickHere(e *Event) bool {
	for range g.local {
		s := g.local[g.next%uint64(len(g.local))]
		g.next++
		if s.Offer(e) {
			return true
		}
	}
	return false
}
