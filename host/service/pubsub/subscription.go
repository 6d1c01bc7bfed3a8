package pubsub

import (
	"errors"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// overflow is what becomes of events that a slow subscriber has no room for.
type overflow string

const (
	dropOldest overflow = "oldest"
	dropNewest overflow = "newest"
	endIt      overflow = "end" // the subscription ends
)

// subscription is what an actor gets of a pattern, and the actor that it is told about it by: at most window
// events are under way to the subscriber, what comes meanwhile waits, and what does not fit is missed,
// which the next event says.
//
// Events go from the turn of whoever publishes straight to the subscriber, in the name of the
// subscription. Its own turns handle acknowledgements and ends.
type subscription struct {
	broker     *broker
	sys        *host.System
	clock      host.Clock
	id, grant  uint64
	pattern    string
	subscriber host.Ref
	window     uint64
	most       int // bytes in queue
	overflow   overflow
	ackWait    time.Duration

	mu     sync.Mutex
	state  subscriptionState
	ref    host.Ref
	sent   uint64 // events
	acked  uint64 // of them
	missed uint64 // since the last one that was sent
	queue  []Event
	bytes  int
	timer  interface{ Stop() bool } // runs while the window is used up
	buf    []byte
}

type subscriptionState uint8

const (
	opening subscriptionState = iota // its actor is not known yet
	open
	over
)

// perQueued is what an event costs in a queue besides its topic and its value.
const perQueued = 64

func (s *subscription) key() subscriptionKey { return subscriptionKey{s.subscriber.UID(), s.pattern} }

func (s *subscription) props() host.Props {
	return host.Native(func() host.Actor { return s }).WithLifetime(supervision.Temporary)
}

// begin says who its actor is.
func (s *subscription) begin(ref host.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ref = ref
	if s.state == opening {
		s.state = open
		return
	}
	s.sys.Stop(ref) // it has ended meanwhile
}

// Offer implements [Receiver].
func (s *subscription) Offer(e *Event) (taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != open {
		return false
	}
	if len(s.queue) == 0 && s.sent-s.acked < s.window {
		return s.send(e)
	}
	cost := len(e.Topic) + len(e.Value) + perQueued
	for s.overflow == dropOldest && len(s.queue) > 0 && s.bytes+cost > s.most {
		s.pop()
		s.missed++
	}
	if s.bytes+cost > s.most {
		s.missed++
		if s.overflow == endIt {
			s.ends("more waited than its queue has room for")
		}
		return false
	}
	s.queue = append(s.queue, Event{e.Topic, append([]byte(nil), e.Value...)})
	s.bytes += cost
	return true
}

// pop takes the oldest event out of the queue.
func (s *subscription) pop() Event {
	e := s.queue[0]
	s.queue[0] = Event{}
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	s.bytes -= len(e.Topic) + len(e.Value) + perQueued
	return e
}

// send delivers an event. What the subscriber's mailbox has no room for is missed.
func (s *subscription) send(e *Event) bool {
	s.buf = appendEvent(s.buf[:0], s.sent+1, e, s.missed)
	switch err := s.sys.TellFrom(s.ref, s.subscriber, host.Raw(s.buf)); {
	case err == nil:
	case errors.Is(err, host.ErrUnknown), errors.Is(err, host.ErrStopped):
		s.ends("")
		return false
	default:
		s.missed++
		return false
	}
	s.sent++
	s.missed = 0
	if s.sent-s.acked == s.window {
		s.timer = s.clock.AfterFunc(s.ackWait, s.expire)
	}
	return true
}

// ack notes that the subscriber is done with the first n events, and sends what waits.
func (s *subscription) ack(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= s.acked || n > s.sent {
		return
	}
	s.opens(n)
}

// expire takes the events of a window that nobody acknowledges as lost.
func (s *subscription) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent-s.acked == s.window {
		s.opens(s.sent)
	}
}

func (s *subscription) opens(acked uint64) {
	s.acked = acked
	s.rest()
	for len(s.queue) > 0 && s.sent-s.acked < s.window && s.state == open {
		e := s.pop()
		s.send(&e)
	}
}

// rest stops the timer.
func (s *subscription) rest() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// ends is the end of it, with the lock held: nothing is sent any more but the reason, if the subscriber
// has not asked for the end. Its actor does the rest.
func (s *subscription) ends(reason string) {
	if s.state == over {
		return
	}
	if s.state == open {
		s.sys.Stop(s.ref)
		if reason != "" {
			_ = s.sys.TellFrom(s.ref, s.subscriber, []any{"ended", reason})
		}
	}
	s.state, s.queue, s.bytes, s.buf = over, nil, 0, nil
	s.rest()
}

// stop ends it, but does not take it out.
func (s *subscription) stop(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends(reason)
}

// end ends it and takes it out.
func (s *subscription) end(reason string) {
	s.stop(reason)
	s.broker.unsubscribe(s)
}

// Started implements [host.Starter].
func (s *subscription) Started(ctx *host.Context) error { return ctx.Watch(s.subscriber) }

// Stopped implements [host.Stopper].
func (s *subscription) Stopped(*host.Context) { s.end("the service has stopped it") }

// Receive implements [host.Actor].
func (s *subscription) Receive(ctx *host.Context, m host.Message) error {
	switch {
	case m.Kind == abi.KindTerminated:
		s.end("")
		return nil
	case m.Kind != abi.KindMessage || m.Sender.UID() != s.subscriber.UID():
		return host.ErrUnhandled
	}
	op, n, err := readOrder(m.Payload)
	if m.Correlation != 0 {
		if err != nil {
			_ = ctx.ReplyError(err.Error())
		} else {
			_ = ctx.Reply(nil)
		}
	}
	switch {
	case err != nil:
		return host.ErrUnhandled
	case op == "ack":
		s.ack(n)
	default:
		s.end("")
	}
	return nil
}
