// Package endpoint is what the sockets of guests may reach: which servers an actor may connect to, and on which addresses it may
// listen. The services tcp and udp share it.
package endpoint

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
)

// Permits are the endpoints of a grant, compiled. They are immutable.
type Permits struct {
	connect []pattern
	listen  []place
	private egress.Networks
}

// pattern is an entry of the key connect.
type pattern struct {
	unix   string // the path of a socket; the rest is empty
	any    bool
	host   string // a name; "" with suffix, networks or any
	suffix string // of *.example.com: .example.com
	nets   egress.Networks
	port   uint16 // 0: any
}

// place is an entry of the key listen.
type place struct {
	unix string
	host string // an address; "": all addresses of this machine
	port uint16
	any  bool // any port
}

// Compile reads the keys connect, listen and private of a grant. Sockets of files are for TCP only.
func Compile(connect, listen, private []string, files bool) (*Permits, error) {
	p := &Permits{}
	for i, s := range private {
		n, err := egress.ParseNetwork(s)
		if err != nil {
			return nil, service.At(fmt.Sprintf("private[%d]", i), err)
		}
		p.private = p.private.And(n)
	}
	for i, s := range connect {
		x, err := parsePattern(s, files)
		if err != nil {
			return nil, service.At(fmt.Sprintf("connect[%d]", i), err)
		}
		p.connect = append(p.connect, x)
	}
	for i, s := range listen {
		x, err := parsePlace(s, files)
		if err != nil {
			return nil, service.At(fmt.Sprintf("listen[%d]", i), err)
		}
		p.listen = append(p.listen, x)
	}
	if len(connect) == 0 && len(private) > 0 {
		return nil, service.At("private", errors.New("it says where names of connect may lead, and connect is empty"))
	}
	return p, nil
}

const scheme = "unix:"

// file reads unix:path.
func file(s string, files bool) (path string, ok bool, err error) {
	path, ok = strings.CutPrefix(s, scheme)
	switch {
	case !ok:
		return "", false, nil
	case !files:
		return "", true, errors.New("sockets of files are for TCP")
	case !filepath.IsLocal(filepath.FromSlash(path)) || path == "." || strings.ContainsRune(path, 0):
		return "", true, fmt.Errorf("%.80q is not a path within the bundle's folder", path)
	}
	return filepath.Clean(filepath.FromSlash(path)), true, nil
}

// split takes host:port apart. An IPv6 address is in brackets.
func split(s string) (host, port string, err error) {
	if slash := strings.LastIndexByte(s, '/'); slash >= 0 { // a network, whose brackets may be left out
		colon := strings.LastIndexByte(s, ':')
		if colon < slash {
			return "", "", fmt.Errorf("%.80q has no port: write %.80s:PORT, or %.80s:*", s, s, s)
		}
		return strings.Trim(s[:colon], "[]"), s[colon+1:], nil
	}
	host, port, err = net.SplitHostPort(s)
	if err != nil {
		return "", "", fmt.Errorf("%.80q is not host:port", s)
	}
	return host, port, nil
}

func parsePort(s string, least int) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || int(n) < least {
		return 0, fmt.Errorf("the port %.20q is not a number from %d to 65535", s, least)
	}
	return uint16(n), nil
}

func parsePattern(s string, files bool) (p pattern, err error) {
	var isFile bool
	if p.unix, isFile, err = file(s, files); isFile || err != nil {
		return p, err
	}
	host, port, err := split(s)
	if err != nil {
		return p, err
	}
	if port != "*" {
		if p.port, err = parsePort(port, 1); err != nil {
			return p, fmt.Errorf("%w, or *", err)
		}
	}
	if suffix, wild := strings.CutPrefix(host, "*."); wild {
		name, err := egress.Host(suffix)
		if _, bad := netip.ParseAddr(name); err != nil || bad == nil {
			return p, fmt.Errorf("%.80q: a name must follow *.", s)
		}
		p.suffix = "." + name
		return p, nil
	}
	if strings.Contains(host, "/") {
		p.nets, err = egress.ParseNetwork(host)
		return p, err
	}
	if host == "*" {
		p.any = true
		return p, nil
	}
	if p.host, err = egress.Host(host); err != nil {
		return p, fmt.Errorf("%.80q: %w", s, err)
	}
	if a, err := netip.ParseAddr(p.host); err == nil {
		p.host = ""
		p.nets, err = egress.ParseNetwork(a.String())
		return p, err
	}
	if p.host == "localhost" {
		p.nets, err = egress.ParseNetwork("loopback")
	}
	return p, err
}

