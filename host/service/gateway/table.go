package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
)

// table finds the route of a request: a ServeMux, which never gets to see a path that it
// would clean.
type table struct {
	mux    *http.ServeMux
	routes []*route
}

// route is a Route that serves.
type route struct {
	Route
	wild    []wildcard
	head    []byte // encoded: what all its messages say
	target  target // nil: files
	handler http.Handler
	clients *clients
	pass    map[string]bool // names of headers that the actor gets; nil: all
	under   atomic.Int64
}

// checkRoutes reports what is wrong with the routes of a configuration, as far as it can be
// seen without a system and without reading files.
func checkRoutes(cfg Config) []*RouteError {
	var found []*RouteError
	mux := http.NewServeMux()
	for i := range cfg.Routes {
		r := &cfg.Routes[i]
		fail := func(key string, err error) { found = append(found, &RouteError{i, key, err}) }
		if err := register(mux, r.Pattern, http.NotFoundHandler()); err != nil {
			fail("pattern", err)
			continue
		}
		checkTarget(r, fail)
		if r.CORS != nil {
			if err := r.CORS.Check(); err != nil {
				fail("cors", err)
			}
		}
		if r.Auth != nil {
			if key, err := r.Auth.Check(); err != nil {
				fail("auth."+key, err)
			}
		}
		for _, name := range r.Headers {
			if !middleware.ValidName(name) {
				fail("headers", errors.New("not the name of a header: "+name))
			}
		}
	}
	return found
}

// checkTarget checks that a route has one target.
func checkTarget(r *Route, fail func(string, error)) {
	kinds := 0
	for _, given := range []bool{r.To.Path != "", len(r.To.Pool) > 0, r.Static != nil} {
		if given {
			kinds++
		}
	}
	wild := wildcardsOf(r.Pattern)
	switch {
	case kinds == 0:
		fail("to", errors.New("a route needs a target: to (an actor), pool (several) or static (files)"))
	case kinds > 1:
		fail("to", errors.New("a route has one target: either to, pool or static"))
	case r.To.Make != nil && r.To.Path == "":
		fail("make", errors.New("make needs to, which names the actors"))
	case r.To.Make != nil:
		if _, err := parseTemplate(r.To.Path, wild); err != nil {
			fail("to", err)
		}
	case r.Static != nil:
		if err := checkFiles(r, wild); err != nil {
			fail("static", err)
		}
	default:
		for _, p := range append([]string{r.To.Path}, r.To.Pool...) {
			switch {
			case p == "" && r.To.Path == "": // a pool's
			case strings.ContainsAny(p, "{}") && r.To.Path == "":
				fail("pool", errors.New(p+" has a {name}: that is for to, where a keyed actor or make is"))
			case strings.ContainsAny(p, "{}"):
				if _, err := parseKeeper(p, wild); err != nil {
					fail("to", err)
				}
			case !strings.HasPrefix(p, "/") || len(p) < 2:
				fail("to", errors.New(p+" is not the path of an actor, such as /user/shop"))
			}
		}
		if p := r.To.Pick; p != "" && p != "round-robin" && p != "least-busy" {
			fail("pick", errors.New("round-robin or least-busy, not "+p))
		}
	}
}

func newTable(g *Gateway) (*table, error) {
	if found := checkRoutes(g.cfg); len(found) > 0 {
		all := make([]error, len(found))
		for i, f := range found {
			all[i] = f
		}
		return nil, errors.Join(all...)
	}
	t := &table{mux: http.NewServeMux()}
	for i := range g.cfg.Routes {
		r := &route{Route: g.cfg.Routes[i]}
		fail := func(key string, err error) (*table, error) { return nil, &RouteError{i, key, err} }
		r.wild = wildcardsOf(r.Pattern)
		r.head = requestHead(r.Pattern)
		if r.Headers != nil {
			r.pass = map[string]bool{}
			for _, name := range r.Headers {
				r.pass[http.CanonicalHeaderKey(name)] = true
			}
		}
		var err error
		var files http.Handler
		var auth func(http.Handler) http.Handler
		o := g.options(r.Handler)
		if r.Static != nil {
			if files, err = r.Static.Open(o, prefixOf(r.Pattern)); err != nil {
				return fail("static", err)
			}
		} else {
			r.target = newTarget(g, r)
		}
		if r.Auth != nil {
			var key string
			if auth, key, err = r.Auth.Open(o); err != nil {
				return fail("auth."+key, err)
			}
		}
		r.handler = r.chain(auth, files)
		if r.clients, err = newClients(r.Client); err != nil {
			return fail("client", err)
		}
		if err := register(t.mux, r.Pattern, routed{r}); err != nil {
			return fail("pattern", err)
		}
		t.routes = append(t.routes, r)
	}
	return t, nil
}

