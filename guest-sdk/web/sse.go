package web

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Events are the streams of server-sent events of an actor, which browsers read with
// EventSource. All functions are optional. After a restart Open is called again, as with
// [Sockets].
type Events struct {
	// Open is called when a client wants events, which Refuse declines. LastEventID says
	// what it has seen before.
	Open func(ctx *actor.Context, r *Request, c *Conn) error
	// Close is called when the stream has ended, on either side.
	Close func(ctx *actor.Context, c *Conn) error

	conns
	req Request
}

// LastEventID is the id of the last event that the client has seen, "" if it says nothing.
func (c *Conn) LastEventID() string { return c.last }

// Receive handles the message if it is one of a stream of events; other messages are
// actor.ErrUnhandled.
func (s *Events) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	r := msg.Reader()
	if r.Peek() != abi.TypeArray || r.Array() != 2 || r.Peek() != abi.TypeText {
		return actor.ErrUnhandled
	}
	switch string(r.TextBytes()) {
	case "sse.open":
		return s.begin(ctx, r, &s.req, s.Open)
	case "sse.close":
		if c := s.end(ctx); c != nil && s.Close != nil {
			return s.Close(ctx, c)
		}
		return nil
	}
	return actor.ErrUnhandled
}

// Event is an event of a stream. Name and ID have no line breaks.
type Event struct {
	Name  string // what EventSource listens to; "" is message
	ID    string // what the client sends when it reconnects; "" keeps the previous one
	Data  string
	Retry time.Duration // after which the client reconnects, from now on; 0 keeps it
}

// MarshalCBOR implements actor.Encoder.
func (e Event) MarshalCBOR(w *abi.Writer) {
	n := 1
	for _, more := range [...]bool{e.Name != "", e.ID != "", e.Retry > 0} {
		if more {
			n++
		}
	}
	w.Map(n)
	w.Text("data")
	w.Text(e.Data)
	if e.Name != "" {
		w.Text("event")
		w.Text(e.Name)
	}
	if e.ID != "" {
		w.Text("id")
		w.Text(e.ID)
	}
	if e.Retry > 0 {
		w.Text("retry")
		w.Int(e.Retry.Milliseconds())
	}
}

// SendEvent sends an event. A client that does not read is cut off when its outbox is
// full; it reconnects and says what it has seen.
func SendEvent(ctx *actor.Context, to actor.Ref, e Event) { service.TellRef(ctx, to, "event", e) }

// WriteEvent is SendEvent that calls then when there is room for more.
func WriteEvent(ctx *actor.Context, to actor.Ref, e Event, timeout time.Duration, then func(ctx *actor.Context, err error) error) {
	ask(ctx, to, "event", e, timeout, then)
}

// CloseEvents ends a stream after what was sent before. EventSource reconnects anyway, unless the answer to that is 204.
func CloseEvents(ctx *actor.Context, to actor.Ref) { service.TellRef(ctx, to, "close", nil) }
