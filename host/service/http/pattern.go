package httpclient

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/internal/glob"
)

// hostPattern is one entry of the key hosts: [scheme://]host[:port].
type hostPattern struct {
	scheme string
	host   string // exact; "" with suffix or any
	suffix string // of *.example.com: .example.com
	any    bool   // *
	port   uint16 // 0: any
}

// parseHost reads a pattern. Without a scheme it is https, without a port that of the scheme.
// The host is a name, an address, *.example.com for all names below, or * for all.
func parseHost(s string) (hostPattern, error) {
	p := hostPattern{scheme: "https"}
	rest := s
	if scheme, after, ok := strings.Cut(s, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return p, fmt.Errorf("%q: the scheme is http or https", s)
		}
		p.scheme, rest = scheme, after
	}
	if i := strings.IndexAny(rest, "/?#@\\"); i >= 0 {
		return p, fmt.Errorf("%q: only a port may follow the host; paths have their own key", s)
	}
	host, port := rest, ""
	if _, err := netip.ParseAddr(rest); err != nil { // an IPv6 address may be without brackets
		if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.HasSuffix(rest, "]") {
			host, port = rest[:i], rest[i+1:]
			if port == "" {
				return p, fmt.Errorf("%q: the port is empty", s)
			}
		}
	}
	switch port {
	case "":
		p.port = defaultPort(p.scheme)
	case "*":
	default:
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return p, fmt.Errorf("%q: a port is a number from 1 to 65535, or *", s)
		}
		p.port = uint16(n)
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
		if !strings.Contains(host, ":") {
			return p, fmt.Errorf("%q: only an IPv6 address may be in brackets", s)
		}
	}
	switch suffix, wild := strings.CutPrefix(host, "*."); {
	case host == "*":
		p.any = true
		return p, nil
	case wild:
		name, err := canonicalHost(suffix)
		if err != nil || strings.Contains(name, ":") || isAddress(name) {
			return p, fmt.Errorf("%q: a name must follow *.", s)
		}
		p.suffix = "." + name
		return p, nil
	case strings.Contains(host, "*"):
		return p, fmt.Errorf("%q: * must stand alone, or for the whole beginning, as in *.example.com", s)
	}
	name, err := canonicalHost(host)
	if err != nil {
		return p, fmt.Errorf("%q is not a host: %s", s, textOf(err))
	}
	p.host = name
	return p, nil
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// match reports whether the pattern covers a target. An address is covered only by itself,
// or by *.
func (p *hostPattern) match(t *target) bool {
	if p.scheme != t.scheme || p.port != 0 && p.port != t.port {
		return false
	}
	switch {
	case p.any:
		return true
	case p.suffix != "":
		return len(t.host) > len(p.suffix) && strings.HasSuffix(t.host, p.suffix)
	}
	return p.host == t.host
}

// pathPattern is one entry of the key paths.
type pathPattern = glob.Path

// parsePath reads a pattern of paths: segments with * for any run of characters and ? for
// one, and ** as the last segment for all that is below.
func parsePath(s string) (pathPattern, error) {
	switch {
	case !strings.HasPrefix(s, "/"):
		return pathPattern{}, fmt.Errorf("%q: a path begins with /", s)
	case strings.Contains(strings.TrimSuffix(s, "/**"), "**"):
		return pathPattern{}, fmt.Errorf("%q: ** is the whole last segment", s)
	case strings.Contains(s, "//"), strings.ContainsAny(s, "\\%#;"):
		return pathPattern{}, fmt.Errorf("%q: segments are not empty, and without \\ %% # ;", s)
	}
	return glob.CompilePath(s), nil
}

// segments splits the path of a target, for patterns. It fails for paths that servers understand
// differently: with dots as segments, empty segments, escaped slashes, escapes within escapes,
// parameters.
func segments(t *target) ([]string, error) {
	raw := t.url.RawPath
	for i := 0; i+2 < len(raw); i++ {
		if raw[i] == '%' {
			switch strings.ToLower(raw[i+1 : i+3]) {
			case "2f", "5c", "25", "00", "3b":
				return nil, fmt.Errorf("it has the escape %s", raw[i:i+3])
			}
		}
	}
	if i := strings.IndexAny(raw, ";\\"); i >= 0 {
		return nil, fmt.Errorf("it has the character %q", raw[i])
	}
	parts := strings.Split(strings.TrimPrefix(t.url.Path, "/"), "/")
	for i, part := range parts {
		switch {
		case part == "." || part == "..":
			return nil, fmt.Errorf("it has the segment %s", part)
		case part == "" && i < len(parts)-1:
			return nil, fmt.Errorf("it has an empty segment")
		}
		for j := range len(part) {
			if part[j] < ' ' || part[j] == 0x7f {
				return nil, fmt.Errorf("it has control characters")
			}
		}
	}
	return parts, nil
}
