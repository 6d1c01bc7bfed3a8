// Package feed delivers events to an actor that has subscribed to them. It limits unacknowledged events and waiting bytes,
// and counts events that did not fit. The services whose subscribers are guests share it.
package feed

import (
	"errors"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/supervision"
)

// Overflow is what becomes of events that a slow subscriber has no room for.
type Overflow string

// What can become of them.
const (
	DropOldest Overflow = "oldest"
	DropNewest Overflow = "newest"
	End        Overflow = "end" // the feed ends
)

// Defaults of [Options], and bounds of what subscribers ask for.
const (
	DefaultWindow  = 64 // events that are delivered ahead of acknowledgements
	MaxWindow      = 1024
	DefaultAckWait = 30 * time.Second
	MinAckWait     = 100 * time.Millisecond
	MaxAckWait     = time.Hour
)

// Options are what a subscriber says of a feed. They are part of a request's arguments.
type Options struct {
	Window   int    `cbor:"window"`
	Queue    int    `cbor:"queue"` // bytes
	Overflow string `cbor:"overflow"`
	AckWait  int64  `cbor:"ack_wait"` // ns
}

// Usual are the defaults, to decode a request into; Queue is set by [Options.Check].
func Usual() Options {
	return Options{Window: DefaultWindow, Overflow: string(DropOldest), AckWait: int64(DefaultAckWait)}
}

// Check says what is wrong with them; most is what the grant lets a queue hold.
func (o *Options) Check(most int) error {
	if o.Queue == 0 {
		o.Queue = most
	}
	wait := time.Duration(o.AckWait)
	switch {
	case o.Window < 1 || o.Window > MaxWindow:
		return service.Errorf(service.BadRequest, "window is 1 to %d", MaxWindow)
	case o.Queue < 0 || o.Queue > most:
		return service.Errorf(service.TooLarge, "queue is at most %d bytes; queue of the grant raises it", most)
	case wait < MinAckWait || wait > MaxAckWait:
		return service.Errorf(service.BadRequest, "ack_wait is %v to %v", MinAckWait, MaxAckWait)
	}
	switch Overflow(o.Overflow) {
	case DropOldest, DropNewest, End:
		return nil
	}
	return service.Errorf(service.BadRequest, "overflow is oldest, newest or end")
}

// Feed is a subscription and the actor that delivers it. At most window events are unacknowledged, further ones wait, and
// those that do not fit are missed. The next event says how many were missed.
//
// Events go from the goroutine that offers them straight to the subscriber, in the name of the
// feed. Its own turns handle acknowledgements and ends. It is safe for concurrent use.
type Feed struct {
	sys        *host.System
	clock      host.Clock
	subscriber host.Ref
	window     uint64
	most       int // bytes in queue
	overflow   Overflow
	ackWait    time.Duration
	words      Words
	marks      host.Mark
	left       func() // once it is over, so that nobody offers it anything
	begun      func() // gives back StartBytes

	mu     sync.Mutex
	state  state
	ref    host.Ref
	sent   uint64 // events
	acked  uint64 // of them
	missed uint64 // since the last one that was sent
	queue  []queued
	bytes  int
	timer  interface{ Stop() bool } // runs while the window is used up
	buf    []byte
}

// Words are what messages of a feed begin with, so that a subscriber that has feeds of several services
// can tell them apart.
type Words struct{ Event, Ended string }

// queued is an event that waits.
type queued struct {
	topic string
	value []byte
}

type state uint8

const (
	opening state = iota // its actor is not known yet
	open
	over
)

// StartBytes is what the subscriber's grant holds for a feed until its actor has started. Who replaces
// subscriptions faster than actors start would otherwise fill the host with feeds that are over.
const StartBytes = 2 << 10

// perQueued is the cost of an event in a queue in addition to its topic and its value.
const perQueued = 64

// New makes a feed with options that were checked; marks are those of its messages, which begin with words. left is called when it
// is over, and begun when its actor has started, both perhaps more than once, by any goroutine.
func New(env *service.Env, subscriber host.Ref, o Options, words Words, marks host.Mark, left, begun func()) *Feed {
	return &Feed{
		sys: env.System, clock: env.Clock, subscriber: subscriber, window: uint64(o.Window), most: o.Queue,
		overflow: Overflow(o.Overflow), ackWait: time.Duration(o.AckWait), words: words, marks: marks, left: left, begun: begun,
	}
}

