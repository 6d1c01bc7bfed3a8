package eventbus

import "sync"

// Scanning is a bus on which each subscription has a classifier: what an event must be like. Every event is
// compared with every subscription, so publishing takes time in proportion to how many there are.
type Scanning[E any, C, S comparable] struct {
	matches func(C, E) bool
	deliver func(E, S)
	most    int

	mu  sync.RWMutex
	all members[scan[C, S]]
}

type scan[C, S comparable] struct {
	classifier C
	subscriber S
}

// NewScanning makes a bus for most subscriptions, [DefaultMost] if that is 0. matches says whether an event
// matches a classifier; it must not wait. deliver delivers an event to a subscriber.
func NewScanning[E any, C, S comparable](matches func(C, E) bool, deliver func(E, S), most int) *Scanning[E, C, S] {
	return &Scanning[E, C, S]{matches: matches, deliver: deliver, most: mostOr(most)}
}

// Subscribe makes s get the events that a classifier matches; false if it does already. The error is [ErrFull].
func (b *Scanning[E, C, S]) Subscribe(s S, classifier C) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := scan[C, S]{classifier, s}
	if b.all.at[x] == nil && len(b.all.at) >= b.most {
		return false, ErrFull
	}
	return b.all.add(x), nil
}

// Unsubscribe ends a subscription; false if there is none.
func (b *Scanning[E, C, S]) Unsubscribe(s S, classifier C) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.remove(scan[C, S]{classifier, s})
}

// UnsubscribeAll ends all subscriptions of s, and returns how many there were. It looks at all subscriptions of the bus.
func (b *Scanning[E, C, S]) UnsubscribeAll(s S) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for x := range b.all.at { // in which order makes no difference
		if x.subscriber == s && b.all.remove(x) {
			n++
		}
	}
	return n
}

// Publish delivers an event to the subscriber of each subscription that matches it, and returns how many there
// were: a subscriber with two matching subscriptions gets it twice.
func (b *Scanning[E, C, S]) Publish(e E) int {
	b.mu.RLock()
	list := b.all.list
	b.mu.RUnlock()
	n := 0
	for _, m := range list {
		if !m.gone.Load() && b.matches(m.value.classifier, e) {
			b.deliver(e, m.value.subscriber)
			n++
		}
	}
	return n
}

// Len is the number of subscriptions.
func (b *Scanning[E, C, S]) Len() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.all.at)
}
