package gateway

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"go.opentelemetry.io/otel/trace"
)

// Config configures a gateway. Zero fields mean the defaults.
type Config struct {
	Listen   []Listener
	Routes   []Route
	Limits   Limits
	Timeouts Timeouts
	Client   ClientLimits     // of each client, over all routes
	CORS     *middleware.CORS // of routes that have none of their own; nil: none
	Compress middleware.Compress
	Health   Health
	Drain    Drain
	Log      *slog.Logger // what goes wrong, and the access log; nil: nothing is logged
	Access   bool         // each request is logged
	// Proxies are the networks of proxies in front whose X-Forwarded-For is believed.
	Proxies []netip.Prefix
	Base    string       // folder that relative paths start at
	Clock   host.Clock   // nil: the system's
	Rand    func([]byte) // randomness of request ids; nil: the operating system's
	// Traces records a span for each request, and takes the trace that its caller states in
	// traceparent; see tracing.Tracer.Provider. nil: nothing is recorded or taken.
	Traces trace.TracerProvider
}

// Listener is an address to listen on.
type Listener struct {
	Address string // host:port, or unix:path
	TLS     *TLS   // nil: none
	H2C     bool   // HTTP/2 without TLS is accepted, too
}

// TLS is what a listener presents and requires. HTTP/2 comes with it.
type TLS struct {
	Cert, Key string // files in PEM
	// ClientCA is a file with the authorities of clients' certificates; "": no certificate is requested.
	ClientCA string
	// Optional admits clients that present no certificate; routes may still require one.
	Optional bool
	Min      string // 1.2 (default) or 1.3
}

// Limits bound what is read and held.
type Limits struct {
	AtOnce  int   // requests under way in all; default 10,000
	Header  int   // bytes of a request's headers; default 32 KiB
	Headers int   // how many headers; default 100
	Body    int64 // bytes of a request's body, of routes that say nothing else; default 1 MiB
	Inline  int   // bytes of a body that is part of the message; default and most 32 KiB
	Answer  int64 // bytes of a streamed response; default no bound
}

// Timeouts of requests. Of a listener's: Header and Idle; of a route's: the others.
type Timeouts struct {
	Header  time.Duration // until all headers are there; default 10 s
	Body    time.Duration // until the whole body is there; default 30 s
	Handler time.Duration // until the actor has answered; default 30 s
	Write   time.Duration // until a response that is not a stream is written; default 30 s
	Idle    time.Duration // a connection without a request; default 2 min
}

// ClientLimits bound one client: an address (of IPv6 its /64), or the identity, where a route
// has one and By says so.
type ClientLimits struct {
	Rate   float64 // requests a second; 0: any
	Burst  int     // at once beyond the rate; default the rate, at least 1
	AtOnce int     // under way; 0: any
	By     string  // address (default) or identity
	Known  int     // clients that are remembered; default 100,000
}

// Route is what answers requests of a pattern.
type Route struct {
	// Pattern is one of http.ServeMux: [METHOD ][HOST]/path/{name}/{rest...}
	Pattern string
	To      Target
	Static  *middleware.Static // files instead of an actor
	Auth    *middleware.Auth   // nil: anyone
	CORS    *middleware.CORS   // nil: the gateway's
	Limits  RouteLimits
	// Client bounds each client on this route.
	Client ClientLimits
	// Timeouts that are 0 are the gateway's.
	Body, Handler time.Duration
	// Headers are the names of request headers that the actor gets; nil: all but hop-by-hop ones.
	Headers []string
	// Cancel tells the actor ["http.gone", id] if the client goes away before the answer.
	Cancel bool
	// Compress turns compression off for this route, if it says "off".
	Compress string
	// WebSocket and Events are how requests that ask for a WebSocket, or for server-sent events, are served.
	Upgrade Upgrade
}

// RouteLimits bound one route.
type RouteLimits struct {
	AtOnce int   // under way; 0: as many as the gateway has
	Body   int64 // bytes of a body; 0: the gateway's
}

// Target is the actor that answers: one, one of several, or one that is made on demand.
type Target struct {
	// Path is the path of an actor. With Make its last element has {name} of the pattern. Without it, a
	// last element with {name} is the key of a keyed actor, as host/keyed has them, in any spelling.
	Path string
	// Pool are paths of several actors that do the same.
	Pool []string
	// Pick chooses one of a pool: round-robin (default) or least-busy.
	Pick string
	Make *Make
}

// Make says how actors are made on demand. The target's path is /user/NAME,
// where NAME contains the value of a wildcard.
type Make struct {
	Props host.Props
	Most  int           // alive of this route; default 1,000
	Idle  time.Duration // without requests, after which one is ended; default 10 min
}

// Health are paths that answer probes. They are served before routes, without
// authentication. "": none.
type Health struct {
	Live  string // 200 as long as the process serves
	Ready string // 200 while new requests are taken, 503 while it drains, or Down names something
	// Down says why the gateway is not ready although it serves; nil or "": it is. It must not wait.
	Down func() string
}

// Drain is the graceful shutdown.
type Drain struct {
	Delay time.Duration // unready before it stops accepting, so that balancers notice; default none
	Most  time.Duration // until what is under way is cut off; default 30 s
}

// Defaults.
const (
	DefaultAtOnce  = 10_000
	DefaultHeader  = 32 << 10
	DefaultHeaders = 100
	DefaultBody    = 1 << 20
	MaxInline      = 32 << 10
	DefaultTimeout = 30 * time.Second
	DefaultMost    = 1000
	DefaultIdle    = 10 * time.Minute
	DefaultKnown   = 100_000
)

func (c Config) withDefaults() Config {
	l, t := &c.Limits, &c.Timeouts
	def(&l.AtOnce, DefaultAtOnce)
	def(&l.Header, DefaultHeader)
	def(&l.Headers, DefaultHeaders)
	def(&l.Body, DefaultBody)
	def(&l.Inline, MaxInline)
	l.Inline = min(l.Inline, MaxInline)
	def(&t.Header, 10*time.Second)
	def(&t.Body, DefaultTimeout)
	def(&t.Handler, DefaultTimeout)
	def(&t.Write, DefaultTimeout)
	def(&t.Idle, 2*time.Minute)
	def(&c.Drain.Most, DefaultTimeout)
	def(&c.Client.Known, DefaultKnown)
	routes := make([]Route, len(c.Routes))
	for i, r := range c.Routes {
		def(&r.Limits.Body, l.Body)
		def(&r.Body, t.Body)
		def(&r.Handler, t.Handler)
		r.Upgrade = r.Upgrade.withDefaults()
		def(&r.Client.Known, c.Client.Known)
		if r.CORS == nil {
			r.CORS = c.CORS
		}
		if m := r.To.Make; m != nil {
			n := *m
			def(&n.Most, DefaultMost)
			def(&n.Idle, DefaultIdle)
			r.To.Make = &n
		}
		routes[i] = r
	}
	c.Routes = routes
	return c
}

// def sets v to a default if it is not positive.
func def[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
