// Package udp is the service for datagrams of guests: /system/udp.
//
// A grant lists where datagrams may go and the addresses that an actor may bind; addresses that are not public are refused
// unless they are named, as by the service tcp. A socket is an actor below the service's. docs/services/udp.md has the rest.
package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
	"github.com/wasmactors/wasmactors/host/service/internal/endpoint"
)

// Name is the name of the service below /system, and of the grant.
const Name = "udp"

// Grant is where an actor may send datagrams, and where it may receive some. Zero fields mean the defaults.
type Grant struct {
	Connect []string     `manifest:"connect" doc:"where datagrams may be sent: host:port, *.example.com:port, or network:port such as 10.0.0.0/8:53; a port may be *. Who has sent one is answered in any case" reach:"connect"`
	Listen  []string     `manifest:"listen" doc:"addresses that may be bound: address:port, localhost:port, or :port for all addresses of the machine; port 0 is any that is free, * is all" reach:"listen"`
	Private []string     `manifest:"private" doc:"addresses and networks that names of connect may lead to although they are not public: 10.1.0.0/16, ::1, or loopback, private, link-local, shared" reach:"connect"`
	Sockets int          `manifest:"sockets" doc:"sockets at a time; default 16" min:"1" max:"10000"`
	Window  service.Size `manifest:"window" doc:"most bytes on their way to the actor that a socket may have; what comes beyond is dropped; default 256 KiB" min:"1024" max:"16777216"`
	Outbox  service.Size `manifest:"outbox" doc:"bytes of a socket that may wait to be sent; what is sent beyond is dropped; default 256 KiB" min:"1024" max:"16777216"`
}

// Settings are the service's.
type Settings struct {
	Sockets int      `manifest:"sockets" doc:"sockets at a time, of all grants together; default 1024" min:"1" max:"100000"`
	NAT64   []string `manifest:"nat64" doc:"prefixes by which this network translates to IPv4, in addition to 64:ff9b::/96: their addresses are judged by the IPv4 address within" reach:"connect"`
}

// Defaults of [Grant], [Settings] and a socket, and bounds.
const (
	DefaultSockets  = 16
	DefaultInAll    = 1024
	DefaultMost     = 256 << 10
	DefaultWindow   = 64 << 10
	MinWindow       = 1 << 10
	Overhead        = 64       // of a datagram in the window and in the outbox, beside its bytes
	MaxReceived     = 60 << 10 // bytes of a datagram that an actor is told; larger ones are dropped
	MaxSent         = 65507    // bytes of a datagram
	RegisterTimeout = 5 * time.Second
	Patience        = time.Second // without an acknowledgement, after which a window counts as handled
	heard           = 1024        // addresses from which something has come that may be answered, twice
)

// Messages of a socket to the actor that has it.
const (
	Received = "udp.received" // {"from", "data", ? "dropped"}
	Closed   = "udp.closed"   // {? "error"}, the last one
)

// Options are what only a Go program can set.
type Options struct {
	Resolver egress.Resolver // nil: net.DefaultResolver
	// Dial opens a socket for one peer, and Listen one for all; nil: those of package net.
	Dial   func(to netip.AddrPort) (*net.UDPConn, error)
	Listen func(address string) (*net.UDPConn, error)
	// Deaf keeps the service from the network, as in a scenario: nothing comes, and what is sent is dropped.
	Deaf bool
}

// Service is the service with the system's resolver.
var Service = New(Options{})

// New is the service with Options.
func New(o Options) *service.Service[Settings, Grant] {
	return service.Define(service.Definition[Settings, Grant]{
		Name: Name, Doc: "datagrams",
		CheckGrant: func(g *Grant) error {
			if len(g.Connect)+len(g.Listen) == 0 {
				return service.At("connect", errors.New("name where datagrams may go, or in listen what may be bound"))
			}
			_, err := endpoint.Compile(g.Connect, g.Listen, g.Private, false)
			return err
		},
		CheckSettings: func(s *Settings) error { _, err := s.judge(); return err },
		Open:          func(env *service.Env, s *Settings) (service.Provider[Grant], error) { return start(env, s, o) },
	})
}

func (s *Settings) judge() (j egress.Judge, err error) {
	for i, text := range s.NAT64 {
		p, err := egress.ParseNAT64(text)
		if err != nil {
			return j, service.At(fmt.Sprintf("nat64[%d]", i), err)
		}
		j.NAT64 = append(j.NAT64, p)
	}
	return j, nil
}

