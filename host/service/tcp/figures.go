package tcp

import (
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// counts are for any goroutine.
type counts struct {
	open                      atomic.Int64
	accepted, dialled, failed atomic.Uint64
	received, sent            atomic.Uint64
	closed, broken            atomic.Uint64
	settled                   atomic.Uint64 // readers that have gone on elsewhere; of tests
}

func (c *counts) ended(how string) {
	if how == HowError || how == HowAborted {
		c.broken.Add(1)
		return
	}
	c.closed.Add(1)
}

// Figures implements service.Measured.
func (p *provider) Figures() []service.Figure {
	c := &p.counts
	return []service.Figure{
		{Name: "connections_open", Value: float64(c.open.Load())},
		{Name: "connections_accepted_total", Value: float64(c.accepted.Load())},
		{Name: "connections_dialled_total", Value: float64(c.dialled.Load())},
		{Name: "connections_failed_total", Value: float64(c.failed.Load())},
		{Name: "connections_closed_total", Value: float64(c.closed.Load())},
		{Name: "connections_broken_total", Value: float64(c.broken.Load())},
		{Name: "received_bytes_total", Value: float64(c.received.Load())},
		{Name: "sent_bytes_total", Value: float64(c.sent.Load())},
	}
}

// opening is the answer to a request for a connection.
func (c *conn) opening() host.Raw {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.describe("", false)
}

// describe is what an actor is told of a connection, as a message if word is not empty. It is called with the lock.
func (c *conn) describe(word string, resumed bool) host.Raw {
	w := abi.NewWriter(nil)
	if word != "" {
		w.Array(2)
		w.Text(word)
	}
	t, secure := c.nc.(*tls.Conn)
	n := 4
	for _, more := range [...]bool{!c.from.IsZero(), resumed, c.state != nil, secure, c.o.Pull} {
		if more {
			n++
		}
	}
	w.Map(n)
	w.Text("conn")
	w.Ref(c.ref.UID())
	w.Text("local")
	w.Text(addressText(c.nc.LocalAddr()))
	w.Text("remote")
	w.Text(addressText(c.nc.RemoteAddr()))
	w.Text("window")
	w.Uint(c.o.Window)
	if !c.from.IsZero() {
		w.Text("listener")
		w.Ref(c.from.UID())
	}
	if resumed {
		w.Text("resumed")
		w.Bool(true)
	}
	if c.o.Pull {
		w.Text("pull")
		w.Bool(true)
	}
	if c.state != nil {
		w.Text("state")
		w.Raw(c.state)
	}
	if secure {
		w.Text("tls")
		securedTo(w, t.ConnectionState())
	}
	return w.Bytes()
}

// securedTo writes what a handshake has led to.
func securedTo(w *abi.Writer, s tls.ConnectionState) {
	peer := len(s.PeerCertificates) > 0
	n := 3
	if peer {
		n += 2
	}
	w.Map(n)
	w.Text("version")
	w.Text(tls.VersionName(s.Version))
	w.Text("alpn")
	w.Text(s.NegotiatedProtocol)
	w.Text("server_name")
	w.Text(printable.Line(s.ServerName, 253))
	if peer {
		cert := s.PeerCertificates[0]
		w.Text("peer")
		w.Text(printable.Line(cert.Subject.String(), 512))
		w.Text("names")
		names := cert.DNSNames[:min(len(cert.DNSNames), 16)]
		w.Array(len(names))
		for _, name := range names {
			w.Text(printable.Line(name, 253))
		}
	}
}

// addressText is an address as text; the one of a socket of a file has none but its kind, since paths are the host's.
func addressText(a net.Addr) string {
	if a == nil || a.Network() == "unix" {
		return "unix"
	}
	return a.String()
}
