package httpclient_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
)

const public = "93.184.216.34"

// What a request becomes, and its answer.
func TestDo(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.serve(public+":80", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s|%s|%s|%s|%q|%d", r.Method, r.Host, r.URL, r.Header.Get("User-Agent"), r.Header.Get("Accept-Encoding"), r.Header.Get("X-Key"), body, r.ContentLength)
	})
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}, Methods: []string{"GET", "POST", "HEAD"}, Headers: []string{"x-key"}}, service.Bounds{})
	for _, row := range []struct {
		in   args
		want string
	}{
		{args{"url": "http://www.example.com"}, `GET www.example.com /|wasmactors|||""|0`},
		{args{"url": "HTTP://WWW.EXAMPLE.COM.:80/a%2Fb?c=d#e", "headers": [][2]string{{"User-Agent", "me"}, {"x-key", "k"}, {"host", "www.example.com"}}}, `GET www.example.com /a%2Fb?c=d|me||k|""|0`},
		{args{"method": "POST", "url": "http://www.example.com/", "body": []byte("hello")}, `POST www.example.com /|wasmactors|||"hello"|5`},
		{args{"method": "HEAD", "url": "http://www.example.com/"}, ""},
		{args{"url": "http://www.example.com/", "decode": true}, `GET www.example.com /|wasmactors|gzip||""|0`},
	} {
		r, err := a.do(row.in)
		if err != nil {
			t.Errorf("%v: %v", row.in, err)
			continue
		}
		if r.Status != http.StatusTeapot || string(r.Body) != row.want || r.Stream != 0 || r.URL != "" || r.header("x-two") != "1" {
			t.Errorf("%v: %d %s %v", row.in, r.Status, r.Body, r.Headers)
		}
	}
	if d := w.dials(); d != public+":80" {
		t.Errorf("the connection was not used again: %s", d)
	}
}

