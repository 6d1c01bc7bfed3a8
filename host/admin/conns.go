package admin

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// connLimit limits the connections of a listener. When it is full, the oldest connection without an authorised request is
// closed, so a thousand idle ones lock no client out. Requests of readers have only half of the connections.
type connLimit struct {
	mu   sync.Mutex
	most int
	next uint64
	in   map[*limitedConn]struct{}
}

// limitedConn is a connection that a connLimit counts.
type limitedConn struct {
	net.Conn
	limit *connLimit
	turn  uint64 // the order in which they came
	busy  bool   // an authorised request is being answered
	share share  // of the request
	once  sync.Once
}

type limitedListener struct {
	net.Listener
	limit *connLimit
}

// sendBuffer bounds what the system buffers for a client that does not read, in bytes.
const sendBuffer = 256 << 10

// Accept takes the next connection for which there is room.
func (l limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b, ok := c.(interface{ SetWriteBuffer(int) error }); ok {
			_ = b.SetWriteBuffer(sendBuffer)
		}
		if g := l.limit.enter(c); g != nil {
			return g, nil
		}
		_ = c.Close()
	}
}

// enter makes room if it can.
func (c *connLimit) enter(conn net.Conn) *limitedConn {
	c.mu.Lock()
	var out *limitedConn
	if len(c.in) >= c.most {
		var reader *limitedConn
		reading := 0
		for g := range c.in {
			switch {
			case !g.busy && (out == nil || g.turn < out.turn):
				out = g
			case g.busy && g.share == readers:
				if reading++; reader == nil || g.turn < reader.turn {
					reader = g
				}
			}
		}
		if out == nil && reading > c.most/2 {
			out = reader
		}
		if out == nil {
			c.mu.Unlock()
			return nil
		}
		delete(c.in, out)
	}
	c.next++
	g := &limitedConn{Conn: conn, limit: c, turn: c.next}
	c.in[g] = struct{}{}
	c.mu.Unlock()
	if out != nil {
		_ = out.Conn.Close()
	}
	return g
}

// Close implements net.Conn.
func (g *limitedConn) Close() error {
	g.once.Do(func() {
		g.limit.mu.Lock()
		delete(g.limit.in, g)
		g.limit.mu.Unlock()
	})
	return g.Conn.Close()
}

type connKey struct{}

// noteConn lets a request find its connection.
func noteConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// serving marks a request's connection as one that stays until it is answered.
func serving(r *http.Request, by share) (done func()) {
	g, ok := r.Context().Value(connKey{}).(*limitedConn)
	if !ok {
		return func() {}
	}
	set := func(busy bool) {
		g.limit.mu.Lock()
		g.busy, g.share = busy, by
		g.limit.mu.Unlock()
	}
	set(true)
	return func() { set(false) }
}
