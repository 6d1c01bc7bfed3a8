package bundle

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// withHTTP is the minimal manifest with a route.
func withHTTP(routes string) string {
	return minimal + "http:\n  listen: [{address: localhost:0}]\n  routes:\n" + routes
}

// Every key of http arrives where the gateway's tests show its effect.
func TestKeysOfHTTP(t *testing.T) {
	m := parse(t, minimal+`http:
  listen: [{address: "localhost:1", h2c: true}, {address: "unix:s", tls: {cert: c, key: k, client-ca: a, optional: true, min: "1.3"}}]
  limits: {at-once: 1k, header: 16KiB, headers: 50, body: 2MiB, inline: 8KiB}
  timeouts: {header: 1s, body: 2s, handler: 3s, write: 4s, idle: 5s}
  client: {rate: 1.5, burst: 2, at-once: 3, by: identity, known: 4}
  cors: {origins: [https://a.example], methods: [PUT], headers: [X-A], expose: [X-B], credentials: true, max-age: 6s}
  compress: {least: 2KiB, types: [text/*]}
  health: {live: /live, ready: /ready}
  drain: {delay: 7s, most: 8s}
  access-log: true
  proxies: [10.0.0.0/8]
  routes:
    GET /rooms/{room}:
      to: /user/room-{room}
      make: {type: m/t, args: 5, limits: {fuel: 1k}, mailbox: {kind: drop-newest, messages: 7}, dispatcher: {throughput: 3}, capabilities: {send: [/user/a]}, crashed-message: 2, supervision: {strategy: one-for-one}, most: 9, idle: 10s}
      auth: {basic: {file: users, realm: r}}
      at-once: 11
      max-body: 12kB
      timeout: 13s
      body-timeout: 14s
      headers: [X-C]
      cancel: true
      compress: false
      upgrade: {websocket: true, events: true, origins: ["*.example.org"], message: 18KiB, outbox: 19KiB, ping: 20s, deflate: true}
    /pool: {pool: [/user/a, /user/room-x], pick: least-busy, auth: {jwt: {keys: [{alg: ES256, file: f, id: k}], audience: a, issuer: i, leeway: 15s, claims: [scope]}}}
    /static/: {static: {dir: d, index: true, cache: 16s, headers: {X-D: "y z"}}, auth: {mtls: {subjects: [CN=x]}}}
    /one: {to: /user/a, cors: {origins: ["*"]}, client: {rate: 17}}
`)
	h := m.HTTP
	want := gateway.Config{
		Listen:   []gateway.Listener{{Address: "localhost:1", H2C: true}, {Address: "unix:s", TLS: &gateway.TLS{Cert: "c", Key: "k", ClientCA: "a", Optional: true, Min: "1.3"}}},
		Limits:   gateway.Limits{AtOnce: 1000, Header: 16 << 10, Headers: 50, Body: 2 << 20, Inline: 8 << 10},
		Timeouts: gateway.Timeouts{Header: time.Second, Body: 2 * time.Second, Handler: 3 * time.Second, Write: 4 * time.Second, Idle: 5 * time.Second},
		Client:   gateway.ClientLimits{Rate: 1.5, Burst: 2, AtOnce: 3, By: "identity", Known: 4},
		CORS:     &middleware.CORS{Origins: []string{"https://a.example"}, Methods: []string{"PUT"}, Headers: []string{"X-A"}, Expose: []string{"X-B"}, Credentials: true, MaxAge: 6 * time.Second},
		Compress: middleware.Compress{On: true, Least: 2 << 10, Types: []string{"text/*"}},
		Health:   gateway.Health{Live: "/live", Ready: "/ready"},
		Drain:    gateway.Drain{Delay: 7 * time.Second, Most: 8 * time.Second},
		Access:   true, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Base: m.Dir,
		Routes: []gateway.Route{{
			Pattern: "GET /rooms/{room}", To: gateway.Target{Path: "/user/room-{room}", Make: &gateway.Make{Most: 9, Idle: 10 * time.Second}},
			Auth:   &middleware.Auth{Basic: &middleware.Basic{File: "users", Realm: "r"}},
			Limits: gateway.RouteLimits{AtOnce: 11, Body: 12_000}, Handler: 13 * time.Second, Body: 14 * time.Second, Headers: []string{"X-C"}, Cancel: true, Compress: "off",
			Upgrade: gateway.Upgrade{WebSocket: true, Events: true, Origins: []string{"*.example.org"}, Message: 18 << 10, Outbox: 19 << 10, Ping: 20 * time.Second, Compress: true},
		}, {
			Pattern: "/pool", To: gateway.Target{Pool: []string{"/user/a", "/user/room-x"}, Pick: "least-busy"},
			Auth: &middleware.Auth{JWT: &middleware.JWT{Keys: []middleware.JWTKey{{Alg: "ES256", File: "f", ID: "k"}}, Audience: "a", Issuer: "i", Leeway: 15 * time.Second, Claims: []string{"scope"}}},
		}, {
			Pattern: "/static/", Static: &middleware.Static{Dir: "d", Index: true, Cache: 16 * time.Second, Headers: map[string]string{"X-D": "y z"}}, Auth: &middleware.Auth{MTLS: &middleware.MTLS{Subjects: []string{"CN=x"}}},
		}, {
			Pattern: "/one", To: gateway.Target{Path: "/user/a"}, CORS: &middleware.CORS{Origins: []string{"*"}}, Client: gateway.ClientLimits{Rate: 17},
		}},
	}
	for i := range want.Routes {
		if !reflect.DeepEqual(h.Config.Routes[i], want.Routes[i]) {
			t.Errorf("route %d:\n%+v\nwant\n%+v", i, h.Config.Routes[i], want.Routes[i])
		}
	}
	h.Config.Routes, want.Routes = nil, nil
	if !reflect.DeepEqual(h.Config, want) {
		t.Errorf("%+v\nwant\n%+v", h.Config, want)
	}
	a := h.Made[0]
	if a.Type != "t" || a.Module != "m" || a.Args != int64(5) || a.Limits.Fuel != 1000 || a.Capabilities.Send[0] != "/user/a" || a.Crashed != host.RedeliverCrashed(2) || a.supervision == "" || h.Made[1] != nil ||
		a.Mailbox.Kind() != mailbox.DropNewest || a.Limits.Mailbox != 7 || a.Dispatcher != (host.Dispatcher{}).WithThroughput(3) {
		t.Errorf("%+v", a)
	}
}

