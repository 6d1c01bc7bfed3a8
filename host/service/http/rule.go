package httpclient

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
	"golang.org/x/net/http/httpguts"
)

// Rule is one set of requests that are granted: a request must fit all of its keys.
type Rule struct {
	Hosts   []string `manifest:"hosts" doc:"where requests may go: [scheme://]host[:port], https by default. *.example.com matches the names below it, * every host. A port may be *" reach:"connect"`
	Methods []string `manifest:"methods" doc:"methods that may be used; default GET and HEAD; * is all" reach:"none"`
	Paths   []string `manifest:"paths" doc:"patterns of paths: * and ? within a segment, ** at the end for all that is below; default: all paths" reach:"none"`
	Headers []string `manifest:"headers" doc:"headers that may be set besides harmless ones such as accept and content-type, as patterns: authorization, x-*" reach:"none"`
	Private []string `manifest:"private" doc:"addresses and networks that may be reached although they are not public: 10.1.0.0/16, ::1, or loopback, private, link-local, shared" reach:"connect"`
}

// rule is a compiled Rule.
type rule struct {
	hosts   []hostPattern
	methods []string // nil: all
	paths   []pathPattern
	headers []string
	named   egress.Networks
}

// compile checks a rule; errors say which key of it is wrong.
func (r *Rule) compile() (*rule, error) {
	c := &rule{methods: r.Methods}
	if len(r.Hosts) == 0 {
		return nil, service.At("hosts", fmt.Errorf("name at least one host"))
	}
	for i, s := range r.Private {
		n, err := egress.ParseNetwork(s)
		if err != nil {
			return nil, service.At(fmt.Sprintf("private[%d]", i), err)
		}
		c.named = c.named.And(n)
	}
	for i, s := range r.Hosts {
		p, err := parseHost(s)
		if err == nil {
			err = unreachable(p.host, c.named)
		}
		if err != nil {
			return nil, service.At(fmt.Sprintf("hosts[%d]", i), err)
		}
		c.hosts = append(c.hosts, p)
	}
	for i, m := range r.Methods {
		if err := checkMethodOfGrant(m); err != nil {
			return nil, service.At(fmt.Sprintf("methods[%d]", i), err)
		}
	}
	switch {
	case len(c.methods) == 0:
		c.methods = []string{http.MethodGet, http.MethodHead}
	case slices.Contains(c.methods, "*"):
		c.methods = nil
	}
	for i, s := range r.Paths {
		p, err := parsePath(s)
		if err != nil {
			return nil, service.At(fmt.Sprintf("paths[%d]", i), err)
		}
		c.paths = append(c.paths, p)
	}
	for i, s := range r.Headers {
		low := strings.ToLower(s)
		if !httpguts.ValidHeaderFieldName(strings.Map(func(r rune) rune {
			if r == '*' || r == '?' {
				return 'x'
			}
			return r
		}, s)) {
			return nil, service.At(fmt.Sprintf("headers[%d]", i), fmt.Errorf("%q is not the name of a header, nor a pattern of them", s))
		}
		if slices.Contains(never, low) || low == "host" || strings.HasPrefix(low, "proxy-") {
			return nil, service.At(fmt.Sprintf("headers[%d]", i), fmt.Errorf("the header %s is always the host's", low))
		}
		c.headers = append(c.headers, low)
	}
	return c, nil
}

// unreachable says that a host of a grant, an address or localhost, would be refused by the
// addresses that the grant names.
func unreachable(host string, named egress.Networks) error {
	if host == "localhost" {
		host = "127.0.0.1"
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	var j egress.Judge
	if c := j.Class(a); c != egress.Public && !named.Names(a, c) {
		return fmt.Errorf("%s is not public but %s, and is refused unless the key private names it", host, c)
	}
	return nil
}

func checkMethodOfGrant(m string) error {
	switch {
	case m == "*":
		return nil
	case !httpguts.ValidHeaderFieldName(m) || m != strings.ToUpper(m):
		return fmt.Errorf("%q is not a method: they are written in capital letters", m)
	}
	return checkMethod(m)
}

// checkMethod refuses what no guest may use.
func checkMethod(m string) error {
	switch {
	case !httpguts.ValidHeaderFieldName(m):
		return service.Errorf(service.BadRequest, "%.40q is not a method", m)
	case strings.EqualFold(m, http.MethodConnect), strings.EqualFold(m, http.MethodTrace):
		return service.Errorf(service.BadRequest, "the method %s is not for guests", m)
	}
	return nil
}

// refusal says why a rule does not cover a request.
type refusal struct {
	step int // keys that it fits
	key  string
	text string
}

// covers says why a rule does not cover a request, nil if it does.
func (r *rule) covers(method string, t *target, h http.Header) *refusal {
	if !slices.ContainsFunc(r.hosts, func(p hostPattern) bool { return p.match(t) }) {
		return &refusal{0, "hosts", t.origin() + " is not granted"}
	}
	if r.methods != nil && !slices.Contains(r.methods, method) {
		return &refusal{1, "methods", fmt.Sprintf("the method %.40s is not granted for %s", method, t.origin())}
	}
	if r.paths != nil {
		parts, err := segments(t)
		if err != nil {
			return &refusal{2, "paths", "only some paths are granted, and servers differ in how they read this one: " + err.Error()}
		}
		if !matchAny(r.paths, parts) {
			return &refusal{2, "paths", fmt.Sprintf("the path %.200s is not granted for %s", t.url.RawPath, t.origin())}
		}
	}
	for _, name := range sortedNames(h) {
		if low := strings.ToLower(name); !mayHave(r.headers, low) {
			return &refusal{3, "headers", fmt.Sprintf("the header %.60s is not granted for %s", low, t.origin())}
		}
	}
	return nil
}

func matchAny(patterns []pathPattern, parts []string) bool {
	return slices.ContainsFunc(patterns, func(p pathPattern) bool { return p.Match(parts) })
}

// permits is a compiled grant.
type permits struct {
	rules []*rule
}

// find returns the number of the first rule that covers a request, or the refusal of the rule
// that fits best.
func (p *permits) find(method string, t *target, h http.Header) (int, error) {
	var best *refusal
	for i, r := range p.rules {
		no := r.covers(method, t, h)
		if no == nil {
			return i, nil
		}
		if best == nil || no.step > best.step {
			best = no
		}
	}
	if best == nil {
		return 0, service.Deny("hosts", "no host is granted")
	}
	return 0, service.Deny(best.key, "%s", best.text)
}
