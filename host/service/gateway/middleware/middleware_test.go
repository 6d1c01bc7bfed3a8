package middleware_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"golang.org/x/crypto/bcrypt"
)

// text answers with what the query says: content type, ETag, encoding, range, Cache-Control.
func text(w http.ResponseWriter, r *http.Request) {
	for name, values := range r.URL.Query() {
		w.Header()[name] = values
	}
	w.WriteHeader(200)
	for range 100 { // in parts: the length is not known
		_, _ = io.WriteString(w, "the same again, and once more")
	}
}

func get(t *testing.T, h http.Handler, query string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/?"+query, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	h.ServeHTTP(w, r)
	return w.Result()
}

// What is compressed before any handler, and what must not be.
func TestCompressAnyHandler(t *testing.T) {
	h := (&middleware.Compress{On: true}).Middleware()(http.HandlerFunc(text))
	for query, want := range map[string][2]string{ // Content-Encoding, ETag
		`Content-Type=text/html&Etag="a"`:                               {"gzip", `W/"a"`},
		`Content-Type=text/html&Etag=W/"a"`:                             {"gzip", `W/"a"`},
		`Content-Type=text/html;charset=utf-8`:                          {"gzip", ""},
		`Content-Type=image/png&Etag="a"`:                               {"", `"a"`},
		`Content-Type=text/event-stream`:                                {"", ""},
		`Content-Type=text/html&Content-Encoding=br&Etag="a"`:           {"br", `"a"`},
		`Content-Type=text/html&Content-Range=bytes+0-1/9`:              {"", ""},
		`Content-Type=text/html&Etag="a"&Cache-Control=no-transform`:    {"", `"a"`},
		`Content-Type=text/html&Cache-Control=max-age%3D1,no-Transform`: {"", ""},
	} {
		r := get(t, h, query)
		if got := [2]string{r.Header.Get("Content-Encoding"), r.Header.Get("Etag")}; got != want || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %q, Vary %q", query, got, r.Header.Get("Vary"))
		}
		if r.Header.Get("No-Gzip-Compression") != "" {
			t.Error(query, r.Header)
		}
		body := io.Reader(r.Body)
		if want[0] == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if b, err := io.ReadAll(body); err != nil || len(b) != 2900 {
			t.Error(query, len(b), err)
		}
	}
}

// Events reach the client when they are flushed, and WebSockets pass.
func TestCompressKeepsStreams(t *testing.T) {
	more := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 2 {
			fmt.Fprint(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
			<-more
		}
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Write(r.Context(), websocket.MessageText, []byte("hello"))
		_ = c.Close(websocket.StatusNormalClosure, "")
	})
	s := httptest.NewServer((&middleware.Compress{On: true}).Middleware()(mux))
	defer s.Close()
	r, err := http.NewRequest("GET", s.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	res, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for range 2 {
		if line, err := in.ReadString('\n'); err != nil || line != "data: x\n" {
			t.Fatalf("%q %v", line, err)
		}
		_, _ = in.ReadString('\n')
		more <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, s.URL+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Accept-Encoding": {"gzip"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, b, err := c.Read(ctx); err != nil || string(b) != "hello" {
		t.Error(string(b), err)
	}
}

// Headers of requests that are not listed are refused, also those that the library has by default.
func TestCORSListsWhatIsAllowed(t *testing.T) {
	ask := func(c *middleware.CORS, name, value string) http.Header {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("OPTIONS", "/", nil)
		r.Header.Set("Origin", "https://a.example")
		r.Header.Set("Access-Control-Request-Method", "GET")
		r.Header.Set(name, value)
		c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Next", "yes") })).ServeHTTP(w, r)
		return w.Result().Header
	}
	allowed := func(h http.Header) bool { return h.Get("Access-Control-Allow-Origin") != "" }
	none, any := &middleware.CORS{Origins: []string{"*"}}, &middleware.CORS{Origins: []string{"*"}, Headers: []string{"*"}}
	if h := ask(none, "X-A", ""); !allowed(h) || h.Get("Access-Control-Max-Age") != "600" || h.Get("X-Next") != "" {
		t.Error(h)
	}
	for _, name := range []string{"content-type", "x-a", "accept"} {
		if h := ask(none, "Access-Control-Request-Headers", name); allowed(h) {
			t.Error(name, h)
		}
		if h := ask(any, "Access-Control-Request-Headers", name); !allowed(h) || h.Get("Access-Control-Allow-Headers") != name {
			t.Error(name, h)
		}
	}
	if h := ask(any, "Origin", ""); h.Get("X-Next") != "yes" { // no browser
		t.Error(h)
	}
}

// Without a way to refuse, middleware answers with the text; who is let in is known behind it.
func TestAuthBeforeAnyHandler(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	a := &middleware.Auth{Basic: &middleware.Basic{Users: map[string]string{"u": string(hash)}}}
	wrap, _, err := a.Open(middleware.Options{Clock: host.RealClock(), Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, middleware.IdentityOf(r.Context()).Name)
	}))
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	h.ServeHTTP(w, r)
	if w.Code != 401 || !strings.HasPrefix(w.Header().Get("Www-Authenticate"), "Basic") || !strings.Contains(w.Body.String(), "password") {
		t.Error(w.Code, w.Header(), w.Body)
	}
	if middleware.IdentityOf(r.Context()) != nil {
		t.Error("nobody has an identity")
	}
	w = httptest.NewRecorder()
	r.SetBasicAuth("u", "right")
	if h.ServeHTTP(w, r); w.Code != 200 || w.Body.String() != "u" {
		t.Error(w.Code, w.Body)
	}
}
