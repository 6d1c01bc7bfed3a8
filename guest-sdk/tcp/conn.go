package tcp

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// How says how a connection has ended.
type How string

// The ways in which connections end.
const (
	Closed    How = "closed"    // flushed, by Conn.Close
	Confirmed How = "confirmed" // the peer has closed after Conn.CloseWrite
	Aborted   How = "aborted"   // reset, by Conn.Abort
	ByPeer    How = "peer"      // the peer has closed
	Failed    How = "error"
)

// Conns are the connections of an actor. All functions are optional.
type Conns struct {
	// OnOpen is called for each client of a listener, and for each connection after a restart of the actor, when Resumed is
	// true. It may give the connection away (Conn.Give) or close it.
	OnOpen func(ctx *actor.Context, c *Conn) error
	// OnData is called with what the peer sends, or with one message of the framing. data is valid until it returns.
	OnData func(ctx *actor.Context, c *Conn, data []byte) error
	// OnPeerClosed is called when the peer has closed its half, with Options.KeepOpen.
	OnPeerClosed func(ctx *actor.Context, c *Conn) error
	// OnRefused is called when a write that nobody waits for was not done: the outbox was full, or the connection was closing.
	OnRefused func(ctx *actor.Context, c *Conn, bytes int, err error) error
	// OnWritable is called after Conn.ResumeWriting, when there is room.
	OnWritable func(ctx *actor.Context, c *Conn) error
	// OnClose is called when a connection has ended; err is nil unless how is Failed.
	OnClose func(ctx *actor.Context, c *Conn, how How, err error) error

	of map[actor.Ref]*Conn
}

// Conn is a connection of the actor. Only its actor can use it.
type Conn struct {
	// Data is for the actor's use. A restart forgets it; SetState is for what must survive one.
	Data any

	ref           actor.Ref
	local, remote string
	resumed, pull bool
	window        uint64
	handled       uint64 // of the window, not acknowledged
	state         []byte
	tls           *Secured
}

// Secured is what a handshake of TLS has led to.
type Secured struct {
	Version    string
	Protocol   string   // ALPN
	ServerName string   // that the client has asked for
	Peer       string   // the subject of the peer's certificate, "" for none
	Names      []string // of the peer's certificate
}

// Overhead is what each message takes of the window beside its bytes.
const Overhead = 64

func opened(r *abi.Reader) (*Conn, bool) {
	c := &Conn{}
	for n := r.Map(); n > 0 && r.OK(); n-- {
		switch string(r.TextBytes()) {
		case "conn":
			c.ref = r.Ref()
		case "local":
			c.local = r.Text()
		case "remote":
			c.remote = r.Text()
		case "window":
			c.window = r.Uint()
		case "pull":
			c.pull = r.Bool()
		case "resumed":
			c.resumed = r.Bool()
		case "state":
			c.state = append([]byte(nil), r.Raw()...)
		case "tls":
			c.tls = secured(r)
		default:
			r.Skip()
		}
	}
	return c, r.OK() && c.ref != 0
}

func secured(r *abi.Reader) *Secured {
	s := &Secured{}
	for n := r.Map(); n > 0 && r.OK(); n-- {
		switch string(r.TextBytes()) {
		case "version":
			s.Version = r.Text()
		case "alpn":
			s.Protocol = r.Text()
		case "server_name":
			s.ServerName = r.Text()
		case "peer":
			s.Peer = r.Text()
		case "names":
			for k := r.Array(); k > 0 && r.OK(); k-- {
				s.Names = append(s.Names, r.Text())
			}
		default:
			r.Skip()
		}
	}
	return s
}

func (s *Conns) add(c *Conn) {
	if s.of == nil {
		s.of = map[actor.Ref]*Conn{}
	}
	s.of[c.ref] = c
}

// Len is the number of open connections.
func (s *Conns) Len() int { return len(s.of) }

// Find is the connection of a ref, nil if there is none.
func (s *Conns) Find(ref actor.Ref) *Conn { return s.of[ref] }

// Receive handles the message if it is one of a connection or a listener; other messages are actor.ErrUnhandled.
func (s *Conns) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	r := msg.Reader()
	if r.Peek() != abi.TypeArray || r.Array() != 2 || r.Peek() != abi.TypeText {
		return actor.ErrUnhandled
	}
	op := r.TextBytes()
	if len(op) < 4 || string(op[:4]) != "tcp." {
		return actor.ErrUnhandled
	}
	c := s.of[ctx.Sender()]
	switch string(op[4:]) {
	case "data":
		return s.data(ctx, c, r.ByteString())
	case "connected":
		return s.connected(ctx, c, r)
	case "peer-closed":
		if c != nil && s.OnPeerClosed != nil {
			return s.OnPeerClosed(ctx, c)
		}
	case "writable":
		if c != nil && s.OnWritable != nil {
			return s.OnWritable(ctx, c)
		}
	case "refused":
		if c != nil && s.OnRefused != nil {
			bytes, err := refused(r)
			return s.OnRefused(ctx, c, bytes, err)
		}
	case "closed":
		if c == nil {
			return nil
		}
		delete(s.of, c.ref)
		if s.OnClose != nil {
			how, err := ended(r)
			return s.OnClose(ctx, c, how, err)
		}
	case "unbound":
	default:
		return actor.ErrUnhandled
	}
	return nil
}

