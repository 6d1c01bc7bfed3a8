package look

import (
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/host/event"
)

// Subscription is a bounded stream of events. A reader that is too slow loses events, and gets
// their number; no actor waits for it.
type Subscription struct {
	c       chan event.Event
	filter  func(*event.Event) bool
	hear    func(*event.Event) // nil: C is read; see System.Listen
	dropped atomic.Uint64
	bus     *Bus
}

// C is the channel of the events, in order. It is closed by Close and by [System.Close]. The last event of a system, also of
// one that stops by itself, is EventTerminated, except for dead letters and events of its extensions until it is closed.
func (s *Subscription) C() <-chan event.Event { return s.c }

// Dropped is the number of events lost so far.
func (s *Subscription) Dropped() uint64 { return s.dropped.Load() }

// Close ends the subscription. It is idempotent.
func (s *Subscription) Close() { s.bus.remove(s) }

// Bus distributes events.
type Bus struct {
	Secrets Secrets
	Recent  Recent
	subs    atomic.Pointer[[]*Subscription]
	hearing atomic.Int32 // subscriptions that hear in Step
	mu      sync.RWMutex // writers close channels, readers send
	closed  bool
}

// Listeners is the number of subscriptions that hear in Step.
func (b *Bus) Listeners() int { return int(b.hearing.Load()) }

// Quiet reports whether there is no listener, and no event is kept, so that events need not be made.
func (b *Bus) Quiet() bool {
	p := b.subs.Load()
	return (p == nil || len(*p) == 0) && !b.Recent.kept()
}

func (b *Bus) Add(buffer int, filter func(*event.Event) bool) *Subscription {
	return b.Subscribe(buffer, filter, nil)
}

// Subscribe is add for a subscription that hears in Step, unless hear is nil.
func (b *Bus) Subscribe(buffer int, filter func(*event.Event) bool, hear func(*event.Event)) *Subscription {
	s := &Subscription{c: make(chan event.Event, max(buffer, 1)), filter: filter, hear: hear, bus: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		close(s.c)
		return s
	}
	var subs []*Subscription
	if p := b.subs.Load(); p != nil {
		subs = append(subs, *p...)
	}
	subs = append(subs, s)
	if hear != nil {
		b.hearing.Add(1)
	}
	b.subs.Store(&subs)
	return s
}

func (b *Bus) remove(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.subs.Load()
	if p == nil {
		return
	}
	var rest []*Subscription
	found := false
	for _, x := range *p {
		if x == s {
			found = true
			continue
		}
		rest = append(rest, x)
	}
	if found {
		if s.hear != nil {
			b.hearing.Add(-1)
		}
		b.subs.Store(&rest)
		close(s.c)
	}
}

func (b *Bus) Publish(e event.Event) {
	if b.Quiet() {
		return
	}
	if set := b.Secrets.set.Load(); set != nil {
		redactEvent(set, &e)
	}
	b.Recent.add(&e)
	b.mu.RLock()
	defer b.mu.RUnlock()
	p := b.subs.Load()
	if p == nil {
		return
	}
	for _, s := range *p {
		if s.filter != nil && !s.filter(&e) {
			continue
		}
		if len(s.c) >= heavyBacklog && weightOf(&e) > heavyEvent { // a slow reader's buffer holds no more bytes than that
			s.dropped.Add(1)
			continue
		}
		select {
		case s.c <- e:
		default:
			s.dropped.Add(1)
		}
	}
}

// With so many events waiting, events of more bytes than heavyEvent are lost: the buffer of a reader
// that is too slow holds about 32 MiB at most.
const (
	heavyBacklog = 2048
	heavyEvent   = 512
)

// weightOf is about how many bytes written by guests an event holds.
func weightOf(e *event.Event) int {
	n := len(e.Text) + len(e.Note)
	if e.Dead != nil {
		n += len(e.Dead.Payload) + len(e.Dead.Path)
	}
	if e.Mail != nil {
		n += len(e.Mail.Payload)
	}
	return n
}

func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if p := b.subs.Load(); p != nil {
		for _, s := range *p {
			close(s.c)
		}
	}
	b.subs.Store(nil)
}

// Flush calls the listeners of a manual system with what has happened, and returns how many events that were.
// Events that they cause are left for the next flush.
func (b *Bus) Flush() (n int) {
	if b.hearing.Load() == 0 {
		return 0
	}
	subs := b.subs.Load()
	if subs == nil {
		return 0
	}
	for _, s := range *subs {
		if s.hear == nil {
			continue
		}
		for range len(s.c) {
			e, open := <-s.c
			if !open {
				break
			}
			s.hear(&e)
			n++
		}
	}
	return n
}
