package bundle

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// HTTP is what a manifest says about requests from outside.
type HTTP struct {
	Config gateway.Config // without the props of actors on demand
	Made   []*Actor       // by route; nil: the route makes none

	text string // see canonical
}

// httpShape is the key http; capabilities are those of actors that are made on demand.
func httpShape(capabilities *shape) *shape {
	cors := object("which pages of other origins may read answers",
		required("origins", list("https://host[:port], https://*.host for all below it, or * for any", text(none, "an origin"))),
		optional("methods", list("default: GET, HEAD and POST", text(none, "a method"))),
		optional("headers", list("headers of requests; * for any", text(none, "a header"))),
		optional("expose", list("headers of answers that pages may read", text(none, "a header"))),
		optional("credentials", boolean("with cookies and authorization; not with the origin *")),
		optional("max-age", duration("how long browsers may remember it; default: 10m")),
	)
	client := object("what one client may ask for; beyond it: 429",
		optional("rate", number("requests a second; default: any", 0.001, 1e9)),
		optional("burst", count("how many at once beyond the rate; default: the rate", 1e9)),
		optional("at-once", count("requests under way; default: any", 1e9)),
		optional("by", enum("what a client is: an address (of IPv6 a /64), or an identity where the route has auth", "address", "identity")),
		optional("known", count("clients that are remembered; default: 100k", 1e8)),
	)
	auth := object("who may use the route; one of these. Default: anyone",
		optional("basic", object("a user and a password",
			required("file", text(service.ReachRead, "lines of user:hash, relative to the manifest; bcrypt or argon2id")),
			optional("realm", text(none, "what the browser shows; default: restricted")),
		)),
		optional("jwt", object("a bearer token",
			required("keys", list("the keys; one of them must have signed the token", object("a key",
				required("alg", enum("the algorithm that it is for", "HS256", "RS256", "ES256", "EdDSA")),
				required("file", text(service.ReachRead, "HS256: the secret, at least 32 bytes; else the public key in PEM")),
				optional("id", text(none, "kid of the tokens that it is for; default: all others")),
			))),
			optional("audience", text(none, "aud that tokens must have")),
			optional("issuer", text(none, "iss that tokens must have")),
			optional("leeway", duration("that clocks may differ; at most 5m")),
			optional("claims", list("claims that the actor gets to see", text(none, "a claim"))),
		)),
		optional("mtls", object("a certificate; the listener has client-ca",
			optional("subjects", list("patterns of subjects, * is wild; default: any", text(none, "a pattern"))),
		)),
	)
	made := object("the actors are made on demand; `to` has a {wildcard} of the pattern",
		required("type", pattern(none, "its type: module/type, or type alone if there is one module", "a type such as module/type", typeRule)),
		optional("args", anything("what it is started with; any value, sent as CBOR")),
		optional("limits", limitsShape),
		optional("mailbox", mailboxShape),
		optional("dispatcher", dispatcherShape),
		optional("capabilities", capabilities),
		optional("crashed-message", crashedShape),
		optional("supervision", supervisionShape),
		optional("most", count("how many may live at a time; default: 1000", 10_000_000)),
		optional("idle", duration("time without requests after which one is ended; default: 10m")),
	)
	route := object("what answers requests of the pattern: to, pool or static",
		optional("to", text(none, "the actor: /user/shop; the actor of a key: /user/carts/{id}; with make: /user/room-{room}")),
		optional("make", made),
		optional("pool", list("actors that do the same", text(none, "a path"))),
		optional("pick", enum("pool: which actor is next; default: round-robin", "round-robin", "least-busy")),
		optional("static", object("files of a folder",
			required("dir", text(service.ReachRead, "the folder, relative to the manifest")),
			optional("index", boolean("folders without an index.html are listed")),
			optional("cache", duration("how long browsers may keep a file; default: they ask each time")),
			optional("headers", mapping("headers of the answers, such as Content-Security-Policy", "a header", "", text(none, "its value"))),
		)),
		optional("auth", auth),
		optional("cors", cors),
		optional("client", client),
		optional("at-once", count("requests of the route under way, beyond it: 429; default: any", 1e9)),
		optional("max-body", sizeIn("bytes of a body; default: limits.body", 1, 1<<50)),
		optional("timeout", duration("until the actor has answered; default: timeouts.handler")),
		optional("body-timeout", duration("until the body is there; default: timeouts.body")),
		optional("headers", list("request headers that the actor gets; default: all", text(none, "a header"))),
		optional("cancel", boolean("the actor is told when the client goes away before the answer")),
		optional("compress", boolean("false: answers of this route are not compressed")),
		optional("upgrade", object("connections that stay open, besides requests",
			optional("websocket", boolean("WebSockets")),
			optional("events", boolean("server-sent events: requests that accept text/event-stream")),
			optional("origins", list("hosts that pages with a WebSocket may come from besides the own; * is wild, alone it is any", text(none, "a host"))),
			optional("message", sizeIn("bytes of a message of the client's; default: 60KiB, at most 1023KiB", 1, gateway.MaxMessage)),
			optional("outbox", sizeIn("bytes that may wait for a client; default: 256KiB", 1<<10, 64<<20)),
			optional("ping", duration("silence after which a client is asked for a sign of life; default: 30s")),
			optional("deflate", boolean("messages of WebSockets may be compressed, which takes much memory")),
		)),
	)
	return object("requests from outside, by HTTP",
		required("listen", list("where to listen", object("an address",
			required("address", text(service.ReachListen, "host:port, or unix:path")),
			optional("tls", object("TLS, and with it HTTP/2",
				required("cert", text(service.ReachRead, "certificate in PEM, relative to the manifest")),
				required("key", text(service.ReachRead, "its key in PEM")),
				optional("client-ca", text(service.ReachRead, "authorities of clients' certificates, which then are wanted")),
				optional("optional", boolean("client-ca: clients without a certificate are let in, for routes without mtls")),
				optional("min", pattern(none, "the least version; default: 1.2", "1.2 or 1.3", `^1\.[23]$`)),
			)),
			optional("h2c", boolean("HTTP/2 without TLS, too")),
		))),
		required("routes", mapping("what answers, by patterns of net/http's ServeMux: [METHOD ][HOST]/path/{name}/{rest...}", "a pattern", "", route)),
		optional("limits", object("bounds of requests",
			optional("at-once", count("under way in all, beyond it: 503; default: 10k", 1e9)),
			optional("header", sizeIn("bytes of headers; default: 32KiB", 8<<10, 16<<20)),
			optional("headers", count("headers; default: 100", 10_000)),
			optional("body", sizeIn("bytes of a body; default: 1MiB", 1, 1<<50)),
			optional("inline", sizeIn("bytes of a body that comes within the message; default and most: 32KiB", 1, gateway.MaxInline)),
		)),
		optional("timeouts", object("of requests",
			optional("header", duration("until the headers are there; default: 10s")),
			optional("body", duration("until the body is there; default: 30s")),
			optional("handler", duration("until the actor has answered; default: 30s")),
			optional("write", duration("until the answer is written; default: 30s")),
			optional("idle", duration("a connection without a request; default: 2m")),
		)),
		optional("client", client),
		optional("cors", cors),
		optional("compress", object("answers are compressed",
			optional("least", sizeIn("the smallest body that is compressed, in bytes; default: 1KiB", 1, 1<<30)),
			optional("types", list("content types, * is wild; default: texts", text(none, "a type"))),
		)),
		optional("health", object("paths for probes",
			optional("live", pattern(none, "200 as long as it serves", "a path", "^/")),
			optional("ready", pattern(none, "200 while new requests are taken", "a path", "^/")),
		)),
		optional("drain", object("the graceful shutdown",
			optional("delay", duration("how long it reports unready before it stops accepting; default: none")),
			optional("most", duration("time until requests in progress are cut off; default: 30s")),
		)),
		optional("access-log", boolean("each request is logged")),
		optional("proxies", list("networks of proxies in front whose X-Forwarded-For is believed", text(none, "a network such as 10.0.0.0/8"))),
	)
}

