package httpclient

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
)

// MaxURL is how long a URL may be, in bytes.
const MaxURL = 8 << 10

// target is a URL in canonical form, which is compared with grants and requested.
type target struct {
	url    *url.URL
	scheme string // http or https
	host   string // name in small letters without a final dot, or an address without brackets
	port   uint16
}

// parseTarget reads a URL. What parsers could understand differently is refused: white space,
// backslashes, users, escapes in hosts, numbers in a host that is no IPv4 address in its usual
// form, zones.
func parseTarget(raw string) (*target, error) {
	if err := plain(raw); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, badURL("%s", reason(err))
	}
	return newTarget(u)
}

// plain refuses characters that no URL has, before it is parsed.
func plain(raw string) error {
	if len(raw) > MaxURL {
		return service.Errorf(service.TooLarge, "the URL has %d bytes, at most %d", len(raw), MaxURL)
	}
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c == 0x7f || c == '\\' {
			return badURL("it has the character %q", c)
		}
	}
	return nil
}

// relative resolves a Location.
func (t *target) relative(location string) (*target, error) {
	if err := plain(location); err != nil {
		return nil, err
	}
	u, err := t.url.Parse(location)
	if err != nil {
		return nil, badURL("%s", reason(err))
	}
	return newTarget(u)
}

// newTarget makes a target from a parsed URL.
func newTarget(u *url.URL) (*target, error) {
	t := &target{scheme: u.Scheme}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, badURL("it begins with http:// or https://")
	case u.Opaque != "":
		return nil, badURL("it has no //")
	case u.User != nil:
		return nil, badURL("it has a user; credentials go into the header authorization")
	case strings.HasSuffix(u.Host, ":"):
		return nil, badURL("the port is empty")
	}
	var err error
	if t.host, err = canonicalHost(u.Hostname()); err != nil {
		return nil, err
	}
	if strings.HasPrefix(u.Host, "[") != strings.Contains(u.Hostname(), ":") {
		return nil, badURL("only an IPv6 address may be in brackets")
	}
	if t.port, err = portOf(u.Scheme, u.Port()); err != nil {
		return nil, err
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if path[0] != '/' {
		return nil, badURL("its path does not begin with /")
	}
	t.url = &url.URL{Scheme: t.scheme, Host: t.authority(), RawQuery: escapeRest(u.RawQuery)}
	if t.url.Path, err = url.PathUnescape(path); err != nil {
		return nil, badURL("%s", reason(err))
	}
	t.url.RawPath = path
	return t, nil
}

func badURL(format string, args ...any) error {
	e := service.Errorf(service.BadRequest, format, args...)
	e.Text = "the URL: " + e.Text
	return e
}

// reason is what is wrong with a URL, without the URL.
func reason(err error) string {
	if u, ok := err.(*url.Error); ok {
		err = u.Err
	}
	return err.Error()
}

func portOf(scheme, port string) (uint16, error) {
	if port == "" {
		return defaultPort(scheme), nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return 0, badURL("the port %.20q is not a number from 1 to 65535", port)
	}
	return uint16(n), nil
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// authority is host and port, as in the header Host: the port of the scheme is left out.
func (t *target) authority() string {
	host := t.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.port == defaultPort(t.scheme) {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.port))
}

// origin is what a connection is made for: scheme://host:port.
func (t *target) origin() string {
	return t.scheme + "://" + net.JoinHostPort(t.host, strconv.Itoa(int(t.port)))
}

// canonicalHost is [egress.Host].
func canonicalHost(h string) (string, error) {
	name, err := egress.Host(h)
	if err != nil {
		return "", badURL("%s", err)
	}
	return name, nil
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// escapeRest escapes what is not ASCII in a query.
func escapeRest(s string) string {
	if ascii(s) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < 0x80 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c), 16)))
		}
	}
	return b.String()
}
