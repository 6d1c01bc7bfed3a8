package eventbus

import (
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/host/service/pubsub/topic"
)

// Subchannel is a bus whose events have topics: tokens with dots between them, from the general to the
// special. A subscriber to a topic gets its events and those of all topics below: orders stands
// for orders, orders.eu and orders.eu.paid. In a subscription a token may be *, which stands for any
// one token, and the last may be >, which stands for everything below, but not for the topic above it.
//
// Publishing takes time in proportion to the number of receivers; unsubscribing, to that of the subscribers to the same
// topic. The subscribers of the last 4096 topics are cached until a subscription begins or ends.
type Subchannel[E any, S comparable] struct {
	classify func(E) string
	deliver  func(E, S)
	most     int

	mu    sync.Mutex
	index topic.Index[*party[S]]
	of    map[S]*party[S]
	count int
}

// party is a subscriber with its subscriptions.
type party[S comparable] struct {
	member[S]
	several atomic.Bool // it has, or had, more than one; set before the second one can be found
	ids     map[string][2]uint64
}

// NewSubchannel makes a bus for most subscriptions, [DefaultMost] if that is 0. classify returns the topic of an event; an
// event with an invalid topic is not delivered. deliver delivers an event to a subscriber.
func NewSubchannel[E any, S comparable](classify func(E) string, deliver func(E, S), most int) *Subchannel[E, S] {
	return &Subchannel[E, S]{classify: classify, deliver: deliver, most: mostOr(most), of: map[S]*party[S]{}}
}

// Subscribe makes s get the events of a topic, or a pattern, and of all below; false if it does already.
// The error is [ErrFull], or says what is wrong with the topic.
func (b *Subchannel[E, S]) Subscribe(s S, channel string) (bool, error) {
	if err := topic.CheckPattern(channel); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.of[s]
	if p != nil {
		if _, there := p.ids[channel]; there {
			return false, nil
		}
	}
	if b.count >= b.most {
		return false, ErrFull
	}
	if p == nil {
		p = &party[S]{member: member[S]{value: s}, ids: map[string][2]uint64{}}
		b.of[s] = p
	} else {
		p.several.Store(true)
	}
	p.ids[channel] = b.enter(channel, p)
	b.count++
	return true, nil
}

// enter puts a subscription into the index: under the topic itself, and under everything below it.
func (b *Subchannel[E, S]) enter(channel string, p *party[S]) [2]uint64 {
	below := below(channel)
	if below == "" {
		return [2]uint64{b.index.Add(channel, p)}
	}
	return [2]uint64{b.index.Add(channel, p), b.index.Add(below, p)}
}

func (b *Subchannel[E, S]) leave(channel string, ids [2]uint64) {
	b.index.Remove(channel, ids[0])
	if below := below(channel); below != "" {
		b.index.Remove(below, ids[1])
	}
}

// below is the pattern of all topics below, "" if the pattern includes them itself.
func below(channel string) string {
	if channel[len(channel)-1] == '>' {
		return ""
	}
	return channel + ".>"
}

// Unsubscribe ends a subscription; false if there is none to exactly this topic or pattern.
func (b *Subchannel[E, S]) Unsubscribe(s S, channel string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.of[s]
	if p == nil {
		return false
	}
	ids, there := p.ids[channel]
	if there {
		b.remove(p, channel, ids)
	}
	return there
}

// UnsubscribeAll ends all subscriptions of s, and returns how many there were.
func (b *Subchannel[E, S]) UnsubscribeAll(s S) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.count
	if p := b.of[s]; p != nil {
		for channel, ids := range p.ids { // in which order makes no difference
			b.remove(p, channel, ids)
		}
	}
	return before - b.count
}

// remove needs the lock.
func (b *Subchannel[E, S]) remove(p *party[S], channel string, ids [2]uint64) {
	b.leave(channel, ids)
	b.count--
	if delete(p.ids, channel); len(p.ids) == 0 {
		p.gone.Store(true)
		delete(b.of, p.value)
	}
}

// Publish delivers an event to all that have subscribed to its topic or to one above it, once to each, and
// returns how many there were.
func (b *Subchannel[E, S]) Publish(e E) int {
	name := b.classify(e)
	if topic.Check(name) != nil {
		return 0
	}
	n := 0
	var seen map[*party[S]]bool
	for _, p := range b.match(name) {
		if p.several.Load() {
			if seen[p] {
				continue
			}
			if seen == nil {
				seen = map[*party[S]]bool{}
			}
			seen[p] = true
		}
		if !p.gone.Load() {
			b.deliver(e, p.value)
			n++
		}
	}
	return n
}

func (b *Subchannel[E, S]) match(name string) []*party[S] {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.index.Match(name)
}

// Len is the number of subscriptions.
func (b *Subchannel[E, S]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}