// http reads the key http.
func (c *checker) http(m *Manifest, v view, base limits) *HTTP {
	if !v.given() {
		return nil
	}
	h := &HTTP{text: canonical(v.n)}
	g := &h.Config
	g.Base = m.Dir
	for _, l := range v.items("listen") {
		g.Listen = append(g.Listen, c.listener(l))
	}
	if len(g.Listen) == 0 {
		c.At(v.get("listen").n, "http.listen must name one address at least")
	}
	x := v.object("limits")
	g.Limits = gateway.Limits{AtOnce: int(x.count("at-once", 0)), Header: int(x.size("header", 0)), Headers: int(x.count("headers", 0)), Body: int64(x.size("body", 0)), Inline: int(x.size("inline", 0))}
	x = v.object("timeouts")
	g.Timeouts = gateway.Timeouts{Header: x.duration("header", 0), Body: x.duration("body", 0), Handler: x.duration("handler", 0), Write: x.duration("write", 0), Idle: x.duration("idle", 0)}
	g.Client = clientLimits(v.object("client"))
	x = v.object("compress")
	g.Compress = middleware.Compress{On: x.given(), Least: int(x.size("least", 0)), Types: x.texts("types")}
	x = v.object("health")
	g.Health = gateway.Health{Live: x.text("live"), Ready: x.text("ready")}
	x = v.object("drain")
	g.Drain = gateway.Drain{Delay: x.duration("delay", 0), Most: x.duration("most", 0)}
	g.Access = v.flag("access-log", false)
	for _, p := range v.items("proxies") {
		network, err := netip.ParsePrefix(p.n.Value)
		if err != nil {
			c.At(p.n, "http.proxies: %q is not a network such as 10.0.0.0/8", p.n.Value)
		}
		g.Proxies = append(g.Proxies, network)
	}
	all := corsOf(v.object("cors"))
	var nodes []*yaml.Node // the keys and the values of routes
	v.mapping("routes").pairs(func(key *yaml.Node, r view) {
		nodes = append(nodes, key, r.n)
		route, made := c.route(m, key.Value, r, base)
		g.Routes = append(g.Routes, route)
		h.Made = append(h.Made, made)
	})
	if len(g.Routes) == 0 {
		c.At(v.get("routes").n, "http.routes must have one route at least")
	}
	for _, e := range gateway.Check(*g) {
		at, n := nodes[2*e.Route], nodes[2*e.Route+1]
		if e.Key != "pattern" {
			at = nodeAt(n, e.Key)
		}
		c.At(at, "http.routes.%q: %s: %v", g.Routes[e.Route].Pattern, e.Key, e.Err)
	}
	if all != nil {
		if err := all.Check(); err != nil {
			c.At(v.get("cors").n, "http.cors: %v", err)
		}
	}
	g.CORS = all
	return h
}

