package gateway

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// clients bounds what each client may ask for. Clients that were not seen for long are
// forgotten: there are two halves, and when the newer one is full, the older one is dropped.
type clients struct {
	limits ClientLimits

	mu         sync.Mutex
	now, older map[any]*client
}

// client is one of them.
type client struct {
	limit *rate.Limiter // nil: none
	under int
}

func newClients(l ClientLimits) (*clients, error) {
	if l.By != "" && l.By != "address" && l.By != "identity" {
		return nil, errors.New("gateway: clients are told apart by address or identity, not " + l.By)
	}
	if l.Rate <= 0 && l.AtOnce <= 0 {
		return nil, nil
	}
	if l.Burst <= 0 {
		l.Burst = max(int(l.Rate), 1)
	}
	def(&l.Known, DefaultKnown)
	return &clients{limits: l, now: map[any]*client{}}, nil
}

func (c *clients) byAddress() bool  { return c != nil && c.limits.By != "identity" }
func (c *clients) byIdentity() bool { return c != nil && c.limits.By == "identity" }

// key is what distinguishes clients: a whole /64 of IPv6 is one, since that is what one host
// can choose from.
func (c *clients) key(x *exchange) any {
	if c.byIdentity() && x.who != nil {
		return x.who.Kind + ":" + x.who.Name
	}
	return x.g.address(x.r)
}

// address is the client's, or the network that it may choose from; nil is that of all that come without one, as
// from a Unix socket.
func (g *Gateway) address(r *http.Request) any {
	a := g.remote(r)
	if !a.IsValid() {
		return nil
	}
	if a.Is6() && !a.Is4In6() {
		p, _ := a.WithZone("").Prefix(64)
		return p
	}
	return a.Unmap()
}

// enter begins a request of a client and stores the client in at; false: it has too many requests,
// and may come again after a time.
func (c *clients) enter(x *exchange, at **client) (ok bool, retry time.Duration) {
	key := c.key(x)
	now := x.g.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.now[key]
	if k == nil {
		if k = c.older[key]; k == nil {
			k = &client{}
			if c.limits.Rate > 0 {
				k.limit = rate.NewLimiter(rate.Limit(c.limits.Rate), c.limits.Burst)
			}
		}
		if len(c.now) >= max(c.limits.Known/2, 1) {
			c.older, c.now = c.now, make(map[any]*client, len(c.now))
		}
		c.now[key] = k
	}
	if c.limits.AtOnce > 0 && k.under >= c.limits.AtOnce {
		return false, time.Second
	}
	if k.limit != nil && !k.limit.AllowN(now, 1) {
		missing := 1 - k.limit.TokensAt(now)
		return false, time.Duration(missing / c.limits.Rate * float64(time.Second))
	}
	k.under++
	*at = k
	return true, 0
}

// leave ends a request of a client.
func (k *client) leave(c *clients) {
	if k == nil || c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k.under--
}
