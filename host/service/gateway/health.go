package gateway

import "net/http"

// health answers probes; false: it is none.
func (x *exchange) probe() bool {
	h := &x.g.cfg.Health
	path := x.r.URL.Path
	if path == "" || path != h.Live && path != h.Ready || x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		return false
	}
	x.health = true
	x.w.Header()["Content-Type"] = textType
	x.w.Header().Set("Cache-Control", "no-store")
	if path == h.Ready && !x.g.Ready() {
		x.w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = x.w.Write([]byte("draining\n"))
		return true
	}
	if path == h.Ready && h.Down != nil {
		if why := h.Down(); why != "" {
			x.w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = x.w.Write([]byte(why + "\n"))
			return true
		}
	}
	_, _ = x.w.Write([]byte("ok\n"))
	return true
}
