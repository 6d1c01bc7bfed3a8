package httpclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// guests is a system whose actors are guests.
type guests struct {
	*fixture
	t *testing.T
}

func startGuests(t *testing.T, w *world, s *httpclient.Settings) *guests {
	t.Helper()
	return &guests{startReal(t, w, s), t}
}

func (g *guests) spawn(typ, name string, args any, grant *httpclient.Grant, b service.Bounds) host.Ref {
	g.t.Helper()
	p := host.GuestOf(servicetest.Module(g.t), typ).WithCapabilities(host.Capabilities{Spawn: []string{"http-user"}})
	if args != nil {
		p = p.WithArgs(args)
	}
	if grant != nil {
		if err := g.kind.CheckGrant(grant); err != nil {
			g.t.Fatal(err)
		}
		p = p.WithGrant(httpclient.Name, g.kind.Grant(*grant, b))
	}
	ref, err := g.sys.Spawn(name, p)
	if err != nil {
		g.t.Fatal(err)
	}
	return ref
}

func ask[T any](g *guests, to host.Ref, v any) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := host.AskAs[T](ctx, g.sys, to, v)
	var said *host.ReplyError
	if errors.As(err, &said) {
		err = errors.New(said.Reason)
	}
	return answer, err
}

// shown is what the guest shows of an answer.
type shown struct {
	_      struct{} `cbor:",toarray"`
	Status int
	Header string
	Body   []byte
}

// A guest in standard Go gets, posts, reads and writes more than a message takes, and many at once.
func TestGuest(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	data := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
	copied := make(chan []byte, 1)
	w.serveTLS(public+":443", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Answer", r.Method+" "+r.URL.Path)
		switch {
		case r.URL.Path == "/data":
			_, _ = rw.Write(data)
		case r.URL.Path == "/some":
			_, _ = rw.Write(data[:50_000])
		case r.URL.Path == "/data/copy":
			body, _ := io.ReadAll(r.Body)
			copied <- body
		case r.Method == "POST":
			body, _ := io.ReadAll(r.Body)
			fmt.Fprint(rw, len(body))
		default:
			_, _ = io.WriteString(rw, "hello")
		}
	})
	g := startGuests(t, w, nil)
	user := g.spawn("http-user", "user", nil, &httpclient.Grant{Hosts: []string{"www.example.com"}, Methods: []string{"GET", "POST"}, MaxRequest: 4 << 20}, service.Bounds{AtOnce: 40})
	for _, row := range []struct {
		what, path string
		n          int
		want       string
	}{
		{"get", "/x", 0, "200 GET /x hello"},
		{"post", "/x", 1000, "200 POST /x 1000"},
		{"upload", "/x", 1 << 20, "200 POST /x 1048576"},
		{"parent", "/child", 0, "200 GET /child hello"},
		{"copy", "/data", 0, "200 POST /data/copy "},
	} {
		s, err := ask[shown](g, user, []any{row.what, "https://www.example.com" + row.path, row.n})
		if got := fmt.Sprintf("%d %s %s", s.Status, s.Header, s.Body); err != nil || got != row.want {
			t.Errorf("%s %s: %s, %v", row.what, row.path, got, err)
		}
	}
	if body := <-copied; !bytes.Equal(body, data) {
		t.Errorf("%d bytes were copied", len(body))
	}
	h := fnv.New64a()
	h.Write(data)
	if pair, err := ask[[2]uint64](g, user, []any{"digest", "https://www.example.com/data", 0}); err != nil || pair != [2]uint64{uint64(len(data)), h.Sum64()} {
		t.Errorf("%v, %v", pair, err)
	}
	if body, err := ask[[]byte](g, user, []any{"all", "https://www.example.com/some", 50_000}); err != nil || !bytes.Equal(body, data[:50_000]) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if _, err := ask[[]byte](g, user, []any{"all", "https://www.example.com/data", 1000}); err == nil || !strings.HasPrefix(err.Error(), "too_large: ") {
		t.Error(err)
	}
	// As many as may be at once are answered, the rest are told that it is busy, all within one batch.
	if pair, err := ask[[2]uint64](g, user, []any{"many", "https://www.example.com/", 100}); err != nil || pair[0]+pair[1] != 100 || pair[0] < 40 {
		t.Errorf("%v, %v", pair, err)
	}
	if pair, err := ask[[2]uint64](g, user, []any{"many", "https://www.example.com/", 40}); err != nil || pair != [2]uint64{40, 0} {
		t.Errorf("%v, %v", pair, err)
	}
	if d := w.dials(); strings.Count(d, ":443") > 3 {
		t.Errorf("HTTP/2 needs one connection, it took %s", d)
	}
	g.noStreams()
}