// Mistakes of routes, and the corners of ServeMux, are found by check, at their place.
func TestMistakesOfHTTP(t *testing.T) {
	for _, c := range []struct{ routes, want string }{
		{"    /a: {to: /user/b}\n", `bundle.yaml:10:14: http.routes: no actor of the bundle has the path /user/b; did you mean "/user/a"?`},
		{"    /a: {}\n", `bundle.yaml:10:9: http.routes."/a": to: a route needs a target`},
		{"    /a: {to: /user/a, pool: [/user/a]}\n", `10:14: http.routes."/a": to: a route has one target`},
		{"    a: {to: /user/a}\n", `10:5: http.routes."a": pattern: "a" has no path`},
		{"    get /a: {to: /user/a}\n", `10:5: http.routes."get /a": pattern: methods are in capitals: "get" never matches; write "GET"`},
		{"    CONNECT /a: {to: /user/a}\n", "CONNECT is never served"},
		{"    /a//b: {to: /user/a}\n", "an empty segment (//) never matches"},
		{"    /a/../b: {to: /user/a}\n", `the segment ".." never matches`},
		{"    /a{b}: {to: /user/a}\n", `a wildcard must fill a whole segment: "a{b}" does not`},
		{"    '/{b}c': {to: /user/a}\n", "a wildcard must fill a whole segment"},
		{"    '/{b...}/c': {to: /user/a}\n", "{...} wildcard not at end"},
		{"    '/{b}/{b}': {to: /user/a}\n", `duplicate wildcard name "b"`},
		{"    '/{}': {to: /user/a}\n", "empty wildcard"},
		{"    '/{b-c}': {to: /user/a}\n", "bad wildcard name"},
		{"    /a?b: {to: /user/a}\n", "a pattern is a path, without a query"},
		{"    A.example/a: {to: /user/a}\n", "hosts are in small letters"},
		{"    a.example:80/a: {to: /user/a}\n", "has a port"},
		{"    '/{x}/b': {to: /user/a}\n    '/a/{y}': {to: /user/a}\n", `11:5: http.routes."/a/{y}": pattern: pattern "/a/{y}" conflicts with pattern "/{x}/b": /a/{y} and /{x}/b both match some paths, like "/a/b"`},
		{"    '/{x}': {to: '/user/{x}'}\n", "needs make"},
		{"    '/{x}': {to: '/user/a/{x}'}\n", `10:18: http.routes: /user/a/{x} has a {name}, and /user/a is not a keyed actor of the bundle: give that one the key keyed, or the route the key make`},
		{"    '/{x}': {to: '/user/keys/{y}'}\n", `10:18: http.routes."/{x}": to: the pattern has no wildcard {y}`},
		{"    '/{x}/{y}': {to: '/user/keys/{x}{y}'}\n", "needs one {name} of the pattern"},
		{"    '/{x}': {to: '/user/{x}/a'}\n", "the {name} is in the last element"},
		{"    '/{x}': {pool: ['/user/keys/{x}']}\n", "has a {name}: that is for to"},
		{"    '/{x}': {to: '/user/{y}', make: {type: m/t}}\n", `10:18: http.routes."/{x}": to: the pattern has no wildcard {y}`},
		{"    '/{x...}': {to: '/user/{x}', make: {type: m/t}}\n", "may hold slashes"},
		{"    '/{x}': {to: '/user/a/{x}', make: {type: m/t}}\n", "directly below /user"},
		{"    '/{x}': {to: '/user/a b{x}', make: {type: m/t}}\n", "is not a valid name"},
		{"    '/{x}': {to: '/user/{x}', make: {type: mm/t}}\n", `10:44: there is no module "mm"`},
		{"    '/{x}': {pool: [/user/a], make: {type: m/t}}\n", "make needs to"},
		{"    /a: {to: /user/a, pick: least-busy}\n", "pick needs pool"},
		{"    /a: {static: {dir: d}}\n", "ends with a slash"},
		{"    POST /a/: {static: {dir: d}}\n", "files are for GET"},
		{"    /a/: {static: {dir: d, headers: {'a b': c}}}\n", `10:19: http.routes."/a/": static: headers: not the name of a header: "a b"`},
		{"    /a/: {static: {dir: d, headers: {X-A: \"b\\nc\"}}}\n", "headers: X-A has a control character"},
		{"    /a/: {static: {dir: d, headers: {content-length: '5'}}}\n", "headers: Content-Length is not for files"},
		{"    /a/: {static: {dir: d, headers: {x-a: b, X-A: c}}}\n", "headers: X-A comes twice"},
		{"    /a/: {static: {dir: d, headers: {Connection: close}}}\n", "headers: Connection is not for files"},
		{"    /a: {to: /user/a, auth: {}}\n", "one of basic, jwt and mtls is needed"},
		{"    /a: {to: /user/a, auth: {jwt: {keys: []}}}\n", "10:35: http.routes.\"/a\": auth.jwt: keys are needed"},
		{"    /a: {to: /user/a, auth: {jwt: {leeway: 1h, keys: [{alg: HS256, file: f}]}}}\n", "leeway is at most 5m"},
		{"    /a: {to: /user/a, cors: {origins: ['*'], credentials: true}}\n", "credentials do not go with the origin *"},
		{"    /a: {to: /user/a, cors: {origins: ['https://a.example/']}}\n", "is not an origin"},
		{"    /a: {to: /user/a, headers: ['a b']}\n", "not the name of a header"},
		{"    /a: {to: /user/a}\n  proxies: [10.0.0.0]\n", "11:13: http.proxies: \"10.0.0.0\" is not a network"},
		{"    /a: {to: /user/a}\n  cors: {origins: [x]}\n", "11:9: http.cors: \"x\" is not an origin"},
		{"    {}\n", "http.routes must have one route at least"},
	} {
		_, err := Parse("bundle.yaml", []byte(withHTTP(c.routes)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%v\nwant %s", c.routes, err, c.want)
		} else if strings.Contains(err.Error(), ".go:") {
			t.Errorf("it speaks of Go code: %v", err)
		}
	}
	_, err := Parse("bundle.yaml", []byte(strings.Replace(withHTTP("    /a: {to: /user/a}\n"), "localhost:0", "localhost", 1)))
	if err == nil || !strings.Contains(err.Error(), `8:22: http.listen: "localhost" is not an address`) {
		t.Error(err)
	}
}

// A bundle with http answers requests, ends them in order when its system closes, and what
// is made on demand gets its props.
func TestHTTPOfABundle(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	dir := t.TempDir()
	guest, err := filepath.Abs("../service/testdata/guest")
	if err != nil {
		t.Fatal(err)
	}
	text := `wasmactors: 1
name: web
modules: {m: {go: ` + guest + `, compiler: go}}
actors: {api: {type: gateway-api}}
http:
  listen: [{address: "127.0.0.1:0"}]
  health: {ready: /ready}
  routes:
    /: {to: /user/api}
    /files/: {static: {dir: files}}
    /rooms/{room}: {to: "/user/room-{room}", make: {type: gateway-room}}
`
	for name, content := range map[string]string{"bundle.yaml": text, "files/a.txt": "a file", "secret": "none"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), m, Options{CacheDir: servicetest.CacheDir(), Allow: func([]Reach) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	sys, err := b.Start(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{}
	defer client.CloseIdleConnections()
	url := "http://" + b.Gateway().Addrs()[0].String()
	get := func(path string) string {
		t.Helper()
		r, err := client.Get(url + path)
		if err != nil {
			return err.Error()
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		return string(body)
	}
	for path, want := range map[string]string{"/hello": "hello", "/files/a.txt": "a file", "/rooms/x": "x 1", "/ready": "ok\n"} {
		if got := get(path); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if _, err := sys.Lookup("/user/room-x"); err != nil {
		t.Error(err)
	}
	api, err := sys.Lookup("/user/api")
	if err != nil {
		t.Fatal(err)
	}
	late, closed := make(chan string, 1), make(chan error, 1)
	go func() { late <- get("/never") }()
	for deadline := time.Now().Add(20 * time.Second); get("/waiting") != "1"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the actor does not get the request")
		}
	}
	go func() { closed <- sys.Close(context.Background()) }()
	for b.Gateway().Ready() {
		time.Sleep(time.Millisecond)
	}
	if err := sys.Tell(api, "answer"); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if got := <-late; got != "at last" {
		t.Errorf("a request under way at the end: %q", got)
	}
	if got := get("/hello"); !strings.Contains(got, "refused") {
		t.Errorf("after the end: %q", got)
	}
	if _, err := json.Marshal(b.Gateway().Ready()); err != nil || b.Gateway().Ready() {
		t.Error("it is ready after its end")
	}
}
