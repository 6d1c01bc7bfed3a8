package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runtime.CompileMain()
	code := m.Run()
	servicetest.Close()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"), goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// site is a system behind a gateway that listens.
type site struct {
	t      *testing.T
	sys    *host.System
	g      *gateway.Gateway
	url    string
	events *host.Subscription
	client *http.Client
}

// open starts a gateway on a free port.
func open(t *testing.T, cfg gateway.Config, actors map[string]host.Props) *site {
	t.Helper()
	s := &site{t: t, client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{DisableCompression: true}}}
	var err error
	if s.sys, err = host.New(host.NewConfig("site")); err != nil {
		t.Fatal(err)
	}
	s.events = s.sys.Subscribe(10_000, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	for name, p := range actors {
		if _, err := s.sys.Spawn(name, p); err != nil {
			t.Fatal(err)
		}
	}
	if cfg.Listen == nil {
		cfg.Listen = []gateway.Listener{{Address: "127.0.0.1:0"}}
	}
	if s.g, err = gateway.New(s.sys, cfg); err != nil {
		_ = s.sys.Close(context.Background())
		t.Fatal(err)
	}
	if err := s.g.Listen(); err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + s.g.Addrs()[0].String()
	if cfg.Listen[0].TLS != nil {
		s.url = "https" + strings.TrimPrefix(s.url, "http")
	}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		if err := s.g.Close(); err != nil {
			t.Error(err)
		}
		if err := s.sys.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// api is a site whose requests are all answered by one guest.
func api(t *testing.T, change func(*gateway.Config)) *site {
	t.Helper()
	cfg := gateway.Config{Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/api"}}}}
	if change != nil {
		change(&cfg)
	}
	return open(t, cfg, map[string]host.Props{"api": host.Guest(servicetest.Image(t), "gateway-api")})
}

// response is what was answered.
type response struct {
	*http.Response
	body string
}

func (s *site) do(method, path, body string, headers ...string) response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response{res, string(b)}
}

func (s *site) get(path string, headers ...string) response {
	s.t.Helper()
	return s.do("GET", path, "", headers...)
}

// expect compares the status and the body; "" is any.
func (s *site) expect(r response, status int, body string) {
	s.t.Helper()
	if r.StatusCode != status || body != "" && r.body != body {
		s.t.Errorf("%s %s: %d %.300q, want %d %q", r.Request.Method, r.Request.URL.Path, r.StatusCode, r.body, status, body)
	}
}

// raw sends bytes and returns all that comes back until the connection ends.
func (s *site) raw(text string) string {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		return ""
	}
	b, _ := io.ReadAll(c)
	return string(b)
}

func TestAnswersOfAGuest(t *testing.T) {
	s := api(t, nil)
	s.expect(s.get("/hello"), 200, "hello")
	s.expect(s.get("/users/a%20b?q=1%262"), 200, `{"id":"a b","q":"1&2"}`)
	s.expect(s.do("POST", "/echo", "body", "Content-Type", "text/odd"), 200, "body")
	r := s.do("POST", "/echo", "body", "Content-Type", "text/odd")
	if r.Header.Get("Content-Type") != "text/odd" || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("X-Request-Id") == "" {
		t.Error(r.Header)
	}
	s.expect(s.do("HEAD", "/hello", ""), 200, "")
	s.expect(s.do("POST", "/hello", "x"), 405, "")
	s.expect(s.get("/nothing"), 404, "")
	s.expect(s.get("/later"), 200, "at last")
	r = s.get("/show/a/b?c=d", "X-Odd", "1", "X-Odd", "2", "Connection", "X-Hop", "X-Hop", "no", "Te", "trailers")
	for _, want := range []string{"GET /show/a/b?c=d", "rest a/b", "route /", "remote 127.0.0.1", "x-odd: 1\nx-odd: 2\n", "host: 127.0.0.1:"} {
		if !strings.Contains(r.body, want) {
			t.Errorf("without %q:\n%s", want, r.body)
		}
	}
	for _, not := range []string{"x-hop", "connection", "te:"} {
		if strings.Contains(r.body, not) {
			t.Errorf("with %q:\n%s", not, r.body)
		}
	}
	if got := r.Header.Values("X-One"); len(got) != 2 {
		t.Error(r.Header)
	}
	if x, _ := strconv.Atoi(s.get("/count").body); x != 1 {
		t.Error("state is not kept")
	}
}