// data handles what a peer sends. What the actor does not know it sends back: it was restarted, and the connection announces
// itself before it sends that again.
func (s *Conns) data(ctx *actor.Context, c *Conn, b []byte) error {
	if c == nil {
		service.TellRef(ctx, ctx.Sender(), "unknown", actor.Bytes(b))
		return nil
	}
	if s.OnData != nil {
		if err := s.OnData(ctx, c, b); err != nil {
			return err
		}
	}
	if c.pull {
		return nil
	}
	if c.handled += uint64(len(b)) + Overhead; c.handled >= c.window/2 {
		service.TellRef(ctx, c.ref, "more", actor.Uint(c.handled))
		c.handled = 0
	}
	return nil
}

// connected takes a connection that is announced, again if the actor was restarted.
func (s *Conns) connected(ctx *actor.Context, known *Conn, r *abi.Reader) error {
	if known != nil { // the actor has failed, and still knows it
		known.handled = 0
		service.TellRef(ctx, known.ref, "register", nil)
		return nil
	}
	c, ok := opened(r)
	if !ok || c.ref != ctx.Sender() {
		return actor.ErrUnhandled
	}
	s.add(c)
	if s.OnOpen != nil {
		if err := s.OnOpen(ctx, c); err != nil {
			return err
		}
	}
	if s.of[c.ref] != nil { // it was not given away
		service.TellRef(ctx, c.ref, "register", nil)
	}
	return nil
}

func refused(r *abi.Reader) (bytes int, err error) {
	text := ""
	for n := r.Map(); n > 0 && r.OK(); n-- {
		switch string(r.TextBytes()) {
		case "bytes":
			bytes = int(r.Uint())
		case "error":
			text = r.Text()
		default:
			r.Skip()
		}
	}
	return bytes, service.ParseError(text)
}

func ended(r *abi.Reader) (how How, err error) {
	for n := r.Map(); n > 0 && r.OK(); n-- {
		switch string(r.TextBytes()) {
		case "how":
			how = How(r.Text())
		case "error":
			err = service.ParseError(r.Text())
		default:
			r.Skip()
		}
	}
	return how, err
}

// Ref is the connection's ref. Its watchers are notified when it ends.
func (c *Conn) Ref() actor.Ref { return c.ref }

// Local and Remote are the addresses of both ends, unix for sockets of files.
func (c *Conn) Local() string { return c.local }

// Remote is the address of the peer.
func (c *Conn) Remote() string { return c.remote }

// Resumed reports whether the connection was there before: the actor has been restarted.
func (c *Conn) Resumed() bool { return c.resumed }

// TLS is what the handshake has led to, nil without TLS.
func (c *Conn) TLS() *Secured { return c.tls }

// State reads the last value given to SetState; null if there is none.
func (c *Conn) State() *abi.Reader {
	if c.state == nil {
		return abi.NewReader([]byte{0xf6})
	}
	return abi.NewReader(c.state)
}

// SetState stores a value of at most 4 KiB with the connection, which gives it back after a restart of the actor.
func (c *Conn) SetState(ctx *actor.Context, v actor.Encoder) {
	w := abi.NewWriter(nil)
	v.MarshalCBOR(w)
	c.state = w.Bytes()
	service.TellRef(ctx, c.ref, "state", actor.Raw(c.state))
}

// Write sends bytes, or a message of the framing. If the outbox is full it is refused: Conns.OnRefused.
func (c *Conn) Write(ctx *actor.Context, data []byte) {
	service.TellRef(ctx, c.ref, "write", actor.Bytes(data))
}

// WriteThen is Write that calls then when the bytes are with the peer's system, or with an error if they were refused.
func (c *Conn) WriteThen(ctx *actor.Context, data []byte, timeout time.Duration, then func(ctx *actor.Context, err error) error) {
	service.AskRef(ctx, c.ref, "write", actor.Bytes(data), timeout, func(ctx *actor.Context, _ *actor.Message, err error) error { return then(ctx, err) })
}

// ResumeWriting ends the refusal of writes, with Options.Suspend. Conns.OnWritable is called when there is room.
func (c *Conn) ResumeWriting(ctx *actor.Context) { service.TellRef(ctx, c.ref, "resume-writing", nil) }

// More asks for so many bytes more, with Options.Pull; at most the window. Each message counts 64 bytes beside its own.
func (c *Conn) More(ctx *actor.Context, bytes int) {
	service.TellRef(ctx, c.ref, "more", actor.Uint(uint64(max(bytes, 0))))
}

// Suspend stops reading, until Resume.
func (c *Conn) Suspend(ctx *actor.Context) { service.TellRef(ctx, c.ref, "suspend", nil) }

// Resume goes on reading.
func (c *Conn) Resume(ctx *actor.Context) { service.TellRef(ctx, c.ref, "resume", nil) }

// Close closes the connection after what was written before.
func (c *Conn) Close(ctx *actor.Context) { c.end(ctx, "flush") }

// CloseWrite closes this half after what was written before; what the peer sends still comes, until it closes its half.
func (c *Conn) CloseWrite(ctx *actor.Context) { c.end(ctx, "half") }

// Abort resets the connection: what waits is dropped.
func (c *Conn) Abort(ctx *actor.Context) { c.end(ctx, "reset") }

func (c *Conn) end(ctx *actor.Context, how string) {
	service.TellRef(ctx, c.ref, "close", actor.Text(how))
}

// Give hands the connection to another actor, which gets it as a client of a listener: in OnOpen. Within OnOpen nothing
// has been read yet.
func (s *Conns) Give(ctx *actor.Context, c *Conn, to actor.Ref) {
	delete(s.of, c.ref)
	service.TellRef(ctx, c.ref, "give", actor.Func(func(w *abi.Writer) { w.Ref(to) }))
}
