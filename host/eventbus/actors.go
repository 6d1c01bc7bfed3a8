package eventbus

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Actors is a bus whose events are about actors, and whose subscribers are actors: each subscribes to the events
// about another one. The end of either actor ends the subscription.
//
// An event is a message without a sender. One that is not delivered is a suppressed dead letter.
type Actors[E any] struct {
	sys    *host.System
	about  func(E) host.Ref
	encode func(E) any
	lookup *Lookup[struct{}, abi.Ref, abi.Ref]
	keeper host.Ref

	mu     sync.Mutex // of changes: the keeper hears of them in their order
	known  map[abi.Ref]*watchedActor
	closed bool
}

// watchedActor is an actor that is watched, with the actors that it has subscriptions with.
type watchedActor struct{ about, by map[abi.Ref]struct{} }

// NewActors makes a bus for most subscriptions, [DefaultMost] if that is 0. about is the actor that an event is
// about, encode the message for its subscribers. An actor below /system, which ends with the system
// or with [Actors.Close], watches the actors that have subscriptions.
func NewActors[E any](sys *host.System, about func(E) host.Ref, encode func(E) any, most int) (*Actors[E], error) {
	b := &Actors[E]{sys: sys, about: about, encode: encode, known: map[abi.Ref]*watchedActor{}}
	b.lookup = NewLookup[struct{}, abi.Ref, abi.Ref](nil, nil, most)
	most = 2 * b.lookup.most // actors that are watched
	limits := host.Limits{Watches: most, Mailbox: 2 * most, MailboxBytes: 1024 * int64(most), Held: 2048 * int64(most)}
	var err error
	b.keeper, err = sys.SpawnService("", host.Func(b.keep).WithLimits(limits))
	if err != nil {
		return nil, err
	}
	return b, nil
}

// order is what the keeper is told.
type order struct {
	_       struct{} `cbor:",toarray"`
	Actor   uint64
	Unwatch bool
}

// keep is what the keeper does.
func (b *Actors[E]) keep(ctx *host.Context, m host.Message) error {
	if m.Kind == abi.KindTerminated {
		b.ended(m.Sender.UID())
		return nil
	}
	var o order
	if m.Kind != abi.KindMessage || !m.Sender.IsZero() || m.Decode(&o) != nil {
		return host.ErrUnhandled
	}
	ref, err := b.sys.RefOf(abi.Ref(o.Actor), host.Ref{})
	switch {
	case err != nil:
		return host.ErrUnhandled
	case o.Unwatch:
		ctx.Unwatch(ref)
		return nil
	}
	return ctx.Watch(ref)
}

// ended removes an actor as a subscriber, and as one that others have subscribed to.
func (b *Actors[E]) ended(who abi.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.known[who]
	if p == nil {
		return
	}
	for other := range p.about { // in which order makes no difference
		b.remove(who, other)
	}
	for other := range p.by {
		b.remove(other, who)
	}
}

// Subscribe makes an actor get the events about another one, or itself; false if it does already. The error is [ErrFull], or
// one of host's if a ref is zero or the bus is closed. A stopped actor may subscribe, and is removed soon.
func (b *Actors[E]) Subscribe(subscriber, about host.Ref) (bool, error) {
	if subscriber.IsZero() || about.IsZero() {
		return false, host.ErrNobody
	}
	s, a := subscriber.UID(), about.UID()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed { // also if both are watched already
		return false, host.ErrStopped
	}
	if made, err := b.lookup.Subscribe(s, a); !made {
		return false, err
	}
	for _, ref := range []abi.Ref{s, a} {
		if b.known[ref] == nil {
			b.known[ref] = &watchedActor{map[abi.Ref]struct{}{}, map[abi.Ref]struct{}{}}
			if err := b.sys.Tell(b.keeper, order{Actor: uint64(ref)}); err != nil {
				b.remove(s, a)
				return false, err
			}
		}
	}
	b.known[s].about[a], b.known[a].by[s] = struct{}{}, struct{}{}
	return true, nil
}

// remove ends a subscription, and the watches of the two if it was their last. It needs the lock.
func (b *Actors[E]) remove(subscriber, about abi.Ref) bool {
	if !b.lookup.Unsubscribe(subscriber, about) {
		return false
	}
	for _, ref := range []abi.Ref{subscriber, about} {
		p := b.known[ref]
		if p == nil {
			continue
		}
		if ref == subscriber {
			delete(p.about, about)
		}
		if ref == about {
			delete(p.by, subscriber)
		}
		if len(p.about)+len(p.by) == 0 {
			delete(b.known, ref)
			_ = b.sys.Tell(b.keeper, host.Marked{Value: order{Actor: uint64(ref), Unwatch: true}, Marks: host.Suppressed})
		}
	}
	return true
}

// Unsubscribe ends a subscription; false if there is none.
func (b *Actors[E]) Unsubscribe(subscriber, about host.Ref) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remove(subscriber.UID(), about.UID())
}

// UnsubscribeAll ends all subscriptions of an actor, and returns how many there were.
func (b *Actors[E]) UnsubscribeAll(subscriber host.Ref) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.known[subscriber.UID()]
	if p == nil {
		return 0
	}
	for about := range p.about { // in which order makes no difference
		if b.remove(subscriber.UID(), about) {
			n++
		}
	}
	return n
}

// Publish sends an event to all that have subscribed to the actor that it is about, and returns how many have
// taken it. The message is encoded once; an error is that of encoding it.
func (b *Actors[E]) Publish(e E) (int, error) {
	list := b.lookup.subscribers(b.about(e).UID())
	if len(list) == 0 {
		return 0, nil
	}
	payload, err := host.Encode(b.encode(e))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, m := range list {
		to, err := b.sys.RefOf(m.value, host.Ref{})
		if err == nil && !m.gone.Load() && b.sys.Tell(to, host.Marked{Value: host.Raw(payload), Marks: host.Suppressed}) == nil {
			n++
		}
	}
	return n, nil
}

// Len is the number of subscriptions.
func (b *Actors[E]) Len() int { return b.lookup.Len() }

// Watched is the number of actors that have a subscription, or that somebody has subscribed to.
func (b *Actors[E]) Watched() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.known)
}

// Close ends the actor that watches. Subscribing fails from then on.
func (b *Actors[E]) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.sys.Stop(b.keeper)
}