func (c *checker) listener(v view) gateway.Listener {
	l := gateway.Listener{Address: v.text("address"), H2C: v.flag("h2c", false)}
	if !strings.HasPrefix(l.Address, "unix:") {
		if _, _, err := net.SplitHostPort(l.Address); err != nil {
			c.At(v.get("address").n, "http.listen: %q is not an address such as localhost:8080, :80 or unix:gateway.sock", l.Address)
		}
	}
	if t := v.object("tls"); t.given() {
		l.TLS = &gateway.TLS{Cert: t.text("cert"), Key: t.text("key"), ClientCA: t.text("client-ca"), Optional: t.flag("optional", false), Min: t.text("min")}
	}
	return l
}

func clientLimits(v view) gateway.ClientLimits {
	return gateway.ClientLimits{Rate: v.number("rate", 0), Burst: int(v.count("burst", 0)), AtOnce: int(v.count("at-once", 0)), By: v.text("by"), Known: int(v.count("known", 0))}
}

func corsOf(v view) *middleware.CORS {
	if !v.given() {
		return nil
	}
	return &middleware.CORS{
		Origins: v.texts("origins"), Methods: v.texts("methods"), Headers: v.texts("headers"), Expose: v.texts("expose"),
		Credentials: v.flag("credentials", false), MaxAge: v.duration("max-age", 0),
	}
}

