package gateway

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"go.opentelemetry.io/otel/trace"
)

// exchange is one request and its answer. It belongs to the goroutine of the request.
type exchange struct {
	g       *Gateway
	r       *http.Request
	w       recorder
	id      string
	begun   time.Time
	route   *route               // nil: none was found
	who     *middleware.Identity // nil: anonymous
	lease   lease                // the actor that was chosen
	busy    *client              // the client whose share it uses
	share   *client              // likewise, of the route
	entry   bool                 // it counts among the route's
	under   int64                // how many of the route were in progress when it came
	headers [512]byte            // room for them, encoded
	rest    io.Reader            // the part of the body that is too much for a message
	late    bool                 // the body did not come in time
	note    string               // for the access log: the report of a crash, or why it was refused

	streamed *pacedBody // the body, if it comes in parts
	health   bool       // it is a probe
	span     trace.Span // of the request; nil: none
	aborted  bool       // there is no answer: the client has disconnected
}

// recorder notes what was answered.
type recorder struct {
	http.ResponseWriter
	x      *exchange
	status int
	bytes  int64
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 || status == http.StatusSwitchingProtocols {
		w.status = status
		w.Header()["X-Request-Id"] = []string{w.x.id}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// end gives back what the request has held, and logs it.
func (x *exchange) end() {
	x.lease.release()
	x.busy.leave(x.g.clients)
	if x.route != nil {
		x.share.leave(x.route.clients)
		if x.entry {
			x.route.under.Add(-1)
		}
	}
	x.count()
	x.endSpan()
	x.access()
}

// check refuses requests that no route gets to see: paths with a hidden meaning, and
// what no message can hold.
func (x *exchange) check() problem {
	r := x.r
	bad := func(text string) problem { return problem{status: http.StatusBadRequest, text: text} }
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return problem{status: http.StatusMethodNotAllowed, text: "the method is never served"}
	case len(r.Header) > x.g.cfg.Limits.Headers:
		return problem{status: http.StatusRequestHeaderFieldsTooLarge, text: "too many headers"}
	case !strings.HasPrefix(r.URL.Path, "/"):
		return bad("the path does not begin with /")
	case !plain(r.URL.RawQuery) || !plain(r.Host):
		return bad("the request's line has control characters, or is not UTF-8")
	}
	if text := pathMistake(r.URL.Path, r.URL.EscapedPath()); text != "" {
		return bad(text)
	}
	n := 0
	for name, values := range r.Header {
		if n += len(values); n > x.g.cfg.Limits.Headers {
			return problem{status: http.StatusRequestHeaderFieldsTooLarge, text: "too many headers"}
		}
		for _, v := range values {
			if !utf8.ValidString(v) {
				return bad("the header " + name + " is not UTF-8")
			}
		}
	}
	if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 {
		// A proxy in front may have seen another end of the body, if there was a Content-Length,
		// too: what follows on this connection is not believed.
		x.w.Header().Set("Connection", "close")
	}
	return problem{}
}

// pathMistake says what is wrong with a path. ServeMux would redirect to another one; a
// client that means it can send it.
func pathMistake(path, escaped string) string {
	if !plain(path) {
		return "the path has control characters, or is not UTF-8"
	}
	if strings.Contains(escaped, "//") {
		return "the path has an empty segment (//)"
	}
	for rest := path; rest != ""; {
		var segment string
		segment, rest, _ = strings.Cut(rest, "/")
		if segment == "." || segment == ".." {
			return "the path has a segment . or .."
		}
	}
	return ""
}

// plain reports whether a text is UTF-8 without control characters.
func plain(s string) bool {
	ascii := true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c == 0x7f:
			return false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return ascii || utf8.ValidString(s)
}

// remoteText is remote, "" if it is not known.
func (x *exchange) remoteText() string {
	if a := x.g.remote(x.r); a.IsValid() {
		return a.String()
	}
	return ""
}

// remote is the address of the client: of the nearest peer that is none of the proxies. With a
// Unix socket there is none.
func (g *Gateway) remote(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		if h, _, e := net.SplitHostPort(r.RemoteAddr); e == nil {
			a, _ := netip.ParseAddr(h)
			return a
		}
		return netip.Addr{}
	}
	addr := at.Addr().Unmap()
	if len(g.cfg.Proxies) == 0 || !g.proxy(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		if addr = next.Unmap(); !g.proxy(addr) {
			break
		}
	}
	return addr
}

func (g *Gateway) proxy(a netip.Addr) bool {
	for _, p := range g.cfg.Proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// spawn starts an actor below the gateway's own, such as that of a connection. It ends with
// the gateway at the latest.
func (x *exchange) spawn(p host.Props) (host.Ref, error) {
	return x.g.sys.SpawnBelow(x.g.own.ref, "", p)
}
