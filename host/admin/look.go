package admin

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/observe"
)

func (s *Server) system(c *call) error { return c.json(s.at().model.System()) }

// About is a server as its caller sees it.
type About struct {
	Version int    `json:"version"`           // of the API: 1
	Access  string `json:"access"`            // "full" or "read"
	Socket  string `json:"socket,omitempty"`  // path
	Address string `json:"address,omitempty"` // on TCP
	Health  string `json:"health,omitempty"`  // address where health is answered apart
	Node    string `json:"node,omitempty"`    // name in a cluster; absent: it has joined none
	Replay  bool   `json:"replay,omitempty"`  // a recording is served, see /v1/replay
}

// Table is what `wasmactors top --json` prints.
type Table struct {
	System observe.System `json:"system"`
	Actors observe.Page   `json:"actors"`
}

func (s *Server) about(c *call) error {
	a := About{Version: 1, Access: c.access.String(), Socket: s.cfg.socket, Node: s.cfg.node}
	if s.tcp != nil {
		a.Address = s.tcp.String()
	}
	if s.health != nil {
		a.Health = s.health.String()
	}
	a.Replay = s.replay != nil
	return c.json(a)
}

func (s *Server) actors(c *call) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	q := observe.Query{Select: sel, Search: c.query.Get("search"), Sort: c.query.Get("sort")}
	if q.Desc, err = c.flag("desc"); err != nil {
		return err
	}
	if q.Offset, q.Limit, err = c.page(); err != nil {
		return err
	}
	page, err := s.at().model.Actors(q)
	if err != nil {
		return err
	}
	return c.json(page)
}

// selection is what the parameters select.
func (c *call) selection() (sel observe.Select, err error) {
	var states []string
	for name, to := range map[string]*[]string{"path": &sel.Paths, "type": &sel.Types, "state": &states, "ref": &sel.Refs} {
		if *to, err = c.texts(name); err != nil {
			return sel, err
		}
	}
	for _, text := range states {
		sel.States = append(sel.States, observe.State(text))
	}
	return sel, nil
}

// mostSkipped bounds an offset.
const mostSkipped = 1 << 30

func (c *call) page() (offset, limit int, err error) {
	if offset, err = c.count("offset", mostSkipped); err != nil {
		return 0, 0, err
	}
	limit, err = c.count("limit", observe.MaxLimit)
	return offset, limit, err
}

func (s *Server) tree(c *call) error {
	q := observe.TreeQuery{Under: c.query.Get("under"), Sort: c.query.Get("sort")}
	var err error
	if q.Depth, err = c.count("depth", 64); err != nil {
		return err
	}
	if q.Offset, q.Limit, err = c.page(); err != nil {
		return err
	}
	if q.Desc, err = c.flag("desc"); err != nil {
		return err
	}
	node, err := s.at().model.Tree(q)
	if err != nil {
		return err
	}
	return c.json(node)
}

func (s *Server) actor(c *call) error {
	d, err := s.at().model.Actor(c.query.Get("path"))
	if err != nil {
		return err
	}
	return c.json(d)
}

func (s *Server) deadLetters(c *call) error {
	var q observe.DeadQuery
	var ids []string
	var err error
	for name, to := range map[string]*[]string{"to": &q.To, "from": &q.From, "reason": &q.Reasons, "id": &ids} {
		if *to, err = c.texts(name); err != nil {
			return err
		}
	}
	for _, text := range ids {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return bad("bad_query", fmt.Sprintf("id is the number of a dead letter, not %q", text), "")
		}
		q.IDs = append(q.IDs, n)
	}
	if q.Offset, q.Limit, err = c.page(); err != nil {
		return err
	}
	page, err := s.at().model.DeadLetters(q)
	if err != nil {
		return err
	}
	return c.json(page)
}

func (s *Server) crashes(c *call) error {
	var q observe.CrashQuery
	var err error
	for name, to := range map[string]*[]string{"path": &q.Paths, "type": &q.Types, "kind": &q.Kinds, "cause": &q.Causes} {
		if *to, err = c.texts(name); err != nil {
			return err
		}
	}
	if q.Since, err = c.since(); err != nil {
		return err
	}
	if q.Offset, q.Limit, err = c.page(); err != nil {
		return err
	}
	page, err := s.at().model.Crashes(q)
	if err != nil {
		return err
	}
	return c.json(page)
}

func (s *Server) crash(c *call) error {
	r, err := s.at().model.CrashReport(c.query.Get("id"))
	if err != nil {
		return err
	}
	return c.json(r)
}

// since is the time of the parameter since, the zero time if it is missing.
func (c *call) since() (t time.Time, err error) {
	text := c.query.Get("since")
	if text == "" {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339Nano, text); err != nil {
		return t, bad("bad_query", "since is a time such as 2026-01-02T15:04:05Z, not "+strconv.Quote(text), "")
	}
	return t, nil
}