// route reads one route, and the entry of its actors if it makes any.
func (c *checker) route(m *Manifest, pattern string, v view, base limits) (gateway.Route, *Actor) {
	r := gateway.Route{
		Pattern: pattern, CORS: corsOf(v.object("cors")), Client: clientLimits(v.object("client")), Auth: authOf(v.object("auth")),
		To:     gateway.Target{Path: v.text("to"), Pool: v.texts("pool"), Pick: v.text("pick")},
		Limits: gateway.RouteLimits{AtOnce: int(v.count("at-once", 0)), Body: int64(v.size("max-body", 0))},
		Body:   v.duration("body-timeout", 0), Handler: v.duration("timeout", 0), Headers: v.texts("headers"), Cancel: v.flag("cancel", false),
	}
	if !v.flag("compress", true) {
		r.Compress = "off"
	}
	if s := v.object("static"); s.given() {
		r.Static = &middleware.Static{Dir: s.text("dir"), Index: s.flag("index", false), Cache: s.duration("cache", 0)}
		s.mapping("headers").pairs(func(key *yaml.Node, value view) {
			if r.Static.Headers == nil {
				r.Static.Headers = map[string]string{}
			}
			r.Static.Headers[key.Value] = value.n.Value
		})
	}
	if u := v.object("upgrade"); u.given() {
		r.Upgrade = gateway.Upgrade{
			WebSocket: u.flag("websocket", false), Events: u.flag("events", false), Origins: u.texts("origins"), Message: int64(u.size("message", 0)),
			Outbox: int(u.size("outbox", 0)), Ping: u.duration("ping", 0), Compress: u.flag("deflate", false),
		}
		if !r.Upgrade.WebSocket && !r.Upgrade.Events {
			c.At(u.n, "upgrade needs websocket: true or events: true")
		}
	}
	if v.has("pick") && !v.has("pool") {
		c.At(v.get("pick").n, "pick needs pool")
	}
	x := v.object("make")
	if !x.given() {
		return r, nil
	}
	r.To.Make = &gateway.Make{Most: int(x.count("most", 0)), Idle: x.duration("idle", 0)}
	a := c.made(m, r.To.Path, x, base)
	return r, a
}

// made reads the entry of actors on demand.
func (c *checker) made(m *Manifest, to string, v view, base limits) *Actor {
	l := c.limits(v.object("limits"), base)
	box := c.mailbox(v.object("mailbox"), v.object("limits"), &l)
	a := &Actor{Name: strings.TrimPrefix(to, "/user/"), Mailbox: box, Dispatcher: c.dispatcher(v.object("dispatcher")), Limits: l.Limits, Stack: l.stack, Table: l.table, line: v.n.Line, column: v.n.Column}
	v.text("type")
	a.Module, a.Type = c.actorType(m, v.get("type").n)
	a.Args = c.value(v.get("args", grammar.Any).n)
	caps := v.object("capabilities")
	c.spawnRights(caps, v.object("supervision"))
	a.Capabilities = host.Capabilities{Send: caps.texts("send"), Stop: caps.texts("stop"), Spawn: caps.texts("spawn")}
	if x := caps.mapping("metrics"); x.given() {
		c.At(x.n, "capabilities.metrics are for actors of the manifest, not for those that are made on demand")
	}
	a.Grants = c.grants(caps, nil)
	a.Crashed = crashed(v.text("crashed-message"))
	a.Supervision, a.supervision = c.supervision(v.object("supervision")), canonical(v.object("supervision").n)
	c.share(m, a, v.object("limits"))
	return a
}

func authOf(v view) *middleware.Auth {
	if !v.given() {
		return nil
	}
	a := &middleware.Auth{}
	if b := v.object("basic"); b.given() {
		a.Basic = &middleware.Basic{File: b.text("file"), Realm: b.text("realm")}
	}
	if j := v.object("jwt"); j.given() {
		a.JWT = &middleware.JWT{Audience: j.text("audience"), Issuer: j.text("issuer"), Leeway: j.duration("leeway", 0), Claims: j.texts("claims")}
		for _, k := range j.items("keys") {
			a.JWT.Keys = append(a.JWT.Keys, middleware.JWTKey{Alg: k.text("alg"), File: k.text("file"), ID: k.text("id")})
		}
	}
	if t := v.object("mtls"); t.given() {
		a.MTLS = &middleware.MTLS{Subjects: t.texts("subjects")}
	}
	return a
}

