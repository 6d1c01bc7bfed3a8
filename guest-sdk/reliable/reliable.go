// Package reliable resends messages between actors until they were handled, in order, and once as
// long as the receiver is not restarted. The sender has a Sender as a field, the receiver a Receiver:
//
//	s.out = reliable.NewSender(to, 1)                      r.in.Accept(ctx, msg) // false: it is done with
//	if s.out.Receive(ctx, msg) { return nil }
//	err := s.out.Send(ctx, order)                          // handle msg as any other
//
// The receiver acknowledges in the turn that handles the message: if that turn fails, nothing is
// acknowledged, and the message comes again. docs/guide/reliable.md tells the rest.
package reliable

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/reliable"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Defaults of a Sender.
const (
	DefaultRetryAfter = time.Second
	DefaultMessages   = 1000
	DefaultBytes      = 1 << 20
)

// Burst is how many messages are sent again at a time.
const Burst = 100

// perMessage is what a kept message counts in addition to its payload, in bytes.
const perMessage = 64

// ErrFull is the error of Send while there is no room for one more message.
var ErrFull = rules.ErrFull

// Sender numbers messages to one actor, keeps them until they are acknowledged, and resends them. It is
// a field of an actor, and starts over with each incarnation: what was not acknowledged is lost then.
type Sender struct {
	window   rules.Window[[]byte]
	target   actor.Ref
	key      uint64
	stream   uint64
	retry    time.Duration
	attempts int
	onLost   func(ctx *actor.Context)

	begun  bool
	lost   bool
	armed  bool
	misses int
	mark   []byte
	writer abi.Writer
}

// NewSender is a sender to a target, with the key of its timer.
func NewSender(target actor.Ref, key uint64) *Sender {
	return &Sender{window: rules.NewWindow[[]byte](DefaultMessages, DefaultBytes), target: target, key: key, retry: DefaultRetryAfter}
}

// Limit bounds what is kept, in messages and in bytes of payloads (64 are added to each). It is
// called before the first Send.
func (s *Sender) Limit(messages, bytes int) *Sender {
	s.window = rules.NewWindow[[]byte](messages, bytes)
	return s
}

// RetryAfter is how long to wait for an acknowledgement before everything is sent again.
func (s *Sender) RetryAfter(d time.Duration) *Sender { s.retry = max(d, time.Millisecond); return s }

// Attempts is how often in a row something is resent without an acknowledgement before the target counts as
// lost; 0, the default, is without limit.
func (s *Sender) Attempts(n int) *Sender { s.attempts = n; return s }

// Stream distinguishes several senders of one actor to the same target.
func (s *Sender) Stream(n uint64) *Sender { s.stream = n; return s }

// OnLost makes f be called when the target has ended, or does not answer: nothing is sent any more until
// Connect.
func (s *Sender) OnLost(f func(ctx *actor.Context)) *Sender { s.onLost = f; return s }

// Len is how many messages are not acknowledged.
func (s *Sender) Len() int { return s.window.Len() }

// Lost reports whether the target is lost.
func (s *Sender) Lost() bool { return s.lost }

// Unsent calls f with the payloads of what is not acknowledged, in order. The target may have handled
// some of it.
func (s *Sender) Unsent(f func(payload []byte)) {
	for n, first := s.window.Len(), s.window.First(); n > 0; n-- {
		f(s.window.Get(first))
		first++
	}
}

// Send sends a message, and again until it is acknowledged. It fails with ErrFull.
func (s *Sender) Send(ctx *actor.Context, v actor.Encoder) error {
	s.writer.Reset(nil)
	actor.Encode(&s.writer, v)
	payload := s.writer.Bytes()
	number, err := s.window.Add(payload, len(payload)+perMessage)
	if err != nil {
		return err
	}
	if s.lost {
		return nil
	}
	if !s.begun {
		s.begun = true
		ctx.Watch(s.target)
	}
	s.send(ctx, number)
	s.arm(ctx)
	return nil
}

