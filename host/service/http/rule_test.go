package httpclient

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/host/service"
	"pgregory.net/rapid"
)

func TestTargets(t *testing.T) {
	for raw, want := range map[string]string{
		"https://example.com":                    "https://example.com/",
		"HTTPS://EXAMPLE.com:443/a?b=c#d":        "https://example.com/a?b=c",
		"http://example.com:80/a%2Fb":            "http://example.com/a%2Fb",
		"http://example.com.:8080/":              "http://example.com:8080/",
		"https://bücher.example/":                "https://xn--bcher-kva.example/",
		"https://ｅｘａｍｐｌｅ.com/":                   "https://example.com/",
		"https://example。com/":                   "https://example.com/",
		"https://１２７.0.0.1/":                     "https://127.0.0.1/",
		"https://[::FFFF:127.0.0.1]/":            "https://127.0.0.1/",
		"https://[2001:DB8::1]:8443/":            "https://[2001:db8::1]:8443/",
		"https://example.com/ü?q=ü":              "https://example.com/%C3%BC?q=%C3%BC",
		"https://example.com?q":                  "https://example.com/?q",
		"https://127.0.0.1/":                     "https://127.0.0.1/",
		"https://a_b.example.com/x/../y":         "https://a_b.example.com/x/../y",
		"https://xn--bcher-kva.example:443/":     "https://xn--bcher-kva.example/",
		"https://1e100.net/":                     "https://1e100.net/",
		"https://0xcafe.example/":                "https://0xcafe.example/",
		"https://example.com/%2e%2e/%c3%bc":      "https://example.com/%2e%2e/%c3%bc",
		"https://example.com//evil.example/path": "https://example.com//evil.example/path",
	} {
		got, err := parseTarget(raw)
		if err != nil || got.url.String() != want {
			t.Errorf("%s: %v, %v", raw, got, err)
			continue
		}
		again, err := parseTarget(got.url.String())
		if err != nil || again.url.String() != want {
			t.Errorf("%s is not the end: %v, %v", want, again, err)
		}
	}
}