func parsePlace(s string, files bool) (p place, err error) {
	var isFile bool
	if p.unix, isFile, err = file(s, files); isFile || err != nil {
		return p, err
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return p, fmt.Errorf("%.80q is not host:port", s)
	}
	if p.any = port == "*"; !p.any {
		if p.port, err = parsePort(port, 0); err != nil {
			return p, fmt.Errorf("%w, or *", err)
		}
	}
	switch {
	case host == "":
	case host == "localhost":
		p.host = "127.0.0.1"
	default:
		a, err := netip.ParseAddr(host)
		if err != nil || a.Zone() != "" {
			return p, fmt.Errorf("%.80q: an address of this machine, localhost, or nothing for all addresses, stands before the port", s)
		}
		p.host = a.Unmap().String()
	}
	return p, nil
}

// Target is a server that a grant covers.
type Target struct {
	Unix  string // the path of a socket; the rest is empty
	Host  string // a name in one spelling, or an address
	Port  uint16
	Named egress.Networks // addresses that may be reached although they are not public
}

// String is the target as people write it.
func (t Target) String() string {
	if t.Unix != "" {
		return scheme + t.Unix
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// maxText bounds an address that a guest names, in bytes.
const maxText = 512

// Connect says whether a guest may connect to an address.
func (p *Permits) Connect(address string) (t Target, err error) {
	if len(address) > maxText {
		return t, service.Errorf(service.BadRequest, "an address has at most %d bytes", maxText)
	}
	path, isFile, err := file(address, true)
	if err != nil {
		return t, service.Errorf(service.BadRequest, "%w", err)
	}
	if isFile {
		if !slices.ContainsFunc(p.connect, func(x pattern) bool { return x.unix == path && path != "" }) {
			return t, service.Deny("connect", "connecting to %.200s is not granted", address)
		}
		return Target{Unix: path}, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return t, service.Errorf(service.BadRequest, "%.80q is not host:port", address)
	}
	if t.Port, err = parsePort(port, 1); err == nil {
		t.Host, err = egress.Host(host)
	}
	if err != nil {
		return t, service.Errorf(service.BadRequest, "%.80q: %w", address, err)
	}
	literal, _ := netip.ParseAddr(t.Host)
	t.Named = p.private
	covered := false
	for _, x := range p.connect {
		if x.unix != "" || x.port != 0 && x.port != t.Port {
			continue
		}
		t.Named = t.Named.And(x.nets)
		covered = covered || x.any || x.host != "" && x.host == t.Host || x.suffix != "" && len(t.Host) > len(x.suffix) && strings.HasSuffix(t.Host, x.suffix) ||
			literal.IsValid() && x.host == "" && x.nets.Names(literal, egress.Public)
	}
	if !covered {
		return t, service.Deny("connect", "connecting to %.200s is not granted", t)
	}
	return t, nil
}

// Place is an address to listen on that a grant covers.
type Place struct {
	Unix    string // the path of a socket
	Address string // else: host:port
}

// Listen says whether a guest may listen on an address.
func (p *Permits) Listen(address string) (Place, error) {
	if len(address) > maxText {
		return Place{}, service.Errorf(service.BadRequest, "an address has at most %d bytes", maxText)
	}
	want, err := parsePlace(address, true)
	if err != nil || want.any {
		return Place{}, service.Errorf(service.BadRequest, "%.200q is not an address to listen on", address)
	}
	for _, x := range p.listen {
		if x.unix == want.unix && x.host == want.host && (x.any || x.port == want.port) {
			if want.unix != "" {
				return Place{Unix: want.unix}, nil
			}
			return Place{Address: net.JoinHostPort(want.host, strconv.Itoa(int(want.port)))}, nil
		}
	}
	return Place{}, service.Deny("listen", "listening on %.200s is not granted", address)
}

// Path is the place of a socket in the bundle's folder. No link may lead out of that, and the socket itself must not be one.
func Path(base, path string) (string, error) {
	if base == "" {
		base = "."
	}
	root, err := filepath.EvalSymlinks(base)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(base, filepath.Dir(path)))
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(root, dir); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s leads out of the bundle's folder", path)
	}
	full := filepath.Join(dir, filepath.Base(path))
	if info, err := os.Lstat(full); err == nil && info.Mode()&os.ModeSocket == 0 {
		return "", fmt.Errorf("%s is not a socket", path)
	}
	return full, nil
}