// nobody knows no names.
type nobody struct{}

func (nobody) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// provider implements service.Provider.
type provider struct {
	env    *service.Env
	o      Options
	dialer egress.Dialer // resolves and judges
	most   int
	tasks  sync.WaitGroup

	received, sent, droppedIn, droppedOut atomic.Uint64

	mu      sync.Mutex
	holders map[uint64]*holder
	open    map[*socket]struct{}
	closing bool
}

// holder is the service's state of a grant.
type holder struct {
	grant   Grant
	permits *endpoint.Permits
	sockets int     // with the lock of the provider
	simple  *socket // for single datagrams; nil: none was sent
}

func start(env *service.Env, s *Settings, o Options) (*provider, error) {
	judge, err := s.judge()
	if err != nil {
		return nil, err
	}
	if o.Deaf && o.Resolver == nil {
		o.Resolver = nobody{}
	}
	if o.Dial == nil {
		o.Dial = func(to netip.AddrPort) (*net.UDPConn, error) {
			return net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		}
	}
	if o.Listen == nil {
		o.Listen = func(address string) (*net.UDPConn, error) {
			a, err := net.ResolveUDPAddr("udp", address) // no name: it was checked
			if err != nil {
				return nil, err
			}
			return net.ListenUDP("udp", a)
		}
	}
	p := &provider{env: env, o: o, most: s.Sockets, holders: map[uint64]*holder{}, open: map[*socket]struct{}{}}
	if p.most <= 0 {
		p.most = DefaultInAll
	}
	p.dialer = egress.Dialer{Resolver: o.Resolver, Clock: env.Clock, Judge: judge}
	return p, nil
}

func (p *provider) holder(id uint64, g *Grant) (*holder, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.holders[id]; h != nil {
		return h, nil
	}
	permits, err := endpoint.Compile(g.Connect, g.Listen, g.Private, false)
	if err != nil {
		return nil, err
	}
	h := &holder{grant: *g, permits: permits}
	if h.grant.Sockets <= 0 {
		h.grant.Sockets = DefaultSockets
	}
	for _, size := range []*service.Size{&h.grant.Window, &h.grant.Outbox} {
		if *size <= 0 {
			*size = DefaultMost
		}
	}
	p.holders[id] = h
	return h, nil
}

// Serve implements service.Provider.
func (p *provider) Serve(ctx context.Context, r *service.Request[Grant]) (any, error) {
	h, err := p.holder(r.GrantID(), r.Grant)
	if err != nil {
		return nil, err
	}
	switch r.Op {
	case "send":
		var in struct {
			To   string `cbor:"to"`
			Data []byte `cbor:"data"`
		}
		if err := r.Decode(&in); err != nil {
			return nil, err
		}
		return nil, p.send(ctx, h, in.To, in.Data)
	case "resolve":
		var in struct {
			Address string `cbor:"address"`
		}
		if err := r.Decode(&in); err != nil {
			return nil, err
		}
		addrs, err := p.resolve(ctx, h, r.Op, in.Address)
		if err != nil {
			return nil, err
		}
		out := make([]string, len(addrs))
		for i, a := range addrs {
			out[i] = a.String()
		}
		return out, nil
	case "bind", "connect":
		return p.bind(ctx, h, r)
	}
	return nil, r.Unknown()
}

// resolve returns the addresses of a host and port that a grant covers. What it is for has a span, in which the name is resolved.
func (p *provider) resolve(ctx context.Context, h *holder, op, address string) (_ []netip.AddrPort, err error) {
	to, err := h.permits.Connect(address)
	if err != nil {
		return nil, err
	}
	ctx, end := endpoint.Span(ctx, p.env.Clock, op, "udp", to)
	defer func() { end(err) }()
	addrs, err := p.dialer.Addresses(ctx, to.Host, to.Named)
	if err != nil {
		var refused *egress.RefusedError
		switch {
		case errors.As(err, &refused):
			e := service.Deny("private", "%s", refused)
			e.Err = err
			return nil, e
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		return nil, &service.Error{Code: service.Failed, Text: to.String() + ": its name could not be resolved", Err: err}
	}
	out := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		out[i] = netip.AddrPortFrom(a, to.Port)
	}
	return out, nil
}

