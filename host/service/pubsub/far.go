package pubsub

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/pubsub/topic"
)

// What other nodes subscribe to, and one copy of an event for each that has subscribers.

// Bounds of what other nodes subscribe to.
const (
	mostPatterns = 4096    // of one node, and as many groups; one with more patterns gets each event
	mostFar      = 200_000 // of all nodes; more are ignored
)

// farNode is another node that has subscribers.
type farNode struct {
	number   uint16
	self     host.Ref // of this node's relay
	to       host.Ref // of that one's
	sys      *host.System
	sent     uint64            // events
	patterns map[string]uint64 // and their ids
	groups   map[groupKey]int
	mark     uint64 // of the event that it is chosen for
	plain    bool   // ...for subscriptions
	picked   []groupKey
}

type farNodes struct {
	index topic.Index[*farNode]
	nodes map[uint16]*farNode
	marks uint64
	count int // of patterns and groups
}

// match are the nodes that subscribe to a topic.
func (f *farNodes) match(name string) (to []*farNode) {
	f.marks++
	for _, n := range f.index.Match(name) {
		if n.mark != f.marks {
			n.mark, n.plain, n.picked = f.marks, true, nil
			to = append(to, n)
		}
	}
	return to
}

// add adds a node of which one of a group gets the event.
func (f *farNodes) add(to []*farNode, n *farNode, key groupKey) []*farNode {
	if n.mark != f.marks {
		n.mark, n.plain, n.picked = f.marks, false, nil
		to = append(to, n)
	}
	n.picked = append(n.picked, key)
	return to
}

func (*farNodes) sorted(to []*farNode) []*farNode {
	slices.SortFunc(to, func(a, b *farNode) int { return cmp.Compare(a.number, b.number) })
	return to
}

// relayed is what relays of two nodes send each other.
type relayed struct {
	_ struct{} `cbor:",toarray"`
	// Kind is relayInterest or relayEvent.
	Kind uint8
	// N counts the events from one to the other, from 1; of interest: how many there were.
	N uint64

	// Of interest: All says that what was told before is void, and Any that all events are wanted.
	All, Any bool
	More     []string
	Less     []string
	Groups   []groupCount

	// Of an event; of interest, Topic is the name of the bundle: others have topics of their own. The release before leaves it empty.
	Topic  string
	Value  cbor.RawMessage
	Plain  bool // for subscriptions
	Picked []groupKey
}

const (
	relayInterest = iota + 1
	relayEvent
)

// groupCount is how many subscriptions of a group a node has.
type groupCount struct {
	_   struct{} `cbor:",toarray"`
	Key groupKey
	N   int
}

// offer sends the node an event. One that does not fit is missed: the node notices the gap.
func (n *farNode) offer(e *Event) bool {
	n.sent++
	return n.sys.TellFrom(n.self, n.to, relayed{Kind: relayEvent, N: n.sent, Topic: e.Topic, Value: cbor.RawMessage(e.Value), Plain: n.plain, Picked: n.picked}) == nil
}

// meet enters a node, in the place of an earlier life of it.
func (b *broker) meet(n *farNode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.part(n.number)
	if b.far.nodes == nil {
		b.far.nodes = map[uint16]*farNode{}
	}
	n.patterns, n.groups = map[string]uint64{}, map[groupKey]int{}
	b.far.nodes[n.number] = n
}

// gone drops a node.
func (b *broker) gone(number uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.part(number)
}

func (b *broker) part(number uint16) {
	if n := b.far.nodes[number]; n != nil {
		b.clear(n)
		delete(b.far.nodes, number)
	}
}

// clear forgets what a node subscribes to.
func (b *broker) clear(n *farNode) {
	for pattern, id := range n.patterns {
		b.far.index.Remove(pattern, id)
	}
	for key := range n.groups {
		b.counts(key, n, 0)
	}
	b.far.count -= len(n.patterns) + len(n.groups)
	n.patterns, n.groups = map[string]uint64{}, map[groupKey]int{}
}

