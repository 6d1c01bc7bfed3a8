package gateway_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/coder/websocket"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/internal/race"
)

// echo is an actor in Go that sends back what a WebSocket says.
func echo() host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		var op [2]any
		if m.Decode(&op) == nil && op[0] == "ws.text" {
			_ = ctx.Tell(m.Sender, []any{"text", op[1]})
		}
		return ctx.Reply(nil)
	})
}

// quiet takes what a WebSocket says, and allocates nothing for it.
func quiet() host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Reply(host.Raw{0xf6}) })
}

// mallocs counts the allocations of the process while f runs n times, for each.
func mallocs(n int, f func()) (objects, bytes float64) {
	for range 100 {
		f()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range n {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
}

// TestGarbageOfAMessage measures what the library allocates for each message that comes in, as it is
// meant to be used and as the gateway uses it, and pins what the gateway adds.
func TestGarbageOfAMessage(t *testing.T) {
	if race.Enabled {
		t.Skip("allocations are not counted under the race detector")
	}
	// The library alone.
	next, done := make(chan bool), make(chan struct{})
	buffer := make([]byte, 64<<10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(1 << 20)
		for whole := range next {
			if whole {
				_, _, err = c.Read(context.Background())
			} else if _, in, e := c.Reader(context.Background()); e == nil {
				for e == nil {
					_, e = in.Read(buffer)
				}
			}
			if err != nil {
				return
			}
			done <- struct{}{}
		}
	}))
	defer srv.Close()
	conn := dialRaw(t, srv.Listener.Addr().String())
	defer conn.Close()
	for _, size := range []int{16, 1000, 60_000} {
		msg := masked(0x82, make([]byte, size))
		for _, whole := range []bool{true, false} {
			objects, bytes := mallocs(1000, func() {
				if _, err := conn.Write(msg); err != nil {
					t.Fatal(err)
				}
				next <- whole
				<-done
			})
			t.Logf("coder/websocket, a message of %d bytes, Read %v: %.1f objects, %.0f bytes", size, whole, objects, bytes)
			if !whole && objects > 3 {
				t.Errorf("the library allocates %.1f objects", objects)
			}
		}
	}
	close(next)

	// The gateway, to an actor in Go and back.
	handled := make(chan struct{}, 1)
	s := open(t, gateway.Config{Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/quiet"}, Upgrade: gateway.Upgrade{WebSocket: true}}}},
		map[string]host.Props{"quiet": host.Func(func(ctx *host.Context, m host.Message) error {
			err := ctx.Reply(host.Raw{0xf6})
			handled <- struct{}{}
			return err
		})})
	in := dialRaw(t, s.g.Addrs()[0].String())
	defer in.Close()
	<-handled
	for _, size := range []int{16, 1000, 60_000} {
		msg := masked(0x82, make([]byte, size))
		objects, bytes := mallocs(1000, func() {
			if _, err := in.Write(msg); err != nil {
				t.Fatal(err)
			}
			<-handled
		})
		t.Logf("the gateway, a message of %d bytes: %.1f objects, %.0f bytes", size, objects, bytes)
		if objects > 16 || bytes > 1500+1.2*float64(size) {
			t.Errorf("a message of %d bytes takes %.1f objects and %.0f bytes", size, objects, bytes)
		}
	}
}

// dialRaw opens a WebSocket without a client that has memory of its own.
func dialRaw(t testing.TB, addr string) net.Conn {
	t.Helper()
	conn, _ := dialRawWith(t, addr, "")
	return conn
}

// used is the heap and the stacks of the process.
func used() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestIdleConnections measures what connections take that say nothing. WASMACTORS_IDLE says how
// many; the figure of 10^4 is in the documentation.
func TestIdleConnections(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector's memory would be measured")
	}
	n := 500
	if v, err := strconv.Atoi(os.Getenv("WASMACTORS_IDLE")); err == nil {
		n = v
	}
	s := open(t, gateway.Config{Limits: gateway.Limits{AtOnce: n + 10}, Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/quiet"}, Upgrade: gateway.Upgrade{WebSocket: true}}}},
		map[string]host.Props{"quiet": quiet()})
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	var keep []net.Conn
	defer func() {
		for _, c := range keep {
			_ = c.Close()
		}
	}()
	// Both ends of a connection of TCP, which are here in one process.
	keep = append(keep, dialRaw(t, s.g.Addrs()[0].String()))
	before := used()
	var pairs []net.Conn
	for range 500 {
		a, err := net.Dial("tcp", plain.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := plain.Accept()
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, a, b)
	}
	sockets := (used() - before) / 500
	for _, c := range pairs {
		_ = c.Close()
	}
	pairs = nil
	goroutines := runtime.NumGoroutine()
	before = used()
	for range n {
		keep = append(keep, dialRaw(t, s.g.Addrs()[0].String()))
	}
	each := (used()-before)/int64(n) - max(sockets, 0) // what the collector has found meanwhile is not theirs
	t.Logf("%d idle connections: %d bytes each, %.1f goroutines, besides the sockets' %d bytes", n, each, float64(runtime.NumGoroutine()-goroutines)/float64(n), sockets)
	if each > 24<<10 {
		t.Errorf("an idle connection takes %d bytes", each)
	}
}

func BenchmarkWebSocketEcho(b *testing.B) {
	sys, err := host.New(host.NewConfig("bench"))
	if err != nil {
		b.Fatal(err)
	}
	defer sys.Close(context.Background())
	if _, err := sys.Spawn("echo", echo()); err != nil {
		b.Fatal(err)
	}
	g, err := gateway.New(sys, gateway.Config{Listen: []gateway.Listener{{Address: "127.0.0.1:0"}}, Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/echo"}, Upgrade: gateway.Upgrade{WebSocket: true}}}})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	if err := g.Listen(); err != nil {
		b.Fatal(err)
	}
	c, _, err := websocket.Dial(context.Background(), "http://"+g.Addrs()[0].String(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer c.CloseNow()
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Write(context.Background(), websocket.MessageText, []byte("hello, world")); err != nil {
			b.Fatal(err)
		}
		if _, _, err := c.Read(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
