package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
)

// The messages of a WebSocket: to the route's actor WSOpen, WSText, WSBinary, which are asks, and
// WSClose, the last; from actors with its ref "text", "binary", "close" and "state".
const (
	WSOpen   = "ws.open"
	WSText   = "ws.text"
	WSBinary = "ws.binary"
	WSClose  = "ws.close"
)

// Codes of RFC 6455.
const (
	codeNormal    = 1000
	codeGoingAway = 1001
	codeNoStatus  = 1005
	codeAbnormal  = 1006
	codeInvalid   = 1007
	codePolicy    = 1008
	codeTooBig    = 1009
	codeTryLater  = 1013
)

// mostProtocols bounds what a client may offer.
const mostProtocols = 16

func wantsWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && middleware.InList(r.Header["Upgrade"], "websocket") && middleware.InList(r.Header["Connection"], "upgrade")
}

// webSocket serves a request for a WebSocket, until the connection has ended.
func (x *exchange) webSocket() {
	if p := x.checkWebSocket(); p.status != 0 {
		x.refuse(p)
		return
	}
	k := &webSocket{x: x}
	c, err := newConn(x, k)
	if err != nil {
		x.refuse(x.g.problemOf(err, host.Ref{}))
		return
	}
	protocols := protocolsOf(x.r)
	a, ok := x.open(c, WSOpen, protocolWriter(protocols))
	if !ok {
		c.finish(ended{codePolicy, "refused"})
		return
	}
	if a.protocol != "" && !contains(protocols, a.protocol) {
		c.finish(ended{codePolicy, "refused"})
		x.refuse(problem{status: http.StatusBadGateway, text: "the actor's answer is not valid", cause: errors.New("the protocol was not offered: " + a.protocol)})
		return
	}
	k.c = c
	if err := k.accept(a.protocol); err != nil {
		c.finish(ended{codeAbnormal, "the handshake has failed"})
		x.note = "the handshake has failed"
		return
	}
	kept, done := x.detach()
	k.x = kept
	c.begin(k.write, func() { _ = k.ws.CloseNow() })
	k.serve(c, done)
}

// checkWebSocket refuses what is no handshake, and pages from elsewhere.
func (x *exchange) checkWebSocket() problem {
	h := x.r.Header
	switch {
	case x.r.ProtoMajor != 1 || x.r.ProtoMinor < 1:
		return problem{status: http.StatusHTTPVersionNotSupported, text: "WebSockets are for HTTP/1.1"}
	case h.Get("Sec-Websocket-Version") != "13":
		x.w.Header()["Sec-Websocket-Version"] = []string{"13"}
		return problem{status: http.StatusUpgradeRequired, text: "the version of WebSockets is 13"}
	case len(h["Sec-Websocket-Key"]) != 1 || !validKey(h["Sec-Websocket-Key"][0]):
		return problem{status: http.StatusBadRequest, text: "the handshake has no key of 16 bytes, or several"}
	case x.r.ContentLength != 0:
		return problem{status: http.StatusBadRequest, text: "a handshake has no body"}
	case len(protocolsOf(x.r)) > mostProtocols:
		return problem{status: http.StatusBadRequest, text: "too many protocols are offered"}
	case len(h["Origin"]) > 0 && !x.origin(h["Origin"]):
		return problem{status: http.StatusForbidden, text: "pages of this origin may not open a WebSocket here"}
	}
	return problem{}
}

func validKey(key string) bool {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(key))
	return err == nil && len(b) == 16
}

// origin reports whether a page may open a WebSocket. Clients that are no browsers have none.
func (x *exchange) origin(values []string) bool {
	if len(values) != 1 {
		return false
	}
	u, err := url.Parse(values[0])
	if err != nil {
		return false
	}
	if u.Host != "" && strings.EqualFold(u.Host, x.r.Host) {
		return true
	}
	for _, p := range x.route.Upgrade.Origins {
		if p == "*" {
			return true
		}
		if ok, _ := path.Match(strings.ToLower(p), strings.ToLower(u.Host)); ok && u.Host != "" {
			return true
		}
	}
	return false
}

func protocolsOf(r *http.Request) (out []string) {
	for _, v := range r.Header["Sec-Websocket-Protocol"] {
		for _, p := range strings.Split(v, ",") {
			if p = strings.TrimSpace(p); middleware.ValidName(p) {
				out = append(out, p)
			}
		}
	}
	return out
}

