package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// try makes a request over TCP, and reports the status and the code of the problem.
func (s *site) try(method, path, host, body string, headers ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	status, text := s.send(s.tcp, r)
	_, code, _ := strings.Cut(string(text), `"code":"`)
	code, _, _ = strings.Cut(code, `"`)
	return status, code
}

func bearer(t Token) []string { return []string{"Authorization", "Bearer " + t.Reveal()} }

// patient is a server that lets nobody wait for a refusal.
func patient(c Config) Config { c.bounds.penalty = 0; return c }

// Who is refused again and again waits, and nobody else does.
func TestGuessersWait(t *testing.T) {
	s := serveSite(t, func(c Config) Config { c.bounds.refusals, c.bounds.penalty = 5, 500*time.Millisecond; return c })
	began := time.Now()
	for range 8 {
		s.try("GET", "/v1/system", "", "", bearer(NewToken())...)
	}
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Error("eight refusals took", took)
	}
	best := time.Hour
	for range 10 {
		began = time.Now()
		if status, code := s.try("GET", "/v1/server", "", "", bearer(s.token)...); status != 200 {
			t.Error(status, code)
		}
		best = min(best, time.Since(began))
	}
	if best > 250*time.Millisecond {
		t.Error("an answer took", best)
	}
}

// Every route is tried without a token, with a wrong one, and with the one that only reads.
func TestTokens(t *testing.T) {
	s := serveSite(t, func(c Config) Config {
		return patient(c).WithMetrics(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	})
	wrong := NewToken()
	almost, err := ParseToken(s.token.Reveal()[:42] + "_")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range table() {
		var json []string
		body := ""
		if r.method == http.MethodPost {
			json, body = []string{"Content-Type", "application/json"}, "{}"
		}
		for what, h := range map[string][]string{
			"nothing": nil, "a wrong token": bearer(wrong), "almost the token": bearer(almost), "an empty token": {"Authorization", "Bearer "},
			"basic": {"Authorization", "Basic " + s.token.Reveal()}, "a cookie of nobody's": {"Cookie", s.server.cookieName() + "=x", SessionKey, "x"},
			"the token as a cookie": {"Cookie", s.server.cookieName() + "=" + s.token.Reveal()},
		} {
			status, code := s.try(r.method, r.path, "", body, append(h, json...)...)
			if r.needs != nobody && (status != 401 || code != "no_token") || r.needs == nobody && status != 200 {
				t.Errorf("%s %s with %s: %d %s", r.method, r.path, what, status, code)
			}
		}
		status, code := s.try(r.method, r.path, "", body, append(bearer(s.read), json...)...)
		if denied := status == 403 && code == "read_only"; denied != (r.needs == full) || status == 401 {
			t.Errorf("%s %s with the token that reads: %d %s", r.method, r.path, status, code)
		}
		if r.method == http.MethodPost && r.path != "/v1/session" && r.needs != full {
			t.Errorf("%s changes something and is open to who reads", r.path)
		}
	}
	if status, _ := s.try(http.MethodGet, "/v1/system", "", "", bearer(s.token)...); status != 200 {
		t.Error(status)
	}
	if (Token{}).opens("") {
		t.Error("no token opens")
	}
	if text := fmt.Sprint(s.token, s.server.cfg.full); strings.Contains(text, s.token.Reveal()) {
		t.Error("a token is printed")
	}
}

// cookieName is that of the TCP door.
func (s *Server) cookieName() string { return tcpDoor(s.tcp).cookie }

// A web page reaches loopback by its user's browser: it is known by Origin, by
// Sec-Fetch-Site, or, if its name was bound to 127.0.0.1 anew, by Host. No answer says that
// other origins may read it.
func TestWebPages(t *testing.T) {
	s := serveSite(t, func(c Config) Config {
		return patient(c).WithDashboard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }))
	})
	own := s.server.Addr().String()
	_, port, _ := net.SplitHostPort(own)
	auth := bearer(s.token)
	for _, c := range []struct {
		what, method, path, host string
		headers                  []string
		want                     int
	}{
		{"itself", "GET", "/v1/system", own, nil, 200},
		{"itself, by name", "GET", "/v1/system", "localhost:" + port, nil, 200},
		{"itself, in capitals", "GET", "/v1/system", "LOCALHOST:" + port, []string{"Origin", "http://localhost:" + port}, 200},
		{"its own page", "GET", "/v1/system", own, []string{"Origin", "http://" + own, "Sec-Fetch-Site", "same-origin"}, 200},
		{"a name bound anew", "GET", "/v1/system", "evil.example:" + port, nil, 421},
		{"a name bound anew, with its origin", "POST", "/v1/stop", "evil.example:" + port, []string{"Origin", "http://evil.example:" + port}, 421},
		{"another port", "GET", "/v1/system", "127.0.0.1:1", nil, 421},
		{"no port", "GET", "/v1/system", "127.0.0.1", nil, 421},
		{"the socket's name", "GET", "/v1/system", "wasmactors", nil, 421},
		{"a page", "GET", "/v1/system", own, []string{"Origin", "http://evil.example"}, 403},
		{"a page of a file or a sandbox", "GET", "/v1/system", own, []string{"Origin", "null"}, 403},
		{"a page at another port", "GET", "/v1/system", own, []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"a page, with TLS", "GET", "/v1/system", own, []string{"Origin", "https://" + own}, 403},
		{"one name for the other", "GET", "/v1/system", own, []string{"Origin", "http://localhost:" + port}, 403},
		{"an image in a page", "GET", "/v1/profile", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"a page at another port of this host", "GET", "/v1/system", own, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"a link to the API", "GET", "/v1/system", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"a link to the dashboard", "GET", "/dashboard/", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"a script that is the dashboard's", "GET", "/dashboard/x.js", own, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"a form", "POST", "/v1/stop", own, []string{"Origin", "http://evil.example", "Content-Type", "text/plain"}, 403},
		{"a form without an origin", "POST", "/v1/stop", own, []string{"Content-Type", "text/plain"}, 415},
		{"a form that is encoded", "POST", "/v1/stop", own, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"no content type", "POST", "/v1/stop", own, nil, 415},
		{"a preflight", "OPTIONS", "/v1/stop", own, []string{"Origin", "http://evil.example", "Access-Control-Request-Method", "POST"}, 403},
		{"an OPTIONS of its own", "OPTIONS", "/v1/stop", own, nil, 405},
	} {
		body := ""
		if c.method == "POST" {
			body = `{"select":{"paths":["/user/**"]}}`
		}
		if status, code := s.try(c.method, c.path, c.host, body, append(c.headers, auth...)...); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.what, status, code, c.want)
		}
	}
	r, _ := http.NewRequest(http.MethodGet, s.base+"/v1/system", nil)
	r.Header.Set("Authorization", auth[1])
	r.Header.Set("Origin", s.base)
	res, err := s.tcp.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control") {
			t.Errorf("%s: %s", name, res.Header.Get(name))
		}
	}
	if s.sys.View().Stats().Actors != 4 { // with the guardians
		t.Error("an actor was stopped")
	}
	// The socket is for programs: a browser that gets there has been led there.
	for _, h := range []string{"Origin", "Sec-Fetch-Site"} {
		r, _ := http.NewRequest(http.MethodGet, "http://localhost/v1/system", nil)
		r.Header.Set(h, "same-origin")
		if status, text := s.send(s.unix, r); status != 403 {
			t.Errorf("%s at the socket: %d %s", h, status, text)
		}
	}
	r, _ = http.NewRequest(http.MethodGet, "http://evil.example/v1/system", nil)
	if status, _ := s.send(s.unix, r); status != 421 {
		t.Errorf("another host at the socket: %d", status)
	}
}