// report is that of the last crash.
func (s *site) report() *host.Event {
	s.t.Helper()
	select {
	case e := <-s.events.C():
		return &e
	case <-time.After(20 * time.Second):
		s.t.Fatal("no report")
		return nil
	}
}

// A crash is 502 at once, with the id of the report, for the request that has crashed and
// for those that the actor has taken and not answered.
func TestCrash(t *testing.T) {
	s := api(t, func(c *gateway.Config) { c.Timeouts.Handler = time.Hour })
	check := func(r response) {
		t.Helper()
		e := s.report()
		s.expect(r, 502, "")
		var p struct{ Report, ID string }
		if err := json.Unmarshal([]byte(r.body), &p); err != nil || p.Report != e.ID || len(e.ID) != 16 || r.Header.Get("X-Crash-Report") != e.ID || p.ID != r.Header.Get("X-Request-Id") {
			t.Errorf("%v: %q, the report is %q", err, r.body, e.ID)
		}
		if !strings.Contains(e.Report(), e.ID) {
			t.Error(e.Report())
		}
		if strings.Contains(r.body, "luck") || strings.Contains(r.body, "sorry") {
			t.Error("the client gets to read what the guest says:", r.body)
		}
	}
	check(s.get("/crash"))
	check(s.get("/fail"))
	s.expect(s.get("/hello"), 200, "hello")
	var all sync.WaitGroup
	var waiting [5]response
	for i := range waiting {
		all.Go(func() { waiting[i] = s.get("/never") })
	}
	s.eventually("/waiting", "5") // so they were taken
	first := s.get("/crash")
	all.Wait()
	e := s.report()
	for _, r := range append(waiting[:], first) {
		s.expect(r, 502, "")
		if r.Header.Get("X-Crash-Report") != e.ID {
			t.Errorf("%q, the report is %q", r.body, e.ID)
		}
	}
	s.expect(s.get("/hello"), 200, "hello")
}

// The guest's answers are hostile until checked.
func TestHostileAnswers(t *testing.T) {
	s := api(t, nil)
	raw := func(v any) response {
		t.Helper()
		b, err := host.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		return s.do("POST", "/raw", string(b))
	}
	h := func(kv ...string) []any { return []any{200, kv, "body"} }
	for _, bad := range []any{
		nil, 5, "text", []any{}, []any{200}, []any{200, nil}, []any{200, nil, nil, nil}, []any{100, nil, nil}, []any{101, nil, nil},
		[]any{0, nil, nil}, []any{600, nil, nil}, []any{uint64(1) << 63, nil, nil}, []any{-1, nil, nil}, []any{"200", nil, nil}, []any{200, "x", nil}, []any{200, []any{1, 2}, nil},
		[]any{200, nil, 7}, []any{200, nil, true}, []any{204, nil, "body"}, []any{304, nil, []byte("body")}, h("a"), h("a b", "c"), h("", "c"), h("a:", "c"),
		h("a", "b\r\nSet-Cookie: c"), h("a\r\nb", "c"), h("a", "b\x00"), h("a", "b\n"), h("content-length", "3"), h("content-length", "-1"), h("content-length", "x"),
		h("content-length", "4", "content-length", "4"), []any{200, make([]string, 2*101), nil},
	} {
		s.expect(raw(bad), 502, "")
	}
	for _, garbage := range []string{"", "\xff", "\x83\x18\xc8\xf6", "\x9f\x18\xc8\xf6\xf6\xff", "\x83\x18\xc8\xf6\x62\xff\xff"} {
		if r := s.do("POST", "/raw", garbage); r.StatusCode != 502 {
			t.Errorf("%q: %d", garbage, r.StatusCode)
		}
	}
	r := raw(h("Connection", "close", "Transfer-Encoding", "chunked", "Content-Length", "4", "Keep-Alive", "1", "Upgrade", "x", "X-Request-Id", "mine", "X-Crash-Report", "0000", "Set-Cookie", "a=b", "set-cookie", "c=d"))
	s.expect(r, 200, "body")
	if r.Close || r.TransferEncoding != nil || r.Header.Get("Upgrade") != "" || r.Header.Get("X-Request-Id") == "mine" || r.Header.Get("X-Crash-Report") != "" || len(r.Header["Set-Cookie"]) != 2 {
		t.Error(r.Header)
	}
	s.expect(raw([]any{204, nil, nil}), 204, "")
	s.expect(raw([]any{599, nil, nil}), 599, "")
	s.expect(raw([]any{200, nil, []byte{0, 1}}), 200, "\x00\x01")
	for text, status := range map[string]int{"not_found: no": 404, "bad_request: b": 400, "denied: d": 403, "conflict: c": 409, "too_large: t": 413, "rate_limited: r": 429, "unavailable: u": 503, "timeout: t": 504, "anything": 500, "other: thing": 500} {
		r := s.get("/error?text=" + strings.ReplaceAll(text, " ", "+"))
		s.expect(r, status, "")
		if (status == 503 || status == 429) != (r.Header.Get("Retry-After") != "") {
			t.Error(text, r.Header)
		}
	}
}