func protocolWriter(protocols []string) func(w *abi.Writer) {
	if len(protocols) == 0 {
		return nil
	}
	return func(w *abi.Writer) {
		w.Text("protocols")
		w.Array(len(protocols))
		for _, p := range protocols {
			w.Text(p)
		}
	}
}

func contains(list []string, one string) bool {
	for _, s := range list {
		if s == one {
			return true
		}
	}
	return false
}

// webSocket is a connection's kind.
type webSocket struct {
	x  *exchange
	ws *websocket.Conn
	c  *conn

	busy    atomic.Bool  // the peer is not read from: its message is being handled
	heard   atomic.Int64 // ns since 1970, when something has come
	reading atomic.Int64 // since when a message comes in; 0: none does
	pings   int          // of the peer, since the last message
}

// mostPings is how many pings a peer may send between two messages or a ping of ours.
const mostPings = 100

func (k *webSocket) accept(protocol string) error {
	o := &websocket.AcceptOptions{InsecureSkipVerify: true, OnPingReceived: k.pinged} // origins were checked
	if k.x.route.Upgrade.Compress {
		o.CompressionMode = websocket.CompressionNoContextTakeover
	}
	if protocol != "" {
		o.Subprotocols = []string{protocol}
	}
	ws, err := websocket.Accept(&k.x.w, k.x.r, o)
	if err != nil {
		return err
	}
	ws.SetReadLimit(k.x.route.Upgrade.Message)
	k.ws = ws
	return nil
}

// pinged bounds what pings make us do.
func (k *webSocket) pinged(context.Context, []byte) bool {
	k.heard.Store(k.x.g.clock.Now().UnixNano())
	k.pings++
	if k.pings > mostPings {
		k.c.finish(ended{codePolicy, "too many pings"}) // not CloseNow, which waits for the read that has called this
		return false
	}
	return true
}

// serve reads until the connection has ended, in a goroutine of its own: that of the request and
// all that it holds are given back. done is called in the end.
func (k *webSocket) serve(c *conn, done func()) {
	stop := k.watch(c)
	executor.Go(k.x.g.clock, func() {
		defer done()
		c.finish(k.read(c))
		stop()
		c.wait()
		_ = k.ws.CloseNow()
	})
}

// parts are buffers of messages that come in.
var parts = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}

// headRoom is what stands before a message in a buffer: ["ws.binary", and its length.
const headRoom = 1 + 1 + len(WSBinary) + 5

// read hands the messages of the peer over.
func (k *webSocket) read(c *conn) ended {
	ctx := context.Background()
	for {
		typ, r, err := k.ws.Reader(ctx)
		if err != nil {
			return endOf(err)
		}
		now := k.x.g.clock.Now().UnixNano()
		k.heard.Store(now)
		k.reading.Store(now)
		k.pings = 0
		buf := parts.Get().(*[]byte)
		b, err := readInto(buf, r)
		k.reading.Store(0)
		if err != nil {
			parts.Put(buf)
			return endOf(err)
		}
		if typ == websocket.MessageText && !utf8.Valid(b) {
			parts.Put(buf)
			k.closeNow(codeInvalid, "a text is not UTF-8")
			return ended{codeInvalid, "a text is not UTF-8"}
		}
		k.busy.Store(true)
		tooLarge, ok := c.deliver(message(*buf, len(b), typ == websocket.MessageText))
		if !ok {
			return ended{codeAbnormal, ""} // it has ended otherwise
		}
		if cap(*buf) <= maxKept {
			parts.Put(buf)
		}
		k.heard.Store(k.x.g.clock.Now().UnixNano())
		k.busy.Store(false)
		if tooLarge {
			k.closeNow(codeTooBig, "the message is larger than the actor can take")
			return ended{codeTooBig, "a message was larger than the actor can take"}
		}
	}
}

// closeNow closes with a code, and waits a little for the peer.
func (k *webSocket) closeNow(code int, reason string) {
	executor.Outside(k.x.g.clock, func() { _ = k.ws.Close(websocket.StatusCode(code), reason) })
}