// danglingRoutes reports routes to actors that do not exist.
func (c *checker) danglingRoutes(m *Manifest, v view) {
	if m.HTTP == nil {
		return
	}
	paths, spawners := m.paths()
	var keepers []string
	m.Walk(func(p string, a *Actor) {
		if a.Keyed != nil {
			keepers = append(keepers, p)
		}
	})
	v.mapping("routes").pairs(func(_ *yaml.Node, r view) {
		if r.has("make") {
			return
		}
		check := func(n *yaml.Node) {
			if !strings.HasPrefix(n.Value, "/user/") || slices.Contains(paths, n.Value) {
				return
			}
			if keeper := path.Dir(n.Value); strings.Contains(n.Value, "{") {
				if !slices.Contains(keepers, keeper) {
					c.At(n, "http.routes: %s has a {name}, and %s is not a keyed actor of the bundle: give that one the key keyed, or the route the key make%s", n.Value, keeper, grammar.Suggest(keeper, keepers))
				}
				return
			}
			for above := path.Dir(n.Value); above != "/user" && above != "/" && above != "."; above = path.Dir(above) {
				if spawners[above] {
					return
				}
			}
			c.At(n, "http.routes: no actor of the bundle has the path %s%s", n.Value, grammar.Suggest(n.Value, paths))
		}
		if to := r.get("to"); to.given() {
			check(to.n)
		}
		for _, p := range r.items("pool") {
			check(p.n)
		}
	})
}

// paths are the paths of all actors of a manifest, and of those that may spawn. Actors that are
// made on demand are included with a placeholder as their name.
func (m *Manifest) paths() (paths []string, spawners map[string]bool) {
	spawners = map[string]bool{}
	note := func(p string, a *Actor) {
		paths = append(paths, p)
		if len(a.Capabilities.Spawn) > 0 || a.many() {
			spawners[p] = true
		}
	}
	m.Walk(note)
	m.eachMade(func(a *Actor) {
		before, rest, _ := strings.Cut(a.Name, "{")
		_, after, _ := strings.Cut(rest, "}")
		note("/user/"+before+"x"+after, a)
	})
	return paths, spawners
}

// eachMade calls f for the entries of actors on demand.
func (m *Manifest) eachMade(f func(a *Actor)) {
	if m.HTTP == nil {
		return
	}
	for _, a := range m.HTTP.Made {
		if a != nil {
			f(a)
		}
	}
}

// sameHTTP reports whether two manifests say the same of requests from outside.
func sameHTTP(a, b *HTTP) bool {
	return (a == nil) == (b == nil) && (a == nil || a.text == b.text)
}

// startHTTP starts the gateway, if the manifest has http. It ends before the actors do.
func (b *Bundle) startHTTP(sys *host.System) error {
	h := b.Manifest.HTTP
	b.gateway.Store(nil)
	if h == nil {
		return nil
	}
	cfg := h.Config
	cfg.Log, cfg.Traces, cfg.Health.Down = b.log, b.traces, b.down
	cfg.Routes = slices.Clone(cfg.Routes)
	for i, a := range h.Made {
		if a != nil {
			m := *cfg.Routes[i].To.Make
			m.Props = b.props(a)
			cfg.Routes[i].To.Make = &m
		}
	}
	g, err := gateway.New(sys, cfg)
	if err != nil {
		return err
	}
	if err := g.Listen(); err != nil {
		return cmp.Or(err, g.Close())
	}
	sys.BeforeClose(func(ctx context.Context) {
		if err := g.Drain(ctx); err != nil {
			b.log.Warn("http: the shutdown was not graceful", "error", err)
		}
	})
	for _, a := range g.Addrs() {
		b.log.Info("http: listening", "address", a.String())
	}
	b.gateway.Store(g)
	return nil
}

// Gateway is the gateway of the system that was started last; nil: the manifest has no http.
func (b *Bundle) Gateway() *gateway.Gateway { return b.gateway.Load() }
