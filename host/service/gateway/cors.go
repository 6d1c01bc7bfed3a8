package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CORS says which pages of other origins may read answers.
type CORS struct {
	Origins     []string      // https://host[:port], https://*.host for all below it, or * for any
	Methods     []string      // default GET, HEAD and POST
	Headers     []string      // of requests; * for any
	Expose      []string      // of answers
	Credentials bool          // with cookies and authorization; not with *
	MaxAge      time.Duration // how long a browser may remember the answer to a preflight; default 10 min
}

// Check reports an error in the configuration.
func (c *CORS) Check() error {
	if len(c.Origins) == 0 {
		return errors.New("origins are needed")
	}
	for _, o := range c.Origins {
		if o == "*" {
			if c.Credentials {
				return errors.New("credentials do not go with the origin *: any page could act for the user")
			}
			continue
		}
		u, err := url.Parse(strings.Replace(o, "://*.", "://", 1))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil || strings.Contains(u.Host, "*") || o != strings.ToLower(o) {
			return fmt.Errorf("%q is not an origin, such as https://example.com or https://*.example.com, in small letters and without a path", o)
		}
	}
	for _, name := range slices.Concat(c.Methods, c.Headers, c.Expose) {
		if !validName(name) {
			return fmt.Errorf("%q is neither a method nor the name of a header", name)
		}
	}
	return nil
}

// cors serves a CORS.
type cors struct {
	*CORS
	any     bool
	methods []string
	headers string
	expose  []string
	maxAge  []string
}

func newCORS(c *CORS) *cors {
	n := &cors{CORS: c, any: slices.Contains(c.Origins, "*"), methods: c.Methods, headers: strings.Join(c.Headers, ", ")}
	if len(n.methods) == 0 {
		n.methods = []string{http.MethodGet, http.MethodHead, http.MethodPost}
	}
	if len(c.Expose) > 0 {
		n.expose = []string{strings.Join(c.Expose, ", ")}
	}
	age := c.MaxAge
	def(&age, 10*time.Minute)
	n.maxAge = []string{strconv.Itoa(int(age.Seconds()))}
	return n
}

// allows reports whether an origin is one of those.
func (c *cors) allows(origin string) bool {
	if c.any {
		return true
	}
	for _, o := range c.Origins {
		if o == origin {
			return true
		}
		scheme, below, ok := strings.Cut(o, "://*")
		if !ok {
			continue
		}
		if rest, ok := strings.CutPrefix(origin, scheme+"://"); ok && len(rest) > len(below) && strings.HasSuffix(rest, below) && !strings.ContainsAny(rest, "/@") {
			return true
		}
	}
	return false
}

// apply tells the browser whether its page may read the answer.
func (c *cors) apply(x *exchange) {
	h := x.w.Header()
	if !c.any {
		h.Add("Vary", "Origin")
	}
	origin := x.r.Header.Get("Origin")
	if origin == "" || !c.allows(origin) {
		return
	}
	if c.any {
		origin = "*"
	}
	h["Access-Control-Allow-Origin"] = []string{origin}
	if c.Credentials {
		h["Access-Control-Allow-Credentials"] = []string{"true"}
	}
	if c.expose != nil {
		h["Access-Control-Expose-Headers"] = c.expose
	}
}

// preflight answers a preflight request of a browser; false: this is none.
func (x *exchange) preflight(t *table) bool {
	r := x.r
	method := r.Header.Get("Access-Control-Request-Method")
	origin := r.Header.Get("Origin")
	if r.Method != http.MethodOptions || method == "" || origin == "" {
		return false
	}
	rt := t.find(r, method)
	if rt == nil || rt.cors == nil {
		return false
	}
	c, h := rt.cors, x.w.Header()
	h["Vary"] = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
	if !c.allows(origin) || !slices.Contains(c.methods, method) || !c.allowsHeaders(r.Header.Values("Access-Control-Request-Headers")) {
		x.note = "refused by cors"
		x.w.WriteHeader(http.StatusNoContent)
		return true
	}
	c.apply(x)
	h["Vary"] = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
	h["Access-Control-Allow-Methods"] = []string{strings.Join(c.methods, ", ")}
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		if slices.Contains(c.Headers, "*") {
			h["Access-Control-Allow-Headers"] = []string{asked} // * does not count with credentials
		} else {
			h["Access-Control-Allow-Headers"] = []string{c.headers}
		}
	}
	h["Access-Control-Max-Age"] = c.maxAge
	x.w.WriteHeader(http.StatusNoContent)
	return true
}

func (c *cors) allowsHeaders(asked []string) bool {
	if slices.Contains(c.Headers, "*") {
		return true
	}
	for name := range strings.SplitSeq(strings.Join(asked, ","), ",") {
		name = strings.TrimSpace(name)
		if name != "" && !slices.ContainsFunc(c.Headers, func(h string) bool { return strings.EqualFold(h, name) }) {
			return false
		}
	}
	return true
}
