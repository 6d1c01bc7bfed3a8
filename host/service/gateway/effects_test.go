package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/pubsub"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
	"golang.org/x/crypto/bcrypt"
)

// said opens the gateway that a manifest describes: text is what stands below http, indented by two,
// without listen if that does not matter. Its actors are in Go.
func said(t *testing.T, dir, text string, actors map[string]host.Props) *site {
	t.Helper()
	manifest := "wasmactors: 1\nname: b\nmodules:\n  m: {wasm: ./m.wasm}\nactors:\n"
	for name := range actors {
		manifest += "  " + name + ": {type: m/t}\n"
	}
	manifest += "http:\n"
	if !strings.Contains(text, "listen:") {
		manifest += "  listen: [{address: \"127.0.0.1:0\"}]\n"
	}
	m, err := bundle.Parse(filepath.Join(dir, "bundle.yaml"), []byte(manifest+text))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, m.HTTP.Config, actors)
}

// requestOf is what the gateway has made of a request: the elements of its message.
func requestOf(m host.Message) []any {
	var v []any
	if m.Decode(&v) != nil || len(v) != 2 {
		return nil
	}
	fields, _ := v[1].([]any)
	return fields
}

// sized answers with as many bytes as the query says.
func sized() host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		query, _ := requestOf(m)[4].(string)
		n, _ := strconv.Atoi(query)
		return ctx.Reply([]any{200, nil, make([]byte, n)})
	})
}

const soon = 8 * time.Second // before any default is over, and late for a slow machine

// within reports how long something took that a key makes short.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	begun := time.Now()
	f()
	if took := time.Since(begun); took > soon {
		t.Errorf("%s took %v", what, took)
	}
}