// Every code of the contract that this service has, and how it comes about. The rest are not its
// own: quota, exists, conflict, read_only, not_found.
func TestErrors(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"www.example.com", "reset.example.com", "silent.example.com"} {
		w.name(name, public)
	}
	w.name("gone.example.com", "93.184.216.35")
	w.name("in.example.com", "10.0.0.1")
	blocked := make(chan struct{})
	defer close(blocked)
	began := make(chan struct{}, 10)
	w.serve(public+":80", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("x", 3000))
		case "/chunks":
			for range 30 {
				_, _ = io.WriteString(w, strings.Repeat("x", 100))
				_ = http.NewResponseController(w).Flush()
			}
		case "/headers":
			w.Header().Set("X", strings.Repeat("x", 30_000))
		case "/many":
			for i := range 250 {
				w.Header().Set(fmt.Sprintf("X-%d", i), "")
			}
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/hang":
			began <- struct{}{}
			select {
			case <-blocked:
			case <-r.Context().Done():
			}
		case "/short":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "short")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/500":
			w.WriteHeader(500)
		}
	})
	w.serveTLS(public+":443", echo)
	w.pem.Reset() // nobody trusts it
	f := start(t, w, nil)
	g := httpclient.Grant{
		Hosts: []string{"http://*.example.com", "https://www.example.com", "http://10.9.9.9"}, Private: []string{"10.9.9.9"}, Methods: []string{"GET", "POST"}, Paths: []string{"/**"},
		MaxRequest: 100, MaxResponse: 2000, Breaker: service.BreakerGrant{Off: true},
	}
	a := f.actor(g, service.Bounds{})
	for _, row := range []struct {
		name string
		code service.Code
		text string
		in   args
	}{
		{"a host that is not granted", service.Denied, "https://evil.example:443 is not granted; capabilities.http.hosts", args{"url": "https://evil.example/"}},
		{"a method that is not granted", service.Denied, "capabilities.http.methods", args{"method": "PUT", "url": "http://www.example.com/"}},
		{"a path that servers differ about", service.Denied, "capabilities.http.paths", args{"url": "http://www.example.com/a/../b"}},
		{"a header that is not granted", service.Denied, "capabilities.http.headers", args{"url": "http://www.example.com/", "headers": [][2]string{{"cookie", "x"}}}},
		{"an address that is not public", service.Denied, "capabilities.http.private", args{"url": "http://in.example.com/"}},
		{"no URL", service.BadRequest, "", args{}},
		{"a URL that is none", service.BadRequest, "the URL", args{"url": "http://www.example.com\\@evil.example/"}},
		{"a header that is injected", service.BadRequest, "characters", args{"url": "http://www.example.com/", "headers": [][2]string{{"accept", "a\r\nb: c"}}}},
		{"an unknown key", service.BadRequest, "do:", args{"url": "http://www.example.com/", "follow": true}},
		{"a wrong type", service.BadRequest, "do:", args{"url": 5}},
		{"a header that is not a pair", service.BadRequest, "do:", args{"url": "http://www.example.com/", "headers": [][]string{{"a"}}}},
		{"a method that is none", service.BadRequest, "is not a method", args{"method": "GET / HTTP/1.1\r\nX: ", "url": "http://www.example.com/"}},
		{"CONNECT", service.BadRequest, "not for guests", args{"method": "CONNECT", "url": "http://www.example.com/"}},
		{"size of a do", service.BadRequest, "size is for upload", args{"url": "http://www.example.com/", "size": 5}},
		{"a body that is too large", service.TooLarge, "max-request", args{"method": "POST", "url": "http://www.example.com/", "body": make([]byte, 101)}},
		{"an answer that says it is too large", service.TooLarge, "max-response", args{"url": "http://www.example.com/large"}},
		{"an answer that is", service.TooLarge, "max-response", args{"url": "http://www.example.com/chunks"}},
		{"an answer beyond max", service.TooLarge, "10 bytes", args{"url": "http://www.example.com/chunks", "max": 10}},
		{"headers that are too large", service.Failed, "header", args{"url": "http://www.example.com/headers"}},
		{"too many headers", service.TooLarge, "headers", args{"url": "http://www.example.com/many"}},
		{"too many headers of the request", service.TooLarge, "at most 64", args{"url": "http://www.example.com/", "headers": make([][2]string, 65)}},
		{"no such name", service.Failed, "no such host", args{"url": "http://none.example.com/"}},
		{"nobody listens", service.Failed, "connection refused", args{"url": "http://gone.example.com/"}},
		{"the server closes early", service.Failed, "EOF", args{"url": "http://www.example.com/reset"}},
		{"the body is cut off", service.Failed, "unexpected EOF", args{"url": "http://www.example.com/short"}},
		{"a certificate that nobody trusts", service.Failed, "unknown authority", args{"url": "https://www.example.com/"}},
	} {
		t.Run(row.name, func(t *testing.T) { a.in(t).fails(row.in, row.code, row.text) })
	}
	t.Run("timeout", func(t *testing.T) {
		b := f.actor(g, service.Bounds{Timeout: time.Second})
		go func() {
			<-began
			f.clock.Advance(time.Second)
		}()
		b.fails(args{"url": "http://www.example.com/hang"}, service.Timeout, "")
	})
	t.Run("header timeout", func(t *testing.T) {
		g := g
		g.Header = time.Second
		b := f.actor(g, service.Bounds{})
		go func() {
			<-began
			f.clock.Advance(time.Second)
		}()
		b.fails(args{"url": "http://www.example.com/hang"}, service.Timeout, "begun to answer")
	})
	t.Run("busy", func(t *testing.T) {
		b := f.actor(g, service.Bounds{AtOnce: 1})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.do(args{"url": "http://www.example.com/hang"})
		}()
		<-began
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			for f.running.Waiting() < 1 {
				time.Sleep(time.Millisecond)
			}
			f.clock.Advance(service.DefaultWait)
		}()
		b.fails(args{"url": "http://www.example.com/"}, service.Busy, "at-once")
		<-waited
		f.clock.Advance(service.DefaultTimeout)
		<-done
	})
	t.Run("rate limited", func(t *testing.T) {
		b := f.actor(g, service.Bounds{Rate: 0.001, Burst: 1})
		b.get("http://www.example.com/")
		b.fails(args{"url": "http://www.example.com/"}, service.RateLimited, "rate")
	})
	t.Run("unavailable", func(t *testing.T) {
		g := g
		g.Breaker = service.BreakerGrant{Failures: 2}
		b := f.actor(g, service.Bounds{})
		for range 2 {
			if r := b.get("http://www.example.com/500"); r.Status != 500 {
				t.Error(r.Status)
			}
		}
		b.fails(args{"url": "http://www.example.com/"}, service.Unavailable, "http://www.example.com:80 has failed")
		b.fails(args{"url": "http://gone.example.com/"}, service.Failed, "") // another target
	})
	t.Run("unknown operation", func(t *testing.T) {
		if _, err := a.order(order{Op: "fly"}); err == nil || !strings.HasPrefix(a.reason(err).Error(), "bad_request: ") {
			t.Error(err)
		}
	})
	t.Run("no grant", func(t *testing.T) {
		f.with(noChange).fails(args{"url": "http://www.example.com/"}, service.Denied, "capabilities.http in the manifest")
	})
	if d := w.dials(); strings.Contains(d, "10.0.0.1") {
		t.Error("a private address was dialled: " + d)
	}
}

