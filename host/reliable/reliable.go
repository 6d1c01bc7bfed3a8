// Package reliable resends messages to an actor until it has handled them, in order, and once as long as that actor is not
// restarted. A [Sender] is a field of an actor in Go; [To] is a proxy actor before the target. The target has a [Receiver]
// as a field, or the one of guest-sdk/reliable.
//
// The rules are in abi/reliable, which guests share; see docs/guide/reliable.md.
package reliable

import (
	"fmt"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/reliable"
	"github.com/wasmactors/wasmactors/host"
)

// Defaults of [Settings].
const (
	DefaultRetryAfter = time.Second
	DefaultMessages   = 1000
	DefaultBytes      = 16 << 20
)

// Burst is how many messages are sent again at a time.
const Burst = 100

// perMessage is what a kept message counts in addition to its payload and headers, in bytes.
const perMessage = 200

// ErrFull is the error of Send while there is no room for one more message.
var ErrFull = rules.ErrFull

// Settings say how a sender works. Zero fields mean the defaults.
type Settings struct {
	RetryAfter time.Duration // how long to wait for an acknowledgement before all is sent again
	Messages   int           // most that are kept until they are acknowledged
	Bytes      int           // of payloads and headers; 200 are added to each message
	Attempts   int           // how often in a row all is resent without an acknowledgement before the target is lost; default: no limit
	Stream     uint64        // distinguishes several senders of one actor to the same target
	Key        uint64        // of its timer
}

func (s Settings) withDefaults() Settings {
	if s.RetryAfter <= 0 {
		s.RetryAfter = DefaultRetryAfter
	}
	if s.Messages <= 0 {
		s.Messages = DefaultMessages
	}
	if s.Bytes <= 0 {
		s.Bytes = DefaultBytes
	}
	return s
}

// Sender numbers messages to one actor, keeps them until they are acknowledged, and resends them. It
// is a field of an actor, for its turns, and starts over with each incarnation. What it keeps is on no
// account: the actor may note it with [host.Head.Hold].
type Sender struct {
	settings Settings
	window   rules.Window[kept]
	target   host.Address
	path     string // of the target
	onLost   func(*host.Context)
	lost     bool
	armed    bool
	misses   int
}

// kept is a message that is not acknowledged.
type kept struct {
	payload []byte
	headers map[string]string
}

// NewSender is a sender that is lost until Connect.
func NewSender(s Settings) *Sender {
	s = s.withDefaults()
	return &Sender{settings: s, window: rules.NewWindow[kept](s.Messages, s.Bytes), lost: true}
}

// OnLost makes f be called when the target has ended, or does not answer: nothing is sent any more until
// Connect.
func (s *Sender) OnLost(f func(*host.Context)) *Sender { s.onLost = f; return s }

// Len is how many messages are not acknowledged.
func (s *Sender) Len() int { return s.window.Len() }

// Lost reports whether there is no target.
func (s *Sender) Lost() bool { return s.lost }

// Unsent calls f with what is not acknowledged, in order: payloads and headers, which must not be
// changed. The target may have handled some of it.
func (s *Sender) Unsent(f func(payload host.Raw, headers map[string]string)) {
	for n, first := s.window.Len(), s.window.First(); n > 0; n-- {
		k := s.window.Get(first)
		f(k.payload, k.headers)
		first++
	}
}

// Connect begins to send to a target, which it watches, or switches to another one: what is not
// acknowledged is sent to it, and may be handled a second time.
func (s *Sender) Connect(ctx *host.Context, target host.Ref) error {
	return s.ConnectTo(ctx, host.Address{To: target})
}

// ConnectTo is Connect to an address, see [host.System.AddressOf]. If a keeper stands for the actor,
// the keeper is watched, messages start the actor if it does not exist, and any actor at its path
// may acknowledge: what it has not acknowledged when it ends is sent to the next one.
func (s *Sender) ConnectTo(ctx *host.Context, target host.Address) error {
	if old := s.target.To; !old.IsZero() && old.UID() != target.To.UID() {
		ctx.Unwatch(old)
	}
	if err := ctx.Watch(target.To); err != nil {
		return err
	}
	s.target, s.path, s.lost, s.misses = target, target.Path(), false, 0
	s.again(ctx)
	return nil
}

// Send sends a message, and again until it is acknowledged; without a target it only keeps it. It fails
// with [ErrFull], or if v cannot be a message. headers may be nil.
func (s *Sender) Send(ctx *host.Context, v any, headers map[string]string) error {
	payload, err := host.Encode(v)
	if err != nil {
		return err
	}
	if len(headers) >= abi.MaxHeaders {
		return fmt.Errorf("reliable: a message has at most %d headers besides the one that is added", abi.MaxHeaders-1)
	}
	number, err := s.window.Add(kept{payload, headers}, sizeOf(payload, headers))
	if err != nil || s.lost {
		return err
	}
	s.send(ctx, number)
	s.arm(ctx)
	return nil
}

