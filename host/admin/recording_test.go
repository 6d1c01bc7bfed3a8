package admin

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/rerun"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// record is what a puppet does at a message, see host/testdata/puppet.wat.
func record(kind, flag byte, commands ...[]byte) []byte {
	all := slices.Concat(commands...)
	return append(binary.LittleEndian.AppendUint16([]byte{kind, flag}, uint16(len(all))), all...)
}

func orders(records ...[]byte) host.Raw {
	b, err := cbor.Marshal(slices.Concat(records...))
	if err != nil {
		panic(err)
	}
	return b
}

// tape is a recording with the times between its phases: actors begin; a sends to b; c, below an actor in Go, fails; b ends.
type tape struct {
	of     *recorder.Recording
	engine *runtime.Engine
	code   []byte
	phases []time.Time
}

func newTape(t *testing.T) *tape {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "testdata", "puppet_batching.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	engine, err := runtime.New(t.Context(), runtime.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(context.Background()) })
	image, err := engine.Load(t.Context(), code, runtime.ImageConfig{Name: "puppet"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.wrec")
	r, err := recorder.Open(recorder.Config{Path: path, Version: "test", Ended: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	sys, err := host.New(host.NewConfig("shop").WithWorkers(2).WithRecording(r).WithGuardian(supervision.Default().WithOtherwise(supervision.Restart).WithMaxRestarts(-1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	x := &tape{engine: engine, code: code}
	phase := func() {
		t.Helper()
		if err := sys.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
		x.phases = append(x.phases, time.Now())
		time.Sleep(2 * time.Millisecond)
	}
	tell := func(to string, m any) {
		t.Helper()
		if err := sys.TellPath(to, m); err != nil {
			t.Fatal(err)
		}
	}
	puppet := host.Guest(image, "puppet").WithArgs(orders()).WithCapabilities(host.Capabilities{Send: []string{"/**"}})
	for name, p := range map[string]host.Props{"a": puppet, "b": puppet, "shelf": host.Func(echo).WithChildren(host.Child{Name: "c", Props: puppet})} {
		if _, err := sys.Spawn(name, p); err != nil {
			t.Fatal(err)
		}
	}
	phase()
	for range 3 {
		tell("/user/a", orders(record(0, 0, abi.AppendSend(nil, 0, "/user/b", 0, 0, nil, orders(record(255, 1))))))
	}
	phase()
	tell("/user/shelf/c", orders(record(0, 1)))
	phase()
	ref, err := sys.Lookup("/user/b")
	if err != nil {
		t.Fatal(err)
	}
	sys.Stop(ref)
	phase()
	tell("/user/a", orders())
	if err := sys.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sys.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if x.of, err = recorder.Read(b); err != nil {
		t.Fatal(err)
	}
	return x
}

// serve serves the recording, at a time or at its end.
func (x *tape) serve(t *testing.T, at time.Time) *site {
	t.Helper()
	ns := int64(0)
	if !at.IsZero() {
		ns = at.UnixNano()
	}
	show, err := rerun.OpenShow(t.Context(), x.engine, x.of, rerun.Options{Modules: [][]byte{x.code}}, ns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(show.Close)
	dir, err := os.MkdirTemp("", "admin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, socket: filepath.Join(dir, "s.sock"), token: NewToken(), read: NewToken()}
	cfg := NewConfig().WithSocket(s.socket).WithTCP("127.0.0.1:0").WithToken(s.token).WithReadToken(s.read)
	if s.server, err = ServeRecording(t.Context(), show, "run.wrec", cfg); err != nil {
		t.Fatal(err)
	}
	s.connect()
	return s
}

func moveTo(at time.Time) string { return fmt.Sprintf(`{"at": %q}`, at.UTC().Format(time.RFC3339Nano)) }

// What a recording has is answered, as of a system that runs.
func TestRecordingIsShown(t *testing.T) {
	s := newTape(t).serve(t, time.Time{})
	for path, schema := range map[string]string{
		"/v1/server": "About", "/v1/replay": "Replay", "/v1/system": "System", "/v1/actors": "Page", "/v1/tree": "TreeNode", "/v1/actor?path=/user/shelf/c": "Detail", "/healthz": "Health", "/readyz": "Health",
	} {
		status, text := s.do(http.MethodGet, path, "")
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, text)
		}
		valid(t, schemaOf(t, "/components/schemas/"+schema), text)
	}
	if a := get[About](s, "/v1/server"); !a.Replay {
		t.Errorf("%+v", a)
	}
	if x := get[Replay](s, "/v1/replay"); !x.Begin.Before(x.At) || !x.At.Before(x.End) || x.Failures != 1 || x.File != "run.wrec" || x.Difference != "" || x.Cut {
		t.Errorf("%+v", x)
	}
	sys := get[observe.System](s, "/v1/system")
	if sys.Name != "shop" || sys.Crashes != 1 || sys.Restarts != 1 || sys.Turns < 8 || !sys.Ready {
		t.Errorf("%+v", sys)
	}
	tree := get[observe.TreeNode](s, "/v1/tree")
	var paths []string
	for _, n := range tree.Nodes {
		paths = append(paths, n.Path+" "+n.Type)
		for _, k := range n.Nodes {
			paths = append(paths, k.Path+" "+k.Type)
		}
	}
	if want := []string{"/user/a puppet", "/user/shelf not recorded", "/user/shelf/c puppet"}; tree.Path != "/user" || !slices.Equal(paths, want) {
		t.Errorf("%v, want %v", paths, want)
	}
	if p := get[observe.Page](s, "/v1/actors?type=puppet&sort=turns&desc"); p.Total != 2 || p.Actors[0].Path != "/user/a" || p.Actors[0].Turns != 5 {
		t.Errorf("%+v", p)
	}
	if d := get[observe.Detail](s, "/v1/actor?path=/user/shelf/c"); d.LastFailure == nil || d.LastFailure.Kind != "trap" || d.Incarnation != 1 || d.Crashes != 1 || d.Module != "puppet" || len(d.Code) != 64 || d.Parent != "/user/shelf" {
		t.Errorf("%+v", d)
	}
	for path, code := range map[string]string{"/v1/actor?path=/user/b": "no_such_actor", "/v1/tree?under=/user/b": "no_such_actor", "/v1/tree?depth=65": "bad_query", "/v1/actors?sort=x": "invalid", "/v1/trace?path=/user/x": "no_such_actor", "/metrics": "no_such_path"} {
		if p := s.refused(http.MethodGet, path, ""); p.Code != code {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// Whichever way a time is reached, its tree is that of a server that has begun there.
func TestRecordingMoves(t *testing.T) {
	x := newTape(t)
	s := x.serve(t, time.Time{})
	replay := get[Replay](s, "/v1/replay")
	for _, c := range []struct {
		at      time.Time
		turns   uint64 // of a
		crashes uint64
		b       bool
	}{
		{x.phases[1], 4, 0, true}, {x.phases[0], 1, 0, true}, {x.phases[2], 4, 1, true}, {replay.At, 5, 1, false}, {x.phases[3], 4, 1, false}, {x.phases[1], 4, 0, true},
	} {
		moved := post[Replay](s, "/v1/replay", moveTo(c.at))
		if !moved.At.Equal(c.at) || get[Replay](s, "/v1/replay").At != moved.At {
			t.Errorf("%v: %+v", c.at, moved)
		}
		straight := x.serve(t, c.at)
		for _, path := range []string{"/v1/tree", "/v1/actors?sort=fuel", "/v1/system", "/v1/actor?path=/user/a"} {
			_, a := s.do(http.MethodGet, path, "")
			_, b := straight.do(http.MethodGet, path, "")
			if string(a) != string(b) {
				t.Errorf("%v, %s: %s\na straight replay: %s", c.at, path, a, b)
			}
		}
		if d := get[observe.Detail](s, "/v1/actor?path=/user/a"); d.Turns != c.turns {
			t.Errorf("%v: a has had %d turns, not %d", c.at, d.Turns, c.turns)
		}
		sys := get[observe.System](s, "/v1/system")
		if there := get[observe.Page](s, "/v1/actors?path=/user/b").Total == 1; sys.Crashes != c.crashes || there != c.b || !sys.Now.Equal(c.at) {
			t.Errorf("%v: b is there: %v; %+v", c.at, there, sys)
		}
	}
	post[Replay](s, "/v1/replay", moveTo(replay.End))
	if p := get[observe.Page](s, "/v1/actors"); p.Total != 0 {
		t.Errorf("the system has ended, and has %+v", p)
	}
	post[Replay](s, "/v1/replay", moveTo(x.phases[1]))
	for _, body := range []string{moveTo(replay.Begin.Add(-1)), moveTo(replay.End.Add(1)), moveTo(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), `{"at": "yesterday"}`, `{"at": 5}`, `{}`, ``, `{"to": "x"}`, `{"at": null}`} {
		if p := s.refused(http.MethodPost, "/v1/replay", body); p.Status != http.StatusBadRequest || p.Code != "no_such_time" && p.Code != "bad_body" {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if at := get[Replay](s, "/v1/replay").At; !at.Equal(x.phases[1]) {
		t.Errorf("a time that is none has moved it to %v", at)
	}
}

// Whatever a recording does not have, and whatever would change it, is refused: also what is added later.
func TestRecordingIsNotChanged(t *testing.T) {
	s := newTape(t).serve(t, time.Time{})
	_, before := s.do(http.MethodGet, "/v1/tree?depth=64", "")
	refused := 0
	for _, rt := range table() {
		if rt.still {
			continue
		}
		path, body := rt.path, ""
		if rt.method == http.MethodPost {
			body = `{"select": {"paths": ["/user/**"]}}`
		}
		if rt.path == "/metrics" {
			continue
		}
		if p := s.refused(rt.method, path, body); p.Status != http.StatusConflict || p.Code != "recording" || p.Hint == "" {
			t.Errorf("%s %s: %+v", rt.method, path, p)
		}
		refused++
	}
	if refused < 25 {
		t.Errorf("only %d routes are refused", refused)
	}
	for _, rt := range table() {
		if rt.still && rt.method != http.MethodGet && rt.path != "/v1/session" && rt.path != "/v1/replay" {
			t.Errorf("%s %s is open to all", rt.method, rt.path)
		}
	}
	if _, after := s.do(http.MethodGet, "/v1/tree?depth=64", ""); string(after) != string(before) {
		t.Errorf("%s\nbefore: %s", after, before)
	}
	live := serveSite(t, nil)
	if p := live.refused(http.MethodGet, "/v1/replay", ""); p.Status != http.StatusConflict || p.Code != "no_recording" {
		t.Errorf("%+v", p)
	}
	if p := live.refused(http.MethodPost, "/v1/replay", moveTo(time.Now())); p.Code != "no_recording" {
		t.Errorf("%+v", p)
	}
	if get[About](live, "/v1/server").Replay {
		t.Error("a system that runs is called a recording")
	}
}

// A server of a recording asks what a server of a system asks: a token, the right Host, no page of another origin.
func TestRecordingIsGuarded(t *testing.T) {
	s := newTape(t).serve(t, time.Time{})
	begin := moveTo(get[Replay](s, "/v1/replay").Begin)
	at := get[Replay](s, "/v1/replay").At
	for name, c := range map[string]struct {
		method, path, token string
		header              [2]string
		want                int
	}{
		"no token":                  {"GET", "/v1/tree", "", [2]string{}, 401},
		"no token, moving":          {"POST", "/v1/replay", "", [2]string{}, 401},
		"no token, what is refused": {"POST", "/v1/stop", "", [2]string{}, 401},
		"a wrong token":             {"GET", "/v1/replay", "x", [2]string{}, 401},
		"reading":                   {"GET", "/v1/tree", s.read.Reveal(), [2]string{}, 200},
		"reading where it is":       {"GET", "/v1/replay", s.read.Reveal(), [2]string{}, 200},
		"a reader moving":           {"POST", "/v1/replay", s.read.Reveal(), [2]string{}, 403},
		"a reader's verb":           {"POST", "/v1/stop", s.read.Reveal(), [2]string{}, 403},
		"another host":              {"POST", "/v1/replay", s.token.Reveal(), [2]string{"Host", "evil.example"}, 421},
		"another origin":            {"POST", "/v1/replay", s.token.Reveal(), [2]string{"Origin", "http://evil.example"}, 403},
		"another site":              {"GET", "/v1/replay", s.token.Reveal(), [2]string{"Sec-Fetch-Site", "cross-site"}, 403},
	} {
		body := ""
		if c.method == "POST" {
			body = begin
		}
		r, err := http.NewRequest(c.method, s.base+c.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		r.Header.Set("Content-Type", "application/json")
		if c.header[0] == "Host" {
			r.Host = c.header[1]
		} else if c.header[0] != "" {
			r.Header.Set(c.header[0], c.header[1])
		}
		if status, text := s.send(s.tcp, r); status != c.want {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if moved := get[Replay](s, "/v1/replay").At; !moved.Equal(at) {
		t.Errorf("it was moved to %v", moved)
	}
	if _, err := ServeRecording(t.Context(), s.server.replay.show, "x", NewConfig().WithTCP("0.0.0.0:0").WithToken(NewToken())); err == nil || !strings.Contains(err.Error(), "not on loopback") {
		t.Error(err)
	}
}

// A trace has the messages behind the time that is shown, and ends.
func TestRecordingIsTraced(t *testing.T) {
	x := newTape(t)
	s := x.serve(t, x.phases[0])
	trace := func(query string) (all []observe.TraceRecord, reason string) {
		t.Helper()
		status, text := s.do(http.MethodGet, "/v1/trace?path=/user/a"+query, "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", query, status, text)
		}
		for line := range strings.Lines(string(text)) {
			var n Notice
			if err := json.Unmarshal([]byte(line), &n); err == nil && n.Event == "end" {
				reason = n.Reason
				continue
			}
			valid(t, schemaOf(t, "/components/schemas/TraceRecord"), []byte(line))
			var m observe.TraceRecord
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		return all, reason
	}
	all, reason := trace("")
	in, out := 0, 0
	for _, m := range all {
		if m.Direction == "in" {
			in++
		} else if out++; m.Peer != "/user/b" || m.Size == 0 {
			t.Errorf("%+v", m)
		}
		if m.Actor != "/user/a" || !m.Time.After(x.phases[0]) {
			t.Errorf("%+v", m)
		}
	}
	if in < 4 || out != 3 || reason != "the recording has ended" {
		t.Errorf("%d in, %d out: %s", in, out, reason)
	}
	if few, reason := trace("&messages=2"); len(few) != 2 || reason != "as many messages as were asked for" {
		t.Errorf("%d: %s", len(few), reason)
	}
	if cut, _ := trace("&payload=1"); len(cut) != len(all) || !cut[0].Cut || cut[0].Payload != nil {
		t.Errorf("%+v", cut[0])
	}
	if none, reason := trace("&seconds=0.000000001"); len(none) != 0 || reason != "the time is over" {
		t.Errorf("%d: %s", len(none), reason)
	}
	post[Replay](s, "/v1/replay", moveTo(get[Replay](s, "/v1/replay").End))
	if none, reason := trace(""); len(none) != 0 || reason != "the recording has ended" {
		t.Errorf("%d: %s", len(none), reason)
	}
}

// Paths of a forged recording make a tree all the same, of a bounded size.
func TestForgedPaths(t *testing.T) {
	deep := "wasm://s" + strings.Repeat("/x", 1000)
	tr := tree{known: map[abi.Ref]bool{}, at: map[string]abi.Ref{}}
	for i, path := range []string{deep, "", "/", "//", "wasm://s", "wasm://s/user", "wasm://other/user/a", "wasm://s/user/a/b", "wasm://s/user/a/b", "\x00\xff/\n", "/user/a/", deep + "/y"} {
		tr.add(&rerun.Standing{Of: &recorder.Incarnation{Path: path, Ref: abi.Ref(i + 1)}})
	}
	for i := range 3 * mostPutIn {
		tr.add(&rerun.Standing{Of: &recorder.Incarnation{Path: fmt.Sprintf("wasm://s/user/%d/x", i), Ref: abi.Ref(1000 + i)}})
	}
	tr.connect("wasm://s")
	if n := len(tr.infos); n > 4*mostPutIn+100 {
		t.Errorf("%d actors", n)
	}
	still := observe.NewStill(time.Unix(1, 0), tr.infos, nil, observe.System{}, nil)
	if n, err := still.Tree(observe.TreeQuery{Depth: 64}); err != nil || n.Below.Actors < 3*mostPutIn {
		t.Errorf("%d actors below: %v", n.Below.Actors, err)
	}
	if _, err := still.Actors(observe.Query{}); err != nil {
		t.Error(err)
	}
}
