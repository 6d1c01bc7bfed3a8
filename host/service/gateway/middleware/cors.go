package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rs/cors"
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
		if !ValidName(name) {
			return fmt.Errorf("%q is neither a method nor the name of a header", name)
		}
	}
	return nil
}

// Handler answers preflights, and tells browsers which pages may read what next answers. The
// configuration is one that Check accepts.
func (c *CORS) Handler(next http.Handler) http.Handler {
	o := cors.Options{AllowedOrigins: c.Origins, AllowedMethods: c.Methods, AllowedHeaders: c.Headers, ExposedHeaders: c.Expose, AllowCredentials: c.Credentials, MaxAge: int(c.MaxAge.Seconds())}
	if len(o.AllowedHeaders) == 0 {
		o.AllowedHeaders = []string{""} // none: the library's default are some
	}
	if c.MaxAge <= 0 {
		o.MaxAge = 600
	}
	rules := cors.New(o).Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions && !IsPreflight(r) { // the library would answer some that no browser sends
			next.ServeHTTP(w, r)
			return
		}
		rules.ServeHTTP(w, r)
	})
}

// IsPreflight reports whether a browser asks for a page whether it may send a request.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" && r.Header.Get("Origin") != ""
}