// The codes that a guest sees.
func TestGuestErrors(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.name("in.example.com", "127.0.0.1")
	w.serve(public+":80", func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(rw, r, "http://evil.example/", http.StatusFound)
		case "/hang":
			<-r.Context().Done()
		case "/500":
			rw.WriteHeader(500)
		}
	})
	g := startGuests(t, w, nil)
	grant := &httpclient.Grant{Hosts: []string{"http://*.example.com"}, Redirects: 2, MaxRequest: 100}
	asker := g.spawn("service-asker", "asker", nil, grant, service.Bounds{})
	url := func(path string) args { return args{"url": "http://www.example.com" + path} }
	for _, row := range []struct {
		op   string
		in   any
		code string
	}{
		{"do", args{"url": "http://evil.example/"}, "denied"},
		{"do", args{"url": "http://in.example.com/"}, "denied"},
		{"do", args{"url": "http://www.example.com:22/"}, "denied"},
		{"do", args{"url": "http://www.example.com/", "method": "DELETE"}, "denied"},
		{"do", args{"url": "http://www.example.com/", "headers": [][2]string{{"authorization", "x"}}}, "denied"},
		{"do", url("/away"), "denied"},
		{"do", args{"url": "http://www.example.com\\.evil.example/"}, "bad_request"},
		{"do", args{"url": "http://2130706433/"}, "bad_request"},
		{"do", args{"url": "http://www.example.com/", "headers": [][2]string{{"accept", "x\r\ny: z"}}}, "bad_request"},
		{"do", nil, "bad_request"},
		{"fly", nil, "bad_request"},
		{"do", args{"url": "http://www.example.com/", "body": make([]byte, 101)}, "too_large"},
		{"do", args{"url": "http://none.example.com/"}, "failed"},
	} {
		if _, err := ask[any](g, asker, []any{"http", row.op, row.in}); err == nil || !strings.HasPrefix(err.Error(), row.code+": ") {
			t.Errorf("%v: %v, want %s", row.in, err, row.code)
		}
	}
	brief := g.spawn("service-asker", "brief", nil, grant, service.Bounds{Timeout: 50 * time.Millisecond, AtOnce: 1})
	if _, err := ask[any](g, brief, []any{"http", "do", url("/hang")}); err == nil || !strings.HasPrefix(err.Error(), "timeout: ") {
		t.Error(err)
	}
	slow := g.spawn("service-asker", "slow", nil, grant, service.Bounds{Rate: 0.001, Burst: 1})
	if _, err := ask[any](g, slow, []any{"http", "do", url("/")}); err != nil {
		t.Error(err)
	}
	if _, err := ask[any](g, slow, []any{"http", "do", url("/")}); err == nil || !strings.HasPrefix(err.Error(), "rate_limited: ") {
		t.Error(err)
	}
	weak := *grant
	weak.Breaker = service.BreakerGrant{Failures: 1}
	broken := g.spawn("service-asker", "broken", nil, &weak, service.Bounds{})
	if _, err := ask[any](g, broken, []any{"http", "do", url("/500")}); err != nil {
		t.Error(err)
	}
	if _, err := ask[any](g, broken, []any{"http", "do", url("/")}); err == nil || !strings.HasPrefix(err.Error(), "unavailable: ") {
		t.Error(err)
	}
	none := g.spawn("service-asker", "none", nil, nil, service.Bounds{})
	if _, err := ask[any](g, none, []any{"http", "do", url("/")}); err == nil || !strings.HasPrefix(err.Error(), "denied: ") {
		t.Error(err)
	}
	// It has the ref, and asks by it; it has no grant.
	if _, err := ask[any](g, none, []any{uint64(g.running.Ref().UID()), "do", url("/")}); err == nil || !strings.HasPrefix(err.Error(), "denied: ") {
		t.Error(err)
	}
	// One that has a grant forwards what one without has sent.
	forwarder := g.spawn("service-forwarder", "forwarder", "http", grant, service.Bounds{})
	if _, err := ask[any](g, forwarder, []any{"do", url("/")}); err == nil || !strings.HasPrefix(err.Error(), "denied: ") {
		t.Error(err)
	}
}

// A guest that is stopped ends its work: the server sees the connection go.
func TestGuestStops(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	began, ended := make(chan struct{}, 4), make(chan struct{}, 4)
	w.serve(public+":80", func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	g := startGuests(t, w, nil)
	user := g.spawn("http-user", "user", nil, &httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{})
	if err := g.sys.Tell(user, []any{"get", "http://www.example.com/", 0}); err != nil {
		t.Fatal(err)
	}
	<-began
	g.sys.Stop(user)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the server still works on it")
	}
}
