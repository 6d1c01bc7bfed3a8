package gateway

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/internal/histogram"
)

// Labels of requests that no route has served, and of statuses that HTTP does not know.
const (
	NoRoute     = "(none)"
	HealthRoute = "(health)"
	OtherStatus = 0
)

// Figures are what a gateway has counted. Routes and statuses are bounded: routes are those of the
// configuration, statuses those that HTTP names.
type Figures struct {
	Open        int // requests in progress, streams and WebSockets included
	Connections int // of clients, on what the gateway listens on itself; those of WebSockets are in WebSockets
	WebSockets  int
	Accepted    uint64 // connections since the start
	Routes      []RouteFigures
}

// RouteFigures are those of the requests of one route.
type RouteFigures struct {
	Route    string         // its pattern, NoRoute or HealthRoute
	Statuses map[int]uint64 // requests that were answered, by status; 499: the client has gone before
	// Times are from a request's headers until its answer was written, without WebSockets and
	// server-sent events.
	Times histogram.Counts
}

// figures counts. It is safe for concurrent use.
type figures struct {
	connections atomic.Int64
	accepted    atomic.Uint64

	mu     sync.Mutex
	routes map[string]*routeCount
}

type routeCount struct {
	statuses map[int]uint64
	times    histogram.Histogram
}

func (f *figures) add(route string, status int, took time.Duration, lasts bool) {
	if http.StatusText(status) == "" && status != statusGone {
		status = OtherStatus
	}
	f.mu.Lock()
	r := f.routes[route]
	if r == nil {
		if f.routes == nil {
			f.routes = map[string]*routeCount{}
		}
		r = &routeCount{statuses: map[int]uint64{}}
		f.routes[route] = r
	}
	r.statuses[status]++
	f.mu.Unlock()
	if !lasts {
		r.times.Observe(took)
	}
}

// Figures are what was counted so far, routes in the order of their patterns.
func (g *Gateway) Figures() Figures {
	f := &g.figures
	out := Figures{Open: g.Underway(), Connections: int(f.connections.Load()), WebSockets: g.open.count(), Accepted: f.accepted.Load()}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, r := range f.routes {
		out.Routes = append(out.Routes, RouteFigures{name, maps.Clone(r.statuses), r.times.Counts()})
	}
	slices.SortFunc(out.Routes, func(a, b RouteFigures) int { return cmp.Compare(a.Route, b.Route) })
	return out
}

// connection is http.Server.ConnState.
func (f *figures) connection(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		f.accepted.Add(1)
		f.connections.Add(1)
	case http.StateHijacked, http.StateClosed:
		f.connections.Add(-1)
	}
}

// count counts a request that has ended.
func (x *exchange) count() {
	route := NoRoute
	switch {
	case x.route != nil:
		route = x.route.Pattern
	case x.health:
		route = HealthRoute
	}
	x.g.figures.add(route, x.answered(), x.g.clock.Now().Sub(x.begun), x.lasts())
}

// answered is the status of the answer.
func (x *exchange) answered() int {
	switch {
	case x.w.status != 0:
		return x.w.status
	case x.aborted:
		return statusGone
	}
	return http.StatusOK // nothing was written
}

// lasts reports whether the answer is one that goes on for as long as its client wants.
func (x *exchange) lasts() bool {
	return x.w.status == http.StatusSwitchingProtocols || strings.HasPrefix(x.w.Header().Get("Content-Type"), "text/event-stream")
}
