package pubsub

import (
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/feed"
	"github.com/wasmactors/wasmactors/host/service/pubsub/topic"
)

// Event is something that was published.
type Event struct {
	Topic string
	Value []byte // CBOR; not to be changed, and valid during Offer only
}

// Receiver is where the broker hands events to: a subscription of an actor here.
type Receiver interface {
	// Offer takes an event, for now or for later, or reports that it is lost for this receiver. It
	// must not wait. It is called in the order in which events were published.
	Offer(*Event) (taken bool)
}

// broker has the subscriptions and the retained values. It hands each event to
// all receivers whose patterns match before it takes the next one. It is safe for concurrent use.
type broker struct {
	most       int   // subscriptions
	mostRetain int64 // bytes

	mu       sync.Mutex
	index    topic.Index[*subscription]
	groups   topic.Index[*group]
	byGroup  map[groupKey]*group
	far      farNodes
	changed  func() // what is subscribed to here is another set of patterns or groups; nil: nobody wants to know
	of       map[subscriptionKey]*subscription
	perGrant map[uint64]int
	values   topic.Tree[retained]
	bytes    int64            // of values
	bytesOf  map[uint64]int64 // of values, by grant
}

// subscriptionKey is what there can be one subscription of.
type subscriptionKey struct {
	subscriber abi.Ref
	pattern    string
}

// subscription is what an actor gets of a pattern.
type subscription struct {
	id, grant  uint64
	pattern    string
	group      string // "": it gets each event
	subscriber abi.Ref
	feed       *feed.Feed
}

// Offer implements [Receiver].
func (s *subscription) Offer(e *Event) (taken bool) { return s.feed.Offer(e.Topic, e.Value) }

func (s *subscription) key() subscriptionKey { return subscriptionKey{s.subscriber, s.pattern} }

// retained is the last value of a topic.
type retained struct {
	grant uint64 // that pays for it; 0: none of this node
	value []byte
	at    uint64 // the revision in a cluster
}

// perValue is the cost of a retained value in addition to its topic and its bytes.
const perValue = 256

func newBroker(most int, mostRetain int64) *broker {
	return &broker{most: most, mostRetain: mostRetain, of: map[subscriptionKey]*subscription{}, byGroup: map[groupKey]*group{}, perGrant: map[uint64]int{}, bytesOf: map[uint64]int64{}}
}

// publish hands an event to all whose patterns match: the subscriptions here, one of each group, and the other nodes.
func (b *broker) publish(e *Event) (taken, missed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken, missed = b.here(e)
	to := b.far.match(e.Topic)
	for _, g := range b.groups.Match(e.Topic) {
		switch took, at := g.pick(e); {
		case at != nil:
			to = b.far.add(to, at, g.key)
		case took:
			taken++
		default:
			missed++
		}
	}
	for _, n := range b.far.sorted(to) {
		if n.offer(e) {
			taken++
		} else {
			missed++
		}
	}
	return taken, missed
}

// here hands an event to the subscriptions of this node that are in no group; with the lock.
func (b *broker) here(e *Event) (taken, missed int) {
	for _, r := range b.index.Match(e.Topic) {
		if r.Offer(e) {
			taken++
		} else {
			missed++
		}
	}
	return taken, missed
}

// subscribe enters a subscription in the place of the one that the subscriber had with the pattern.
func (b *broker) subscribe(s *subscription, mostOfGrant int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.of[s.key()]
	switch {
	case old != nil && old.grant == s.grant: // it takes its place
	case b.perGrant[s.grant] >= mostOfGrant:
		return service.Errorf(service.Quota, "there are %d subscriptions, which is the limit; subscriptions of the grant raises it", mostOfGrant)
	case s.group != "" && b.byGroup[s.groupKey()] == nil && len(b.byGroup) >= mostGroups:
		return service.Errorf(service.Busy, "there are %d groups, which is the limit", mostGroups)
	case old == nil && len(b.of) >= b.most:
		return service.Errorf(service.Busy, "there are %d subscriptions of all actors, which is the limit", b.most)
	}
	if old != nil {
		b.drop(old)
		defer old.feed.Stop("")
	}
	b.of[s.key()] = s
	b.perGrant[s.grant]++
	if s.group != "" {
		b.enter(s)
	} else {
		s.id = b.index.Add(s.pattern, s)
	}
	b.tell()
	return nil
}

// drop takes a subscription out.
func (b *broker) drop(s *subscription) {
	if s.group != "" {
		if !b.leave(s) {
			return
		}
	} else if !b.index.Remove(s.pattern, s.id) {
		return
	}
	b.tell()
	delete(b.of, s.key())
	if b.perGrant[s.grant]--; b.perGrant[s.grant] == 0 {
		delete(b.perGrant, s.grant)
	}
}

func (b *broker) unsubscribe(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[s.key()] == s {
		b.drop(s)
	}
}

// find is the subscription of an actor to a pattern, nil if there is none.
func (b *broker) find(subscriber host.Ref, pattern string) *subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of[subscriptionKey{subscriber.UID(), pattern}]
}

// retain keeps the last value of a topic, which a grant pays for from now on.
func (b *broker) retain(grant uint64, most int64, name string, value []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	cost := costOf(name, value)
	all, of := b.bytes+cost, b.bytesOf[grant]+cost
	old := b.values.Get(name)
	if old != nil {
		before := costOf(name, old.value)
		if all -= before; old.grant == grant {
			of -= before
		}
	}
	switch {
	case of > most:
		return service.Errorf(service.Quota, "retained values would have %d bytes, at most %d; retain of the grant raises it", of, most)
	case all > b.mostRetain:
		return service.Errorf(service.Quota, "retained values of all actors would have %d bytes, at most %d; retain of the service raises it", all, b.mostRetain)
	}
	if old != nil && old.grant != grant {
		b.pay(old.grant, -costOf(name, old.value))
	}
	b.bytes, b.bytesOf[grant] = all, of
	b.values.Put(name, retained{grant: grant, value: append([]byte(nil), value...)})
	return nil
}

func costOf(name string, value []byte) int64 { return int64(len(name) + len(value) + perValue) }

func (b *broker) pay(grant uint64, bytes int64) {
	if b.bytesOf[grant] += bytes; b.bytesOf[grant] == 0 {
		delete(b.bytesOf, grant)
	}
}

// forget ends that a value is retained, and reports whether one was.
func (b *broker) forget(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.values.Get(name)
	if old == nil {
		return false
	}
	cost := costOf(name, old.value)
	b.bytes -= cost
	b.pay(old.grant, -cost)
	return b.values.Delete(name)
}

// retainedValue is a topic and its last value.
type retainedValue struct {
	_     struct{} `cbor:",toarray"`
	Topic string
	Value cbor.RawMessage
}

// pageBytes bounds a page: it must fit the inbox of a guest, also with one value more.
const pageBytes = 8 << 10

// page is the retained values of topics that match, behind a topic.
func (b *broker) page(pattern, after string) page {
	b.mu.Lock()
	defer b.mu.Unlock()
	var p page
	size, last := 0, ""
	b.values.Match(pattern, after, func(name string, v *retained) bool {
		if size >= pageBytes {
			p.Next = last
			return false
		}
		p.Retained = append(p.Retained, retainedValue{Topic: name, Value: v.value})
		size += len(name) + len(v.value) + 8
		last = name
		return true
	})
	return p
}
