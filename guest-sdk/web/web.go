// Package web answers HTTP requests that the gateway hands to an actor: a router whose
// handlers read like those of net/http.
//
//	type users struct{ mux *web.Mux }
//
//	func newUsers() actor.Actor {
//		u := &users{mux: web.NewMux()}
//		u.mux.Handle("GET /users/{id}", u.get)
//		return u
//	}
//
//	func (u *users) Receive(ctx *actor.Context, msg *actor.Message) error {
//		return u.mux.Receive(ctx, msg)
//	}
//
//	func (u *users) get(ctx *actor.Context, r *web.Request, w *web.Response) error {
//		w.Text("hello " + r.PathValue("id"))
//		return nil
//	}
//
// A handler answers within its turn, or later: see [Response.Later]. An error that it
// returns, or a panic, is a crash: the client gets 502 with the id of the report. What the
// client did wrong is an answer: w.Error(400, "...").
//
// The package does not use reflection. A request that is answered at once allocates only the strings that the handler asks
// for.
package web

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Handler answers a request. Request and Response are valid until it returns.
type Handler func(ctx *actor.Context, r *Request, w *Response) error

// Mux finds the handler of a request. It is for one actor; the zero value has no routes.
type Mux struct {
	routes   []route
	last     int // index of the route of the last request that had one
	notFound Handler
	gone     func(ctx *actor.Context, id string) error
	req      Request
	res      Response
}

// NewMux returns a mux without routes.
func NewMux() *Mux { return &Mux{} }

// Handle registers a handler for a pattern as in net/http: [METHOD ]/path, with
// {name} for a segment, {name...} for the rest, and a slash at the end for all below. GET
// includes HEAD. Hosts are set in the manifest. Of several that match the most specific one
// counts: a method before none, and at the first segment that differs a text before {name},
// {name} before the rest. A pattern that is not valid, or comes twice, panics.
func (m *Mux) Handle(pattern string, h Handler) {
	rt := parse(pattern)
	for i := range m.routes {
		if m.routes[i].pattern == pattern {
			panic("web: the pattern " + pattern + " comes twice")
		}
	}
	rt.handler = h
	m.routes = append(m.routes, rt)
}

// NotFound sets the handler for requests that no pattern matches, instead of 404 and 405.
func (m *Mux) NotFound(h Handler) { m.notFound = h }

// Gone sets what is called when the client of a request that is not yet answered has gone, if
// the manifest's route says cancel: true. The id is that of [Request.ID].
func (m *Mux) Gone(f func(ctx *actor.Context, id string) error) { m.gone = f }

// Receive answers the message if it is a request; other messages are actor.ErrUnhandled.
func (m *Mux) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	req, res := &m.req, &m.res
	switch req.read(msg) {
	case isGone:
		if m.gone == nil {
			return nil
		}
		return m.gone(ctx, string(req.id))
	case isOther:
		return actor.ErrUnhandled
	}
	res.reset(msg.Sender(), msg.Correlation())
	h := m.find(req, res)
	if h == nil {
		return ctx.Reply(res)
	}
	if err := h(ctx, req, res); err != nil {
		return err
	}
	if res.later {
		return nil
	}
	return ctx.Reply(res)
}

// find is the handler of a request; nil if there is none, and res then says so.
func (m *Mux) find(req *Request, res *Response) Handler {
	if m.last < len(m.routes) {
		if rt := &m.routes[m.last]; rt.pattern == string(req.route) { // same as the previous request
			req.of = rt
			return rt.handler
		}
	}
	for i := range m.routes {
		if rt := &m.routes[i]; rt.pattern == string(req.route) {
			req.of, m.last = rt, i
			return rt.handler
		}
	}
	req.segment()
	var best *route
	otherMethod := false
	for i := range m.routes {
		rt := &m.routes[i]
		if n := len(rt.first); n > 0 && (len(req.segments) == 0 || len(req.segments[0]) != n || req.segments[0][0] != rt.first[0]) {
			continue // nearly always this is seen at once
		}
		if !rt.matches(req.segments) {
			continue
		}
		if !rt.serves(req.method) {
			otherMethod = true
			continue
		}
		if best == nil || rt.before(best) {
			best = rt
		}
	}
	switch {
	case best != nil:
		req.of, req.own = best, true
		return best.handler
	case m.notFound != nil:
		return m.notFound
	case otherMethod:
		res.Error(405, "the path does not allow this method")
	default:
		res.Error(404, "there is no such page")
	}
	return nil
}

