package web

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Sockets are the WebSockets of an actor. All functions are optional.
//
//	s := &web.Sockets{
//		Text: func(ctx *actor.Context, c *web.Conn, text []byte) error {
//			s.Each(func(other *web.Conn) { web.SendText(ctx, other.Ref(), string(text)) })
//			return nil
//		},
//	}
//
// The next message of a client comes when the turn of the one before has ended. When the actor
// has been restarted, its clients are still connected: Open is called for each of them again, with
// Resumed true. A message whose turn has failed does not come again.
type Sockets struct {
	// Open is called when a client wants a connection, which Refuse declines.
	Open func(ctx *actor.Context, r *Request, c *Conn) error
	// Text and Binary are called with messages, which are valid until they return.
	Text   func(ctx *actor.Context, c *Conn, text []byte) error
	Binary func(ctx *actor.Context, c *Conn, data []byte) error
	// Close is called when a connection has ended, with a code of RFC 6455: 1006 if it
	// was lost.
	Close func(ctx *actor.Context, c *Conn, code int, reason string) error

	conns
	req Request
}

// Protocols are those that the client offers, in its order of preference.
func (c *Conn) Protocols() []string { return c.offered }

// SetProtocol chooses one of Protocols, within Open.
func (c *Conn) SetProtocol(name string) { c.protocol = name }

// Receive handles the message if it is one of a WebSocket; other messages are actor.ErrUnhandled.
func (s *Sockets) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	r := msg.Reader()
	if r.Peek() != abi.TypeArray || r.Array() != 2 || r.Peek() != abi.TypeText {
		return actor.ErrUnhandled
	}
	switch string(r.TextBytes()) {
	case "ws.open":
		return s.begin(ctx, r, &s.req, s.Open)
	case "ws.text":
		return s.message(ctx, r.TextBytes(), s.Text)
	case "ws.binary":
		return s.message(ctx, r.ByteString(), s.Binary)
	case "ws.close":
		if c := s.end(ctx); c != nil && s.Close != nil {
			code, reason := closed(r)
			return s.Close(ctx, c, code, reason)
		}
		return nil
	}
	return actor.ErrUnhandled
}

func (s *Sockets) message(ctx *actor.Context, b []byte, handle func(ctx *actor.Context, c *Conn, b []byte) error) error {
	c := s.Find(ctx.Sender())
	if c == nil {
		return ctx.ReplyError(unknown)
	}
	if handle != nil {
		if err := handle(ctx, c, b); err != nil {
			return err
		}
	}
	return ctx.Reply(nil)
}

// SendText sends a text to the client of a WebSocket. A client that does not read is
// cut off when its outbox is full.
func SendText(ctx *actor.Context, to actor.Ref, text string) {
	service.TellRef(ctx, to, "text", actor.Text(text))
}

// SendBinary sends bytes.
func SendBinary(ctx *actor.Context, to actor.Ref, data []byte) {
	service.TellRef(ctx, to, "binary", actor.Bytes(data))
}

// WriteText is SendText that calls then when there is room for more: an actor that waits for it sends as
// fast as the client reads, and never cuts it off.
func WriteText(ctx *actor.Context, to actor.Ref, text string, timeout time.Duration, then func(ctx *actor.Context, err error) error) {
	ask(ctx, to, "text", actor.Text(text), timeout, then)
}

// WriteBinary is WriteText for bytes.
func WriteBinary(ctx *actor.Context, to actor.Ref, data []byte, timeout time.Duration, then func(ctx *actor.Context, err error) error) {
	ask(ctx, to, "binary", actor.Bytes(data), timeout, then)
}

// CloseSocket closes a WebSocket after what was sent before: with 1000, or 3000 to 4999, or another
// code of RFC 6455, and a reason of at most 123 bytes.
func CloseSocket(ctx *actor.Context, to actor.Ref, code int, reason string) {
	service.TellRef(ctx, to, "close", actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("code")
		w.Int(int64(code))
		w.Text("reason")
		w.Text(reason)
	}))
}