// A session is a cookie and a key. Browsers send cookies to every port of a host, so a
// program at another port may learn the cookie: alone it opens nothing.
func TestSessions(t *testing.T) {
	s := serveSite(t, nil)
	begin := func(tok Token) (cookie *http.Cookie, key string) {
		r, _ := http.NewRequest(http.MethodPost, s.base+"/v1/session", nil)
		r.Header.Set("Authorization", "Bearer "+tok.Reveal())
		r.Header.Set("Origin", s.base)
		r.Header.Set("Content-Type", "application/json")
		res, err := s.tcp.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		if len(res.Cookies()) != 1 {
			t.Fatal(res.Status, string(text))
		}
		valid(t, schemaOf(t, "/components/schemas/Session"), text)
		_, key, _ = strings.Cut(string(text), `"key":"`)
		key, _, _ = strings.Cut(key, `"`)
		return res.Cookies()[0], key
	}
	if status, code := s.try("POST", "/v1/session", "", "{}", append(bearer(s.token), "Content-Type", "application/json")...); status != 403 || code != "no_origin" {
		t.Error("a session without a page:", status, code)
	}
	cookie, key := begin(s.read)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.Value, s.read.Reveal()) || cookie.Value == key {
		t.Errorf("%+v", cookie)
	}
	own := cookie.Name + "=" + cookie.Value
	other, otherKey := begin(s.token)
	for _, c := range []struct {
		what, method, path string
		headers            []string
		want               int
	}{
		{"both", "GET", "/v1/system", []string{"Cookie", own, SessionKey, key}, 200},
		{"the cookie alone", "GET", "/v1/system", []string{"Cookie", own}, 401},
		{"the key alone", "GET", "/v1/system", []string{SessionKey, key}, 401},
		{"the key of another", "GET", "/v1/system", []string{"Cookie", own, SessionKey, otherKey}, 401},
		{"the cookie as a token", "GET", "/v1/system", []string{"Authorization", "Bearer " + cookie.Value}, 401},
		{"who reads", "POST", "/v1/stop", []string{"Cookie", own, SessionKey, key, "Content-Type", "application/json"}, 403},
		{"who may", "POST", "/v1/stop", []string{"Cookie", other.Name + "=" + other.Value, SessionKey, otherKey, "Content-Type", "application/json"}, 400},
		{"the end", "DELETE", "/v1/session", []string{"Cookie", own, SessionKey, key}, 204},
		{"after the end", "GET", "/v1/system", []string{"Cookie", own, SessionKey, key}, 401},
	} {
		body := ""
		if c.method == "POST" {
			body = "{}"
		}
		if status, code := s.try(c.method, c.path, "", body, c.headers...); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.what, status, code, c.want)
		}
	}
	for range 2 * usual.sessions {
		begin(s.token)
	}
	if n := len(s.server.sessions.open); n > usual.sessions {
		t.Error(n, "sessions")
	}
	x := sessions{most: 2}
	id, key, ends := x.begin(full, time.Unix(1000, 0), time.Minute)
	if x.access(id, key, ends) != full || x.access(id, key, ends.Add(1)) != nobody || len(x.open) != 0 {
		t.Error("a session does not end in time")
	}
}

