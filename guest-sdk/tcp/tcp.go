// Package tcp makes connections that are not HTTP: with Dial to servers, with Listen for clients. The grant tcp says which. A
// connection is an actor of the host; Conns are those of an actor of yours, which passes each message to it first:
//
//	type echo struct{ conns tcp.Conns }
//
//	func newEcho() *echo {
//		e := &echo{}
//		e.conns.OnData = func(ctx *actor.Context, c *tcp.Conn, data []byte) error {
//			c.Write(ctx, data)
//			return nil
//		}
//		return e
//	}
//
//	func (e *echo) Started(ctx *actor.Context) error {
//		tcp.Listen(ctx, "127.0.0.1:7000", tcp.Options{}, time.Second, func(ctx *actor.Context, l *tcp.Listener, err error) error { return err })
//		return nil
//	}
//
//	func (e *echo) Receive(ctx *actor.Context, msg *actor.Message) error { return e.conns.Receive(ctx, msg) }
//
// What a client sends waits in the network until the actor has handled what came before: at most Options.Window bytes are on
// their way. When the actor has failed and was restarted, its connections are still there: OnOpen is called for each of them
// again, with Resumed true, and only the data whose turn has failed is lost.
package tcp

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

const name = "tcp"

// Framing cuts the bytes of a connection into messages, in both directions: OnData gets one at a time, and Write sends one.
// The zero value does not cut.
type Framing struct {
	kind      string
	delimiter []byte
	size      int
	little    bool
	limit     int
}

// Lines are messages that end with a delimiter of 1 to 8 bytes, none for a line feed, before which a carriage return is
// dropped. Limit bounds a message, in bytes; 0 for 16 KiB.
func Lines(delimiter string, limit int) Framing {
	return Framing{kind: "lines", delimiter: []byte(delimiter), limit: limit}
}

// Length are messages with their length before them, in 1, 2 or 4 bytes, or 0 for a varint (LEB128).
func Length(size int, littleEndian bool, limit int) Framing {
	return Framing{kind: "length", size: size, little: littleEndian, limit: limit}
}

// Fixed are messages of a fixed size in bytes.
func Fixed(size int) Framing { return Framing{kind: "fixed", size: size} }

// Options are those of a connection, or of all of a listener. The zero value is good for most.
type Options struct {
	Framing  Framing
	Window   int           // bytes on their way to the actor; default 64 KiB
	Pull     bool          // OnData is called only after Conn.More
	KeepOpen bool          // the connection stays open when the peer has closed its half: OnPeerClosed
	Suspend  bool          // after a write that was refused all are, until Conn.ResumeWriting
	Idle     time.Duration // without bytes, after which the connection is closed; default: as the grant says
	Write    time.Duration // in which the peer has to take what is written; default 30s
	Frame    time.Duration // in which a message of the peer has to be complete; default 30s
	Connect  time.Duration // default 10s
	Delay    bool          // small writes wait for others (Nagle's algorithm)
	Alive    time.Duration // between two probes of a silent peer; negative: none; default 15s
	TLS      *TLS          // nil: without
	Accept   int           // Listen: connections until Listener.Accept; 0: any number
}

// TLS makes connections secure, with the certificates of the grant.
type TLS struct {
	ServerName string   // Dial: default the host of the address
	Protocols  []string // ALPN, in the order of preference
}

// entries writes a map without what is zero.
type entries struct {
	names  []string
	values []func(w *abi.Writer)
}

func (e *entries) add(on bool, name string, value func(w *abi.Writer)) {
	if on {
		e.names, e.values = append(e.names, name), append(e.values, value)
	}
}

func (e *entries) number(name string, n int64) {
	e.add(n != 0, name, func(w *abi.Writer) { w.Int(n) })
}

func (e *entries) truth(name string, on bool) {
	e.add(on, name, func(w *abi.Writer) { w.Bool(true) })
}

func (e *entries) text(name, s string) { e.add(s != "", name, func(w *abi.Writer) { w.Text(s) }) }

