// Package admin shows and controls a running system: an HTTP API over the model of package observe,
// at a Unix socket that only the user can open and, by choice, on loopback with a token. The
// command line, the dashboard and scrapers are its clients.
//
// Permissions: every process that can open the socket may do everything. On TCP a token is needed,
// the full one or one that can only read; the name in Host must be the listener's own, and a page of
// another origin is refused, so that neither a web page nor DNS rebinding reaches anything. Health,
// readiness and metrics may have a listener of their own, without a token.
package admin

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/service/kv/operate"
)

// Config says what a server opens. The zero value is of no use; begin with NewConfig.
type Config struct {
	socket     string
	tcp        string
	health     string
	node       string
	full, read Token
	observer   *observe.Observer
	metrics    http.Handler
	dashboard  http.Handler
	keys       func() operate.Keys
	nodes      func() Nodes
	shutdown   func()
	reload     func(context.Context, Reload) (Reloaded, error)
	upgrade    func(context.Context, Upgrade, func(UpgradeStep)) (UpgradeReport, error)
	store      func() Store
	log        *slog.Logger
	bounds     bounds
}

// NewConfig opens nothing yet.
func NewConfig() Config { return Config{log: slog.New(slog.DiscardHandler), bounds: usual} }

// WithSocket listens at a Unix socket, which only the user can open. Its folder must be
// the user's alone; endpoint.Path names one that the command line finds.
func (c Config) WithSocket(path string) Config { c.socket = path; return c }

// Socket is the path that WithSocket has set.
func (c Config) Socket() string { return c.socket }

// WithTCP listens on loopback, such as "127.0.0.1:7777"; port 0 lets the system choose.
// Other addresses are refused. A full token is needed, see WithToken.
func (c Config) WithTCP(address string) Config { c.tcp = address; return c }

// WithHealth answers /healthz, /readyz and, if there are any, /metrics at another address
// as well, of any network, without a token.
func (c Config) WithHealth(address string) Config { c.health = address; return c }

// WithNode says by which name what runs here has joined a cluster; empty: it has not.
func (c Config) WithNode(name string) Config { c.node = name; return c }

// WithToken sets the token that may do everything over TCP.
func (c Config) WithToken(t Token) Config { c.full = t; return c }

// WithReadToken sets a token that may read over TCP, and change nothing.
func (c Config) WithReadToken(t Token) Config { c.read = t; return c }

// WithObserver uses an observer that the caller has made and will close; otherwise the
// server has one of its own.
func (c Config) WithObserver(o *observe.Observer) Config { c.observer = o; return c }

// WithMetrics serves /metrics.
func (c Config) WithMetrics(h http.Handler) Config { c.metrics = h; return c }

// WithDashboard serves / and everything below /dashboard/, to every client of the listener: it must contain no secrets.
func (c Config) WithDashboard(h http.Handler) Config { c.dashboard = h; return c }

// WithShutdown lets callers with full access end what runs: f is to begin an orderly end, as Ctrl-C does, and must
// not wait for it. It may be called more than once, by any goroutine.
func (c Config) WithShutdown(f func()) Config { c.shutdown = f; return c }

// WithReload lets callers with full access have what runs read and started again. f is called by one goroutine at a
// time; its context ends with the request. An error that is a *Problem is the answer as it is.
func (c Config) WithReload(f func(context.Context, Reload) (Reloaded, error)) Config {
	c.reload = f
	return c
}

// WithLog logs errors of the server itself, and refused requests.
func (c Config) WithLog(l *slog.Logger) Config { c.log = l; return c }
