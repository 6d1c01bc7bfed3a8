package gateway_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
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

// kept is how many bytes of the heap are in use that the gateway, its server and its library of
// WebSockets have allocated since [exact]. Whatever else the process holds is not counted, nor
// are stacks: the runtime decides how large those are.
func kept() int64 {
	runtime.GC()
	runtime.GC() // the first one leaves the contents of pools, and the profile is that of the one before
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 1000)
	for {
		n, ok := runtime.MemProfile(records, false)
		if records = slices.Grow(records, 2*n)[:2*n]; ok {
			records = records[:n]
			break
		}
	}
	bytes := int64(0)
	for _, r := range records {
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var f runtime.Frame
			if f, more = frames.Next(); ours.MatchString(f.Function) {
				bytes += r.InUseBytes()
				break
			}
		}
	}
	return bytes
}

// ours are the functions whose allocations count, with what they call.
var ours = regexp.MustCompile(`/host/service/gateway\.|/coder/websocket\.|^compress/flate\.|^net/http\.\(\*(conn|Server)\)`)

// exact makes the runtime note every allocation until the test ends.
func exact(t *testing.T) {
	before := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	t.Cleanup(func() { runtime.MemProfileRate = before })
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
	// A connection counts twice until its request has returned.
	s := open(t, gateway.Config{Limits: gateway.Limits{AtOnce: 2*n + 10}, Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/quiet"}, Upgrade: gateway.Upgrade{WebSocket: true}}}},
		map[string]host.Props{"quiet": quiet()})
	var keep []net.Conn
	defer func() {
		for _, c := range keep {
			_ = c.Close()
		}
	}()
	dial := func() { keep = append(keep, dialRaw(t, s.g.Addrs()[0].String())) }
	exact(t)
	dial()
	before := kept()
	for range n {
		dial()
	}
	each := (kept() - before) / int64(n)
	t.Logf("%d idle connections: %d bytes of the heap each", n, each)
	if each > 20<<10 {
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
