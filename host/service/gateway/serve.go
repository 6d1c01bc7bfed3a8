package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service/internal/endpoint"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// server is what listens for a gateway.
type server struct {
	mu      sync.Mutex
	servers []*http.Server
	addrs   []net.Addr
	serving sync.WaitGroup
}

// Listen opens the addresses of the configuration and serves them, until Close or Drain. It
// returns when all are open; the errors say which are not, and then none is.
func (g *Gateway) Listen() error {
	var opened []net.Listener
	for i := range g.cfg.Listen {
		l, err := g.cfg.Listen[i].open(g.cfg.Base)
		if err != nil {
			for _, o := range opened {
				err = errors.Join(err, o.Close())
			}
			return err
		}
		opened = append(opened, l)
	}
	for i, l := range opened {
		s := g.prepare(l, g.cfg.Listen[i].H2C)
		g.server.serving.Go(func() {
			if err := g.serve(s, l); err != nil {
				g.log.Error("the gateway has stopped listening", "address", l.Addr().String(), "error", err)
			}
		})
	}
	return nil
}

// Addrs are the addresses that Listen has opened.
func (g *Gateway) Addrs() []net.Addr {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	return append([]net.Addr(nil), g.server.addrs...)
}

// Serve serves the connections of a listener, until Drain or Close; then it returns nil. A
// listener of package tls brings HTTP/2 along; h2c accepts it without TLS, too.
func (g *Gateway) Serve(l net.Listener, h2c bool) error { return g.serve(g.prepare(l, h2c), l) }

func (g *Gateway) serve(s *http.Server, l net.Listener) error {
	if s == nil {
		return l.Close()
	}
	limit := endpoint.Descriptors()
	l = &scarce{Listener: l, limit: limit, reserve: reserveOf(limit), log: g.log, now: executor.Machine.Now, pause: func(d time.Duration) { executor.Pause(executor.Machine, d, nil) }, keepAlive: func(on bool) {
		if !on || state(g.state.Load()) < draining {
			s.SetKeepAlivesEnabled(on)
		}
	}}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// prepare makes the server of a listener; nil: the gateway ends.
func (g *Gateway) prepare(l net.Listener, h2c bool) *http.Server {
	s := &http.Server{
		Handler: g, ConnState: g.figures.connection, ReadHeaderTimeout: g.cfg.Timeouts.Header, IdleTimeout: g.cfg.Timeouts.Idle,
		MaxHeaderBytes: max(g.cfg.Limits.Header-slop, 1), DisableGeneralOptionsHandler: true,
		ErrorLog:  slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: min(250, g.cfg.Limits.AtOnce)},
		Protocols: &http.Protocols{},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(h2c)
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	if state(g.state.Load()) >= draining {
		return nil
	}
	g.server.servers = append(g.server.servers, s)
	g.server.addrs = append(g.server.addrs, l.Addr())
	return s
}

// slop is by how much net/http lets headers exceed MaxHeaderBytes.
const slop = 4096

func (l *Listener) open(base string) (net.Listener, error) {
	network, address := "tcp", l.Address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if network, address = "unix", path; !filepath.IsAbs(path) {
			address = filepath.Join(base, path)
		}
	}
	var cfg *tls.Config
	if l.TLS != nil {
		var err error
		if cfg, err = l.TLS.config(base); err != nil {
			return nil, fmt.Errorf("gateway: %s: tls: %w", l.Address, err)
		}
	}
	n, err := endpoint.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if cfg != nil {
		return tls.NewListener(n, cfg), nil
	}
	return n, nil
}

// maxPEM bounds a file of certificates or of a key, in bytes.
const maxPEM = 4 << 20

func (t *TLS) config(base string) (*tls.Config, error) {
	at := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(base, p)
	}
	cert, err := regular.ReadFile(at(t.Cert), maxPEM)
	if err != nil {
		return nil, err
	}
	key, err := regular.ReadFile(at(t.Key), maxPEM)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	switch t.Min {
	case "", "1.2":
	case "1.3":
		c.MinVersion = tls.VersionTLS13
	default:
		return nil, fmt.Errorf("min is 1.2 or 1.3, not %q", t.Min)
	}
	if t.ClientCA == "" {
		return c, nil
	}
	pem, err := regular.ReadFile(at(t.ClientCA), maxPEM)
	if err != nil {
		return nil, err
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificates in PEM", t.ClientCA)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if t.Optional {
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return c, nil
}

// Drain shuts the gateway down gracefully: it is unready, after Config.Drain.Delay it accepts nothing
// more, and it finishes what is under way, for Config.Drain.Most or until ctx ends. Then the
// rest is cut off, and that is the error. The actors must still be there: call it before
// they stop. Further calls wait for the first.
func (g *Gateway) Drain(ctx context.Context) error {
	if !g.state.CompareAndSwap(int32(serving), int32(unready)) {
		return g.end()
	}
	limit := g.cfg.Drain.Delay + g.cfg.Drain.Most
	ctx, cancel := g.bound(ctx, limit)
	defer cancel()
	if d := g.cfg.Drain.Delay; d > 0 {
		executor.Pause(g.clock, d, ctx.Done())
	}
	g.server.mu.Lock()
	g.state.Store(int32(draining))
	servers := g.server.servers
	g.server.mu.Unlock()
	left := g.open.drain()
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		s.SetKeepAlivesEnabled(false)
		all.Go(func() {
			if err := s.Shutdown(ctx); err != nil {
				errs[i] = errors.Join(fmt.Errorf("gateway: requests were cut off: %w", context.Cause(ctx)), s.Close())
			}
		})
	}
	all.Wait()
	var late error
	if _, which := executor.Take(g.clock, left, ctx.Done()); which == 1 {
		late = errors.New("gateway: connections were cut off")
	}
	for g.under.Load() > 0 && late == nil { // of an embedder's own server
		if !executor.Pause(g.clock, 10*time.Millisecond, ctx.Done()) {
			late = errors.New("gateway: requests are still in progress")
		}
	}
	return errors.Join(append(errs, late, g.end())...)
}

// Close is Drain without waiting for what is under way.
func (g *Gateway) Close() error {
	g.state.CompareAndSwap(int32(serving), int32(unready))
	g.server.mu.Lock()
	g.state.Store(int32(draining))
	servers := g.server.servers
	g.server.mu.Unlock()
	g.open.drain()
	for _, s := range servers {
		_ = s.Close()
	}
	return g.end()
}

// end waits until nothing listens any more, and ends the gateway's own actors.
func (g *Gateway) end() error {
	g.server.serving.Wait()
	for _, rt := range g.table.routes {
		if d, ok := rt.target.(*demand); ok {
			d.close()
		}
	}
	g.conns.close()
	if old := g.state.Swap(int32(closed)); state(old) != closed {
		g.sys.Stop(g.own.ref)
	}
	return nil
}