// The denials of an operator's interest are events with the key.
func TestDenialIsAnEvent(t *testing.T) {
	w := newWorld(t)
	w.name("in.example.com", "10.0.0.1")
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"in.example.com"}}, service.Bounds{})
	a.fails(args{"url": "https://in.example.com/"}, service.Denied, "not public but private")
	e := <-f.events.C()
	if e.Refused.Key != "capabilities.http.private" || !e.Refused.Denied || e.Ref != a.ref || strings.Contains(e.Refused.Reason, "10.0.0.1") {
		t.Errorf("%+v", e.Refused)
	}
}

func TestHTTP2(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.serveTLS(public+":443", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d", r.Proto, body, r.TLS.Version)
	})
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"www.example.com"}, Methods: []string{"POST"}}, service.Bounds{})
	r, err := a.do(args{"method": "POST", "url": "https://www.example.com/", "body": []byte("hello")})
	if err != nil || string(r.Body) != fmt.Sprintf("HTTP/2.0 hello %d", tls.VersionTLS13) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TLS is 1.2 at least, and certificates are verified for the name.
func TestTLS(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.name("www.example.org", public)
	s := w.serveTLS(public+":443", echo)
	s.TLS.MaxVersion = tls.VersionTLS12
	old := w.serveTLS("93.184.216.35:443", echo)
	old.TLS.MinVersion, old.TLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	w.name("old.example.com", "93.184.216.35")
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"www.example.com", "www.example.org", "old.example.com"}}, service.Bounds{})
	if r := a.get("https://www.example.com/"); r.Status != 200 {
		t.Errorf("%+v", r)
	}
	a.fails(args{"url": "https://www.example.org/"}, service.Failed, "for another host")
	a.fails(args{"url": "https://old.example.com/"}, service.Failed, "protocol version")
}

// gzip is unpacked only if it is asked for, and what comes out is what counts.
func TestDecode(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.serve(public+":80", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/empty" {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if r.URL.Path == "/broken" {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "this is no gzip, is it")
			return
		}
		if r.Header.Get("Accept-Encoding") != "gzip" {
			_, _ = io.WriteString(w, "plain")
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		if r.URL.Path == "/bomb" {
			zeros := make([]byte, 1<<20)
			for range 64 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
		} else {
			_, _ = io.WriteString(z, "unpacked")
		}
		_ = z.Close()
	})
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}, MaxResponse: 1 << 20}, service.Bounds{})
	if r := a.get("http://www.example.com/"); string(r.Body) != "plain" {
		t.Errorf("%q", r.Body)
	}
	r, err := a.do(args{"url": "http://www.example.com/", "decode": true})
	if err != nil || string(r.Body) != "unpacked" || r.header("content-encoding") != "" || r.header("content-length") != "" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = a.do(args{"url": "http://www.example.com/", "headers": [][2]string{{"accept-encoding", "gzip"}}}); err != nil || r.header("content-encoding") != "gzip" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = a.do(args{"url": "http://www.example.com/empty", "decode": true}); err != nil || len(r.Body) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	a.fails(args{"url": "http://www.example.com/broken", "decode": true}, service.Failed, "gzip")
	r, err = a.do(args{"url": "http://www.example.com/bomb", "decode": true})
	if err != nil || r.Stream == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if body, err := a.read(r.Stream); err == nil || !strings.HasPrefix(err.Error(), "too_large: ") || len(body) > 1<<20 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

