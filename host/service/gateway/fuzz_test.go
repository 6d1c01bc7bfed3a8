package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
)

// Whatever a guest answers, what is taken over of it is valid HTTP.
func FuzzHTTPAnswer(f *testing.F) {
	for _, v := range []any{[]any{200, nil, "x"}, []any{204, []string{"a", "b"}, nil}, []any{200, []string{"content-length", "1"}, []byte("x")}, []any{200, nil, map[string]any{"stream": 1}}} {
		b, err := host.Encode(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var a answer
		h := http.Header{}
		if a.decode(payload, h) != nil {
			return
		}
		if a.status < 200 || a.status > 599 {
			t.Error(a.status)
		}
		for name, values := range h {
			if middleware.HopByHop[name] || !middleware.ValidName(name) {
				t.Errorf("%q", name)
			}
			for _, v := range values {
				if strings.ContainsAny(v, "\r\n\x00") {
					t.Errorf("%q", v)
				}
			}
		}
	})
}

// A path that is let through is one that ServeMux does not clean.
func FuzzRequestPath(f *testing.F) {
	for _, p := range []string{"/", "/a/b", "/a//b", "/%2e%2e/x", "/a%2fb", "/a/../b", "/%00", "/a/."} {
		f.Add(p)
	}
	mux := http.NewServeMux()
	mux.Handle("/{rest...}", http.NotFoundHandler())
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/") || pathMistake(u.Path, u.EscapedPath()) != "" {
			return
		}
		r := &http.Request{Method: "GET", URL: u, Host: "x"}
		if _, pattern := mux.Handler(r); pattern != "/{rest...}" {
			t.Errorf("%q: %q", path, pattern)
		}
		w := carrier{header: http.Header{}}
		mux.ServeHTTP(&w, r)
		if w.status == 301 || w.status == 307 {
			t.Errorf("%q is redirected", path)
		}
		if !utf8.ValidString(r.PathValue("rest")) {
			t.Errorf("%q", r.PathValue("rest"))
		}
	})
}

// Names of actors on demand are valid ones.
func FuzzNameOnDemand(f *testing.F) {
	f.Add("a")
	f.Fuzz(func(t *testing.T, value string) {
		for _, tmpl := range []template{{"room-", "", 0}, {"", "", 0}, {"", "-x", 0}} {
			if name, ok := tmpl.fill(value); ok && (strings.ContainsAny(name, "/{}*? ") || name == "." || name == "..") {
				t.Errorf("%q", name)
			}
		}
	})
}

// ServeMux's rules of pattern are those that check refuses the rest of.
func FuzzRoutePattern(f *testing.F) {
	for _, p := range []string{"GET /a/{b}", "/{a...}", "a.example/", "/{$}", "/{a}b", "GET  /", ""} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if register(http.NewServeMux(), pattern, http.NotFoundHandler()) == nil {
			for _, w := range wildcardsOf(pattern) {
				if w.name == "" {
					t.Errorf("%q has a wildcard without a name", pattern)
				}
			}
		}
	})
}