func TestBadTargets(t *testing.T) {
	for _, raw := range []string{
		"", "example.com", "//example.com/", "ftp://example.com/", "file:///etc/passwd", "https:example.com", "https:///path", "https://",
		"https://user@example.com/", "https://user:pw@example.com/", "https://granted.example@evil.example/", "https://@example.com/",
		"https://example.com\\@evil.example/", "https:\\\\example.com/", "https://example.com/a b", "https://example.com/a\r\nX: y", "https://example.com/\x00",
		"https://exam%70le.com/", "https://example%2ecom/", "https://example.com%00.evil.example/", "https://example.com%2f.evil.example/",
		"https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://127.1/", "https://0177.0.0.1/", "https://127.0.0.01/", "https://256.1.1.1/", "https://1.2.3.4.5/",
		"https://017700000001/", "https://127.0.0.1.0x0/", "https://0x/", "https://１２７.1/",
		"https://[fe80::1%25eth0]/", "https://[fe80::1%eth0]/", "https://[::1/", "https://::1/", "https://[example.com]/", "https://[v1.a]/",
		"https://example.com:/", "https://example.com:0/", "https://example.com:65536/", "https://example.com:-1/", "https://example.com:http/",
		"https://.example.com/", "https://example..com/", "https://example.com../", "https://./", "https://" + strings.Repeat("a", 64) + ".com/",
		"https://" + strings.Repeat("a.", 130) + "com/", "https://exa$mple.com/", "https://exa*mple.com/", "https://a!b/", "https://a,b/", "https://a;b/",
		"https://a\u00adb.example\u2024/ ", "https://\u2488com/", "https://example.com/" + strings.Repeat("x", MaxURL),
	} {
		if got, err := parseTarget(raw); err == nil {
			t.Errorf("%q is %v", raw, got.url)
		} else if code := service.CodeOf(err); code != service.BadRequest && code != service.TooLarge {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestHostPatterns(t *testing.T) {
	for _, row := range []struct{ pattern, yes, no string }{
		{"example.com", "https://example.com/ https://EXAMPLE.com.:443/", "http://example.com/ https://example.com:8443/ https://www.example.com/ https://example.com.evil.example/ https://evilexample.com/"},
		{"http://example.com", "http://example.com/ http://example.com:80/", "https://example.com/ http://example.com:443/"},
		{"example.com:8443", "https://example.com:8443/", "https://example.com/"},
		{"example.com:*", "https://example.com:8443/ https://example.com/", "http://example.com/"},
		{"*.example.com", "https://www.example.com/ https://a.b.example.com/", "https://example.com/ https://wwwexample.com/ https://www.example.com.evil.example/"},
		{"*", "https://example.com/ https://1.1.1.1/", "http://example.com/ https://example.com:8443/"},
		{"http://*:*", "http://example.com:1/", "https://example.com/"},
		{"10.0.0.1", "https://10.0.0.1/ https://[::ffff:10.0.0.1]/", "https://10.0.0.2/"},
		{"[2001:db8::1]:8443", "https://[2001:db8:0::1]:8443/", "https://[2001:db8::1]/"},
		{"2606:4700::1111", "https://[2606:4700::1111]/", "https://[2606:4700::1112]/"},
		{"bücher.example", "https://xn--bcher-kva.example/ https://BÜCHER.example/", "https://bucher.example/"},
		{"Example.COM.", "https://example.com/", "https://example.org/"},
	} {
		p, err := parseHost(row.pattern)
		if err != nil {
			t.Errorf("%s: %v", row.pattern, err)
			continue
		}
		for raw := range strings.FieldsSeq(row.yes) {
			if to, err := parseTarget(raw); err != nil || !p.match(to) {
				t.Errorf("%s does not match %s: %v", row.pattern, raw, err)
			}
		}
		for raw := range strings.FieldsSeq(row.no) {
			if to, err := parseTarget(raw); err != nil || p.match(to) {
				t.Errorf("%s matches %s: %v", row.pattern, raw, err)
			}
		}
	}
	for _, s := range []string{
		"", "ftp://a", "https://", "a/b", "a?b", "a#b", "user@a", "a\\b", "*a.com", "a.*.com", "*.", "*.*", "*.10.0.0.1", "a:", "a:0", "a:65536", "a:x", "[a]", "[::1", "127.1", "a..b", "a b", "::1%eth0",
	} {
		if p, err := parseHost(s); err == nil {
			t.Errorf("%q is %+v", s, p)
		}
	}
}

func TestRules(t *testing.T) {
	g := Grant{
		Hosts: []string{"api.example"}, Methods: []string{"GET", "POST"}, Paths: []string{"/v1/users/*", "/v1/files/**"}, Headers: []string{"Authorization", "x-*"},
		Rules: []Rule{
			{Hosts: []string{"*.cdn.example"}},
			{Hosts: []string{"open.example"}, Methods: []string{"*"}, Headers: []string{"*"}},
			{Hosts: []string{"exact.example"}, Headers: []string{"x-http-method-override", "x-forwarded-for"}},
		},
	}
	p, err := g.compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		method, url, header string
		rule                int
		key                 string
	}{
		{"GET", "https://api.example/v1/users/7", "", 0, ""},
		{"GET", "https://api.example/v1/users/7?x=../..", "authorization", 0, ""},
		{"POST", "https://api.example/v1/files/a/b/c", "X-Api-Key", 0, ""},
		{"GET", "https://api.example/v1/users/%C3%BC", "accept", 0, ""},
		{"GET", "https://api.example/v1/%75sers/7", "", 0, ""}, // the same path in another spelling
		{"PUT", "https://api.example/v1/users/7", "", 0, "methods"},
		{"get", "https://api.example/v1/users/7", "", 0, "methods"},
		{"GET", "https://api.example/v1/users", "", 0, "paths"},
		{"GET", "https://api.example/v1/users/7/8", "", 0, "paths"},
		{"GET", "https://api.example/V1/users/7", "", 0, "paths"},
		{"GET", "https://api.example/", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/../admin", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/%2e%2e/admin", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/%2E./admin", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/..;x/admin", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/..%3bx/admin", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/a%2f..%2fadmin", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/a%5cb", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/%252e%252e/admin", "", 0, "paths"},
		{"GET", "https://api.example/v1/files//admin", "", 0, "paths"},
		{"GET", "https://api.example//v1/files/a", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/a%00", "", 0, "paths"},
		{"GET", "https://api.example/v1/files/a%0d%0aX", "", 0, "paths"},
		{"GET", "https://api.example/v1/users/7", "cookie", 0, "headers"},
		{"GET", "https://api.example/v1/users/7", "x-http-method-override", 0, "headers"},
		{"GET", "https://api.example/v1/users/7", "X-Forwarded-For", 0, "headers"},
		{"GET", "https://a.cdn.example/any/../path", "", 1, ""},
		{"POST", "https://a.cdn.example/", "", 0, "methods"},
		{"GET", "https://a.cdn.example/", "authorization", 0, "headers"},
		{"PROPFIND", "https://open.example/", "cookie", 2, ""},
		{"GET", "https://open.example/", "x-original-url", 0, "headers"},
		{"GET", "https://exact.example/", "x-forwarded-for", 3, ""},
		{"GET", "https://evil.example/", "", 0, "hosts"},
		{"GET", "http://api.example/v1/users/7", "", 0, "hosts"},
	} {
		to, err := parseTarget(row.url)
		if err != nil {
			t.Errorf("%s: %v", row.url, err)
			continue
		}
		h := http.Header{}
		if row.header != "" {
			h.Set(row.header, "v")
		}
		n, err := p.find(row.method, to, h)
		denied, _ := as[*service.Error](err)
		switch {
		case row.key == "" && (err != nil || n != row.rule):
			t.Errorf("%s %s %s: rule %d, %v", row.method, row.url, row.header, n, err)
		case row.key != "" && (denied == nil || denied.Code != service.Denied || denied.Key != row.key):
			t.Errorf("%s %s %s: rule %d, %v, want %s", row.method, row.url, row.header, n, err, row.key)
		}
	}
}

func TestBadGrants(t *testing.T) {
	for _, row := range []struct {
		grant Grant
		want  string
	}{
		{Grant{}, "hosts: name at least one"},
		{Grant{Hosts: []string{"a.example", "b/c"}}, "hosts[1]:"},
		{Grant{Hosts: []string{"http://127.0.0.1:8080"}}, "hosts[0]: 127.0.0.1 is not public but loopback"},
		{Grant{Hosts: []string{"localhost"}}, "hosts[0]: 127.0.0.1 is not public"},
		{Grant{Hosts: []string{"169.254.169.254"}, Private: []string{"link-local"}}, "not public but metadata"},
		{Grant{Hosts: []string{"a.example"}, Methods: []string{"get"}}, "methods[0]:"},
		{Grant{Hosts: []string{"a.example"}, Methods: []string{"GET", "CONNECT"}}, "methods[1]:"},
		{Grant{Hosts: []string{"a.example"}, Methods: []string{"TRACE"}}, "methods[0]:"},
		{Grant{Hosts: []string{"a.example"}, Paths: []string{"v1"}}, "paths[0]:"},
		{Grant{Hosts: []string{"a.example"}, Paths: []string{"/v1/**/a"}}, "paths[0]:"},
		{Grant{Hosts: []string{"a.example"}, Paths: []string{"/a%20b"}}, "paths[0]:"},
		{Grant{Hosts: []string{"a.example"}, Headers: []string{"host"}}, "headers[0]:"},
		{Grant{Hosts: []string{"a.example"}, Headers: []string{"Transfer-Encoding"}}, "headers[0]:"},
		{Grant{Hosts: []string{"a.example"}, Headers: []string{"proxy-authorization"}}, "headers[0]:"},
		{Grant{Hosts: []string{"a.example"}, Headers: []string{"a b"}}, "headers[0]:"},
		{Grant{Hosts: []string{"a.example"}, Private: []string{"10.0.0.0"}, Rules: []Rule{{Hosts: []string{"b.example"}, Private: []string{"x"}}}}, "rules[0]: private[0]:"},
		{Grant{Methods: []string{"POST"}, Rules: []Rule{{Hosts: []string{"b.example"}}}}, "hosts: methods, paths"},
	} {
		if err := checkGrant(&row.grant); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %s", row.grant, err, row.want)
		}
	}
	for _, g := range []Grant{
		{Hosts: []string{"a.example"}}, {Rules: []Rule{{Hosts: []string{"a.example"}}}},
		{Hosts: []string{"http://127.0.0.1:8080"}, Private: []string{"127.0.0.1"}}, {Hosts: []string{"http://localhost:*"}, Private: []string{"loopback"}},
		{Hosts: []string{"169.254.169.254"}, Private: []string{"169.254.169.254"}},
	} {
		if err := checkGrant(&g); err != nil {
			t.Errorf("%+v: %v", g, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	to, _ := parseTarget("https://example.com:8443/")
	ok := []Header{{Name: "Accept", Value: "text/html"}, {Name: "accept", Value: "text/plain"}, {Name: "Host", Value: "EXAMPLE.com:8443"}, {Name: "X", Value: "ü\ttab"}}
	h, err := checkHeaders(ok, to)
	if err != nil || len(h["Accept"]) != 2 || h.Get("Host") != "" || h.Get("X") != "ü\ttab" {
		t.Errorf("%v, %v", h, err)
	}
	for _, f := range []Header{
		{Name: "", Value: "x"}, {Name: "a b"}, {Name: "a:b"}, {Name: "a\r\nb"}, {Name: "ü"}, {Name: ":authority", Value: "evil.example"},
		{Name: "x", Value: "a\r\nInjected: 1"}, {Name: "x", Value: "a\nb"}, {Name: "x", Value: "a\rb"}, {Name: "x", Value: "a\x00b"}, {Name: "x", Value: "\x7f"},
		{Name: "host", Value: "evil.example"}, {Name: "Host", Value: ""}, {Name: "HOST", Value: "example.com"},
		{Name: "connection", Value: "close"}, {Name: "Content-Length", Value: "5"}, {Name: "TRANSFER-ENCODING", Value: "chunked"}, {Name: "te", Value: "trailers"},
		{Name: "trailer", Value: "x"}, {Name: "upgrade", Value: "websocket"}, {Name: "Proxy-Authorization", Value: "x"}, {Name: "proxy-connection", Value: "x"},
		{Name: "expect", Value: "100-continue"}, {Name: "keep-alive", Value: "x"}, {Name: "http2-settings", Value: "x"},
	} {
		if h, err := checkHeaders([]Header{f}, to); service.CodeOf(err) != service.BadRequest {
			t.Errorf("%q: %v, %v", f, h, err)
		}
	}
	if _, err := checkHeaders(make([]Header, MaxHeaders+1), to); service.CodeOf(err) != service.TooLarge {
		t.Error(err)
	}
	if _, err := checkHeaders([]Header{{Name: "x", Value: strings.Repeat("x", MaxHeaderBytes)}}, to); service.CodeOf(err) != service.TooLarge {
		t.Error(err)
	}
}

func TestAnsweredHeaders(t *testing.T) {
	list := answered(http.Header{"X-B": {"1", "2"}, "Connection": {"close"}, "Content-Length": {"3"}, "X-A": {"caf\xe9"}, "Transfer-Encoding": {"chunked"}})
	want := []Header{{Name: "content-length", Value: "3"}, {Name: "x-a", Value: "café"}, {Name: "x-b", Value: "1"}, {Name: "x-b", Value: "2"}}
	if len(list) != len(want) {
		t.Fatalf("%q", list)
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("%q, want %q", list[i], want[i])
		}
	}
}

// Whatever is read as a URL has one spelling, and is one that net/url reads the same way.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"https://example.com/a?b#c", "http://[::1]:80/", "https://bücher.example./%2e", "https://127.0.0.1", "https://a@b/", "https://a%41/", "https://0x7f.1/"} {
		f.Add(s, "../x?y")
	}
	f.Fuzz(func(t *testing.T, raw, location string) {
		to, err := parseTarget(raw)
		if err != nil {
			return
		}
		check := func(to *target) {
			s := to.url.String()
			again, err := parseTarget(s)
			if err != nil && len(s) > MaxURL {
				return // escapes have made it longer
			}
			if err != nil || again.url.String() != s || again.origin() != to.origin() {
				t.Fatalf("%q is %q, and that is %v, %v", raw, s, again, err)
			}
			if !ascii(s) || !ascii(to.host) || strings.ToLower(to.host) != to.host || strings.ContainsAny(to.host, "/\\@%[] ") || to.port == 0 {
				t.Fatalf("%q: host %q, port %d, %q", raw, to.host, to.port, s)
			}
			if to.url.Hostname() != to.host {
				t.Fatalf("%q: %q is read as %q", raw, to.host, to.url.Hostname())
			}
		}
		check(to)
		if next, err := to.relative(location); err == nil {
			check(next)
		}
	})
}

// Headers that are taken can be written without making others of them.
func FuzzHeader(f *testing.F) {
	f.Add("x", "a\r\nb: c")
	f.Add("Accept", "ü")
	to, _ := parseTarget("https://example.com/")
	f.Fuzz(func(t *testing.T, name, value string) {
		h, err := checkHeaders([]Header{{Name: name, Value: value}}, to)
		if err != nil || len(h) == 0 {
			return
		}
		var b strings.Builder
		if err := h.Write(&b); err != nil || strings.Count(b.String(), "\n") != 1 {
			t.Fatalf("%q, %v", b.String(), err)
		}
	})
}

// A path that a rule lets through is within it for whoever decodes it once.
func TestSegmentsStayBelow(t *testing.T) {
	pattern, err := parsePath("/v1/**")
	if err != nil {
		t.Fatal(err)
	}
	piece := rapid.SampledFrom([]string{"..", ".", "/", "%2e", "%2E", "%2f", "%5c", "\\", ";", "%3b", "a", "%25", "%00", "v1", "ü", "%c3%bc", "?", "//"})
	rapid.Check(t, func(t *rapid.T) {
		raw := "https://a.example/v1/" + strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "path"), "")
		to, err := parseTarget(raw)
		if err != nil {
			return
		}
		parts, err := segments(to)
		if err != nil || !pattern.Match(parts) {
			return
		}
		decoded := to.url.Path
		if strings.Contains(decoded, "..") && strings.Contains("/"+decoded+"/", "/../") || strings.ContainsAny(decoded, "\\;%\x00") || strings.Contains(decoded, "//") {
			t.Fatalf("%s is let through as %q", raw, decoded)
		}
	})
}

func TestTextOfHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if s := text(string(rapid.SliceOf(rapid.Byte()).Draw(t, "value"))); !utf8.ValidString(s) {
			t.Fatalf("%q", s)
		}
	})
}