// sizeOf is what a message counts while it is kept.
func sizeOf(payload []byte, headers map[string]string) int {
	size := len(payload) + perMessage
	for k, v := range headers {
		size += len(k) + len(v)
	}
	return size
}

func (s *Sender) send(ctx *host.Context, number uint64) {
	k := s.window.Get(number)
	headers := make(map[string]string, len(k.headers)+1)
	for key, v := range k.headers {
		headers[key] = v
	}
	headers[rules.Header] = string(rules.AppendMark(nil, rules.Mark{Stream: s.settings.Stream, Session: ctx.Head().Incarnation(), Number: number, First: s.window.First()}))
	_ = ctx.Tell(s.target.To, s.target.Message(host.Headed{Value: host.Raw(k.payload), Headers: headers})) // if it does not arrive, it is sent again
}

func (s *Sender) arm(ctx *host.Context) {
	if !s.armed {
		s.armed = ctx.After(s.settings.Key, s.settings.RetryAfter, 0, nil) == nil
	}
}

// again sends what is not acknowledged.
func (s *Sender) again(ctx *host.Context) {
	number := s.window.First()
	for range min(s.window.Len(), Burst) {
		s.send(ctx, number)
		number++
	}
	if s.window.Len() > 0 {
		s.arm(ctx)
	}
}

// Receive takes acknowledgements, the message of the timer and the end of the target; false if it is
// none of these.
func (s *Sender) Receive(ctx *host.Context, m host.Message) bool {
	switch m.Kind {
	case abi.KindMessage:
		ack, ok := rules.ParseAck(m.Headers)
		if !ok || !s.from(m.Sender) || ack.Stream != s.settings.Stream {
			return false
		}
		if ack.Session == ctx.Head().Incarnation() && s.window.Ack(ack.Number) > 0 {
			s.misses = 0
			if s.window.Len() == 0 {
				s.disarm(ctx)
			}
		}
		return true
	case abi.KindTimer:
		if m.Correlation != s.settings.Key {
			return false
		}
		s.armed = false
		if s.misses++; s.settings.Attempts > 0 && s.misses > s.settings.Attempts {
			s.lose(ctx)
		} else if !s.lost {
			s.again(ctx)
		}
		return true
	case abi.KindTerminated:
		if s.target.To.IsZero() || m.Sender.UID() != s.target.To.UID() {
			return false
		}
		s.lose(ctx)
		return true
	}
	return false
}

// from reports whether sender is the target.
func (s *Sender) from(sender host.Ref) bool {
	if s.target.Kept() {
		return sender.Path() == s.path
	}
	return sender.UID() == s.target.To.UID()
}

func (s *Sender) disarm(ctx *host.Context) {
	if s.armed {
		s.armed = false
		ctx.Cancel(s.settings.Key)
	}
}

func (s *Sender) lose(ctx *host.Context) {
	if s.lost {
		return
	}
	s.lost = true
	s.disarm(ctx)
	if s.onLost != nil {
		s.onLost(ctx)
	}
}

// Receiver takes messages of senders in order and once, and acknowledges them. It is a field of an actor,
// for its turns. The zero value remembers the last 64 streams.
type Receiver struct{ rules rules.Receiver }

// NewReceiver returns a Receiver that remembers at most streams streams, one for each sender and Stream number.
func NewReceiver(streams int) *Receiver { return &Receiver{rules.NewReceiver(streams)} }

// Accept reports whether the actor is to handle a message: one that comes from no sender of this kind, or
// the next one of its stream. It is acknowledged if this turn succeeds. Every other message is done with.
func (r *Receiver) Accept(ctx *host.Context, m host.Message) bool {
	mark, ok := rules.ParseMark(m.Headers)
	if !ok || m.Kind != abi.KindMessage || m.Sender.IsZero() {
		return true
	}
	verdict, ack := r.rules.Accept(m.Sender.UID(), mark)
	if verdict == rules.Deliver || verdict == rules.Duplicate {
		_ = ctx.Tell(m.Sender, host.Headed{Headers: map[string]string{rules.AckHeader: string(rules.AppendAck(nil, ack))}})
	}
	return verdict == rules.Deliver
}

// Origin is the original sender of a message that a proxy has forwarded; the zero Ref if there was none, or if the
// message has come from elsewhere.
func Origin(sys *host.System, m host.Message) host.Ref {
	v, _ := abi.FindHeader(m.Headers, rules.OriginHeader)
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		return host.Ref{}
	}
	ref, _ := sys.RefOf(abi.Ref(n), m.Sender)
	return ref
}