// interested notes what a node subscribes to; false if no node says such. What is beyond the bounds is ignored.
func (b *broker) interested(number uint16, m *relayed) bool {
	for _, p := range append(slices.Clone(m.More), m.Less...) {
		if topic.CheckPattern(p) != nil {
			return false
		}
	}
	for _, g := range m.Groups {
		if topic.CheckPattern(g.Key.Pattern) != nil || g.Key.Group == "" || len(g.Key.Group) > MaxGroup || g.N < 0 || g.N > 1<<20 {
			return false
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.far.nodes[number]
	if n == nil {
		return true // it has just gone
	}
	if m.All {
		b.clear(n)
	}
	if m.Any {
		m.More = append(m.More, ">")
	}
	for _, p := range m.Less {
		if id, ok := n.patterns[p]; ok {
			b.far.index.Remove(p, id)
			delete(n.patterns, p)
			b.far.count--
		}
	}
	for _, p := range m.More {
		if _, ok := n.patterns[p]; !ok && len(n.patterns) <= mostPatterns && b.far.count < mostFar {
			n.patterns[p] = b.far.index.Add(p, n)
			b.far.count++
		}
	}
	for _, g := range m.Groups {
		_, known := n.groups[g.Key]
		switch {
		case g.N == 0 && known:
			delete(n.groups, g.Key)
			b.far.count--
		case g.N > 0 && !known:
			if len(n.groups) >= mostGroups || b.far.count >= mostFar {
				continue
			}
			b.far.count++
			fallthrough
		case g.N > 0:
			n.groups[g.Key] = g.N
		default:
			continue
		}
		b.counts(g.Key, n, g.N)
	}
	return true
}

// arrived hands an event of another node to those here that it is for. missed are the events before it that were lost on the way.
func (b *broker) arrived(e *Event, plain bool, picked []groupKey, missed uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if missed > 0 {
		b.miss(missed)
	}
	if plain {
		b.here(e)
	}
	for _, key := range picked {
		if g := b.byGroup[key]; g != nil && topic.Covers(key.Pattern, e.Topic) {
			g.pickHere(e)
		}
	}
}

// miss tells all subscriptions that events of another node were lost: which they were is not known.
func (b *broker) miss(n uint64) {
	for _, s := range b.of {
		s.feed.Missed(n)
	}
}

// interest is what is subscribed to here: patterns, and groups with their subscriptions.
func (b *broker) interest() (patterns map[string]bool, groups map[groupKey]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	patterns, groups = map[string]bool{}, map[groupKey]int{}
	for key, s := range b.of {
		if s.group == "" {
			patterns[key.pattern] = true
		} else {
			groups[s.groupKey()]++
		}
	}
	return patterns, groups
}

// tell says that what is subscribed to may be another set; with the lock.
func (b *broker) tell() {
	if b.changed != nil {
		b.changed()
	}
}

// difference is what has to be told to who knows old.
func difference(oldPatterns map[string]bool, oldGroups map[groupKey]int, patterns map[string]bool, groups map[groupKey]int) relayed {
	m := relayed{Kind: relayInterest}
	for _, p := range slices.Sorted(maps.Keys(patterns)) {
		if !oldPatterns[p] {
			m.More = append(m.More, p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(oldPatterns)) {
		if !patterns[p] {
			m.Less = append(m.Less, p)
		}
	}
	for key, n := range groups {
		if oldGroups[key] != n {
			m.Groups = append(m.Groups, groupCount{Key: key, N: n})
		}
	}
	for key := range oldGroups {
		if groups[key] == 0 {
			m.Groups = append(m.Groups, groupCount{Key: key})
		}
	}
	slices.SortFunc(m.Groups, func(a, b groupCount) int {
		return cmp.Or(cmp.Compare(a.Key.Pattern, b.Key.Pattern), cmp.Compare(a.Key.Group, b.Key.Group))
	})
	return m
}
