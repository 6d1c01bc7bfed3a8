package httpclient

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
)

// shared is common to the connections of all grants.
type shared struct {
	clock  host.Clock
	dialer egress.Dialer // without Timeout
	tls    *tls.Config
	pooled time.Duration
	roads  http.RoundTripper // nil: connections
}

// holder is the service's state of a grant.
type holder struct {
	grant    Grant
	permits  *permits
	pools    []http.RoundTripper // by rule
	breakers *service.Breakers

	mu      sync.Mutex
	streams int
}

// newHolder reads a grant. Each rule has a pool of its own, so that a connection the first
// refused address may make is never used by another.
func newHolder(g *Grant, s *shared) (*holder, error) {
	h := &holder{grant: g.withDefaults(), breakers: service.NewBreakers(g.Breaker, s.clock)}
	var err error
	if h.permits, err = g.compile(); err != nil {
		return nil, err
	}
	for _, r := range h.permits.rules {
		if s.roads != nil {
			h.pools = append(h.pools, s.roads)
		} else {
			h.pools = append(h.pools, newPool(&h.grant, r, s))
		}
	}
	return h, nil
}

func newPool(g *Grant, r *rule, s *shared) *http.Transport {
	dialer := s.dialer
	dialer.Timeout = g.Connect
	named := r.named
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		Proxy: nil, // known to the dialer, so that the address is checked all the same
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			name, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return nil, err
			}
			return dialer.Dial(ctx, name, uint16(n), named)
		},
		TLSClientConfig:        s.tls.Clone(),
		TLSHandshakeTimeout:    g.Connect,
		DisableCompression:     true,
		MaxIdleConns:           4 * g.PerHost,
		MaxIdleConnsPerHost:    g.PerHost,
		MaxConnsPerHost:        g.PerHost,
		IdleConnTimeout:        s.pooled,
		MaxResponseHeaderBytes: int64(g.MaxHeaders),
		Protocols:              protocols,
		ForceAttemptHTTP2:      true,
	}
}

// open begins the stream of a body.
func (h *holder) open() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams >= h.grant.Streams {
		return service.Errorf(service.Busy, "%d bodies are streams, which is the limit; streams of the grant raises it", h.streams)
	}
	h.streams++
	return nil
}

func (h *holder) shut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams--
}

func (h *holder) closeIdle() {
	for _, p := range h.pools {
		if t, ok := p.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	}
}
