package actor

import (
	"errors"
	"time"
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
)

// Typed is a message that says what it is: a name, @ and a version, such as "bank.payment@3". It goes into the
// header abi.HeaderType. guest-sdk/gen writes the method for a struct with //wasmactors:message above it.
type Typed interface {
	Encoder
	MessageType() string
}

// Versioned is a message that also reads what older writers have written. It is generated with Typed.
type Versioned interface {
	Decoder
	UnmarshalVersion(r *abi.Reader, version uint16)
}

// Question is a message that is answered with an R, which is a pointer.
type Question[R Decoder] interface {
	Encoder
	Answer() R // makes room for one
}

// Unknown keeps the keys that a message has and its type does not: see docs/guide/messages.md.
type Unknown = abi.Unknown

// DefaultTimeout is how long stubs wait for an answer if nothing else was said.
const DefaultTimeout = 5 * time.Second

// RefOf is a ref of an actor that takes messages of the type T: a pointer to a struct, or an interface that several
// types implement. It may travel in messages, as a plain ref. The zero value names no actor.
type RefOf[T Encoder] struct{ ref Ref }

// To makes a typed ref. It trusts that the actor takes messages of the type T.
func To[T Encoder](ref Ref) RefOf[T] { return RefOf[T]{ref} }

// Ref is the plain ref, for everything that needs no type: to stop the actor, to watch it.
func (r RefOf[T]) Ref() Ref { return r.ref }

// Tell sends a message, with its type in the header if it is Typed.
func (r RefOf[T]) Tell(ctx *Context, v T) {
	if t, ok := any(v).(Typed); ok {
		ctx.TellTyped(r.ref, t)
		return
	}
	ctx.send(r.ref, 0, 0, v)
}

// MarshalCBOR implements Encoder.
func (r RefOf[T]) MarshalCBOR(w *abi.Writer) { w.Ref(r.ref) }

// UnmarshalCBOR implements Decoder.
func (r *RefOf[T]) UnmarshalCBOR(b *abi.Reader) { r.ref = b.Ref() }

// ErrNoAnswer is what AskRef passes to then when the time is over.
var ErrNoAnswer = errors.New("actor: there was no answer in time")

// AnswerFailed is an answer with an error.
type AnswerFailed struct{ Reason string }

func (e *AnswerFailed) Error() string { return "actor: the answer is an error: " + e.Reason }

// AskRef asks, and calls then in a later turn: with the answer, or with an error: an *AnswerFailed,
// ErrNoAnswer, or why the answer cannot be read. Timeouts are 1 ms to 24 h.
func AskRef[T Question[R], R Decoder](ctx *Context, to RefOf[T], v T, timeout time.Duration, then func(*Context, R, error) error) {
	room := v.Answer
	ctx.askTyped(to.ref, v, timeout, func(ctx *Context, m *Message) error {
		var none R
		switch m.Kind() {
		case KindReply:
			answer := room()
			if err := m.DecodeTyped(answer); err != nil {
				return then(ctx, none, err)
			}
			return then(ctx, answer, nil)
		case KindReplyError:
			return then(ctx, none, &AnswerFailed{m.Text()})
		}
		return then(ctx, none, ErrNoAnswer)
	})
}

// typeHeader is v's header with its type, nil if it has none. It is valid until the next call.
func (c *Context) typeHeader(v Encoder) []byte {
	c.heads = c.heads[:0]
	if t, ok := unescaped(v).(Typed); ok {
		c.heads = abi.AppendHeader(c.heads, abi.HeaderType, t.MessageType())
	}
	return c.heads
}

// TellTyped sends a message with its type in the header.
func (c *Context) TellTyped(to Ref, v Typed) {
	if to == 0 {
		c.nobody("a message")
		return
	}
	c.sendTyped(to, 0, 0, v)
}

// ReplyTyped is Reply with the answer's type in the header.
func (c *Context) ReplyTyped(v Typed) error {
	if c.msg.sender != 0 {
		c.sendTyped(c.msg.sender, c.msg.correlation, abi.FlagReply, v)
	}
	return nil
}

// AnswerTyped is Answer with the answer's type in the header.
func (c *Context) AnswerTyped(to Ref, correlation uint64, v Typed) error {
	if to != 0 {
		c.sendTyped(to, correlation, abi.FlagReply, v)
	}
	return nil
}

func (c *Context) sendTyped(to Ref, correlation, flags uint64, v Typed) {
	p := c.encoded(v)
	head := c.typeHeader(v)
	wrote(abi.AppendSend(appendix(usualHead+len(head)+len(p)), to, "", correlation, flags, head, p))
}

func (c *Context) askTyped(to Ref, v Encoder, timeout time.Duration, then func(*Context, *Message) error) {
	if to == 0 {
		c.nobody("Ask")
		return
	}
	correlation := c.asks.add(then)
	p := c.encoded(v)
	head := c.typeHeader(v)
	wrote(abi.AppendAsk(appendix(usualHead+len(head)+len(p)), to, "", correlation, uint64(timeout), head, p))
}

// Type is the name and the version that the message's header states; ok is false if there are none, or if the
// message is not of KindMessage. The name is valid until Receive returns.
func (m *Message) Type() (name string, version uint16, ok bool) {
	if m.kind != abi.KindMessage || len(m.headers) == 0 {
		return "", 0, false
	}
	return m.typed()
}

func (m *Message) typed() (name string, version uint16, ok bool) {
	v, found := abi.FindHeader(m.headers, abi.HeaderType)
	if !found {
		return "", 0, false
	}
	return abi.CutMessageType(unsafe.String(unsafe.SliceData(v), len(v)))
}

// DecodeTyped is Decode for a message whose header may state its type: an older version is converted into d's, and
// another type, or a later version, is abi.ErrMessageType. Without the header it is Decode.
func (m *Message) DecodeTyped(d Decoder) error {
	t, typed := d.(interface{ MessageType() string })
	if !typed {
		return m.Decode(d)
	}
	name, version, ok := m.typed()
	if !ok {
		return m.Decode(d)
	}
	own, now, _ := abi.CutMessageType(t.MessageType())
	if name != own {
		return &abi.At{Where: own, Err: abi.ErrMessageType}
	}
	if version == now {
		return m.Decode(d)
	}
	v, ok := d.(Versioned)
	if !ok {
		return &abi.At{Where: own, Err: abi.ErrMessageType}
	}
	r := m.Reader()
	v.UnmarshalVersion(r, version)
	return r.Done()
}

// Receiver is an actor with a protocol that also wants what is not part of it: news from the host, such as
// KindTerminated, messages without a type, and those of types that the protocol does not have.
type Receiver interface {
	ReceiveOther(ctx *Context, msg *Message) error
}

// Other is what generated code calls for messages that are not part of the protocol.
func Other(ctx *Context, msg *Message, to any) error {
	if r, ok := to.(Receiver); ok {
		return r.ReceiveOther(ctx, msg)
	}
	return ErrUnhandled
}
