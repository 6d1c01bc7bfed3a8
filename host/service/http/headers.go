package httpclient

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/glob"
	"golang.org/x/net/http/httpguts"
)

// Bounds of the headers of a request.
const (
	MaxHeaders     = 64
	MaxHeaderBytes = 16 << 10
)

// Header is a name and a value, in the order of the wire.
type Header struct {
	_     struct{} `cbor:",toarray"`
	Name  string
	Value string
}

// harmless are headers that every guest may set.
var harmless = []string{
	"accept", "accept-encoding", "accept-language", "cache-control", "content-encoding", "content-language", "content-type",
	"if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "idempotency-key", "pragma", "range", "user-agent",
}

// never are headers that belong to the connection, or that the host sets.
var never = []string{
	"connection", "content-length", "expect", "http2-settings", "keep-alive", "proxy-*", "te", "trailer", "transfer-encoding", "upgrade",
}

// alone are headers that change the meaning of a request for some servers, so that they could
// bypass the rules for methods, paths and hosts: a pattern with a * does not cover them.
var alone = []string{
	"x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url", "x-forwarded-*", "forwarded",
	"x-original-host", "x-host", "x-real-ip",
}

// travels are headers that are sent on after a redirect to another origin.
var travels = []string{"accept", "accept-encoding", "accept-language", "user-agent", "range", "traceparent", "tracestate"}

// of the body: sent with it.
var ofBody = []string{"content-type", "content-encoding", "content-language"}

// checkHeaders reads the headers of a request: headers that no request may have are refused here,
// those that need a grant by the rule.
func checkHeaders(list []Header, t *target) (http.Header, error) {
	if len(list) > MaxHeaders {
		return nil, service.Errorf(service.TooLarge, "the request has %d headers, at most %d", len(list), MaxHeaders)
	}
	h, bytes := http.Header{}, 0
	for _, f := range list {
		bytes += len(f.Name) + len(f.Value)
		name := strings.ToLower(f.Name)
		switch {
		case bytes > MaxHeaderBytes:
			return nil, service.Errorf(service.TooLarge, "the headers have more than %d bytes", MaxHeaderBytes)
		case !httpguts.ValidHeaderFieldName(f.Name):
			return nil, service.Errorf(service.BadRequest, "%.60q is not the name of a header", f.Name)
		case !httpguts.ValidHeaderFieldValue(f.Value):
			return nil, service.Errorf(service.BadRequest, "the value of %.60q has characters that a header cannot have", f.Name)
		case name == "host":
			if !strings.EqualFold(f.Value, t.authority()) && !strings.EqualFold(f.Value, t.url.Host) {
				return nil, service.Errorf(service.BadRequest, "the header host is not the URL's %s", t.authority())
			}
			continue
		case glob.MatchAny(never, name):
			return nil, service.Errorf(service.BadRequest, "the header %s is the connection's: the host sets it", name)
		}
		h.Add(f.Name, f.Value)
	}
	return h, nil
}

// mayHave reports whether patterns cover the name of a header.
func mayHave(patterns []string, name string) bool {
	for _, p := range patterns {
		if p == name || glob.Match(p, name) && !glob.MatchAny(alone, name) {
			return true
		}
	}
	return glob.MatchAny(harmless, name)
}

// keepOnly drops the headers that must not be sent to another origin.
func keepOnly(h http.Header, names []string) {
	for name := range h {
		if !glob.MatchAny(names, strings.ToLower(name)) {
			delete(h, name)
		}
	}
}

// answered lists the headers of an answer: names in small letters, sorted, the values of one
// name in the order of the wire. Those of the connection are left out.
func answered(h http.Header) []Header {
	var list []Header
	for _, name := range sortedNames(h) {
		low := strings.ToLower(name)
		if low != "content-length" && low != "trailer" && glob.MatchAny(never, low) {
			continue
		}
		for _, v := range h[name] {
			list = append(list, Header{Name: low, Value: text(v)})
		}
	}
	return list
}

func sortedNames(h http.Header) []string { return slices.Sorted(maps.Keys(h)) }

// text is a value of a header as a text: what is not UTF-8 is read as ISO 8859-1.
func text(v string) string {
	if utf8.ValidString(v) {
		return v
	}
	var b strings.Builder
	for i := range len(v) {
		b.WriteRune(rune(v[i]))
	}
	return b.String()
}