// Paths are what they seem, or are refused; nobody is redirected to a cleaned one.
func TestPaths(t *testing.T) {
	s := api(t, func(c *gateway.Config) {
		c.Routes = []gateway.Route{
			{Pattern: "GET /show/{rest...}", To: gateway.Target{Path: "/user/api"}},
			{Pattern: "GET /users/{id}", To: gateway.Target{Path: "/user/api"}},
			{Pattern: "GET /tree/", To: gateway.Target{Path: "/user/api"}},
		}
	})
	for path, status := range map[string]int{
		"/show/..":        400,
		"/show/../x":      400,
		"/show/%2e%2e/x":  400,
		"/show/%2E%2e":    400,
		"/show/.%2e/x":    400,
		"/show/%2e/x":     400,
		"/show/./x":       400,
		"/show//x":        400,
		"//show/x":        400,
		"/show/a%2f..%2f": 400,
		"/show/a%00b":     400,
		"/show/a%0ab":     400,
		"/show/a%7fb":     400,
		"/show/%ff":       400,
		"/show/a%2fb":     200,
		"/show/a%2f%2fb":  200,
		"/show/":          200,
		"/show/...":       200,
		"/users/":         404,
		"/users/a/b":      404,
		"/users/a%2fb":    200,
		"/users/%7Bid%7D": 200,
		"/tree":           307,
		"/tree/a":         404,
		"/Show/a":         404,
	} {
		got := s.raw("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", status)) {
			t.Errorf("%s: want %d: %.200s", path, status, got)
		}
		if status != 307 && strings.Contains(got, "Location:") {
			t.Errorf("%s is redirected: %s", path, got)
		}
	}
	if r := s.get("/tree"); r.Header.Get("Location") != "/tree/" {
		t.Error(r.Header)
	}
	if r := s.get("/users/a%2fb"); r.body != `{"id":"a/b","q":""}` && r.StatusCode != 404 {
		t.Error(r.body)
	}
	r := s.do("PUT", "/users/x", "")
	s.expect(r, 405, "")
	if r.Header.Get("Allow") != "GET, HEAD" {
		t.Error(r.Header)
	}
}