// Props are those of its actor.
func (s *Feed) Props() host.Props {
	return host.Native(func() host.Actor { return s }).WithLifetime(supervision.Temporary)
}

// Begin says who its actor is.
func (s *Feed) Begin(ref host.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ref = ref
	if s.state == opening {
		s.state = open
		return
	}
	s.sys.Stop(ref) // it has ended meanwhile
}

// Subscriber is whose it is.
func (s *Feed) Subscriber() host.Ref { return s.subscriber }

// Offer takes an event, for now or for later, or reports that it is missed. It does not wait. The value is CBOR,
// and may change afterwards.
func (s *Feed) Offer(topic string, value []byte) (taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != open {
		return false
	}
	if len(s.queue) == 0 && s.sent-s.acked < s.window {
		return s.send(topic, value)
	}
	cost := len(topic) + len(value) + perQueued
	for s.overflow == DropOldest && len(s.queue) > 0 && s.bytes+cost > s.most {
		s.pop()
		s.missed++
	}
	if s.bytes+cost > s.most {
		s.missed++
		if s.overflow == End {
			s.ends("more waited than its queue has room for")
		}
		return false
	}
	s.queue = append(s.queue, queued{topic, append([]byte(nil), value...)})
	s.bytes += cost
	return true
}

// pop takes the oldest event out of the queue.
func (s *Feed) pop() queued {
	e := s.queue[0]
	s.queue[0] = queued{}
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	s.bytes -= len(e.topic) + len(e.value) + perQueued
	return e
}

// send delivers an event. What the subscriber's mailbox has no room for is missed.
func (s *Feed) send(topic string, value []byte) bool {
	s.buf = appendEvent(s.buf[:0], s.words.Event, s.sent+1, topic, value, s.missed)
	switch err := s.tell(host.Raw(s.buf)); {
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

// tell sends the subscriber a message.
func (s *Feed) tell(v any) error {
	if s.marks != 0 {
		v = host.Marked{Value: v, Marks: s.marks}
	}
	return s.sys.TellFrom(s.ref, s.subscriber, v)
}

// Missed notes that the subscriber has missed events that were not offered; the next one says so.
func (s *Feed) Missed(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed += n
}

// ack notes that the subscriber is done with the first n events, and sends what waits.
func (s *Feed) ack(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= s.acked || n > s.sent {
		return
	}
	s.opens(n)
}

// expire counts the unacknowledged events of a window as lost.
func (s *Feed) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent-s.acked == s.window {
		s.opens(s.sent)
	}
}

func (s *Feed) opens(acked uint64) {
	s.acked = acked
	s.rest()
	for len(s.queue) > 0 && s.sent-s.acked < s.window && s.state == open {
		e := s.pop()
		s.send(e.topic, e.value)
	}
}

// rest stops the timer.
func (s *Feed) rest() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// ends is the end of it, with the lock held: nothing is sent any more but the reason, if the subscriber
// has not asked for the end. Its actor does the rest.
func (s *Feed) ends(reason string) {
	if s.state == over {
		return
	}
	if s.state == open {
		s.sys.Stop(s.ref)
		if reason != "" {
			_ = s.tell([]any{s.words.Ended, reason})
		}
	}
	s.state, s.queue, s.bytes, s.buf = over, nil, 0, nil
	s.rest()
}

// Stop ends it, and does not call left; a reason is for a subscriber that has not asked for it.
func (s *Feed) Stop(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends(reason)
}

// End is Stop, and calls left.
func (s *Feed) End(reason string) {
	s.Stop(reason)
	s.left()
}

// Started implements [host.Starter].
func (s *Feed) Started(ctx *host.Context) error {
	s.begun()
	return ctx.Watch(s.subscriber)
}

// Stopped implements [host.Stopper].
func (s *Feed) Stopped(*host.Context) { s.End("the service has stopped it") }

// Receive implements [host.Actor].
func (s *Feed) Receive(ctx *host.Context, m host.Message) error {
	switch {
	case m.Kind == abi.KindTerminated:
		s.End("")
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
		s.End("")
	}
	return nil
}
