package admin

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/rerun"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Replay is a recording that is served, and where in it the server is.
type Replay struct {
	Version     int       `json:"version"`
	File        string    `json:"file"`
	Host        string    `json:"host"`  // version that has recorded it
	Begin       time.Time `json:"begin"` // of the first turn
	End         time.Time `json:"end"`   // of the last turn
	At          time.Time `json:"at"`    // the time that is shown: all turns up to it
	Turns       int       `json:"turns"` // that were repeated up to there
	Failures    int       `json:"failures"`
	NotRecorded []string  `json:"not_recorded,omitempty"` // paths of actors that are not, or not to their end, in the recording; the first ones
	Inexact     []string  `json:"inexact,omitempty"`      // paths of actors that were handed a known secret, which is masked; the first ones
	Difference  string    `json:"difference,omitempty"`   // the first turn that did not come out as recorded: what is shown does not go beyond it
	Cut         bool      `json:"cut,omitempty"`          // the file has no end: what is before is shown
}

// ReplayMove says which time of a recording to show.
type ReplayMove struct {
	At time.Time `json:"at"` // not before begin, not after end
}

// recorded is the model of a recording. What a recording does not have is refused before it is asked for.
type recorded struct {
	show *rerun.Show
	file string
	now  atomic.Pointer[moment]
}

// moment is what is shown.
type moment struct {
	of    *rerun.Moment
	still *observe.Still
}

// ServeRecording begins to serve a recording and returns: file is its name. The listeners, tokens and ends are those of Serve. It is
// shown at one time for all callers; one with full access moves it, and nothing else can be changed. What a recording does not have
// is refused with status 409. The caller closes show after the server.
func ServeRecording(ctx context.Context, show *rerun.Show, file string, cfg Config) (*Server, error) {
	r := &recorded{show: show, file: printable.Line(file, maxReason)}
	r.take()
	cfg.metrics = nil
	return serve(ctx, cfg, r, &served{model: r})
}

// notOfRecordings refuses what a recording does not have.
func notOfRecordings(rt *route) *Problem {
	if rt.method != http.MethodGet {
		return &Problem{http.StatusConflict, "recording", "a recording is served, nothing in it can be changed", "POST /v1/replay shows another time of it"}
	}
	return &Problem{http.StatusConflict, "recording", "a recording is served, which has nothing for " + rt.path, "it has a system, actors, a tree and traces"}
}

// replayRoutes are those of a server of a recording.
func replayRoutes() []*route {
	return []*route{
		{method: http.MethodGet, path: "/v1/replay", still: true, needs: reader, about: "The recording that is served, and the time of it that is shown.", answer: Replay{}, serve: (*Server).replayed},
		{method: http.MethodPost, path: "/v1/replay", still: true, needs: full, about: "Shows another time of the recording, to all callers. It answers when all turns up to there were repeated; if the caller goes away before, the time stays.", body: ReplayMove{}, answer: Replay{}, serve: (*Server).move},
	}
}

// errNoRecording is the answer of a server of a system.
var errNoRecording = &Problem{http.StatusConflict, "no_recording", "a system that runs is served, no recording", "wasmactors replay FILE --serve 127.0.0.1:PORT serves one"}

func (s *Server) replayed(c *call) error {
	if s.replay == nil {
		return errNoRecording
	}
	return c.json(s.replay.describe())
}

func (s *Server) move(c *call) error {
	if s.replay == nil {
		return errNoRecording
	}
	var m ReplayMove
	if err := c.decode(&m); err != nil {
		return err
	}
	if y := m.At.Year(); y < 1970 || y > 2200 { // beyond, nanoseconds overflow
		return rerun.ErrTime
	}
	_ = c.rc.SetWriteDeadline(time.Time{})
	err := s.replay.move(c.r.Context(), m.At.UnixNano())
	_ = c.rc.SetWriteDeadline(now().Add(s.cfg.bounds.readTime))
	if err != nil {
		return err
	}
	return c.json(s.replay.describe())
}

func (r *recorded) move(ctx context.Context, to int64) error {
	if _, err := r.show.Goto(ctx, to); err != nil {
		return err
	}
	r.take()
	return nil
}

// take makes a moment of where the recording is.
func (r *recorded) take() {
	for {
		was, m := r.now.Load(), r.show.Now()
		if was != nil && was.of == m || r.now.CompareAndSwap(was, r.moment(m)) {
			return
		}
	}
}

func utc(ns int64) time.Time { return time.Unix(0, ns).UTC() }