// raw opens a connection over TCP and writes to it.
func (s *site) raw(text string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.server.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_, _ = io.WriteString(c, text)
	return c
}

// status reads the status of an answer, and whether the connection ends with it.
func status(t *testing.T, c net.Conn) (code int, closed bool) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	b := bufio.NewReader(c)
	res, err := http.ReadResponse(b, nil)
	if err != nil {
		return 0, true
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return res.StatusCode, res.Close
}

// Bodies are never read beyond their bound, nor before it is known who sends them, and who
// claims a gigabyte is answered at once.
func TestLargeBodies(t *testing.T) {
	s := serveSite(t, nil)
	head := "POST /v1/%s HTTP/1.1\r\nHost: " + s.server.Addr().String() + "\r\nContent-Type: application/json\r\n"
	auth := "Authorization: Bearer " + s.token.Reveal() + "\r\n"
	for _, c := range []struct {
		what, path, auth string
		want             int
	}{
		{"a command", "stop", auth, 413}, {"a message", "send", auth, 413}, {"from nobody", "send", "", 401},
	} {
		conn := s.raw(fmt.Sprintf(head, c.path) + c.auth + "Content-Length: 1073741824\r\n\r\n")
		if code, closed := status(t, conn); code != c.want || !closed {
			t.Errorf("%s of 1 GB: %d, closed %v", c.what, code, closed)
		}
		// Without a length, as long as it is taken.
		conn = s.raw(fmt.Sprintf(head, c.path) + c.auth + "Transfer-Encoding: chunked\r\n\r\n")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		piece := "10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n"
		sent := 0
		for ; sent < 1<<30; sent += 0x10000 {
			_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.WriteString(conn, piece); err != nil {
				break
			}
		}
		runtime.ReadMemStats(&after)
		if most := 64 << 20; sent > most {
			t.Errorf("%s in chunks: %d bytes were taken", c.what, sent)
		}
		if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 256<<20 {
			t.Errorf("%s in chunks: %d MiB allocated", c.what, grown>>20)
		}
	}
	if p := s.refused("POST", "/v1/send", `{"to":"a","message":"`+strings.Repeat("x", 17<<20)+`"}`); p.Status != 413 {
		t.Errorf("%+v", p)
	}
	if p := s.refused("POST", "/v1/stop", `{"reason":"`+strings.Repeat("x", 2<<20)+`"}`); p.Status != 413 {
		t.Errorf("%+v", p)
	}
	if p := s.refused("POST", "/v1/send", `{"to":"a","message":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+`}`); p.Status != 400 {
		t.Errorf("%+v", p)
	}
	// A header of a gigabyte, too.
	conn := s.raw("GET /v1/system HTTP/1.1\r\nHost: x\r\nX: ")
	sent := 0
	for ; sent < 1<<30; sent += 1 << 16 {
		_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.WriteString(conn, strings.Repeat("x", 1<<16)); err != nil {
			break
		}
	}
	if sent > 16<<20 {
		t.Errorf("a header of %d bytes was taken", sent)
	}
}

// quick is a server that loses its patience at once.
func quick(c Config) Config {
	c.bounds.headTime, c.bounds.readTime, c.bounds.writeTime = 300*time.Millisecond, 600*time.Millisecond, 300*time.Millisecond
	c.bounds.connections = 50
	return c
}

// Slowloris: heads and bodies that come a byte at a time end in time, and keep nobody out.
func TestSlowRequests(t *testing.T) {
	s := serveSite(t, quick)
	head := "POST /v1/send HTTP/1.1\r\nHost: " + s.server.Addr().String() + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
	for what, text := range map[string]string{
		"nothing": "", "half a head": "GET /v1/sys", "a head without an end": head,
		"half a body":              head + "Authorization: Bearer " + s.token.Reveal() + "\r\n\r\n{",
		"a body of nobody":         head + "\r\n{",
		"a body where none may be": "GET /v1/system HTTP/1.1\r\nHost: " + s.server.Addr().String() + "\r\nAuthorization: Bearer " + s.token.Reveal() + "\r\nContent-Length: 100\r\n\r\n",
	} {
		conn := s.raw(text)
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is still open", what)
		}
	}
}

// A thousand connections, that say nothing, or half a request, or want a page again and
// again: whoever has the right is answered, at both doors.
func TestThousandConnections(t *testing.T) {
	s := serveSite(t, nil)
	before := runtime.NumGoroutine()
	for i := range 1000 {
		s.raw([]string{"", "G", "GET /v1/system HTTP/1.1\r\nHost: x\r\n", "GET /healthz HTTP/1.1\r\nHost: " + s.server.Addr().String() + "\r\n\r\n"}[i%4])
	}
	began := time.Now()
	for range 20 {
		if status, code := s.try("GET", "/v1/system", "", "", bearer(s.token)...); status != 200 {
			t.Fatal(status, code)
		}
		get[About](s, "/v1/server")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Error("forty answers took", took)
	}
	if n := runtime.NumGoroutine() - before; n > 3*usual.connections {
		t.Error(n, "goroutines more")
	}
	for _, c := range s.server.limits {
		c.mu.Lock()
		if n := len(c.in); n > usual.connections {
			t.Error(n, "connections")
		}
		c.mu.Unlock()
	}
}

// slow connects, asks for a stream and reads its head, and nothing more.
func (s *site) slow(path string) net.Conn {
	s.t.Helper()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { return smallBuffer(c) }}
	c, err := d.Dial("tcp", s.server.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, s.server.Addr(), s.token.Reveal())
	buf := make([]byte, 15)
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "HTTP/1.1 200 OK" {
		s.t.Fatalf("%s: %q %v", path, buf, err)
	}
	return c
}

// Who does not read a stream is cut off within its time; the actors go on, and so do those
// who read, who are told what they have missed.
func TestSlowReaders(t *testing.T) {
	s := serveSite(t, quick)
	var handled atomic.Int64
	chatty, err := s.sys.Spawn("chatty", host.Func(func(c *host.Context, m host.Message) error {
		handled.Add(1)
		return host.ErrUnhandled // an event each
	}))
	if err != nil {
		t.Fatal(err)
	}
	streams := []string{"/v1/events?follow", "/v1/events?follow&kind=unhandled&path=/user/chatty"}
	var conns []net.Conn
	for _, path := range streams {
		for range 3 {
			conns = append(conns, s.slow(path))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cut := 0
	payload := strings.Repeat("x", 900)
	for cut < len(conns) && ctx.Err() == nil {
		for range 200 {
			_ = s.sys.TryTell(chatty, payload)
		}
		time.Sleep(time.Millisecond)
		cut = int(s.server.cut.Load())
	}
	if ctx.Err() != nil {
		t.Fatalf("%d of %d slow readers were cut off", cut, len(conns))
	}
	if handled.Load() == 0 {
		t.Error("the actor did nothing")
	}
	get[About](s, "/v1/server")
}

func TestTokenFiles(t *testing.T) {
	dir, err := os.MkdirTemp("", "token")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "token")
	made, err := TokenFile(path)
	if err != nil || made.isZero() {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if again, err := TokenFile(path); err != nil || again != made {
		t.Error("it is another one:", err)
	}
	for text, want := range map[string]string{"short": "can be guessed", strings.Repeat("x", 1000): "at most", strings.Repeat("ab ", 20): "no blanks"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := TokenFile(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10s: %v", text, err)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := errors.Join(os.WriteFile(path, []byte(made.Reveal()), 0o600), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	if _, err := TokenFile(path); err == nil || !strings.Contains(err.Error(), "mode 0640") {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink(filepath.Join(dir, "x"), path)); err != nil {
		t.Fatal(err)
	}
	if _, err := TokenFile(path); err == nil {
		t.Error("a link was followed")
	}
}
