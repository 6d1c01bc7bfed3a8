package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Inbox is a ref and a mailbox for code that is no actor: it sends in its own name,
// receives whatever it is sent, and watches. All methods may be called concurrently.
type Inbox struct {
	sys  *System
	ref  Ref
	size int

	mu      sync.Mutex
	queue   []Message
	watched map[abi.Ref]Ref
	ready   chan struct{} // holds a token while the queue is not empty
	closed  bool
}

// DefaultInbox is how many messages an inbox keeps unless it is told otherwise.
const DefaultInbox = 1000

// Inbox makes an inbox for size messages, DefaultInbox if it is not above 0. What does not
// fit is a dead letter; news of watched actors always fit. Close it in the end.
func (s *System) Inbox(size int) *Inbox {
	if size <= 0 {
		size = DefaultInbox
	}
	i := &Inbox{sys: s, size: size, watched: map[abi.Ref]Ref{}, ready: make(chan struct{}, 1)}
	i.ref = Ref{path: scheme + s.cfg.name + "/temp"}
	pr := &promise{inbox: i}
	i.ref.uid = s.asks.put(pr)
	return i
}

// Ref is where the inbox is reached.
func (i *Inbox) Ref() Ref { return i.ref }

// Tell sends a message in the inbox's name.
func (i *Inbox) Tell(to Ref, v any) error { return i.Ask(to, v, 0) }

// Ask is Tell with a correlation, which the answer will have.
func (i *Inbox) Ask(to Ref, v any, correlation uint64) error {
	e, err := envelope(v)
	if err != nil {
		return err
	}
	e.Sender, e.Correlation = i.ref.uid, correlation
	return i.sys.deliver(nil, to.uid, e)
}

// Receive takes the next message, and waits for one if there is none. The error is
// the context's, wrapped in ErrTimeout, or ErrClosed.
func (i *Inbox) Receive(ctx context.Context) (Message, error) {
	for {
		if m, ok := i.TryReceive(); ok {
			return m, nil
		}
		i.mu.Lock()
		closed := i.closed
		i.mu.Unlock()
		if closed {
			return Message{}, ErrClosed
		}
		select {
		case <-i.ready:
		case <-ctx.Done():
			return Message{}, fmt.Errorf("%w: %w", ErrTimeout, ctx.Err())
		}
	}
}

// TryReceive takes the next message if there is one.
func (i *Inbox) TryReceive() (Message, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queue) == 0 {
		return Message{}, false
	}
	m := i.queue[0]
	i.queue[0] = Message{}
	i.queue = i.queue[1:]
	if len(i.queue) > 0 {
		i.signal() // for another receiver
	}
	return m, true
}

// Watch makes the end of an actor known through a Message of KindTerminated whose
// Sender it is, behind all that it has sent. One that has ended already counts.
func (i *Inbox) Watch(ref Ref) {
	i.mu.Lock()
	i.watched[ref.uid] = ref
	i.mu.Unlock()
	c := i.sys.table.get(ref.uid)
	if c == nil || !c.post(nil, sysMsg{kind: sysWatch, ref: i.ref.uid}) {
		i.ended(ref.uid, "unknown")
	}
}

// Unwatch takes a watch back, also when the message waits already.
func (i *Inbox) Unwatch(ref Ref) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.watched, ref.uid)
	for k, m := range i.queue {
		if m.Kind == abi.KindTerminated && m.Sender.uid == ref.uid {
			i.queue = append(i.queue[:k:k], i.queue[k+1:]...)
			break
		}
	}
	if c := i.sys.table.get(ref.uid); c != nil {
		c.post(nil, sysMsg{kind: sysUnwatch, ref: i.ref.uid})
	}
}

// Close ends the inbox: later messages to it are dead letters, those that nobody has
// taken are forgotten, and Receive fails.
func (i *Inbox) Close() {
	i.sys.asks.remove(i.ref.uid)
	i.mu.Lock()
	defer i.mu.Unlock()
	for uid := range i.watched {
		if c := i.sys.table.get(uid); c != nil {
			c.post(nil, sysMsg{kind: sysUnwatch, ref: i.ref.uid})
		}
	}
	i.closed, i.queue, i.watched = true, nil, nil
	i.signal()
}

// put takes a message in.
func (i *Inbox) put(m Message) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || len(i.queue) >= i.size {
		return ErrMailboxFull
	}
	i.queue = append(i.queue, m)
	i.signal()
	return nil
}

// ended takes the news of an actor's end in, if it is (still) watched.
func (i *Inbox) ended(uid abi.Ref, reason string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	ref, ok := i.watched[uid]
	if !ok {
		return
	}
	delete(i.watched, uid)
	i.queue = append(i.queue, Message{Kind: abi.KindTerminated, Sender: ref, Payload: appendText(nil, reason)})
	i.signal()
}

// signal lets one receiver look. mu is held.
func (i *Inbox) signal() {
	select {
	case i.ready <- struct{}{}:
	default:
	}
}

// AskOnce starts an actor for one question: it asks it, stops it and returns the
// answer. An actor that ends before it has answered, which it does when it fails, makes
// it ErrStopped with the reason; else the errors are those of Spawn and Ask.
func (s *System) AskOnce(ctx context.Context, p Props, v any) (Message, error) {
	ref, err := s.Spawn("", p.WithLifetime(supervision.Temporary))
	if err != nil {
		return Message{}, err
	}
	defer s.Stop(ref)
	in := s.Inbox(0)
	defer in.Close()
	in.Watch(ref)
	if err := in.Ask(ref, v, 1); err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrStopped) {
		return Message{}, err
	}
	m, err := in.Receive(ctx)
	switch {
	case err != nil:
		return Message{}, err
	case m.Kind == abi.KindTerminated:
		return Message{}, fmt.Errorf("%w: %s", ErrStopped, reasonOf(m.Payload))
	}
	return m, m.Err()
}