func (r *recorded) describe() Replay {
	m, of := r.now.Load().of, r.show.Recording()
	begin, end := r.show.Span()
	x := Replay{
		Version: observe.Version, File: r.file, Host: printable.Line(of.Host, maxReason), Begin: utc(begin), End: utc(end), At: utc(m.At),
		Turns: m.Turns, Failures: m.Failed, Cut: of.Missing != nil,
	}
	for _, a := range r.show.NotRecorded() {
		x.NotRecorded = append(x.NotRecorded, printable.Line(a.Path, maxReason))
	}
	for _, a := range r.show.Inexact() {
		x.Inexact = append(x.Inexact, printable.Line(a.Path, maxReason))
	}
	if d := m.Difference; d != nil {
		x.Difference = printable.Line(d.String(), maxReason)
	}
	return x
}

// moment makes the view of a moment.
func (r *recorded) moment(m *rerun.Moment) *moment {
	begin, _ := r.show.Span()
	of := r.show.Recording()
	about := observe.System{Name: "recording", Bundle: r.file, PID: os.Getpid(), Started: utc(begin), Ready: true}
	t := tree{known: map[abi.Ref]bool{}, at: map[string]abi.Ref{}}
	for i := range m.Actors {
		t.add(&m.Actors[i])
	}
	if len(m.Actors) > 0 {
		about.Name = systemOf(m.Actors[0].Of.Path)
	}
	t.connect("wasm://" + about.Name)
	ended := map[string]host.TypeStats{}
	for name, e := range m.Ended {
		ended[printable.Line(name, maxReason)] = host.TypeStats{Turns: e.Turns, Fuel: e.Fuel, Crashes: e.Crashes, Restarts: e.Restarts}
	}
	detail := func(uid abi.Ref, d *observe.Detail) {
		i := slices.IndexFunc(m.Actors, func(x rerun.Standing) bool { return x.Of.Ref == uid })
		if i < 0 {
			return
		}
		x := &m.Actors[i]
		d.Limits = observe.Limits{Fuel: x.Of.Fuel, Memory: x.Of.Memory, Outbox: x.Of.Outbox}
		image := &of.Images[x.Image]
		d.Module, d.Code = printable.Line(image.Name, maxReason), hex.EncodeToString(image.Module[:])
	}
	return &moment{m, observe.NewStill(utc(m.At), t.infos, ended, about, detail)}
}

// systemOf is the name of the system in a path.
func systemOf(path string) string {
	rest, _ := strings.CutPrefix(path, ref.Scheme)
	name, _, _ := strings.Cut(rest, "/")
	return printable.Line(name, 100)
}

// tree connects the actors of a recording, which is a stranger's: paths may be any texts.
type tree struct {
	infos []host.Info
	known map[abi.Ref]bool
	at    map[string]abi.Ref // by path
}

// What a recording does not have of a tree is put in: actors in Go, above all.
const (
	notRecorded  = "not recorded" // their type
	mostPutIn    = 10_000
	mostElements = 64 // of a path
)

func (t *tree) add(x *rerun.Standing) {
	path := printable.Line(x.Of.Path, 4*maxReason)
	r := ref.Of(x.Of.Ref, path)
	if r.IsZero() || t.known[r.UID()] {
		return
	}
	t.known[r.UID()], t.at[r.Path()] = true, r.UID()
	i := host.Info{
		Ref: r, Type: printable.Line(x.Of.Type, maxReason), State: host.StateRunning, Incarnation: x.Of.Number, Turns: x.Turns, Fuel: x.Fuel,
		Crashes: x.Crashes, Restarts: x.Restarts, Since: x.Since,
	}
	if x.Failure != nil {
		i.Failure = view.Shortened(time.Unix(0, x.FailedAt), x.Failure)
	}
	t.infos = append(t.infos, i)
}

// connect gives all actors their parents, which are put in where they are not there.
func (t *tree) connect(root string) {
	top := t.put(root + "/user")
	put := 0
	for i := 0; i < len(t.infos); i++ { // it grows
		x := &t.infos[i]
		path := x.Ref.Path()
		if strings.Count(path, "/") < 2 || path[0] != '/' {
			if path != "/user" && path != "/system" {
				x.Parent = top
			}
			continue
		}
		above := path[:strings.LastIndexByte(path, '/')]
		if uid, ok := t.at[above]; ok {
			x.Parent = ref.Of(uid, root+above)
			continue
		}
		if put++; put > mostPutIn || strings.Count(path, "/") > mostElements {
			x.Parent = top
			continue
		}
		parent := t.put(root + above)
		t.infos[i].Parent = parent
	}
}

// put puts an actor in.
func (t *tree) put(uri string) ref.Ref {
	path := ref.Of(1, uri).Path()
	if uid, ok := t.at[path]; ok {
		return ref.Of(uid, uri)
	}
	uid := abi.Ref(xxhash.Sum64String(uri))
	for uid == 0 || t.known[uid] {
		uid++
	}
	t.known[uid], t.at[path] = true, uid
	r := ref.Of(uid, uri)
	t.infos = append(t.infos, host.Info{Ref: r, Type: notRecorded, State: host.StateRunning})
	return r
}

