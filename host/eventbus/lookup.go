package eventbus

import "sync"

// Lookup is a bus on which each event has a key, and subscribers name the key that they want. An event without subscribers
// costs one map access.
type Lookup[E any, K, S comparable] struct {
	classify func(E) K
	deliver  func(E, S)
	most     int

	mu    sync.RWMutex
	of    map[K]*members[S]
	keys  map[S]map[K]struct{} // that somebody has subscribed to
	count int
}

// NewLookup makes a bus for most subscriptions, [DefaultMost] if that is 0. classify is the key of an event,
// deliver delivers one to a subscriber.
func NewLookup[E any, K, S comparable](classify func(E) K, deliver func(E, S), most int) *Lookup[E, K, S] {
	return &Lookup[E, K, S]{classify: classify, deliver: deliver, most: mostOr(most), of: map[K]*members[S]{}, keys: map[S]map[K]struct{}{}}
}

// Subscribe makes s get the events of a key; false if it does already. The error is [ErrFull].
func (b *Lookup[E, K, S]) Subscribe(s S, key K) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.keys[s][key]; there {
		return false, nil
	}
	if b.count >= b.most {
		return false, ErrFull
	}
	if b.of[key] == nil {
		b.of[key] = &members[S]{}
	}
	b.of[key].add(s)
	if b.keys[s] == nil {
		b.keys[s] = map[K]struct{}{}
	}
	b.keys[s][key] = struct{}{}
	b.count++
	return true, nil
}

// Unsubscribe ends the subscription of s to a key; false if there is none.
func (b *Lookup[E, K, S]) Unsubscribe(s S, key K) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remove(s, key)
}

// UnsubscribeAll ends all subscriptions of s, and returns how many there were.
func (b *Lookup[E, K, S]) UnsubscribeAll(s S) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.count
	for key := range b.keys[s] { // in which order makes no difference
		b.remove(s, key)
	}
	return before - b.count
}

// remove needs the lock.
func (b *Lookup[E, K, S]) remove(s S, key K) bool {
	of := b.of[key]
	if of == nil || !of.remove(s) {
		return false
	}
	if len(of.at) == 0 {
		delete(b.of, key)
	}
	if delete(b.keys[s], key); len(b.keys[s]) == 0 {
		delete(b.keys, s)
	}
	b.count--
	return true
}

// Publish delivers an event to all that have subscribed to its key, and returns how many there were.
func (b *Lookup[E, K, S]) Publish(e E) int {
	n := 0
	for _, m := range b.subscribers(b.classify(e)) {
		if !m.gone.Load() {
			b.deliver(e, m.value)
			n++
		}
	}
	return n
}

// subscribers are the subscribers to a key, some of which may have gone.
func (b *Lookup[E, K, S]) subscribers(key K) []*member[S] {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if of := b.of[key]; of != nil {
		return of.list
	}
	return nil
}

// Len is the number of subscriptions.
func (b *Lookup[E, K, S]) Len() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.count
}
