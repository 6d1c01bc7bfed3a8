package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// route is an operation of the API. The server serves the table of them, and
// the OpenAPI file is made from it.
type route struct {
	method, path string
	about        string // a sentence
	needs        access // on TCP; nobody: no token
	params       []param
	body         any  // what is sent, as an example of its type; nil: nothing
	large        bool // the body holds a message
	module       bool // the body holds a module
	answer       any  // the answer, as an example of its type; nil: see media
	media        []string
	stream       bool
	still        bool // also of a recording
	serve        func(*Server, *call) error
}

// param is a parameter of a query.
type param struct {
	name, about string
	kind        paramKind
	needed      bool
}

type paramKind uint8

const (
	textParam  paramKind = iota
	textsParam           // may be given several times
	countParam
	flagParam
	secondsParam
	timeParam
)

// call is an admitted request.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	rc     *http.ResponseController
	door   *door
	access access
	query  url.Values
	body   []byte
}

// serve admits a request, or says why not.
func (s *Server) serve(door *door, w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if err := s.dispatch(door, w, r); err != nil {
		p := problemOf(err)
		if r.ContentLength != 0 { // a body that was not read is not waited for
			h.Set("Connection", "close")
		}
		if p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden || p.Status == http.StatusMisdirectedRequest {
			s.refusals.note(s.cfg.log, p, r)
			if d := s.refusals.delay(s.cfg.bounds); d > 0 && !door.trusts {
				h.Set("Connection", "close")
				pause(r.Context(), d)
			}
		}
		p.write(w)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (s *Server) dispatch(d *door, w http.ResponseWriter, r *http.Request) error {
	if p := d.admit(r); p != nil {
		return p
	}
	if s.cfg.dashboard != nil && !d.health && isPage(r.URL.Path) {
		if r.ContentLength != 0 {
			return bad("no_body", "a request for a page must not have a body", "")
		}
		w.Header().Del("Cache-Control")
		s.cfg.dashboard.ServeHTTP(w, r)
		return nil
	}
	methods := s.routes[r.URL.Path]
	if methods == nil || d.health && !strings.HasSuffix(r.URL.Path, "z") && r.URL.Path != "/metrics" || r.URL.Path == "/metrics" && s.at().metrics == nil {
		return &Problem{http.StatusNotFound, "no_such_path", "there is nothing at " + strconv.Quote(r.URL.Path), "GET /v1/openapi.json lists all there is"}
	}
	rt := methods[r.Method]
	if rt == nil {
		var allowed []string
		for m := range methods {
			allowed = append(allowed, m)
		}
		slices.Sort(allowed)
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return &Problem{http.StatusMethodNotAllowed, "wrong_method", r.URL.Path + " takes " + strings.Join(allowed, ", "), ""}
	}
	c := &call{w: w, r: r, rc: http.NewResponseController(w), door: d, access: full}
	if rt.needs != nobody && !d.health {
		c.access = s.who(d, r)
		switch {
		case c.access == nobody:
			return &Problem{http.StatusUnauthorized, "no_token", "a token is needed", "send it as Authorization: Bearer"}
		case c.access < rt.needs:
			return &Problem{http.StatusForbidden, "read_only", "this token is read-only", ""}
		}
		defer serving(r, c.share())()
	}
	if s.replay != nil && !rt.still {
		return notOfRecordings(rt)
	}
	if err := c.read(s, rt); err != nil {
		return err
	}
	defer s.rooms[c.share()].bodies.Release(int64(len(c.body)))
	// The client may go away before the answer: reading goes on, and must not end with the
	// time that the request had.
	_ = c.rc.SetReadDeadline(time.Time{})
	return rt.serve(s, c)
}

// read takes the query and the body, within bounds. The bytes of a body that were read were
// acquired from the server's share, and are released by the caller.
func (c *call) read(s *Server, rt *route) error {
	var err error
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return bad("bad_query", "the query cannot be read: "+err.Error(), "")
	}
	for name, values := range c.query {
		i := slices.IndexFunc(rt.params, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			return bad("bad_query", fmt.Sprintf("%s has no parameter %q", rt.path, name), rt.knows())
		case len(values) > 1 && rt.params[i].kind != textsParam:
			return bad("bad_query", name+" is given twice", "")
		}
	}
	for _, p := range rt.params {
		if p.needed && c.query.Get(p.name) == "" {
			return bad("bad_query", p.name+" is missing", p.about)
		}
	}
	if rt.method == http.MethodGet || rt.method == http.MethodDelete {
		if c.r.ContentLength != 0 {
			return bad("no_body", "a "+rt.method+" has no body", "")
		}
		return nil
	}
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &Problem{http.StatusUnsupportedMediaType, "not_json", "the body must be JSON", "send Content-Type: application/json"}
	}
	most := s.cfg.bounds.body
	if rt.large {
		most = s.cfg.bounds.message
	}
	if rt.module {
		most = s.cfg.bounds.module
	}
	if c.r.ContentLength > most {
		return &http.MaxBytesError{Limit: most}
	}
	return c.readBody(s, most)
}