// traceRecorded answers the messages of an actor behind the time that is shown.
func (s *Server) traceRecorded(c *call, t observe.TraceOptions) error {
	samples := s.rooms[c.share()].samples
	if !samples.TryAcquire(1) {
		return &Problem{http.StatusTooManyRequests, "busy", "traces are read already", "try again when they have ended"}
	}
	defer samples.Release(1)
	from := s.replay.now.Load().of.At
	most := t.Payload
	if most == 0 {
		most = 4 << 10
	}
	until, reason := int64(0), "the recording has ended"
	if _, end := s.replay.show.Span(); t.For > 0 && from+int64(t.For) < end {
		until, reason = from+int64(t.For), "the time is over"
	}
	var o *outlet
	var done func()
	begin := func() (err error) {
		if o == nil {
			o, done, err = s.begin(c)
		}
		return err
	}
	defer func() {
		if done != nil {
			done()
		}
	}()
	n := 0
	var wrong error
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	_ = c.rc.SetWriteDeadline(time.Time{})
	err := s.replay.show.Trace(ctx, pathOf(c.query.Get("path")), from, until, func(m *rerun.Traced) bool {
		if t.Messages > 0 && n == t.Messages {
			reason = "as many messages as were asked for"
			return false
		}
		n++
		if wrong = begin(); wrong == nil {
			wrong = o.write("", tracedOf(m, most))
		}
		if wrong == nil && n%atOnce == 0 {
			wrong = o.flush()
		}
		return wrong == nil
	})
	var p *Problem
	switch {
	case errors.As(wrong, &p) || err != nil && o == nil:
		return errors.Join(wrong, err)
	case wrong != nil: // it was not read
		return nil
	case err != nil:
		reason = printable.Line(bare(err), maxReason)
	}
	if err := begin(); err != nil {
		return err
	}
	_ = o.write("", Notice{Event: "end", Reason: reason})
	_ = o.flush()
	return nil
}

// tracedOf is a message as the trace of a system shows it.
func tracedOf(m *rerun.Traced, most int) observe.TraceRecord {
	r := observe.TraceRecord{
		Time: utc(m.Time), Actor: printable.Line(ref.Of(m.Of.Ref, m.Of.Path).Path(), maxReason), Incarnation: m.Of.Number, Turn: m.Turn, Direction: "in",
		Kind: m.Kind.String(), Forward: m.Forward, Peer: printable.Line(m.Path, 200), Correlation: m.Correlation, Size: len(m.Payload), Cut: len(m.Payload) > most,
	}
	if m.Out {
		r.Direction = "out"
	}
	if m.Peer != 0 {
		r.PeerRef = fmt.Sprintf("%016x", uint64(m.Peer))
	}
	if !r.Cut {
		if j, err := host.ToJSON(m.Payload); err == nil {
			r.Payload = j
		}
	}
	if m.Failure != nil {
		r.Failed = printable.Line(m.Failure.Error(), 200)
	}
	return r
}

// What a recording does not have. The routes are refused before.

var errRecorded = &Problem{http.StatusConflict, "recording", "a recording is served, which does not have that", ""}

func (r *recorded) System() observe.System                       { return r.now.Load().still.System() }
func (r *recorded) Actors(q observe.Query) (observe.Page, error) { return r.now.Load().still.Actors(q) }
func (r *recorded) Tree(q observe.TreeQuery) (observe.TreeNode, error) {
	return r.now.Load().still.Tree(q)
}
func (r *recorded) Actor(path string) (observe.Detail, error) { return r.now.Load().still.Actor(path) }
func (r *recorded) Events(observe.EventQuery) (*observe.Stream[observe.Event], error) {
	return nil, errRecorded
}
func (r *recorded) Crashes(observe.CrashQuery) (observe.CrashPage, error) {
	return observe.CrashPage{}, errRecorded
}
func (r *recorded) CrashReport(string) (observe.CrashReport, error) {
	return observe.CrashReport{}, errRecorded
}
func (r *recorded) History(time.Duration) (observe.History, error) {
	return observe.History{}, errRecorded
}
func (r *recorded) Latencies() observe.Latencies { return observe.Latencies{} }
func (r *recorded) DeadLetters(observe.DeadQuery) (observe.DeadPage, error) {
	return observe.DeadPage{}, errRecorded
}
func (r *recorded) Trace(string, observe.TraceOptions) (*observe.Stream[observe.TraceRecord], error) {
	return nil, errRecorded
}
func (r *recorded) Flow(context.Context, time.Duration) (observe.Flow, error) {
	return observe.Flow{}, errRecorded
}
func (r *recorded) Profile(context.Context, time.Duration, observe.Select) (*observe.Profile, error) {
	return nil, errRecorded
}
func (r *recorded) Do(observe.Verb) (observe.Outcome, error) { return observe.Outcome{}, errRecorded }
func (r *recorded) Redeliver(observe.DeadQuery, bool) (observe.Outcome, error) {
	return observe.Outcome{}, errRecorded
}
