package tcp

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
)

// A peer that resets, or breaks off in the middle of a message, ends its connection and nothing else, whatever goes on: the only
// place that there is for a connection is free again, and the next peer is served.
func TestPeersThatBreakOff(t *testing.T) {
	lines, keep := args{"framing": args{"kind": "lines", "limit": 16}}, args{"keep_open": true}
	reset := func(nc net.Conn) {
		_ = nc.(*net.TCPConn).SetLinger(0)
		_ = nc.Close()
	}
	big := make([]byte, 200_000)
	for _, c := range []struct {
		name    string
		options args
		f       func(p *puppet, nc net.Conn, conn host.Ref)
		how     string
		want    string
	}{
		{"a reset before it is registered", nil, func(p *puppet, nc net.Conn, conn host.Ref) {
			reset(nc)
			p.tell(conn, "register", nil)
		}, HowError, "reset"},
		{"a reset of a connection that waits", nil, func(p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			send(p.w.t, nc, "x")
			p.expect(Data)
			reset(nc)
		}, HowError, "reset"},
		{"a reset in the middle of a message", lines, func(p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			send(p.w.t, nc, "whole\nhalf")
			p.expect(Data)
			reset(nc)
		}, HowError, "reset"},
		{"a reset while much is written to it", nil, func(p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			for range 20 {
				p.tell(conn, "write", big)
			}
			reset(nc)
			for { // some are refused
				m := p.next()
				if m.word == Closed {
					p.got <- m.Message
					return
				}
			}
		}, HowError, ""},
		{"a reset while it is closed in order", nil, func(p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			p.tell(conn, "write", big)
			p.tell(conn, "write", big)
			p.tell(conn, "close", "flush")
			reset(nc)
			for {
				m := p.next()
				if m.word == Closed {
					p.got <- m.Message
					return
				}
			}
		}, "", ""},
		{"a reset behind its half", keep, func(p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			_ = nc.(*net.TCPConn).CloseWrite()
			p.expect(PeerClosed)
			reset(nc)
			for p.w.sys.TellFrom(p.ref, conn, []any{"write", []byte("x")}) == nil && len(p.got) == 0 { // a write finds out
			}
			for {
				m := p.next()
				if m.word == Closed {
					p.got <- m.Message
					return
				}
			}
		}, HowError, ""},
		{"half a message and the end", lines, func(p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			send(p.w.t, nc, "half")
			_ = nc.(*net.TCPConn).CloseWrite()
		}, HowError, "within a message"},
		{"a message beyond the limit", lines, func(p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			send(p.w.t, nc, "this one is longer than sixteen bytes\n")
		}, HowError, "larger than the limit"},
		{"a message beyond the limit that never ends", lines, func(p *puppet, nc net.Conn, conn host.Ref) {
			p.tell(conn, "register", nil)
			send(p.w.t, nc, strings.Repeat("x", 100))
		}, HowError, "larger than the limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, Options{}, nil)
			g := usual()
			g.Connections = 1
			p := w.puppet("p", g)
			more := args{}
			if c.options != nil {
				more["options"] = c.options
			}
			_, address := p.listen(more)
			nc := w.dial(address)
			o := p.connected()
			c.f(p, nc, o.ref)
			m := p.expect(Closed)
			if !strings.Contains(string(m.body), c.how) || !strings.Contains(string(m.body), c.want) {
				t.Fatalf("%s", m.body)
			}
			next, conn := p.accept(address)
			send(t, next, "hello\n")
			for { // what was told the first one is answered some time
				if m := p.next(); m.word == Data && m.Sender.UID() == conn.UID() {
					return
				}
			}
		})
	}
}

// Peers that reset in the middle of their handshakes are never announced, and their place is free again.
func TestResetWithinAHandshake(t *testing.T) {
	w := newWorld(t, Options{}, nil)
	a := newAuthority(t, w.env.Base)
	g := usual()
	g.TLS, g.Connections = TLS{Certificates: []Certificate{a.issue("one.test")}}, 1
	p := w.puppet("p", g)
	_, address := p.listen(args{"tls": args{}})
	for range 3 {
		nc := w.dial(address)
		send(t, nc, "\x16\x03\x01") // the beginning of a hello
		_ = nc.(*net.TCPConn).SetLinger(0)
		_ = nc.Close()
	}
	nc, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if o := p.connected(); o.Remote != nc.LocalAddr().String() {
		t.Fatal(o.Remote)
	}
}