// route is a pattern with its handler.
type route struct {
	pattern, method string
	first           string // the first segment, if it is a text
	parts           []part
	handler         Handler
}

// part is a segment of a pattern.
type part struct {
	text string // of a wildcard: its name
	kind kind
}

type kind uint8

const (
	literal kind = iota
	one          // {name}
	rest         // {name...}, or a slash at the end
	end          // {$}
)

func parse(pattern string) route {
	bad := func(why string) { panic("web: the pattern " + pattern + ": " + why) }
	rt := route{pattern: pattern}
	path := pattern
	for i := 0; i < len(path); i++ {
		if path[i] == ' ' {
			rt.method, path = path[:i], path[i+1:]
			break
		}
	}
	if path == "" || path[0] != '/' {
		bad("the path must begin with /, without a host")
	}
	for at := 1; ; {
		to := at
		for to < len(path) && path[to] != '/' {
			to++
		}
		s := path[at:to]
		last := to == len(path)
		switch n := len(s); {
		case s == "" && last:
			rt.parts = append(rt.parts, part{"", rest})
		case s == "":
			bad("an empty segment never matches")
		case s == "{$}" && last:
			rt.parts = append(rt.parts, part{"", end})
		case s[0] == '{' && s[n-1] == '}' && n > 5 && s[n-4:n-1] == "...":
			if !last {
				bad("{name...} must come last")
			}
			rt.parts = append(rt.parts, part{s[1 : n-4], rest})
		case s[0] == '{' && s[n-1] == '}' && n > 2 && s != "{$}":
			rt.parts = append(rt.parts, part{s[1 : n-1], one})
		default:
			for i := 0; i < n; i++ {
				if s[i] == '{' || s[i] == '}' {
					bad("a wildcard must fill a whole segment")
				}
			}
			rt.parts = append(rt.parts, part{s, literal})
		}
		if last {
			if rt.parts[0].kind == literal {
				rt.first = rt.parts[0].text
			}
			return rt
		}
		at = to + 1
	}
}

// matches compares the segments of a path.
func (rt *route) matches(segments [][]byte) bool {
	for i := range rt.parts {
		p := &rt.parts[i]
		switch p.kind {
		case rest:
			return len(segments) > i
		case end:
			return len(segments) == i+1 && len(segments[i]) == 0
		}
		if i >= len(segments) || p.kind == literal && p.text != string(segments[i]) || p.kind == one && len(segments[i]) == 0 {
			return false
		}
	}
	return len(segments) == len(rt.parts)
}

func (rt *route) serves(method []byte) bool {
	return rt.method == "" || rt.method == string(method) || rt.method == "GET" && string(method) == "HEAD"
}

// before reports whether rt is more specific than other; both match.
func (rt *route) before(other *route) bool {
	for i := range rt.parts {
		if i >= len(other.parts) {
			break
		}
		a, b := rt.parts[i].kind, other.parts[i].kind
		if a == end {
			a = literal
		}
		if b == end {
			b = literal
		}
		if a != b {
			return a < b
		}
	}
	return rt.method != "" && other.method == ""
}

// verdict is what a message is.
type verdict uint8

const (
	isRequest verdict = iota
	isGone
	isOther
)

// The elements of a request, in the order in which the gateway writes them.
const (
	atMethod = iota
	atPath
	atRoute
	atValues
	atQuery
	atHeaders
	atBody
	atStream
	atLength
	atRemote
	atID
	atWho
	elements
)

// read begins to take a message apart; see [Request.need].
func (q *Request) read(msg *actor.Message) verdict { return q.readFrom(msg.Reader()) }

func (q *Request) readFrom(from *abi.Reader) verdict {
	q.reset(from)
	r := &q.reader
	if r.Peek() != abi.TypeArray || r.Array() != 2 || r.Peek() != abi.TypeText {
		return isOther
	}
	switch string(r.TextBytes()) {
	case "http":
		if r.Array() < elements || !r.OK() {
			return isOther
		}
		q.method, q.path, q.route = r.TextBytes(), r.TextBytes(), r.TextBytes()
		q.next = atValues
		if !r.OK() {
			return isOther
		}
		return isRequest
	case "http.gone":
		q.id = r.TextBytes()
		if r.Done() != nil {
			return isOther
		}
		return isGone
	}
	return isOther
}
