// Package tcp is the service for connections of guests that are not HTTP: /system/tcp.
//
// A grant lists the servers that an actor may connect to and the addresses that it may listen on. Addresses that are not
// public are refused when they are dialled, for any name, unless they are named; see package egress. A listener and each
// connection is an actor below the service's. docs/services/tcp.md has the rest.
package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
	"github.com/wasmactors/wasmactors/host/service/internal/endpoint"
)

// Name is the name of the service below /system, and of the grant.
const Name = "tcp"

// Grant is what an actor may connect to and listen on. Zero fields mean the defaults.
type Grant struct {
	Connect []string `manifest:"connect" doc:"servers that may be connected to: host:port, *.example.com:port, network:port such as 10.0.0.0/8:6379, or unix:path within the bundle's folder; a port may be *" reach:"connect"`
	Listen  []string `manifest:"listen" doc:"addresses that may be listened on: address:port, localhost:port, :port for all addresses of the machine, or unix:path within the bundle's folder; port 0 is any that is free, * is all" reach:"listen"`
	Private []string `manifest:"private" doc:"addresses and networks that names of connect may lead to although they are not public: 10.1.0.0/16, ::1, or loopback, private, link-local, shared" reach:"connect"`
	TLS     TLS      `manifest:"tls" doc:"certificates of connections with TLS"`

	Connections int           `manifest:"connections" doc:"connections at a time; default 1024" min:"1" max:"1000000"`
	PerActor    int           `manifest:"connections-per-actor" doc:"connections of one actor at a time; default: connections" min:"1" max:"1000000"`
	Listeners   int           `manifest:"listeners" doc:"listeners at a time; default 16" min:"1" max:"1000"`
	Window      service.Size  `manifest:"window" doc:"most bytes on their way to the actor that a connection may have; default 256 KiB" min:"1024" max:"16777216"`
	Outbox      service.Size  `manifest:"outbox" doc:"bytes of a connection that may wait for the peer; default 256 KiB" min:"1024" max:"67108864"`
	Idle        time.Duration `manifest:"idle-timeout" doc:"how long nothing may come or go before a connection is closed; default 5m"`
}

// TLS are the certificates of a grant.
type TLS struct {
	Certificates []Certificate `manifest:"certificates" doc:"own certificates: a server has the one for the name that the client asks for, a client shows the one that the server asks for"`
	ClientCA     string        `manifest:"client-ca" doc:"file with certificates (PEM) of authorities: listeners demand a certificate of clients that one of them has signed" reach:"read"`
	Roots        string        `manifest:"roots" doc:"file with certificates (PEM) of authorities that are trusted in addition to the system's" reach:"read"`
	Names        []string      `manifest:"names" doc:"names of servers that may be asked for and verified in place of the host of the address" reach:"none"`
	Required     bool          `manifest:"required" doc:"nothing is done without TLS"`
}

// Certificate is a certificate and its key, in files.
type Certificate struct {
	Cert string `manifest:"cert,required" doc:"file with the certificate and those of its authorities (PEM)" reach:"read"`
	Key  string `manifest:"key,required" doc:"file with its key (PEM)" reach:"read"`
}

// Settings are the service's.
type Settings struct {
	Connections int      `manifest:"connections" doc:"connections at a time, of all grants together; default 16384, and at most half of the files that the process may open" min:"1" max:"10000000"`
	NAT64       []string `manifest:"nat64" doc:"prefixes by which this network translates to IPv4, in addition to 64:ff9b::/96: their addresses are judged by the IPv4 address within" reach:"connect"`
}

// Defaults of [Grant] and [Settings].
const (
	DefaultConnections = 1024
	DefaultListeners   = 16
	DefaultMostWindow  = 256 << 10
	DefaultOutbox      = 256 << 10
	DefaultInAll       = 16384
)

// Options are what only a Go program can set.
type Options struct {
	// Resolver finds the addresses of names; nil: net.DefaultResolver.
	Resolver egress.Resolver
	// Connect makes connections to checked addresses; nil: TCP.
	Connect egress.Connect
	// Listen opens a listener; nil: net.Listen.
	Listen func(network, address string) (net.Listener, error)
	// Deaf keeps the service from the network, as in a scenario: listeners get no connections, and connecting fails.
	Deaf bool
}

// Service is the service with the system's resolver.
var Service = New(Options{})

// New is the service with Options.
func New(o Options) *service.Service[Settings, Grant] {
	return service.Define(service.Definition[Settings, Grant]{
		Name: Name, Doc: "connections that are not HTTP",
		CheckGrant: checkGrant, CheckSettings: checkSettings,
		Open: func(env *service.Env, s *Settings) (service.Provider[Grant], error) { return start(env, s, o) },
	})
}

func checkGrant(g *Grant) error {
	if _, err := endpoint.Compile(g.Connect, g.Listen, g.Private, true); err != nil {
		return err
	}
	if len(g.Connect)+len(g.Listen) == 0 {
		return service.At("connect", errors.New("name what may be connected to, or in listen what may be listened on"))
	}
	if g.Idle < 0 || g.Idle > maxTime {
		return service.At("idle-timeout", fmt.Errorf("at most %v", maxTime))
	}
	return nil
}

func checkSettings(s *Settings) error {
	_, err := s.judge()
	return err
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

func (g *Grant) withDefaults() Grant {
	c := *g
	or(&c.Connections, DefaultConnections)
	or(&c.PerActor, c.Connections)
	or(&c.Listeners, DefaultListeners)
	or(&c.Window, DefaultMostWindow)
	or(&c.Outbox, DefaultOutbox)
	or(&c.Idle, DefaultIdle)
	return c
}

func or[T int | service.Size | time.Duration](v *T, fallback T) {
	if *v <= 0 {
		*v = fallback
	}
}

func start(env *service.Env, s *Settings, o Options) (*provider, error) {
	judge, err := s.judge()
	if err != nil {
		return nil, err
	}
	most := s.Connections
	if or(&most, DefaultInAll); o.Connect == nil && o.Listen == nil {
		if files := endpoint.Descriptors(); files > 0 {
			most = int(min(uint64(most), max(files/2, 1)))
		}
	}
	if o.Listen == nil {
		o.Listen = endpoint.Listen
	}
	p := &provider{env: env, listen: o.Listen, deaf: o.Deaf, most: most, inAll: semaphore.NewWeighted(int64(most)), holders: map[uint64]*holder{}, open: map[ending]struct{}{}}
	p.dialer = egress.Dialer{Resolver: o.Resolver, Connect: o.Connect, Clock: env.Clock, Judge: judge}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p, nil
}
