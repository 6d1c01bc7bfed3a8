package web

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Conn is a connection to a client, a WebSocket or a stream of events. It is an actor of the host: other actors with its ref
// may send to it, too, and its watchers are notified when it ends.
type Conn struct {
	// Data is for the actor's use. A restart forgets it; SetState is for what must survive one.
	Data any

	ref     actor.Ref
	at      int // in conns
	resumed bool
	state   []byte
	offered []string
	last    string

	protocol string
	refused  *Response
}

// Ref is the connection's ref.
func (c *Conn) Ref() actor.Ref { return c.ref }

// Resumed reports whether the client was connected before: the actor has been restarted.
func (c *Conn) Resumed() bool { return c.resumed }

// State reads the last value given to SetState; null if there is none.
func (c *Conn) State() *abi.Reader {
	if c.state == nil {
		return abi.NewReader([]byte{0xf6})
	}
	return abi.NewReader(c.state)
}

// SetState stores a value of at most 4 KiB with the connection, which gives it back after a restart
// of the actor. It replaces the one before.
func (c *Conn) SetState(ctx *actor.Context, v actor.Encoder) {
	w := abi.NewWriter(nil)
	v.MarshalCBOR(w)
	c.state = w.Bytes()
	if c.at >= 0 {
		service.TellRef(ctx, c.ref, "state", actor.Raw(c.state))
	}
}

// Refuse answers the request for a connection with a status instead, within Open.
func (c *Conn) Refuse(code int, text string) {
	c.refused = &Response{status: 200}
	c.refused.Error(code, text)
}

// answer sends the outcome of Open.
func (c *Conn) answer(ctx *actor.Context) error {
	if c.refused != nil {
		return ctx.Reply(c.refused)
	}
	return ctx.Reply(actor.Func(func(w *abi.Writer) {
		n := 0
		if c.protocol != "" {
			n++
		}
		if c.state != nil {
			n++
		}
		w.Map(n)
		if c.protocol != "" {
			w.Text("protocol")
			w.Text(c.protocol)
		}
		if c.state != nil {
			w.Text("state")
			w.Raw(c.state)
		}
	}))
}

// conns are connections by their refs, in the order in which they were opened.
type conns struct {
	of    map[actor.Ref]*Conn
	order []*Conn // nil: one that has gone
}

func (s *conns) add(c *Conn) {
	if s.of == nil {
		s.of = map[actor.Ref]*Conn{}
	}
	c.at = len(s.order)
	s.of[c.ref] = c
	s.order = append(s.order, c)
}

func (s *conns) drop(c *Conn) {
	delete(s.of, c.ref)
	s.order[c.at] = nil
	c.at = -1
	if len(s.order) < 2*len(s.of)+16 {
		return
	}
	left := s.order[:0]
	for _, c := range s.order {
		if c != nil {
			c.at = len(left)
			left = append(left, c)
		}
	}
	clear(s.order[len(left):])
	s.order = left
}

// begin reads the announcement of a connection, asks open about it, which may be nil, and answers.
// One that is known already is not asked about again.
func (s *conns) begin(ctx *actor.Context, r *abi.Reader, req *Request, open func(*actor.Context, *Request, *Conn) error) error {
	c := &Conn{}
	if !c.opened(r, req) {
		return actor.ErrUnhandled
	}
	if s.Find(c.ref) != nil {
		return ctx.Reply(nil)
	}
	if open != nil {
		if err := open(ctx, req, c); err != nil {
			return err
		}
	}
	if c.refused == nil {
		s.add(c)
	}
	return c.answer(ctx)
}

// end answers the last message of a connection and forgets it; nil if it was not known.
func (s *conns) end(ctx *actor.Context) *Conn {
	c := s.Find(ctx.Sender())
	_ = ctx.Reply(nil)
	if c != nil {
		s.drop(c)
	}
	return c
}

// Len is the number of open connections.
func (s *conns) Len() int { return len(s.of) }

// Each calls f with all open connections, the oldest first.
func (s *conns) Each(f func(c *Conn)) {
	for i := 0; i < len(s.order); i++ {
		if c := s.order[i]; c != nil {
			f(c)
		}
	}
}

// Find is the connection of a ref, nil if there is none.
func (s *conns) Find(ref actor.Ref) *Conn { return s.of[ref] }

// unknown is the answer to a connection that the actor does not know: the connection announces itself
// again, and then repeats its message.
const unknown = "not_found: the actor does not know this connection"

// opened reads the announcement of a connection, and the request that it began with.
func (c *Conn) opened(r *abi.Reader, req *Request) bool {
	for n := r.Map(); n > 0 && r.OK(); n-- {
		switch string(r.TextBytes()) {
		case "conn":
			c.ref = r.Ref()
		case "request":
			b := r.Raw()
			if r.OK() && req.readFrom(abi.NewReader(b)) != isRequest {
				return false
			}
		case "resumed":
			c.resumed = r.Bool()
		case "state":
			c.state = append([]byte(nil), r.Raw()...)
		case "last":
			c.last = r.Text()
		case "protocols":
			for k := r.Array(); k > 0 && r.OK(); k-- {
				c.offered = append(c.offered, r.Text())
			}
		default:
			r.Skip()
		}
	}
	c.at = -1
	return r.Done() == nil && c.ref != 0
}

// closed reads how a connection has ended.
func closed(r *abi.Reader) (code int, reason string) {
	for n := r.Map(); n > 0 && r.OK(); n-- {
		switch string(r.TextBytes()) {
		case "code":
			code = int(r.Int())
		case "reason":
			reason = r.Text()
		default:
			r.Skip()
		}
	}
	return code, reason
}

// ask sends something to a client and calls then when there is room for more: so the actor sends as fast
// as the client reads. With a nil then it is a tell, and a client that does not read is cut off
// when its outbox is full.
func ask(ctx *actor.Context, to actor.Ref, op string, v actor.Encoder, timeout time.Duration, then func(ctx *actor.Context, err error) error) {
	if then == nil {
		service.TellRef(ctx, to, op, v)
		return
	}
	service.AskRef(ctx, to, op, v, timeout, func(ctx *actor.Context, _ *actor.Message, err error) error { return then(ctx, err) })
}
