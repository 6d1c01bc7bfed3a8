package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// door is one of a server's listeners, with its tokens and their access.
type door struct {
	names  []string // what Host may say
	trusts bool     // the listener has checked the user: no token is needed
	cookie string
	health bool // answers nothing but health, readiness and metrics
}

// socketDoor is a Unix socket. No browser reaches it by itself, so a request with the
// marks of a browser has come through something that the user did not mean to expose.
func socketDoor() *door {
	return &door{names: []string{"wasmactors", "localhost", "unix"}, trusts: true}
}

// tcpDoor is a listener on loopback.
func tcpDoor(addr net.Addr) *door {
	_, port, _ := net.SplitHostPort(addr.String())
	return &door{names: []string{addr.String(), "localhost:" + port}, cookie: "wasmactors-" + port}
}

// checkLoopback says what to do about an address that others could reach.
func checkLoopback(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%q is not an address such as 127.0.0.1:7777", address)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() || ip.Zone() != "" {
		return "", fmt.Errorf("%s is not on loopback: others could reach it, and nothing is encrypted; listen at 127.0.0.1:%s, and come from other machines by ssh -L %s:127.0.0.1:%s", address, port, port, port)
	}
	return net.JoinHostPort(host, port), nil
}

// admit checks where a request comes from, before anything else is done for it.
func (d *door) admit(r *http.Request) *Problem {
	if d.health {
		return nil
	}
	if !slices.Contains(d.names, strings.ToLower(r.Host)) {
		return &Problem{http.StatusMisdirectedRequest, "wrong_host", "the header Host names another server", "use " + d.names[0]}
	}
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	foreign := &Problem{http.StatusForbidden, "foreign_origin", "a page of another origin has no access", ""}
	switch {
	case d.trusts && (origin != "" || site != ""):
		return foreign
	case origin != "" && origin != "http://"+strings.ToLower(r.Host):
		return foreign
	case site == "" || site == "same-origin" || site == "none":
		return nil
	case r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && isPage(r.URL.Path):
		return nil // a link that leads here
	}
	return foreign
}

// isPage reports whether a path belongs to the dashboard.
func isPage(path string) bool {
	return path == "/" || path == "/dashboard" || strings.HasPrefix(path, "/dashboard/")
}

// who returns the access of the sender of a request.
func (s *Server) who(d *door, r *http.Request) access {
	if d.trusts {
		return full
	}
	if text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		// Both are compared, so that the time does not reveal which it was.
		all, some := s.cfg.full.opens(text), s.cfg.read.opens(text)
		switch {
		case all:
			return full
		case some:
			return reader
		}
		return nobody
	}
	cookie, err := r.Cookie(d.cookie)
	if err != nil {
		return nobody
	}
	return s.sessions.access(cookie.Value, r.Header.Get(SessionKey), now())
}