// readInto reads a message into a buffer, behind the room for its head.
func readInto(buf *[]byte, r io.Reader) ([]byte, error) {
	b := (*buf)[:cap(*buf)]
	n := headRoom
	for {
		if n == len(b) {
			grown := make([]byte, 2*len(b))
			copy(grown, b)
			b = grown
			*buf = b
		}
		m, err := r.Read(b[n:])
		n += m
		if err == io.EOF {
			return b[headRoom:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// message is [op, content] of what stands in a buffer.
func message(buf []byte, n int, text bool) host.Raw {
	op := WSBinary
	if text {
		op = WSText
	}
	var head [headRoom]byte
	h := append(head[:0], 0x82, 0x60|byte(len(op)))
	h = append(h, op...)
	at := len(h)
	h = abi.AppendBytesHead(h, n)
	if text {
		h[at] |= 0x20
	}
	from := headRoom - len(h)
	copy(buf[from:], h)
	return host.Raw(buf[from : headRoom+n])
}

// endOf describes how a connection has ended.
func endOf(err error) ended {
	var e websocket.CloseError
	switch {
	case errors.As(err, &e):
		return ended{int(e.Code), e.Reason}
	case errors.Is(err, websocket.ErrMessageTooBig):
		return ended{codeTooBig, "a message was too large"}
	}
	return ended{codeAbnormal, "the connection was lost"}
}

// frame implements connKind.
func (k *webSocket) frame(op string, r *abi.Reader) (frame, error) {
	bad := func(text string) (frame, error) { return frame{}, service.Errorf(service.BadRequest, "%s", text) }
	switch op {
	case "text":
		f := frame{kind: byte(websocket.MessageText), b: []byte(r.Text())}
		if r.Done() != nil {
			return bad("text takes a text")
		}
		return f, nil
	case "binary":
		f := frame{kind: byte(websocket.MessageBinary), b: r.Bytes()}
		if r.Done() != nil {
			return bad("binary takes a byte string")
		}
		return f, nil
	case "close":
		f := frame{kind: frameClose, code: codeNormal}
		if !r.Null() {
			for range r.Map() {
				switch string(r.TextBytes()) {
				case "code":
					f.code = int(min(max(r.Int(), 0), 1<<16))
				case "reason":
					f.b = []byte(r.Text())
				default:
					return bad(`close takes {"code", "reason"}`)
				}
			}
		}
		if r.Done() != nil || len(f.b) > 123 || !sendable(f.code) {
			return bad("close takes a code, 1000 or 3000 to 4999 or one of RFC 6455, and a reason of at most 123 bytes")
		}
		return f, nil
	}
	return bad("a WebSocket knows text, binary, close and state")
}

// sendable reports whether a close frame may have a code.
func sendable(code int) bool {
	switch code {
	case 1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014:
		return true
	}
	return code >= 3000 && code <= 4999
}

// write writes a frame to the peer, which has to take it within the time of a write.
func (k *webSocket) write(f frame) error {
	if f.kind == frameClose {
		var err error
		executor.Outside(k.x.g.clock, func() { err = k.ws.Close(websocket.StatusCode(f.code), string(f.b)) })
		return err
	}
	ctx, cancel := k.x.g.bound(context.Background(), k.x.g.cfg.Timeouts.Write)
	defer cancel()
	return k.ws.Write(ctx, websocket.MessageType(f.kind), f.b)
}

// watch looks after a peer that says nothing, or a message that does not come to its end.
func (k *webSocket) watch(c *conn) (stop func()) {
	g := k.x.g
	every := k.x.route.Upgrade.Ping
	k.heard.Store(g.clock.Now().UnixNano())
	var r *repeated
	r = &repeated{clock: g.clock, d: every, f: func() bool {
		now := g.clock.Now()
		if since := k.reading.Load(); since != 0 && now.Sub(time.Unix(0, since)) > k.x.route.Body {
			c.finish(ended{codeAbnormal, "a message did not come in time"})
			return false
		}
		heard := k.heard.Load()
		if k.busy.Load() || now.Sub(time.Unix(0, heard)) < every {
			return true
		}
		executor.Go(g.clock, func() {
			ctx, cancel := g.bound(context.Background(), every)
			defer cancel()
			var err error
			executor.Outside(g.clock, func() { err = k.ws.Ping(ctx) })
			if err != nil && !k.busy.Load() && k.heard.Load() == heard {
				c.finish(ended{codeAbnormal, "no answer to a ping"})
				return
			}
			r.arm()
		})
		return false
	}}
	r.arm()
	return r.stop
}
