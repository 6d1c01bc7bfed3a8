// Package udp sends and receives datagrams. The grant udp says where to. A socket is an actor of the host; Sockets are those of
// an actor of yours, which passes each message to it first:
//
//	e.sockets.OnReceived = func(ctx *actor.Context, s *udp.Socket, from string, data []byte) error {
//		s.Send(ctx, from, data)
//		return nil
//	}
//	udp.Bind(ctx, &e.sockets, "127.0.0.1:7000", 0, time.Second, func(ctx *actor.Context, s *udp.Socket, err error) error { return err })
//
// Datagrams get lost: those that come while the window of the socket is full, too, which Dropped counts.
package udp

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

const (
	name     = "udp"
	overhead = 64 // what each datagram takes of the window beside its bytes
	ackAfter = 4 << 10
)

// Sockets are the sockets of an actor.
type Sockets struct {
	// OnReceived is called with each datagram; data is valid until it returns. After a restart of the actor it is called with
	// the sockets of before, too.
	OnReceived func(ctx *actor.Context, s *Socket, from string, data []byte) error
	// OnClose is called when a socket has ended; err is nil after Socket.Close.
	OnClose func(ctx *actor.Context, s *Socket, err error) error

	of map[actor.Ref]*Socket
}

// Socket is a socket of the actor. Only its actor can use it.
type Socket struct {
	ref     actor.Ref
	address string
	handled uint64
	dropped uint64
}

// Send sends a single datagram to host:port, and calls then when it is on its way; nil: nobody waits.
func Send(ctx *actor.Context, to string, data []byte, timeout time.Duration, then func(ctx *actor.Context, err error) error) {
	d := datagram{to, data}
	if then == nil {
		service.Tell(ctx, name, "send", &d)
		return
	}
	service.Ask(ctx, name, "send", &d, timeout, func(ctx *actor.Context, _ *actor.Message, err error) error { return then(ctx, err) })
}

// Resolve finds the addresses of host:port, for Socket.Send.
func Resolve(ctx *actor.Context, address string, timeout time.Duration, then func(ctx *actor.Context, addresses []string, err error) error) {
	service.Ask(ctx, name, "resolve", actor.Func(func(w *abi.Writer) {
		w.Map(1)
		w.Text("address")
		w.Text(address)
	}), timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		r := m.Reader()
		var out []string
		for n := r.Array(); n > 0 && r.OK(); n-- {
			out = append(out, r.Text())
		}
		return then(ctx, out, nil)
	})
}

// Bind opens a socket at an address, and calls then with it. Window is how many bytes may be on their way to the actor, 64 for
// each datagram beside its own; 0 for 64 KiB.
func Bind(ctx *actor.Context, sockets *Sockets, address string, window int, timeout time.Duration, then func(ctx *actor.Context, s *Socket, err error) error) {
	open(ctx, "bind", sockets, address, window, timeout, then)
}

// Connect opens a socket for one peer, host:port: Socket.Write sends to it, and nothing of others is received.
func Connect(ctx *actor.Context, sockets *Sockets, address string, window int, timeout time.Duration, then func(ctx *actor.Context, s *Socket, err error) error) {
	open(ctx, "connect", sockets, address, window, timeout, then)
}

func open(ctx *actor.Context, op string, sockets *Sockets, address string, window int, timeout time.Duration, then func(ctx *actor.Context, s *Socket, err error) error) {
	service.Ask(ctx, name, op, actor.Func(func(w *abi.Writer) {
		n := 1
		if window > 0 {
			n++
		}
		w.Map(n)
		w.Text("address")
		w.Text(address)
		if window > 0 {
			w.Text("window")
			w.Int(int64(window))
		}
	}), timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		s := &Socket{}
		r := m.Reader()
		for n := r.Map(); n > 0 && r.OK(); n-- {
			switch string(r.TextBytes()) {
			case "socket":
				s.ref = r.Ref()
			case "address":
				s.address = r.Text()
			default:
				r.Skip()
			}
		}
		sockets.add(s)
		service.TellRef(ctx, s.ref, "register", nil)
		return then(ctx, s, nil)
	})
}

func (s *Sockets) add(x *Socket) {
	if s.of == nil {
		s.of = map[actor.Ref]*Socket{}
	}
	s.of[x.ref] = x
}

// Receive handles the message if it is one of a socket; other messages are actor.ErrUnhandled.
func (s *Sockets) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	r := msg.Reader()
	if r.Peek() != abi.TypeArray || r.Array() != 2 || r.Peek() != abi.TypeText {
		return actor.ErrUnhandled
	}
	x := s.of[ctx.Sender()]
	switch string(r.TextBytes()) {
	case "udp.received":
		if x == nil { // of before a restart
			x = &Socket{ref: ctx.Sender()}
			s.add(x)
		}
		return s.received(ctx, x, r)
	case "udp.closed":
		if x == nil {
			return nil
		}
		delete(s.of, x.ref)
		var err error
		for n := r.Map(); n > 0 && r.OK(); n-- {
			if string(r.TextBytes()) == "error" {
				err = service.ParseError(r.Text())
			} else {
				r.Skip()
			}
		}
		if s.OnClose != nil {
			return s.OnClose(ctx, x, err)
		}
		return nil
	}
	return actor.ErrUnhandled
}

func (s *Sockets) received(ctx *actor.Context, x *Socket, r *abi.Reader) error {
	from, data := "", []byte(nil)
	for n := r.Map(); n > 0 && r.OK(); n-- {
		switch string(r.TextBytes()) {
		case "from":
			from = r.Text()
		case "data":
			data = r.ByteString()
		case "dropped":
			x.dropped += r.Uint()
		default:
			r.Skip()
		}
	}
	if s.OnReceived != nil {
		if err := s.OnReceived(ctx, x, from, data); err != nil {
			return err
		}
	}
	if x.handled += uint64(len(data)) + overhead; x.handled >= ackAfter {
		service.TellRef(ctx, x.ref, "more", actor.Uint(x.handled))
		x.handled = 0
	}
	return nil
}

// Ref is the socket's ref. Its watchers are notified when it ends.
func (s *Socket) Ref() actor.Ref { return s.ref }

// Address is where the socket is bound, "" for one of before a restart.
func (s *Socket) Address() string { return s.address }

// Dropped is how many datagrams have come that were dropped, as far as the actor has been told.
func (s *Socket) Dropped() uint64 { return s.dropped }

// Send sends a datagram to an address:port that the grant covers, or from which one has come.
func (s *Socket) Send(ctx *actor.Context, to string, data []byte) {
	service.TellRef(ctx, s.ref, "send", &datagram{to, data})
}

// Write sends a datagram to the peer of a socket of Connect.
func (s *Socket) Write(ctx *actor.Context, data []byte) {
	service.TellRef(ctx, s.ref, "write", actor.Bytes(data))
}

// Close closes the socket.
func (s *Socket) Close(ctx *actor.Context) { service.TellRef(ctx, s.ref, "close", nil) }

// datagram is {"to", "data"}.
type datagram struct {
	to   string
	data []byte
}

// MarshalCBOR implements actor.Encoder.
func (d *datagram) MarshalCBOR(w *abi.Writer) {
	w.Map(2)
	w.Text("to")
	w.Text(d.to)
	w.Text("data")
	w.ByteString(d.data)
}
