package gateway

import (
	"errors"
	"time"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Upgrade says which connections a route accepts: WebSockets and server-sent events. A connection is an actor below the
// gateway's. The route's actor gets its ref when it is asked whether it accepts it. A route's limits of requests in
// progress, and those of its clients, count connections, too.
type Upgrade struct {
	WebSocket bool
	Events    bool // requests that accept text/event-stream
	// Origins are the hosts that pages with a WebSocket may come from, besides the own; as
	// path.Match has it, * for any.
	Origins []string
	Message int64         // bytes of one message of the peer's; default DefaultMessage, at most MaxMessage
	Outbox  int           // bytes on their way to the peer that wait; default 256 KiB
	Ping    time.Duration // after which silence the peer is asked for a sign of life; default 30 s
	// Compress offers permessage-deflate. It takes 9 KB of a connection that has used it, 40 KB
	// more while a message comes in, and 1.3 MB while one is packed.
	Compress bool
}

// MaxMessage bounds [Upgrade.Message], in bytes: with what stands before it, an actor with the default limit of a message
// takes one.
const MaxMessage = 1<<20 - 1<<10

// Defaults of [Upgrade].
const (
	DefaultMessage = 60 << 10 // bytes: what fits into the inbox of a guest of our SDK
	DefaultOutbox  = 256 << 10
	DefaultPing    = 30 * time.Second
)

func (u Upgrade) withDefaults() Upgrade {
	if u.Message <= 0 {
		u.Message = DefaultMessage
	}
	u.Message = min(u.Message, MaxMessage)
	def(&u.Ping, DefaultPing)
	if u.Outbox <= 0 {
		u.Outbox = DefaultOutbox
	}
	return u
}

// open asks the route's actor whether it wants a connection: [op, {"conn": ref, "request":
// ["http", {...}], ...}]. It answers null, or {"protocol": text, "state": any}, or with an answer as to
// any request, which is then written. ok is false if the request is done with.
func (x *exchange) open(c *conn, op string, more func(w *abi.Writer)) (a accepted, ok bool) {
	buf := buffers.Get().(*[]byte)
	defer giveBack(buf)
	done, p := x.encode(buf)
	if done != nil {
		defer done() // there is no body, but who knows
	}
	if p.status != 0 {
		x.refuse(p)
		return a, false
	}
	c.op, c.more = op, more
	c.request = append([]byte(nil), *buf...)
	m, p := x.ask(c.opening(false))
	if p.status != 0 {
		x.refuse(p)
		return a, false
	}
	r := abi.NewReader(m.Payload)
	if r.Peek() == abi.TypeArray {
		w := answers.Get().(*answer)
		defer answers.Put(w)
		if p := x.write(w, m); p.status != 0 {
			x.refuse(p)
		}
		return a, false
	}
	if a, p = decodeAccepted(r); p.status != 0 {
		x.refuse(p)
		return a, false
	}
	c.announced(x.lease.to, a.state)
	return a, true
}

// accepted is what an actor says to a connection that it wants.
type accepted struct {
	protocol string
	state    []byte // that comes back when the actor has been restarted
}

// maxState bounds what a connection remembers for its actor, in bytes.
const maxState = 4 << 10

func decodeAccepted(r *abi.Reader) (a accepted, p problem) {
	bad := func(err error) (accepted, problem) {
		return accepted{}, problem{status: 502, text: "the actor's answer is not valid", cause: err}
	}
	if r.Null() {
		if err := r.Done(); err != nil {
			return bad(err)
		}
		return a, p
	}
	if r.Peek() != abi.TypeMap {
		return bad(errors.New(`a connection is accepted with null or {"protocol", "state"}, or refused with [status, headers, body]`))
	}
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "protocol":
			a.protocol = r.Text()
		case "state":
			a.state = append([]byte(nil), r.Raw()...)
		default:
			return bad(errors.New(`a connection is accepted with {"protocol", "state"}`))
		}
	}
	if err := r.Done(); err != nil {
		return bad(err)
	}
	if len(a.state) > maxState {
		return bad(errors.New("the state of a connection has at most 4 KiB"))
	}
	return a, p
}

// opening is the message that announces a connection, again if the actor was restarted.
func (c *conn) opening(resumed bool) host.Raw {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := abi.NewWriter(make([]byte, 0, len(c.request)+len(c.state)+128))
	n := 2
	if c.more != nil {
		n++
	}
	if resumed {
		n++
	}
	if c.state != nil {
		n++
	}
	w.Array(2)
	w.Text(c.op)
	w.Map(n)
	w.Text("conn")
	w.Ref(c.ref.UID())
	w.Text("request")
	w.Raw(c.request)
	if c.more != nil {
		c.more(w)
	}
	if resumed {
		w.Text("resumed")
		w.Bool(true)
	}
	if c.state != nil {
		w.Text("state")
		w.Raw(c.state)
	}
	return w.Bytes()
}

// closeMessage is [op, {"code": n, "reason": text}], the last message about a connection.
func closeMessage(op string, code int, reason string) host.Raw {
	if !utf8.ValidString(reason) {
		reason = ""
	}
	w := abi.NewWriter(nil)
	w.Array(2)
	w.Text(op)
	w.Map(2)
	w.Text("code")
	w.Int(int64(code))
	w.Text("reason")
	w.Text(reason)
	return w.Bytes()
}

// detach takes over what the request holds, for as long as its connection lives: the actor, and
// its share of the bounds. done gives it back.
func (x *exchange) detach() (kept *exchange, done func()) {
	end, _ := x.keep()
	kept = &exchange{g: x.g, route: x.route, lease: x.lease, busy: x.busy, share: x.share}
	x.lease, x.busy, x.share, x.entry = lease{}, nil, nil, false
	return kept, func() {
		kept.lease.release()
		kept.busy.leave(kept.g.clients)
		kept.share.leave(kept.route.clients)
		kept.route.under.Add(-1)
		end()
	}
}