func (s *Server) history(c *call) error {
	d, err := c.seconds("seconds", time.Hour, 24*time.Hour)
	if err != nil {
		return err
	}
	h, err := s.at().model.History(d)
	if err != nil {
		return err
	}
	return c.json(h)
}

func (s *Server) latencies(c *call) error { return c.json(s.at().model.Latencies()) }

// sampling bounds how many sample at a time, and gives the answer its time.
func (s *Server) sampling(c *call, def time.Duration) (d time.Duration, done func(), err error) {
	if d, err = c.seconds("seconds", def, s.cfg.bounds.sample); err != nil {
		return 0, nil, err
	}
	samples := s.rooms[c.share()].samples
	if !samples.TryAcquire(1) {
		return 0, nil, &Problem{http.StatusTooManyRequests, "busy", fmt.Sprintf("%d samples are taken already", c.share().of(int64(s.cfg.bounds.samples))), "try again when they have ended"}
	}
	_ = c.rc.SetWriteDeadline(now().Add(d + s.cfg.bounds.readTime))
	return d, func() { samples.Release(1) }, nil
}

func (s *Server) flow(c *call) error {
	d, done, err := s.sampling(c, time.Second)
	if err != nil {
		return err
	}
	defer done()
	f, err := s.at().model.Flow(c.r.Context(), d)
	if err != nil {
		return err
	}
	return c.json(f)
}

func (s *Server) profile(c *call) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	d, done, err := s.sampling(c, 5*time.Second)
	if err != nil {
		return err
	}
	defer done()
	p, err := s.at().model.Profile(c.r.Context(), d, sel)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="fuel.pb.gz"`)
	_, _ = c.w.Write(b.Bytes())
	return nil
}

// scrape calls the handler of WithMetrics, after the listener's checks.
func (s *Server) scrape(c *call) error {
	c.w.Header().Del("Cache-Control")
	s.at().metrics.ServeHTTP(c.w, c.r)
	return nil
}

// Health says how a system is.
type Health struct {
	Status  string    `json:"status"`            // "ok", "starting", "down" (a service or the store is), "apart" (from its cluster) or "ended"
	Down    []Absence `json:"down,omitempty"`    // the services that are down, and the store
	Cluster string    `json:"cluster,omitempty"` // why it is apart
}

// Absence is what everybody may know of a service that is down.
type Absence struct {
	Service string    `json:"service"`
	Since   time.Time `json:"since"`
}

func (s *Server) healthy(c *call) error {
	sys := s.at().sys
	if sys == nil {
		return c.health(Health{Status: "ok"})
	}
	select {
	case <-sys.Terminated():
		return c.health(Health{Status: "ended"})
	default:
		return c.health(Health{Status: "ok"})
	}
}

func (s *Server) ready(c *call) error {
	h := s.readiness.of(s.at().model)
	if s.cfg.nodes != nil && h.Status != "ended" {
		if n := s.cfg.nodes(); n != nil {
			if why := n.Apart(); why != "" {
				h.Status, h.Cluster = "apart", why
			}
		}
	}
	return c.health(h)
}

// readiness remembers for a while how a system is: anybody may ask, and the answer takes a walk
// over all actors.
type readiness struct {
	mu     sync.Mutex
	at     time.Time
	health Health
}

// readyFor is how long it is remembered.
const readyFor = time.Second

func (x *readiness) of(m model) Health {
	x.mu.Lock()
	defer x.mu.Unlock()
	if now().Sub(x.at) < readyFor {
		return x.health
	}
	x.health = Health{Status: "ok"}
	switch sys := m.System(); {
	case sys.Ended != "":
		x.health.Status = "ended"
	case len(sys.Down) > 0:
		x.health.Status = "down"
		for _, d := range sys.Down {
			x.health.Down = append(x.health.Down, Absence{d.Service, d.Since})
		}
	case !sys.Ready:
		x.health.Status = "starting"
	}
	x.at = now()
	return x.health
}

// forget lets the next look be a new one.
func (x *readiness) forget() {
	x.mu.Lock()
	x.at = time.Time{}
	x.mu.Unlock()
}

func (c *call) health(h Health) error {
	c.w.Header().Set("Content-Type", mediaJSON)
	if h.Status != "ok" {
		c.w.WriteHeader(http.StatusServiceUnavailable)
	}
	text, err := json.Marshal(h)
	if err == nil {
		_, _ = c.w.Write(append(text, '\n'))
	}
	return err
}

//go:embed openapi.json
var openAPI []byte

// OpenAPI is the description of the API, version 3.1, as JSON.
func OpenAPI() []byte { return bytes.Clone(openAPI) }

func (s *Server) openAPI(c *call) error {
	c.w.Header().Set("Content-Type", mediaJSON)
	_, _ = c.w.Write(openAPI)
	return nil
}