// What is larger than an answer takes is a stream.
func TestStreamedAnswers(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	large := strings.Repeat("0123456789abcdef", 100<<10/16)
	w.serve(public+":80", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/known":
			w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			_, _ = io.WriteString(w, large)
		case "/chunked":
			_, _ = io.WriteString(w, large[:40<<10])
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, large[40<<10:])
		case "/exact":
			_, _ = io.WriteString(w, large[:32<<10])
		case "/empty":
		case "/small":
			_, _ = io.WriteString(w, "small")
		case "/cut":
			w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			_, _ = io.WriteString(w, large[:50<<10])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{})
	for _, row := range []struct {
		path   string
		in     args
		stream bool
		length int64
		want   string
	}{
		{"/known", nil, true, int64(len(large)), large},
		{"/chunked", nil, true, -1, large},
		{"/exact", nil, false, 0, large[:32<<10]},
		{"/exact", args{"inline": 32<<10 - 1}, true, -1, large[:32<<10]},
		{"/empty", nil, false, 0, ""},
		{"/empty", args{"inline": 0}, false, 0, ""},
		{"/empty", args{"stream": true}, true, 0, ""},
		{"/small", nil, false, 0, "small"},
		{"/small", args{"stream": true}, true, 5, "small"},
		{"/small", args{"inline": 0}, true, 5, "small"},
		{"/known", args{"inline": 1 << 40}, true, int64(len(large)), large},
	} {
		in := args{"url": "http://www.example.com" + row.path}
		for k, v := range row.in {
			in[k] = v
		}
		r, err := a.do(in)
		if err != nil {
			t.Errorf("%v: %v", in, err)
			continue
		}
		got := string(r.Body)
		if r.Stream != 0 {
			if got, err = a.read(r.Stream); err != nil {
				t.Errorf("%v: %v", in, err)
			}
			if (r.Length == nil) != (row.length < 0) || r.Length != nil && int64(*r.Length) != row.length {
				t.Errorf("%v: length %v", in, r.Length)
			}
		}
		if (r.Stream != 0) != row.stream || got != row.want {
			t.Errorf("%v: stream %d, %d bytes", in, r.Stream, len(got))
		}
	}
	r, err := a.do(args{"url": "http://www.example.com/cut"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.read(r.Stream); err == nil || !strings.HasPrefix(err.Error(), "failed: ") || len(got) != 50<<10 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	a.noStreams()
}

// Uploads: a sink, parts, and the answer at its end.
func TestUpload(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	seen, began := make(chan error, 20), make(chan struct{}, 20)
	w.serve(public+":80", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/early" {
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusForbidden)
			return
		}
		first := make([]byte, 1)
		n, err := r.Body.Read(first)
		if r.URL.Path == "/abort" {
			began <- struct{}{}
		}
		body, err2 := io.ReadAll(r.Body)
		body = append(first[:n], body...)
		if err == nil {
			err = err2
		}
		if r.URL.Path == "/abort" {
			seen <- err
		}
		fmt.Fprintf(w, "%s %d %d %v", r.Method, len(body), r.ContentLength, r.TransferEncoding)
	})
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}, Methods: []string{"PUT", "POST"}, MaxRequest: 500 << 10}, service.Bounds{})
	upload := func(in args, parts int, end string) (*result, error) {
		m, err := a.order(order{Op: "upload", Args: in})
		if err != nil {
			return nil, a.reason(err)
		}
		var out struct {
			Sink uint64 `cbor:"sink"`
		}
		if err := m.Decode(&out); err != nil || out.Sink == 0 {
			t.Fatalf("%v, %v", out, err)
		}
		for range parts {
			if _, err := a.order(order{To: out.Sink, Op: "write", Args: make([]byte, 10_000)}); err != nil {
				return nil, a.reason(err)
			}
		}
		if end == "abort" {
			<-began
		}
		var how any
		if end == "abort" {
			how = "no more"
		}
		m, err = a.order(order{To: out.Sink, Op: end, Args: how})
		if err != nil {
			return nil, a.reason(err)
		}
		r := &result{}
		if end == "end" {
			err = m.Decode(r)
		}
		return r, err
	}
	for _, row := range []struct {
		in    args
		parts int
		want  string
	}{
		{args{"url": "http://www.example.com/"}, 30, "POST 300000 -1 [chunked]"},
		{args{"url": "http://www.example.com/", "method": "PUT", "size": 300_000}, 30, "PUT 300000 300000 []"},
		{args{"url": "http://www.example.com/"}, 0, "POST 0 -1 [chunked]"},
		{args{"url": "http://www.example.com/", "size": 0}, 0, "POST 0 0 []"},
		{args{"url": "http://www.example.com/", "size": 5}, 1, "bad_request: the body does not have the 5 bytes"},
		{args{"url": "http://www.example.com/", "size": 10_001}, 1, "bad_request: the body does not have the 10001 bytes"},
		{args{"url": "http://www.example.com/"}, 60, "too_large: the request's body has more than 512000 bytes"},
		{args{"url": "http://www.example.com/", "size": 600_000}, 0, "too_large: "},
		{args{"url": "http://www.example.com/", "body": []byte("x")}, 0, "bad_request: "},
		{args{"url": "http://evil.example/"}, 0, "denied: "},
	} {
		r, err := upload(row.in, row.parts, "end")
		got := fmt.Sprint(err)
		if err == nil {
			got = string(r.Body)
		}
		if !strings.HasPrefix(got, row.want) {
			t.Errorf("%v: %s, want %s", row.in, got, row.want)
		}
	}
	if _, err := upload(args{"url": "http://www.example.com/abort"}, 1, "abort"); err != nil {
		t.Error(err)
	}
	if err := <-seen; err == nil {
		t.Error("the server has had a whole body of an upload that was given up")
	}
	// An answer before the body has ended counts.
	if r, err := upload(args{"url": "http://www.example.com/early"}, 40, "end"); err != nil || r.Status != http.StatusForbidden {
		t.Errorf("%+v, %v", r, err)
	}
	a.noStreams()
}