// MarshalCBOR implements actor.Encoder.
func (e *entries) MarshalCBOR(w *abi.Writer) {
	w.Map(len(e.names))
	for i, name := range e.names {
		w.Text(name)
		e.values[i](w)
	}
}

// args are those of Dial and Listen.
func (o *Options) args(address string) *entries {
	var f, opts, all entries
	f.text("kind", o.Framing.kind)
	f.add(len(o.Framing.delimiter) > 0, "delimiter", func(w *abi.Writer) { w.ByteString(o.Framing.delimiter) })
	f.number("size", int64(o.Framing.size))
	f.truth("little", o.Framing.little)
	f.number("limit", int64(o.Framing.limit))
	opts.add(len(f.names) > 0, "framing", f.MarshalCBOR)
	opts.number("window", int64(o.Window))
	opts.truth("pull", o.Pull)
	opts.truth("keep_open", o.KeepOpen)
	opts.truth("suspend", o.Suspend)
	opts.number("idle", int64(o.Idle))
	opts.number("write", int64(o.Write))
	opts.number("frame", int64(o.Frame))
	opts.number("connect", int64(o.Connect))
	opts.truth("delay", o.Delay)
	opts.number("alive", int64(o.Alive))
	all.text("address", address)
	all.add(len(opts.names) > 0, "options", opts.MarshalCBOR)
	if o.TLS != nil {
		var t entries
		t.text("server_name", o.TLS.ServerName)
		t.add(len(o.TLS.Protocols) > 0, "alpn", func(w *abi.Writer) {
			w.Array(len(o.TLS.Protocols))
			for _, p := range o.TLS.Protocols {
				w.Text(p)
			}
		})
		all.add(true, "tls", t.MarshalCBOR)
	}
	all.number("accept", int64(o.Accept))
	return &all
}

// Dial connects to a server, host:port or unix:path, and calls then with the connection, which is one of conns from then on.
func Dial(ctx *actor.Context, conns *Conns, address string, o Options, timeout time.Duration, then func(ctx *actor.Context, c *Conn, err error) error) {
	service.Ask(ctx, name, "connect", o.args(address), timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		c, ok := opened(m.Reader())
		if !ok {
			return then(ctx, nil, &service.Error{Code: service.Internal, Text: "the answer is not a connection"})
		}
		conns.add(c)
		service.TellRef(ctx, c.ref, "register", nil)
		return then(ctx, c, nil)
	})
}

// Listener is a listener of an actor.
type Listener struct {
	ref     actor.Ref
	address string
}

// Listen listens for clients, whose connections announce themselves to Conns.Receive, and calls then when it does. Address is host:port, where port 0 is
// any that is free, or unix:path. A restart of the actor closes nothing, and forgets the listener: its connections go on coming.
func Listen(ctx *actor.Context, address string, o Options, timeout time.Duration, then func(ctx *actor.Context, l *Listener, err error) error) {
	service.Ask(ctx, name, "listen", o.args(address), timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		l := &Listener{}
		r := m.Reader()
		for n := r.Map(); n > 0 && r.OK(); n-- {
			switch string(r.TextBytes()) {
			case "listener":
				l.ref = r.Ref()
			case "address":
				l.address = r.Text()
			default:
				r.Skip()
			}
		}
		return then(ctx, l, nil)
	})
}

// Ref is the listener's ref.
func (l *Listener) Ref() actor.Ref { return l.ref }

// Address is where it listens, with the port that was free.
func (l *Listener) Address() string { return l.address }

// Accept accepts n more connections, with Options.Accept.
func (l *Listener) Accept(ctx *actor.Context, n int) {
	service.TellRef(ctx, l.ref, "accept", actor.Uint(uint64(max(n, 0))))
}

// Close ends the listener; its connections stay.
func (l *Listener) Close(ctx *actor.Context) { service.TellRef(ctx, l.ref, "close", nil) }