// A gateway on a Unix socket: what a process that was killed has left behind is in nobody's way, and
// what is somebody's is left alone.
func TestUnixListener(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gw.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Skip("no Unix sockets here: ", err)
	}
	left.SetUnlinkOnClose(false)
	_ = left.Close()
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	remote := host.Func(func(ctx *host.Context, m host.Message) error {
		return ctx.Reply([]any{200, nil, "remote " + requestOf(m)[9].(string)})
	})
	text := "  listen: [{address: \"unix:gw.sock\"}]\n  client: {rate: 1000}\n  routes:\n    /: {to: /user/a}\n"
	s := said(t, dir, text, map[string]host.Props{"a": remote})
	s.url = "http://site"
	s.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	s.expect(s.get("/"), 200, "remote ")

	other, err := gateway.New(s.sys, gateway.Config{Base: dir, Listen: []gateway.Listener{{Address: "unix:gw.sock"}}, Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Listen(); err == nil {
		t.Error("two gateways have one socket")
	}
	_ = other.Close()
	s.expect(s.get("/"), 200, "remote ")
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err = gateway.New(s.sys, gateway.Config{Base: dir, Listen: []gateway.Listener{{Address: "unix:file"}}, Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Listen(); err == nil {
		t.Error("a file is taken for a socket")
	}
	_ = other.Close()
	if b, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(b) != "mine" {
		t.Error(string(b), err)
	}
	_ = s.g.Close()
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left behind")
	}
}

// Versions of TLS, and clients that must show a certificate.
func TestTLSOfListeners(t *testing.T) {
	ca, dir := newAuthority(t, "ca"), t.TempDir()
	ca.issue(dir, "server")
	client := ca.issue(dir, "client")
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for _, c := range []struct {
		keys string
		most uint16
		cert bool
		ok   bool
	}{
		{"", tls.VersionTLS12, false, true},
		{"", tls.VersionTLS11, false, false},
		{`, min: "1.2"`, tls.VersionTLS12, false, true},
		{`, min: "1.3"`, tls.VersionTLS12, false, false},
		{`, min: "1.3"`, tls.VersionTLS13, false, true},
		{", client-ca: ca.pem", tls.VersionTLS13, false, false},
		{", client-ca: ca.pem", tls.VersionTLS13, true, true},
		{", client-ca: ca.pem, optional: true", tls.VersionTLS13, false, true},
	} {
		s := said(t, dir, "  listen: [{address: \"127.0.0.1:0\", tls: {cert: server.pem, key: server.key"+c.keys+"}}]\n  routes:\n    /: {to: /user/a}\n", map[string]host.Props{"a": says("a")})
		cfg := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: c.most}
		if c.cert {
			cfg.Certificates = []tls.Certificate{client}
		}
		s.client.Transport = &http.Transport{TLSClientConfig: cfg}
		r, err := s.client.Get(s.url + "/")
		if err == nil {
			_ = r.Body.Close()
		}
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A body beyond limits.inline comes as a stream.
func TestInline(t *testing.T) {
	s := said(t, t.TempDir(), "  limits: {inline: 64}\n  routes:\n    /: {to: /user/a}\n", map[string]host.Props{"a": host.Func(func(ctx *host.Context, m host.Message) error {
		f := requestOf(m)
		body, _ := f[6].([]byte)
		return ctx.Reply([]any{200, nil, fmt.Sprintf("%d bytes, a stream %v, length %v", len(body), f[7] != nil, f[8])})
	})})
	s.expect(s.do("POST", "/", strings.Repeat("x", 64)), 200, "64 bytes, a stream false, length <nil>")
	s.expect(s.do("POST", "/", strings.Repeat("x", 65)), 200, "0 bytes, a stream true, length 65")
}

// Connections that are cut off: by clients that send no headers, that read nothing, and that say nothing.
func TestTimeoutsOfConnections(t *testing.T) {
	s := said(t, t.TempDir(), "  timeouts: {header: 200ms, write: 200ms, idle: 1s}\n  routes:\n    /: {to: /user/a}\n", map[string]host.Props{"a": sized()})
	within(t, "a client without headers", func() {
		if got := s.raw("GET /?1 HTTP/1.1\r\nHost: x\r\nX-"); strings.Contains(got, "200") {
			t.Error(got)
		}
	})
	within(t, "a connection without a further request", func() {
		if got := s.raw("GET /?1 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(got, " 200 ") {
			t.Error(got)
		}
	})
	const large = 32 << 20 // more than sockets take
	within(t, "a client that reads nothing", func() {
		c, err := net.Dial("tcp", s.g.Addrs()[0].String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /?%d HTTP/1.1\r\nHost: x\r\n\r\n", large)
		for deadline := time.Now().Add(2 * soon); s.g.Underway() == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		for deadline := time.Now().Add(2 * soon); s.g.Underway() > 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		_ = c.SetReadDeadline(time.Now().Add(2 * soon))
		if n, err := io.Copy(io.Discard, c); n >= large || os.IsTimeout(err) {
			t.Errorf("%d bytes were written, %v", n, err)
		}
	})
	// The time counts anew for each answer of a connection.
	c, err := net.Dial("tcp", s.g.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		fmt.Fprint(c, "GET /?10000 HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(2 * soon))
		for n := 0; n < 10_000; {
			b := make([]byte, 20_000)
			m, err := c.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
		time.Sleep(120 * time.Millisecond) // shorter than idle, longer than write in all
	}
}

// The times of answers, and of bodies: of all routes, and of one.
func TestTimeoutsOfRoutes(t *testing.T) {
	never := host.Func(func(ctx *host.Context, m host.Message) error { _, err := ctx.Later(); return err })
	s := said(t, t.TempDir(), "  timeouts: {handler: 100ms, body: 1h}\n  routes:\n    /: {to: /user/never}\n    /long: {to: /user/never, timeout: 1h, body-timeout: 100ms}\n", map[string]host.Props{"never": never})
	within(t, "timeouts.handler", func() { s.expect(s.get("/"), 504, "") })
	within(t, "body-timeout", func() {
		if got := s.raw("POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"); !strings.HasPrefix(got, "HTTP/1.1 408 ") {
			t.Error(got)
		}
	})
	s = said(t, t.TempDir(), "  timeouts: {handler: 1h, body: 100ms}\n  routes:\n    /: {to: /user/never}\n    /short: {to: /user/never, timeout: 100ms}\n", map[string]host.Props{"never": never})
	within(t, "timeout", func() { s.expect(s.get("/short"), 504, "") })
	within(t, "timeouts.body", func() {
		if got := s.raw("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"); !strings.HasPrefix(got, "HTTP/1.1 408 ") {
			t.Error(got)
		}
	})
}

// Bodies of all routes, and of one.
func TestBodiesOfRoutes(t *testing.T) {
	s := said(t, t.TempDir(), "  limits: {body: 10}\n  routes:\n    /: {to: /user/a}\n    /large: {to: /user/a, max-body: 100}\n", map[string]host.Props{"a": says("a")})
	s.expect(s.do("POST", "/", strings.Repeat("x", 10)), 200, "a")
	s.expect(s.do("POST", "/", strings.Repeat("x", 11)), 413, "")
	s.expect(s.do("POST", "/large", strings.Repeat("x", 100)), 200, "a")
	s.expect(s.do("POST", "/large", strings.Repeat("x", 101)), 413, "")
}

// cors of a route stands instead of that of all.
func TestCORSOfARoute(t *testing.T) {
	s := said(t, t.TempDir(), "  cors: {origins: [https://a.example]}\n  routes:\n    /: {to: /user/a}\n    /own: {to: /user/a, cors: {origins: [https://b.example]}}\n", map[string]host.Props{"a": says("a")})
	for _, c := range []struct{ path, origin, allowed string }{
		{"/", "https://a.example", "https://a.example"}, {"/", "https://b.example", ""},
		{"/own", "https://b.example", "https://b.example"}, {"/own", "https://a.example", ""},
	} {
		if got := s.get(c.path, "Origin", c.origin).Header.Get("Access-Control-Allow-Origin"); got != c.allowed {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// What is compressed, by types.
func TestTypesOfCompression(t *testing.T) {
	typed := host.Func(func(ctx *host.Context, m host.Message) error {
		return ctx.Reply([]any{200, []string{"content-type", requestOf(m)[4].(string)}, strings.Repeat("x", 5000)})
	})
	s := said(t, t.TempDir(), "  compress: {types: [image/*, application/x]}\n  routes:\n    /: {to: /user/a}\n", map[string]host.Props{"a": typed})
	for typ, zipped := range map[string]bool{"image/bmp": true, "application/x": true, "text/plain": false, "application/json": false} {
		if r := s.get("/?"+typ, "Accept-Encoding", "gzip"); (r.Header.Get("Content-Encoding") == "gzip") != zipped {
			t.Error(typ, r.Header)
		}
	}
}

// What one client may ask for, over all routes and of one, by its address and by its name.
func TestClients(t *testing.T) {
	dir := t.TempDir()
	var users strings.Builder
	for _, name := range []string{"ann", "bob"} {
		h, err := bcrypt.GenerateFromPassword([]byte("pw"), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&users, "%s:%s\n", name, h)
	}
	if err := os.WriteFile(filepath.Join(dir, "users"), []byte(users.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(name string) []string {
		return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":pw"))}
	}
	from := func(n int) []string { return []string{"X-Forwarded-For", fmt.Sprintf("10.0.0.%d", n)} }
	const auth = "auth: {basic: {file: users}}"
	hold, taken := make(chan struct{}), make(chan struct{})
	held := host.Func(func(ctx *host.Context, m host.Message) error {
		r, err := ctx.Later()
		close(taken)
		if err == nil {
			go func() { <-hold; _ = r.Send([]any{200, nil, "held"}) }()
		}
		return err
	})
	type request struct {
		path   string
		header []string
		status int
	}
	for name, c := range map[string]struct {
		text     string
		requests []request
	}{
		"burst, over all routes": {"  client: {rate: 0.001, burst: 2}\n  routes:\n    /: {to: /user/a}\n    /b: {to: /user/a}\n",
			[]request{{"/", nil, 200}, {"/b", nil, 200}, {"/", nil, 429}, {"/b", nil, 429}}},
		"rate": {"  client: {rate: 100, burst: 1}\n  routes:\n    /: {to: /user/a}\n    /wait: {to: /user/slow}\n",
			[]request{{"/wait", nil, 200}, {"/", nil, 200}}}, // the actor takes longer than the rate wants
		"by address": {"  client: {rate: 0.001, burst: 1, by: address}\n  routes:\n    /: {to: /user/a, " + auth + "}\n",
			[]request{{"/", as("ann"), 200}, {"/", as("bob"), 429}}},
		"by identity": {"  client: {rate: 0.001, burst: 1, by: identity}\n  routes:\n    /: {to: /user/a, " + auth + "}\n",
			[]request{{"/", as("ann"), 200}, {"/", as("ann"), 429}, {"/", as("bob"), 200}, {"/", as("bob"), 429}, {"/", as("eve"), 401}}},
		"by identity, of a route": {"  routes:\n    /: {to: /user/a, " + auth + ", client: {rate: 0.001, burst: 1, by: identity}}\n",
			[]request{{"/", as("ann"), 200}, {"/", as("ann"), 429}, {"/", as("bob"), 200}}},
		"known: the first is forgotten": {"  proxies: [127.0.0.0/8]\n  client: {rate: 0.001, burst: 1, known: 4}\n  routes:\n    /: {to: /user/a}\n",
			[]request{{"/", from(1), 200}, {"/", from(1), 429}, {"/", from(2), 200}, {"/", from(3), 200}, {"/", from(4), 200}, {"/", from(5), 200}, {"/", from(1), 200}}},
		"known: the first is known": {"  proxies: [127.0.0.0/8]\n  client: {rate: 0.001, burst: 1, known: 100}\n  routes:\n    /: {to: /user/a}\n",
			[]request{{"/", from(1), 200}, {"/", from(1), 429}, {"/", from(2), 200}, {"/", from(3), 200}, {"/", from(4), 200}, {"/", from(5), 200}, {"/", from(1), 429}}},
		"known, of a route": {"  proxies: [127.0.0.0/8]\n  routes:\n    /: {to: /user/a, client: {rate: 0.001, burst: 1, known: 4}}\n",
			[]request{{"/", from(1), 200}, {"/", from(1), 429}, {"/", from(2), 200}, {"/", from(3), 200}, {"/", from(4), 200}, {"/", from(5), 200}, {"/", from(1), 200}}},
	} {
		t.Run(name, func(t *testing.T) {
			slow := host.Func(func(ctx *host.Context, m host.Message) error {
				time.Sleep(50 * time.Millisecond)
				return ctx.Reply([]any{200, nil, "slow"})
			})
			s := said(t, dir, c.text, map[string]host.Props{"a": says("a"), "slow": slow})
			for i, q := range c.requests {
				if r := s.get(q.path, q.header...); r.StatusCode != q.status || (q.status == 429) != (r.Header.Get("Retry-After") != "") {
					t.Errorf("request %d: %d %v, want %d", i, r.StatusCode, r.Header, q.status)
				}
			}
		})
	}
	s := said(t, dir, "  proxies: [127.0.0.0/8]\n  client: {at-once: 1}\n  routes:\n    /: {to: /user/held}\n    /a: {to: /user/a}\n", map[string]host.Props{"held": held, "a": says("a")})
	done := make(chan struct{})
	go func() { defer close(done); s.expect(s.get("/", from(1)...), 200, "held") }()
	<-taken
	s.expect(s.get("/a", from(1)...), 429, "")
	s.expect(s.get("/a", from(2)...), 200, "a")
	close(hold)
	<-done
	s.expect(s.get("/a", from(1)...), 200, "a")
}

// A message of a client's has so many bytes and no more.
func TestMessageOfAWebSocket(t *testing.T) {
	s := said(t, t.TempDir(), "  routes:\n    /: {to: /user/echo, upgrade: {websocket: true, message: 100}}\n", map[string]host.Props{"echo": echo()})
	c := s.socket("/")
	c.say(strings.Repeat("x", 100))
	c.wants(strings.Repeat("x", 100))
	c.say(strings.Repeat("x", 101))
	if code := c.ended(); code != websocket.StatusMessageTooBig {
		t.Error(code)
	}
}

// slowStart is an actor whose start waits.
type slowStart struct{ begin chan struct{} }

func (a *slowStart) Started(*host.Context) error { <-a.begin; return nil }
func (a *slowStart) Receive(ctx *host.Context, _ host.Message) error {
	return ctx.Reply([]any{200, nil, "late"})
}

// An actor that has not begun yet is 503, with a time to come again; one that has begun and does
// not answer is 504.
func TestLateStart(t *testing.T) {
	begin := make(chan struct{})
	s := said(t, t.TempDir(), "  timeouts: {handler: 100ms}\n  routes:\n    /: {to: /user/a}\n", map[string]host.Props{"a": host.Native(func() host.Actor { return &slowStart{begin} })})
	for range 2 {
		r := s.get("/")
		s.expect(r, 503, "")
		if r.Header.Get("Retry-After") != "1" {
			t.Error(r.Header)
		}
	}
	close(begin)
	s.eventually("/", "late")
}

// An actor that waits for its restart is 503, with the time that is left of its delay, whether its
// messages wait meanwhile or not. A pool passes it over.
func TestRestartAfterADelay(t *testing.T) {
	for _, meanwhile := range supervision.Meanwhiles() {
		t.Run(meanwhile, func(t *testing.T) {
			policy, err := backoff.Spec{Curve: "constant", Min: 100 * time.Second}.Policy()
			if err != nil {
				t.Fatal(err)
			}
			m, _ := supervision.ParseMeanwhile(meanwhile)
			later := supervision.Default().WithBackoff(supervision.Backoff{Policy: policy, On: supervision.OnFailure, Meanwhile: m, Reply: "unavailable: it will be back"})
			fragile := host.Func(func(ctx *host.Context, m host.Message) error {
				if requestOf(m)[4] == "crash" {
					panic("on purpose")
				}
				return ctx.Reply([]any{200, nil, "child"})
			})
			cfg := gateway.Config{
				Timeouts: gateway.Timeouts{Handler: time.Second},
				Routes: []gateway.Route{
					{Pattern: "/", To: gateway.Target{Path: "/user/parent/child"}},
					{Pattern: "/pool", To: gateway.Target{Pool: []string{"/user/parent/child", "/user/other"}}},
				},
			}
			s := open(t, cfg, map[string]host.Props{"parent": says("parent").WithSupervision(later).WithChildren(host.Child{Name: "child", Props: fragile}), "other": says("other")})
			s.eventually("/", "child")
			s.expect(s.get("/?crash"), 502, "")
			ref, err := s.sys.Lookup("/user/parent/child")
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
				if info, err := s.sys.View().Info(ref); err == nil && info.State == host.StateDelayed && info.Due > 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("it does not wait")
				}
			}
			r := s.get("/")
			s.expect(r, 503, "")
			least := 80
			if m == supervision.MeanwhileReply {
				least = 1 // what it is answered says no time
			}
			if n, _ := strconv.Atoi(r.Header.Get("Retry-After")); n < least || n > 100 {
				t.Error("Retry-After: ", r.Header.Get("Retry-After"))
			}
			for range 4 {
				s.expect(s.get("/pool"), 200, "other")
			}
		})
	}
}

// What props say of the actors that it makes; without it they are others.
func TestPropsOnDemand(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes half a minute to compile under the race detector")
	}
	dir := t.TempDir()
	guest, err := filepath.Abs("../testdata/guest")
	if err != nil {
		t.Fatal(err)
	}
	manifest := `wasmactors: 1
name: recipes
modules: {m: {go: ` + guest + `, compiler: go}}
actors: {api: {type: gateway-api}}
http:
  listen: [{address: "127.0.0.1:0"}]
  timeouts: {handler: 500ms}
  routes:
    GET /made/{name}:
      to: /user/made-{name}
      make:
        type: gateway-made
        args: hello
        limits: {fuel: 1M}
        mailbox: {kind: drop-newest, messages: 3}
        dispatcher: {throughput: 1}
        capabilities: {spawn: [gateway-child], pubsub: {publish: [a]}}
        crashed-message: 2
        supervision: {otherwise: stop}
    a.example/made/{name}:
      to: /user/other-{name}
      make: {type: gateway-made, args: bye, capabilities: {spawn: [gateway-child]}}
`
	m, err := bundle.ParseWith(filepath.Join(dir, "bundle.yaml"), []byte(manifest), nil, pubsub.Service)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir(), Allow: func([]bundle.Reach) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	sys, err := b.Start(host.Config.WithManual, nil)
	if err != nil {
		t.Fatal(err)
	}
	// While requests are made a goroutine runs the actors; then the test itself, spell by spell.
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			if !sys.Step() {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}
	}()
	halt := sync.OnceFunc(func() { close(stop); <-stopped })
	defer func() { halt(); _ = sys.Close(context.Background()) }()
	s := &site{t: t, client: &http.Client{}, url: "http://" + b.Gateway().Addrs()[0].String()}
	defer s.client.CloseIdleConnections()
	for _, c := range []struct {
		do, says, otherwise string
		status, other       int
	}{
		{"args", "hello", "bye", 200, 200},
		{"granted", "true", "false", 200, 200},
		{"spin", "", "done", 502, 200},
		{"fail+once", "the second time", "", 200, 502},
		{"child", "the child has ended", "", 200, 504},
	} {
		name := strings.ReplaceAll(c.do, "+", "-")
		s.expect(s.get("/made/"+name+"?do="+c.do), c.status, c.says)
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/made/"+name+"?do="+c.do, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "a.example"
		res, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		s.expect(response{res, string(body)}, c.other, c.otherwise)
	}
	halt()
	sys.RunUntilIdle(1_000_000)
	for path, want := range map[string]struct{ wait, atOnce int }{"/user/made-args": {3, 1}, "/user/other-args": {10, 10}} { // of ten messages
		ref, err := sys.Lookup(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := sys.Operate().Pause(ref, false); err != nil {
			t.Fatal(err)
		}
		sys.RunUntilIdle(1_000_000)
		_, before := sys.DeadLetters()
		for range 10 {
			if err := sys.Tell(ref, "x"); err != nil {
				t.Error(err)
			}
		}
		i, err := sys.View().Info(ref)
		_, dead := sys.DeadLetters()
		if err != nil || i.Mailbox != want.wait || dead-before != uint64(10-want.wait) {
			t.Errorf("%s: %d wait, want %d; %d were dropped; %v", path, i.Mailbox, want.wait, dead-before, err)
		}
		if n := handledAtOnce(t, sys, ref); n != want.atOnce {
			t.Errorf("%s: handles %d at a time, want %d", path, n, want.atOnce)
		}
	}
}

// handledAtOnce is how many messages a paused actor of a manual system handles before another one gets its turn.
// No time that passes ends a spell there.
func handledAtOnce(t *testing.T, sys *host.System, ref host.Ref) (n int) {
	t.Helper()
	turns := func() uint64 {
		i, err := sys.View().Info(ref)
		if err != nil {
			t.Fatal(err)
		}
		return i.Turns
	}
	if err := sys.Operate().Unpause(ref, false); err != nil {
		t.Fatal(err)
	}
	for before := turns(); sys.Step(); before = turns() {
		n = max(n, int(turns()-before))
	}
	return n
}