// Cancelled work stops: the server sees the connection go.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	began, ended := make(chan struct{}, 10), make(chan struct{}, 10)
	w.serve(public+":80", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endless" {
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
		}
		began <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	})
	f := start(t, w, nil)
	g := httpclient.Grant{Hosts: []string{"http://www.example.com"}, Idle: time.Hour}
	t.Run("the asker ends", func(t *testing.T) {
		a := f.actor(g, service.Bounds{Timeout: time.Hour})
		go func() { _, _ = a.do(args{"url": "http://www.example.com/"}) }()
		<-began
		f.sys.Stop(a.ref)
		<-ended
	})
	t.Run("the asker's time is over", func(t *testing.T) {
		a := f.actor(g, service.Bounds{Timeout: time.Hour})
		go func() {
			_, _ = a.order(order{Op: "do", Args: args{"url": "http://www.example.com/"}, Timeout: int64(time.Second)})
		}()
		<-began
		f.clock.Advance(time.Second)
		<-ended
	})
	t.Run("the reader of a stream ends", func(t *testing.T) {
		a := f.actor(g, service.Bounds{})
		r, err := a.do(args{"url": "http://www.example.com/endless", "stream": true})
		if err != nil || r.Stream == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		<-began
		f.sys.Stop(a.ref)
		<-ended
	})
	t.Run("the stream is closed", func(t *testing.T) {
		a := f.actor(g, service.Bounds{})
		r, err := a.do(args{"url": "http://www.example.com/endless", "stream": true})
		if err != nil || r.Stream == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		<-began
		if _, err := a.order(order{To: r.Stream, Op: "close"}); err != nil {
			t.Error(err)
		}
		<-ended
	})
	t.Run("a body stands still", func(t *testing.T) {
		g := g
		g.Idle = time.Second
		a := f.actor(g, service.Bounds{})
		r, err := a.do(args{"url": "http://www.example.com/endless", "stream": true})
		if err != nil || r.Stream == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		<-began
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					f.clock.Advance(time.Second)
				}
			}
		}()
		defer close(stop)
		// A read that comes after the end finds nobody.
		if _, err := a.read(r.Stream); err == nil || !strings.HasPrefix(err.Error(), "timeout: ") && !strings.Contains(err.Error(), "no such actor") {
			t.Error(err)
		}
		<-ended
	})
	t.Run("the service is closing", func(t *testing.T) {
		a := f.actor(g, service.Bounds{Timeout: time.Hour})
		r, err := a.do(args{"url": "http://www.example.com/endless", "stream": true})
		if err != nil || r.Stream == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		go func() { _, _ = a.do(args{"url": "http://www.example.com/"}) }()
		<-began
		<-began
		_ = f.sys.Close(context.Background())
		<-ended
		<-ended
	})
}

// A tell is done like an ask, and its answer is nobody's.
func TestTell(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	var n atomic.Int32
	w.serve(public+":80", func(w http.ResponseWriter, r *http.Request) { n.Add(1); _, _ = io.WriteString(w, "x") })
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{})
	if err := f.sys.Tell(a.ref, order{Op: "do", Args: args{"url": "http://www.example.com/"}, Tell: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the request", func() bool { return n.Load() == 1 && f.running.Busy() == 0 })
	a.get("http://www.example.com/")
	if d := w.dials(); d != public+":80" {
		t.Errorf("the connection was not used again: %s", d)
	}
}