func (s *Sender) send(ctx *actor.Context, number uint64) {
	s.mark = rules.AppendMark(s.mark[:0], rules.Mark{Stream: s.stream, Session: ctx.Incarnation(), Number: number, First: s.window.First()})
	ctx.TellWith(s.target, actor.Raw(s.window.Get(number)), actor.Header{Key: rules.Header, Value: string(s.mark)})
}

func (s *Sender) arm(ctx *actor.Context) {
	if !s.armed {
		s.armed = true
		ctx.After(s.key, s.retry, nil)
	}
}

// Connect goes on with another target, or the same one: what is not acknowledged is sent to it, and may be
// handled a second time.
func (s *Sender) Connect(ctx *actor.Context, target actor.Ref) {
	if s.begun && target != s.target {
		ctx.Unwatch(s.target)
	}
	s.target, s.begun, s.lost, s.misses = target, true, false, 0
	ctx.Watch(target)
	s.again(ctx)
}

// again sends what is not acknowledged.
func (s *Sender) again(ctx *actor.Context) {
	number := s.window.First()
	for n := min(s.window.Len(), Burst); n > 0; n-- {
		s.send(ctx, number)
		number++
	}
	if s.window.Len() > 0 {
		s.arm(ctx)
	}
}

// Receive takes acknowledgements, the message of the timer and the end of the target; false if it is
// none of these.
func (s *Sender) Receive(ctx *actor.Context, msg *actor.Message) bool {
	switch msg.Kind() {
	case actor.KindMessage:
		ack, ok := rules.ParseAck(msg.Headers())
		if !ok || msg.Sender() != s.target || ack.Stream != s.stream {
			return false
		}
		if ack.Session == ctx.Incarnation() && s.window.Ack(ack.Number) > 0 {
			s.misses = 0
			if s.window.Len() == 0 && s.armed {
				s.armed = false
				ctx.Cancel(s.key)
			}
		}
		return true
	case actor.KindTimer:
		if msg.Correlation() != s.key {
			return false
		}
		s.armed = false
		if s.misses++; s.attempts > 0 && s.misses > s.attempts {
			s.lose(ctx)
		} else if !s.lost {
			s.again(ctx)
		}
		return true
	case actor.KindTerminated:
		if msg.Sender() != s.target || !s.begun {
			return false
		}
		s.lose(ctx)
		return true
	}
	return false
}

func (s *Sender) lose(ctx *actor.Context) {
	if s.lost {
		return
	}
	s.lost = true
	if s.armed {
		s.armed = false
		ctx.Cancel(s.key)
	}
	if s.onLost != nil {
		s.onLost(ctx)
	}
}

// Receiver takes messages of Senders in order and once, and acknowledges them. The zero value remembers
// the last 64 streams.
type Receiver struct {
	rules rules.Receiver
	ack   []byte
}

// NewReceiver returns a Receiver that remembers at most streams streams, one for each sender and Stream number.
func NewReceiver(streams int) *Receiver { return &Receiver{rules: rules.NewReceiver(streams)} }

// Accept reports whether the actor must handle a message: it comes from no Sender, or is the next one of its stream. It is
// acknowledged if this turn succeeds. Any other message needs no handling.
func (r *Receiver) Accept(ctx *actor.Context, msg *actor.Message) bool {
	if msg.Kind() != actor.KindMessage || len(msg.Headers()) == 0 {
		return true
	}
	mark, ok := rules.ParseMark(msg.Headers())
	if !ok || msg.Sender() == 0 {
		return true
	}
	verdict, ack := r.rules.Accept(msg.Sender(), mark)
	if verdict == rules.Deliver || verdict == rules.Duplicate {
		r.ack = rules.AppendAck(r.ack[:0], ack)
		ctx.TellWith(msg.Sender(), nil, actor.Header{Key: rules.AckHeader, Value: string(r.ack)})
	}
	return verdict == rules.Deliver
}

// Origin is the original sender of a message that an actor in Go has relayed with host/reliable. It is 0 if there was no
// sender, or if the message was not relayed.
func Origin(msg *actor.Message) actor.Ref {
	n, err := strconv.ParseUint(msg.Header(rules.OriginHeader), 10, 64)
	if err != nil {
		return 0
	}
	return actor.Ref(n)
}