// What no server should accept.
func TestHostileRequests(t *testing.T) {
	s := api(t, func(c *gateway.Config) {
		c.Limits = gateway.Limits{Header: 16 << 10, Headers: 50, Body: 1000}
		c.Timeouts = gateway.Timeouts{Header: 300 * time.Millisecond, Body: 300 * time.Millisecond, Idle: time.Second}
	})
	many := ""
	for i := range 60 {
		many += fmt.Sprintf("X-%d: y\r\n", i)
	}
	for name, c := range map[string]struct{ request, want string }{
		"header bomb":           {"GET /hello HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 24<<10) + "\r\n\r\n", "431"},
		"many headers":          {"GET /hello HTTP/1.1\r\nHost: x\r\n" + many + "Connection: close\r\n\r\n", "431"},
		"one header many times": {"GET /hello HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: y\r\n", 60) + "Connection: close\r\n\r\n", "431"},
		"long path":             {"GET /" + strings.Repeat("a", 24<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", "431"},
		"no host":               {"GET /hello HTTP/1.1\r\n\r\n", "400"},
		"two hosts":             {"GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
		"two lengths":           {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "400"},
		"odd length":            {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", "400"},
		"odd encoding":          {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "501"},
		"space before colon":    {"GET /hello HTTP/1.1\r\nHost: a\r\nX-A : b\r\n\r\n", "400"},
		"header with NUL":       {"GET /hello HTTP/1.1\r\nHost: a\r\nX-A: b\x00c\r\n\r\n", "400"},
		"header in Latin-1":     {"GET /hello HTTP/1.1\r\nHost: a\r\nX-A: \xe4\r\nConnection: close\r\n\r\n", "400"},
		"query in Latin-1":      {"GET /hello?\xe4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "400"},
		"connect":               {"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nConnection: close\r\n\r\n", "405"},
		"trace":                 {"TRACE /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "405"},
		"asterisk":              {"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "400"},
		"large body":            {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n" + strings.Repeat("x", 2000), "413"},
		"large chunked body":    {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + strings.Repeat("x", 2000) + "\r\n0\r\n\r\n", "413"},
		"slow headers":          {"GET /hello HTTP/1.1\r\nHost: a\r\nX-", ""},
		"slow body":             {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", "408"},
		"nonsense":              {"\x16\x03\x01\x02\x00", "400"},
		"half a chunk":          {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
	} {
		got := s.raw(c.request)
		if c.want != "" && !strings.HasPrefix(got, "HTTP/1.1 "+c.want) && !strings.HasPrefix(got, "HTTP/1.0 "+c.want) {
			t.Errorf("%s: want %s: %.300q", name, c.want, got)
		}
		if strings.Contains(got, "200 OK") {
			t.Errorf("%s: %.300q", name, got)
		}
	}
	// Two ends of a body: that of the chunks counts, and nothing more is read from the connection.
	got := s.raw("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /users/smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
	if strings.Contains(got, "smuggled") || strings.Count(got, "HTTP/1.1 ") != 1 {
		t.Errorf("a request was smuggled in: %q", got)
	}
	s.expect(s.get("/hello"), 200, "hello")
	s.expect(s.do("POST", "/echo", strings.Repeat("x", 1000)), 200, strings.Repeat("x", 1000))
}

// A client that goes away ends its request, and the guest hears of it if the route wants that.
func TestClientGoes(t *testing.T) {
	s := api(t, func(c *gateway.Config) { c.Routes[0].Cancel = true; c.Timeouts.Handler = time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "GET", s.url+"/never", nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if res, err := s.client.Do(r); err == nil {
			res.Body.Close()
		}
	}()
	s.eventually("/waiting", "1")
	cancel()
	<-done
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if r := s.get("/gone"); r.body != "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the guest does not hear of it")
		}
	}
	for deadline := time.Now().Add(20 * time.Second); s.g.Underway() != 0; time.Sleep(time.Millisecond) { // the guest hears of it first
		if time.Now().After(deadline) {
			t.Fatal(s.g.Underway(), "are under way")
		}
	}
}

// A guest that does not answer in time is 504.
func TestTimeout(t *testing.T) {
	s := api(t, func(c *gateway.Config) {
		c.Routes = append(c.Routes, gateway.Route{Pattern: "/never", To: c.Routes[0].To, Handler: 50 * time.Millisecond})
	})
	s.expect(s.get("/never"), 504, "")
	s.expect(s.get("/hello"), 200, "hello")
}

// A body that is larger than the guest's inbox is refused before it is sent.
func TestLog(t *testing.T) {
	var b syncBuffer
	s := api(t, func(c *gateway.Config) { c.Access, c.Log = true, slog.New(slog.NewJSONHandler(&b, nil)) })
	s.expect(s.get("/hello?secret=1"), 200, "")
	s.expect(s.get("/crash"), 502, "")
	_ = s.g.Close()
	for _, want := range []string{`"path":"/hello"`, `"status":200`, `"route":"/"`, `"note":"report `, `"status":502`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("without %s:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "secret") {
		t.Error("the query is logged")
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}
func (b *syncBuffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }
