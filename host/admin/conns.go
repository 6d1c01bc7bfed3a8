package admin

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// crowd bounds the connections of a listener. When it is full, who has come first and has
// shown no right to be there has to go: a thousand that say nothing keep nobody out.
type crowd struct {
	mu   sync.Mutex
	most int
	next uint64
	in   map[*guest]struct{}
}

// guest is a connection.
type guest struct {
	net.Conn
	crowd *crowd
	turn  uint64 // in which they came
	busy  bool   // it is being answered, and has the right to
	once  sync.Once
}

type crowded struct {
	net.Listener
	crowd *crowd
}

// sendBuffer bounds what the system keeps for who does not read, in bytes.
const sendBuffer = 256 << 10

// Accept takes the next connection for which there is room.
func (l crowded) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b, ok := c.(interface{ SetWriteBuffer(int) error }); ok {
			_ = b.SetWriteBuffer(sendBuffer)
		}
		if g := l.crowd.enter(c); g != nil {
			return g, nil
		}
		_ = c.Close()
	}
}

// enter makes room if it can.
func (c *crowd) enter(conn net.Conn) *guest {
	c.mu.Lock()
	var out *guest
	if len(c.in) >= c.most {
		for g := range c.in {
			if !g.busy && (out == nil || g.turn < out.turn) {
				out = g
			}
		}
		if out == nil {
			c.mu.Unlock()
			return nil
		}
		delete(c.in, out)
	}
	c.next++
	g := &guest{Conn: conn, crowd: c, turn: c.next}
	c.in[g] = struct{}{}
	c.mu.Unlock()
	if out != nil {
		_ = out.Conn.Close()
	}
	return g
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.once.Do(func() {
		g.crowd.mu.Lock()
		delete(g.crowd.in, g)
		g.crowd.mu.Unlock()
	})
	return g.Conn.Close()
}

type guestKey struct{}

// noteGuest lets a request find its connection.
func noteGuest(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, c)
}

// serving marks a request's connection as one that stays until it is answered.
func serving(r *http.Request) (done func()) {
	g, ok := r.Context().Value(guestKey{}).(*guest)
	if !ok {
		return func() {}
	}
	set := func(busy bool) {
		g.crowd.mu.Lock()
		g.busy = busy
		g.crowd.mu.Unlock()
	}
	set(true)
	return func() { set(false) }
}
