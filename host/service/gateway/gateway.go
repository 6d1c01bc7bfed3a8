// Package gateway lets HTTP in: a request becomes an ask of an actor, the answer the
// response. A bundle says where to listen and which actor has which path under the key
// http of its manifest; a program calls [New] and has an http.Handler.
//
// docs/services/gateway.md has the messages, the statuses and the guarantees.
package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"go.opentelemetry.io/otel/trace"
)

// Gateway answers HTTP requests by asking the actors of a system. It is an http.Handler;
// [Gateway.Serve] listens. All methods may be called concurrently.
type Gateway struct {
	sys   *host.System
	cfg   Config
	clock host.Clock
	log   *slog.Logger

	table   *table
	clients *clients // of all routes
	own     *own     // the actor of the gateway
	under   atomic.Int64
	state   atomic.Int32 // of type state
	ids     ids
	open    open
	conns   conns

	server  server
	figures figures
	tracer  trace.Tracer                    // nil: no spans
	zip     func(http.Handler) http.Handler // nil: nothing is compressed
}

// state is how the gateway treats new requests.
type state int32

const (
	starting state = iota // it does not listen yet
	serving
	unready  // it serves, but says that it is not ready: it will end
	draining // it serves what it has begun
	closed
)

// New makes a gateway for the actors of a system. Its errors are about the configuration:
// a *RouteError says which route and which key.
func New(sys *host.System, cfg Config) (*Gateway, error) {
	cfg = cfg.withDefaults()
	g := &Gateway{sys: sys, cfg: cfg, clock: cfg.Clock, log: cfg.Log}
	if g.clock == nil {
		g.clock = sys.Clock()
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if cfg.Traces != nil {
		g.tracer = cfg.Traces.Tracer(traceScope)
	}
	random := cfg.Rand
	if random == nil {
		random = func(b []byte) { _, _ = rand.Read(b) }
	}
	g.ids.init(random)
	var err error
	if g.own, err = startOwn(g); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if g.table, err = newTable(g); err != nil {
		sys.Stop(g.own.ref)
		return nil, err
	}
	if g.clients, err = newClients(cfg.Client); err != nil {
		sys.Stop(g.own.ref)
		return nil, err
	}
	if cfg.Compress.On {
		g.zip = cfg.Compress.Middleware()
	}
	g.state.Store(int32(serving))
	return g, nil
}

// Check reports what is wrong with a configuration, without a system: the errors of New
// that do not depend on one.
func Check(cfg Config) []*RouteError { return checkRoutes(cfg.withDefaults()) }

// Ready reports whether the gateway takes new requests: it has begun, and does not drain.
func (g *Gateway) Ready() bool { return state(g.state.Load()) == serving }

// Underway is the number of requests that are served at the moment, streams and
// connections of WebSockets included.
func (g *Gateway) Underway() int { return int(g.under.Load()) }

// ServeHTTP answers a request. It is what [Gateway.Serve] serves.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{g: g, r: r, w: recorder{ResponseWriter: w}, id: g.ids.next(), begun: g.clock.Now()}
	x.w.x = x
	x.beginSpan()
	n := g.under.Add(1)
	defer g.under.Add(-1)
	defer x.end()
	switch s := state(g.state.Load()); {
	case x.probe():
		return
	case s >= draining:
		x.w.Header().Set("Connection", "close")
		x.refuse(problem{status: http.StatusServiceUnavailable, text: "the server is about to stop", retry: time.Second})
		return
	case n > int64(g.cfg.Limits.AtOnce):
		x.refuse(problem{status: http.StatusServiceUnavailable, text: "too many requests are in progress", retry: time.Second})
		return
	}
	if p := x.check(); p.status != 0 {
		x.refuse(p)
		return
	}
	g.table.serve(x)
	if x.aborted {
		panic(http.ErrAbortHandler) // net/http would send 200 otherwise
	}
}

// ids are the ids of requests: random for the gateway, then a number.
type ids struct {
	prefix [8]byte
	n      atomic.Uint64
}

const hexDigits = "0123456789abcdef"

func (i *ids) init(random func([]byte)) {
	var b [4]byte
	random(b[:])
	for k, c := range b {
		i.prefix[2*k], i.prefix[2*k+1] = hexDigits[c>>4], hexDigits[c&15]
	}
}

func (i *ids) next() string {
	var b [8 + 1 + 20]byte
	copy(b[:], i.prefix[:])
	b[8] = '-'
	return string(strconv.AppendUint(b[:9], i.n.Add(1), 10))
}

// bound is ctx with the time that is left for a request.
func (g *Gateway) bound(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return executor.WithTimeout(g.clock, ctx, d)
}