// checkFiles checks a route of files: they are below the pattern's last wildcard, or its end.
func checkFiles(r *Route, wild []wildcard) error {
	method, _, ok := strings.Cut(r.Pattern, " ")
	switch {
	case ok && method != http.MethodGet:
		return fmt.Errorf("files are for GET (and HEAD): not for %s", method)
	case !strings.HasSuffix(r.Pattern, "/") && (len(wild) == 0 || !wild[len(wild)-1].rest):
		return errors.New("the pattern of files ends with a slash, such as /static/, or with {path...}: what comes behind is the file")
	}
	for _, w := range wild {
		if !w.rest {
			return fmt.Errorf("the wildcard {%s} does not go with files", w.name)
		}
	}
	return r.Static.Check()
}

// prefixOf is the path that a route of files begins with.
func prefixOf(pattern string) string {
	_, path, _ := strings.Cut(pattern, "/")
	path, _, _ = strings.Cut(path, "{")
	return "/" + path
}

// options are what the middleware of a route needs.
func (g *Gateway) options(wait time.Duration) middleware.Options {
	return middleware.Options{
		Base: g.cfg.Base, Clock: g.clock, Wait: wait, Client: g.address,
		Refuse: func(w http.ResponseWriter, _ *http.Request, f middleware.Refusal) {
			exchangeOf(w).refuse(problem{status: f.Status, text: f.Text, retry: f.Retry, cause: f.Cause})
		},
	}
}

// routed carries a route through the ServeMux, and nothing is served by it.
type routed struct{ *route }

// carrier takes the exchange through the ServeMux, and takes what that answers itself: that
// there is no route, or a redirect to the path with a slash at its end.
type carrier struct {
	x      *exchange
	header http.Header
	status int // 0: a route has served
}

func (c *carrier) Header() http.Header         { return c.header }
func (c *carrier) Write(b []byte) (int, error) { return len(b), nil }
func (c *carrier) WriteHeader(status int)      { c.status = status }

func (c routed) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.(*carrier).x.serve(c.route) }

// serve finds the route of a request and has it served.
func (t *table) serve(x *exchange) {
	if rt := t.preflight(x.r); rt != nil {
		rt.handler.ServeHTTP(&x.w, x.r)
		if x.w.Header()["Access-Control-Allow-Origin"] == nil {
			x.note = "refused by cors"
		}
		return
	}
	c := carrier{x: x, header: http.Header{}}
	t.mux.ServeHTTP(&c, x.r)
	switch c.status {
	case 0:
	case http.StatusNotFound:
		x.refuse(problem{status: http.StatusNotFound, text: "there is no such page"})
	case http.StatusMethodNotAllowed:
		x.w.Header()["Allow"] = c.header["Allow"]
		x.refuse(problem{status: http.StatusMethodNotAllowed, text: "the path does not allow this method"})
	default:
		x.w.Header()["Location"] = c.header["Location"]
		x.w.WriteHeader(c.status)
	}
}

// preflight is the route that a browser asks about before it sends a request; nil: it does not ask, or
// there is none with rules for other origins.
func (t *table) preflight(r *http.Request) *route {
	if !middleware.IsPreflight(r) {
		return nil
	}
	other := *r
	other.Method = r.Header.Get("Access-Control-Request-Method")
	if h, _ := t.mux.Handler(&other); h != nil {
		if c, ok := h.(routed); ok && c.CORS != nil {
			return c.route
		}
	}
	return nil
}
