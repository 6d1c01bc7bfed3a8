// Package httpclient is the service for HTTP requests of guests: /system/http.
//
// A grant lists hosts, methods, paths and headers; anything else is denied, also after a redirect. Addresses that are not
// public are refused when they are dialled, for any name; see package egress. docs/services/http.md has the rest.
package httpclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"sync"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Name is the name of the service below /system, and of the grant.
const Name = "http"

// Service is the service with the system's resolver.
var Service = New(Options{})

// Options are what only a Go program can set.
type Options struct {
	// Resolver finds the addresses of names; nil: net.DefaultResolver.
	Resolver egress.Resolver
	// Connect makes connections to checked addresses; nil: TCP.
	Connect egress.Connect
	// Answer, for tests, answers allowed requests instead of a server: no connection is made, and
	// no address is checked; nil: servers answer. Redirects and bounds apply as to a server's
	// answers.
	Answer http.RoundTripper
}

// New is the service with Options.
func New(o Options) *service.Service[Settings, Grant] {
	return service.Define(service.Definition[Settings, Grant]{
		Name: Name, Doc: "requests of web servers",
		CheckGrant: checkGrant, CheckSettings: checkSettings,
		Open: func(env *service.Env, s *Settings) (service.Provider[Grant], error) { return open(env, s, o) },
	})
}

// provider implements service.Provider.
type provider struct {
	env    *service.Env
	agent  string
	shared shared

	ctx   context.Context // of bodies that are streams
	close context.CancelCauseFunc
	tasks sync.WaitGroup // bodies that are streams

	mu      sync.Mutex
	holders map[uint64]*holder
}

func checkSettings(s *Settings) error {
	if _, err := s.proxy(nil); err != nil {
		return service.At("proxy", err)
	}
	if _, err := networks(s.Direct); err != nil {
		return err
	}
	_, err := s.nat64()
	return err
}

func (s *Settings) proxy(config *tls.Config) (*egress.Proxy, error) {
	if s.Proxy == "" {
		return nil, nil
	}
	u, err := url.Parse(s.Proxy)
	if err != nil {
		return nil, errors.New("it is not a URL: " + reason(err)) // which may have a password
	}
	if config == nil {
		config = &tls.Config{}
	}
	return egress.NewProxy(u, config)
}

func networks(list []string) (egress.Networks, error) {
	var all egress.Networks
	for i, s := range list {
		n, err := egress.ParseNetwork(s)
		if err != nil {
			return all, service.At(fmt.Sprintf("direct[%d]", i), err)
		}
		all = all.And(n)
	}
	return all, nil
}

func (s *Settings) nat64() ([]netip.Prefix, error) {
	var list []netip.Prefix
	for i, text := range s.NAT64 {
		p, err := egress.ParseNAT64(text)
		if err != nil {
			return nil, service.At(fmt.Sprintf("nat64[%d]", i), err)
		}
		list = append(list, p)
	}
	return list, nil
}

func open(env *service.Env, s *Settings, o Options) (*provider, error) {
	p := &provider{env: env, agent: s.UserAgent, holders: map[uint64]*holder{}}
	if p.agent == "" {
		p.agent = DefaultUserAgent
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Roots != "" {
		pool, err := roots(env, s.Roots)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	settings := *s
	or(&settings.Connections, DefaultConnections)
	or(&settings.Pooled, DefaultPooled)
	proxy, err := s.proxy(config)
	if err != nil {
		return nil, err
	}
	direct, err := networks(s.Direct)
	if err != nil {
		return nil, err
	}
	nat64, err := s.nat64()
	if err != nil {
		return nil, err
	}
	p.shared = shared{clock: env.Clock, tls: config, pooled: settings.Pooled, roads: o.Answer, dialer: egress.Dialer{
		Resolver: o.Resolver, Connect: o.Connect, Clock: env.Clock,
		Judge: egress.Judge{NAT64: nat64}, Proxy: proxy, Direct: direct,
		Budget: egress.NewBudget(settings.Connections, p.closeIdle),
	}}
	p.ctx, p.close = context.WithCancelCause(context.Background())
	return p, nil
}

// maxRoots bounds a file of root certificates, in bytes: those of browsers have 230 KB.
const maxRoots = 4 << 20

// roots are the system's root certificates with those of a file.
func roots(env *service.Env, file string) (*x509.CertPool, error) {
	if !filepath.IsAbs(file) {
		file = filepath.Join(env.Base, file)
	}
	pem, err := regular.ReadFile(file, maxRoots)
	if err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("roots: %s has no certificate in PEM", file)
	}
	return pool, nil
}

// holder returns the state of a grant.
func (p *provider) holder(id uint64, g *Grant) (*holder, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.holders[id]; h != nil {
		return h, nil
	}
	h, err := newHolder(g, &p.shared)
	if err != nil {
		return nil, err
	}
	p.holders[id] = h
	return h, nil
}

// closeIdle closes idle connections.
func (p *provider) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.holders {
		h.closeIdle()
	}
}

// Serve implements service.Provider.
func (p *provider) Serve(ctx context.Context, r *service.Request[Grant]) (any, error) {
	h, err := p.holder(r.GrantID(), r.Grant)
	if err != nil {
		return nil, err
	}
	switch r.Op {
	case "do":
		return p.do(ctx, h, r)
	case "upload":
		return p.upload(ctx, h, r)
	}
	return nil, r.Unknown()
}

// Drain implements service.Drainer: bodies that are streams end, since their readers are about to end.
func (p *provider) Drain(context.Context) { p.close(errClosing) }

// Close implements service.Provider.
func (p *provider) Close(context.Context) error {
	p.close(errClosing)
	executor.Join(p.env.Clock, &p.tasks)
	p.closeIdle()
	return nil
}

// idempotencyKey has a string of RFC 8941, see draft-ietf-httpapi-idempotency-key-header.
const idempotencyKey = "Idempotency-Key"

func isSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// plan reads the arguments that the operations have in common, and checks them.
func (p *provider) plan(h *holder, q *request, effect *host.Effect) (*exchange, error) {
	if q.Method == "" {
		q.Method = http.MethodGet
	}
	if err := checkMethod(q.Method); err != nil {
		return nil, err
	}
	to, err := parseTarget(q.URL)
	if err != nil {
		return nil, err
	}
	header, err := checkHeaders(q.Headers, to)
	if err != nil {
		return nil, err
	}
	if q.Decode && header.Get("Accept-Encoding") == "" {
		header.Set("Accept-Encoding", "gzip")
	}
	// A safe method has no effect that could be repeated (RFC 9110, 9.2.1), and the draft of the header is about others.
	keyed := effect != nil && !isSafe(q.Method) && header.Get(idempotencyKey) == ""
	if keyed {
		header.Set(idempotencyKey, `"`+effect.String()+`"`)
	}
	x := &exchange{holder: h, keyed: keyed, clock: p.env.Clock, agent: p.agent, method: q.Method, to: to, header: header, redirects: h.grant.Redirects}
	if q.Redirects != nil {
		x.redirects = int(min(*q.Redirects, uint64(x.redirects)))
	}
	_, err = h.permits.find(q.Method, to, header)
	return x, err
}