// send sends a single datagram, from a socket that all of the grant share.
func (p *provider) send(ctx context.Context, h *holder, address string, data []byte) error {
	if err := tooLarge(data); err != nil {
		return err
	}
	to, err := p.resolve(ctx, h, "send", address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	s := h.simple
	if s == nil && !p.closing {
		var nc conn = deaf{":0"}
		var err error
		if !p.o.Deaf {
			nc, err = p.o.Listen(":0")
		}
		if err != nil {
			p.mu.Unlock()
			return failed("sending", err)
		}
		s = &socket{p: p, h: h, nc: nc}
		h.simple = s
	}
	p.mu.Unlock()
	if s == nil {
		return errClosing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(to[0], data)
}

var errClosing = service.Errorf(service.Unavailable, "the service is closing")

func tooLarge(data []byte) error {
	if len(data) > MaxSent {
		return service.Errorf(service.TooLarge, "a datagram has at most %d bytes", MaxSent)
	}
	return nil
}

func failed(what string, err error) error {
	text := "it is not possible"
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		text = sys.Err.Error()
	}
	return &service.Error{Code: service.Failed, Text: what + ": " + text, Err: err}
}

// bind opens a socket, for one peer or for all.
func (p *provider) bind(ctx context.Context, h *holder, r *service.Request[Grant]) (any, error) {
	in := struct {
		Address string `cbor:"address"`
		Window  uint64 `cbor:"window"`
	}{Window: min(DefaultWindow, uint64(h.grant.Window))}
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.Window < MinWindow || in.Window > uint64(h.grant.Window) {
		return nil, service.Errorf(service.TooLarge, "window is %d to %d bytes; window of the grant raises it", MinWindow, h.grant.Window)
	}
	s := &socket{p: p, h: h, window: int64(in.Window), handler: r.Sender, connected: r.Op == "connect"}
	var to []netip.AddrPort
	var at endpoint.Place
	var err error
	if s.connected {
		to, err = p.resolve(ctx, h, r.Op, in.Address)
	} else {
		at, err = h.permits.Listen(in.Address)
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	switch {
	case p.closing:
		err = errClosing
	case h.sockets >= h.grant.Sockets:
		err = service.Errorf(service.Busy, "the grant has %d sockets, which is the limit; sockets of the grant raises it", h.sockets)
	case len(p.open) >= p.most:
		err = service.Errorf(service.Busy, "all actors together have %d sockets, which is the limit; services.udp.sockets raises it", p.most)
	default:
		h.sockets++
		p.open[s] = struct{}{}
	}
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	switch {
	case p.o.Deaf:
		s.nc = deaf{in.Address}
	case s.connected:
		s.nc, err = p.o.Dial(to[0])
	default:
		s.nc, err = p.o.Listen(at.Address)
	}
	if err != nil {
		p.leave(s)
		return nil, failed(r.Op+" "+in.Address, err)
	}
	s.mu.Lock()
	s.ref, err = r.Spawn(s.props())
	s.arm()
	if err != nil {
		s.finish("")
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if !p.o.Deaf {
		p.tasks.Add(1)
		p.env.Go(func() { defer p.tasks.Done(); s.read() })
	}
	w := abi.NewWriter(nil)
	w.Map(2)
	w.Text("socket")
	w.Ref(s.ref.UID())
	w.Text("address")
	w.Text(s.nc.LocalAddr().String())
	return host.Raw(w.Bytes()), nil
}

func (p *provider) leave(s *socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, open := p.open[s]; open {
		delete(p.open, s)
		s.h.sockets--
	}
}

// Figures implements service.Measured.
func (p *provider) Figures() []service.Figure {
	p.mu.Lock()
	open := len(p.open)
	p.mu.Unlock()
	return []service.Figure{
		{Name: "sockets_open", Value: float64(open)},
		{Name: "received_datagrams_total", Value: float64(p.received.Load())},
		{Name: "sent_datagrams_total", Value: float64(p.sent.Load())},
		{Name: "received_dropped_total", Value: float64(p.droppedIn.Load())},
		{Name: "sent_dropped_total", Value: float64(p.droppedOut.Load())},
	}
}

// Close implements service.Provider.
func (p *provider) Close(context.Context) error {
	p.mu.Lock()
	p.closing = true
	var all []*socket
	for s := range p.open {
		all = append(all, s)
	}
	for _, h := range p.holders {
		if h.simple != nil {
			all = append(all, h.simple)
		}
	}
	p.mu.Unlock()
	for _, s := range all {
		s.mu.Lock()
		s.finish("the service is closing")
		s.mu.Unlock()
	}
	executor.Join(p.env.Clock, &p.tasks)
	return nil
}