// readBody reads as much as there is room for in the caller's share for bodies.
func (c *call) readBody(s *Server, most int64) error {
	reserve := most
	if c.r.ContentLength >= 0 {
		reserve = c.r.ContentLength
	}
	bodies := s.rooms[c.share()].bodies
	if err := bodies.Acquire(c.r.Context(), reserve); err != nil {
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if err != nil {
		bodies.Release(reserve)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return &Problem{http.StatusRequestTimeout, "too_slow", "the body did not come in time", ""}
		}
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return bad("bad_body", "the body cannot be read", "")
	}
	bodies.Release(reserve - int64(len(body)))
	c.body = body
	return nil
}

// knows lists the parameters of a route.
func (rt *route) knows() string {
	var names []string
	for _, p := range rt.params {
		names = append(names, p.name)
	}
	if len(names) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(names, ", ")
}

// decode reads the body into v, strictly. An empty body is an empty object.
func (c *call) decode(v any) error {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bad("bad_body", "the body is not what is expected: "+strings.TrimPrefix(err.Error(), "json: "), "GET /v1/openapi.json describes it")
	}
	if _, err := d.Token(); err != io.EOF {
		return bad("bad_body", "the body has more than one value", "")
	}
	return nil
}

// json answers with a value.
func (c *call) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return &Problem{http.StatusInternalServerError, "internal", err.Error(), ""}
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = c.w.Write(b.Bytes())
	return nil
}

// count is a whole number of the query, 0 if it is missing.
func (c *call) count(name string, most int) (int, error) {
	text := c.query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, bad("bad_query", fmt.Sprintf("%s is a whole number of 0 to %d, not %q", name, most, text), "")
	}
	return n, nil
}

// flag is true or false; its mere name is true.
func (c *call) flag(name string) (bool, error) {
	if !c.query.Has(name) {
		return false, nil
	}
	switch text := c.query.Get(name); text {
	case "", "1", "true":
		return true, nil
	case "0", "false":
		return false, nil
	default:
		return false, bad("bad_query", fmt.Sprintf("%s is true or false, not %q", name, text), "")
	}
}

// seconds is a duration, def if it is missing.
func (c *call) seconds(name string, def, most time.Duration) (time.Duration, error) {
	text := c.query.Get(name)
	if text == "" {
		return def, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0) || f > most.Seconds() {
		return 0, bad("bad_query", fmt.Sprintf("%s is a number of seconds above 0 and at most %g, not %q", name, most.Seconds(), text), "")
	}
	return time.Duration(f * float64(time.Second)), nil
}

// texts are the values of a parameter that may be given several times.
func (c *call) texts(name string) ([]string, error) {
	values := c.query[name]
	if len(values) > mostValues {
		return nil, bad("bad_query", fmt.Sprintf("%s is given more than %d times", name, mostValues), "")
	}
	return values, nil
}

// mostValues bounds how many values one request can compare with every actor.
const mostValues = 64
