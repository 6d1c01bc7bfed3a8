package gateway

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
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
	files   http.Handler
	auth    authenticator // nil: anyone
	cors    *cors         // nil: none
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
			if key, err := r.Auth.check(); err != nil {
				fail("auth."+key, err)
			}
		}
		for _, name := range r.Headers {
			if !validName(name) {
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
		if err := r.Static.check(r.Pattern, wild); err != nil {
			fail("static", err)
		}
	default:
		for _, p := range append([]string{r.To.Path}, r.To.Pool...) {
			switch {
			case p == "" && r.To.Path == "": // a pool's
			case strings.ContainsAny(p, "{}"):
				fail("to", errors.New(p+" has a {name}: that is for actors on demand, and needs make"))
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
		if r.Static != nil {
			if r.files, err = r.Static.open(g.cfg.Base, r); err != nil {
				return fail("static", err)
			}
		} else {
			r.target = newTarget(g, r)
		}
		if r.Auth != nil {
			var key string
			if r.auth, key, err = r.Auth.open(g); err != nil {
				return fail("auth."+key, err)
			}
		}
		if r.Route.CORS != nil {
			r.cors = newCORS(r.Route.CORS)
		}
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
	if x.preflight(t) {
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

// find is the route of a request if it had this method.
func (t *table) find(r *http.Request, method string) *route {
	other := *r
	other.Method = method
	h, _ := t.mux.Handler(&other)
	if c, ok := h.(routed); ok {
		return c.route
	}
	return nil
}
