package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/service/kv"
	"github.com/wasmactors/wasmactors/host/service/kv/operate"
	"github.com/wasmactors/wasmactors/supervision"
)

// document is the OpenAPI file, as far as tests read it.
type document struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name     string
			Required bool
		}
		Responses map[string]any
	}
}

func readDocument(t *testing.T) (d document) {
	t.Helper()
	if err := json.Unmarshal(OpenAPI(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// pointer is a path in the file as a JSON pointer has it.
func pointer(path, method, status, media string) string {
	esc := func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1") }
	return "/paths/" + esc(path) + "/" + strings.ToLower(method) + "/responses/" + status + "/content/" + esc(media) + "/schema"
}

// Every route of the file is one of the server's, and the other way round: who asks for it
// gets another answer than that there is no such path or method.
func TestRoutesAreThoseOfTheFile(t *testing.T) {
	s := serveSite(t, func(c Config) Config {
		return c.WithMetrics(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	})
	d := readDocument(t)
	for path, methods := range d.Paths {
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			_, known := methods[strings.ToLower(m)]
			body := ""
			if m == "POST" {
				body = "nonsense"
			}
			if path == "/v1/profile" && m == "GET" {
				continue // takes its time, and has a test of its own
			}
			status, _ := s.do(m, path, body)
			if served := status != 404 && status != 405; served != known {
				t.Errorf("%s %s: %d, in the file: %v", m, path, status, known)
			}
		}
	}
	for _, r := range table() {
		if _, ok := d.Paths[r.path][strings.ToLower(r.method)]; !ok {
			t.Errorf("the file has no %s %s", r.method, r.path)
		}
	}
}

// fakeNodes is a cluster of two nodes.
type fakeNodes struct{ apart string }

func (f fakeNodes) Apart() string { return f.apart }

func (fakeNodes) Status(context.Context, string) (ClusterStatus, error) {
	return ClusterStatus{Version: 1, Number: 1, Name: "a", Acting: true, Keepers: []string{"a"}, Members: []ClusterNode{{Number: 1, Name: "a", Roles: []string{"back"}}}, Kinds: []ClusterKind{{Kind: "carts", Shards: 8}}}, nil
}

func (fakeNodes) Where(_ context.Context, kind, key string) (KeyPlace, error) {
	return KeyPlace{Version: 1, Kind: kind, Key: key, Node: 1, Name: "a"}, nil
}

func (f fakeNodes) Move(ctx context.Context, kind, key, node string) (KeyPlace, error) {
	if node != "b" {
		return KeyPlace{}, errors.New("there is no such node")
	}
	return f.Where(ctx, kind, key)
}

func (fakeNodes) Journal(_ context.Context, kind, key string) (KeyJournal, error) {
	return KeyJournal{Version: 1, Kind: kind, Key: key, Last: 7, Events: 3, Snapshots: 1, Records: 2, Bytes: 200}, nil
}

func (fakeNodes) Journals(_ context.Context, q JournalQuery) (KeyJournals, error) {
	return KeyJournals{Version: 1, Keys: []ListedKey{{Kind: "carts", Key: q.Prefix + "ann", Bytes: 200, Records: 2, Last: time.Unix(1, 0), Shard: 3, Epoch: 2, Node: 1, Name: "a"}}, Next: "carts/ann"}, nil
}

func (f fakeNodes) Erase(ctx context.Context, kind, key string) (KeyJournal, error) {
	if key == "lives" {
		return KeyJournal{}, errors.New("its actor is there")
	}
	return f.Journal(ctx, kind, key)
}

func (f fakeNodes) Drain(ctx context.Context, node string, _ bool) (ClusterStatus, error) {
	return f.Status(ctx, node)
}

func (fakeNodes) All(_ context.Context, trees bool) (ClusterNodes, error) {
	n := ClusterNodes{Version: 1, Nodes: []NodeReport{{Number: 1, Name: "a"}, {Number: 2, Name: "b", Error: "no answer"}}}
	if trees {
		n.Nodes[0].Tree = []NodeActor{{Path: "/user", Type: "native", State: "running"}}
	}
	return n, nil
}

func (fakeNodes) Events(context.Context, NodeEvents) (ClusterNodes, error) {
	return ClusterNodes{Version: 1, Nodes: []NodeReport{{Number: 1, Name: "a", Events: []json.RawMessage{[]byte(`{"event":"started"}`)}}}}, nil
}

// What the server answers is what the file says, for every route that answers with JSON.
func TestAnswersAreThoseOfTheFile(t *testing.T) {
	keys, err := kv.InMemory(host.RealClock())
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	var ends atomic.Int32
	stored := &fakeStore{}
	s := serveSite(t, func(c Config) Config {
		return c.WithKeys(func() operate.Keys { return keys }).WithNodes(func() Nodes { return fakeNodes{} }).WithShutdown(func() { ends.Add(1) }).WithStore(func() Store { return stored }).WithReload(func(_ context.Context, r Reload) (Reloaded, error) {
			if r.Restart {
				return Reloaded{}, errors.New("bundle.yaml:3:1: no such key")
			}
			return Reloaded{Actors: []ReloadedActor{{Path: "/user/a"}}}, nil
		})
	})
	if _, err := s.sys.Spawn("pool", host.Func(echo).WithChildren(host.Child{Name: "w1", Props: host.Func(echo)}, host.Child{Name: "w2", Props: host.Func(echo)}).
		WithSupervision(supervision.Default().WithOtherwise(supervision.Suspend))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no workers", func() bool { return get[observe.Page](s, "/v1/actors").Total == 5 })
	if a := post[Answer](s, "/v1/ask", `{"to":"/user/pool/w1","message":0}`); a.Kind != "failed" {
		t.Errorf("%+v", a)
	}
	_ = s.sys.TellPath("/user/nobody", "lost")
	eventually(t, "no report", func() bool { return get[observe.CrashPage](s, "/v1/crashes").Total == 1 })
	report := get[observe.CrashPage](s, "/v1/crashes?type=native&kind=*&since=2026-01-02T15:04:05Z").Crashes[0].ID
	everybody := `{"select":{"paths":["/user/**"]},"dry_run":true}`
	asked := map[string]bool{}
	for _, c := range []struct{ method, path, body, status string }{
		{"GET", "/v1/server", "", "200"},
		{"GET", "/v1/system", "", "200"},
		{"GET", "/v1/actors?sort=crashes&desc", "", "200"},
		{"GET", "/v1/actors?path=/nobody", "", "200"},
		{"GET", "/v1/tree?depth=5", "", "200"},
		{"GET", "/v1/actor?path=/user/pool/w1", "", "200"},
		{"GET", "/v1/actor?path=/user/a", "", "200"},
		{"GET", "/v1/actor?path=/user/nobody", "", "default"},
		{"GET", "/v1/dead-letters", "", "200"},
		{"GET", "/v1/dead-letters?to=/nobody", "", "200"},
		{"GET", "/v1/crashes?cause=*", "", "200"},
		{"GET", "/v1/crashes?since=yesterday", "", "default"},
		{"GET", "/v1/crashes/report?id=" + report, "", "200"},
		{"GET", "/v1/crashes/report?id=0000000000000000", "", "default"},
		{"GET", "/v1/history?seconds=60", "", "200"},
		{"GET", "/v1/history?seconds=90000", "", "default"},
		{"GET", "/v1/latencies", "", "200"},
		{"GET", "/v1/flow?seconds=0.01", "", "200"},
		{"POST", "/v1/send", `{"to":"a","message":5}`, "200"},
		{"POST", "/v1/send", `{"to":"/user/*","message":{"x":[1,2.5,null]}}`, "200"},
		{"POST", "/v1/send", `{"select":{"types":["native"]},"message":1,"dry_run":true}`, "200"},
		{"POST", "/v1/ask", `{"to":"a","message":7,"timeout_ns":5000000000}`, "200"},
		{"POST", "/v1/ask", `{"to":"a","message":"silence","timeout_ns":1000000}`, "200"},
		{"POST", "/v1/ask", `{"to":"a"}`, "default"},
		{"POST", "/v1/stop", everybody, "200"},
		{"POST", "/v1/kill", everybody, "200"},
		{"POST", "/v1/restart", everybody, "200"},
		{"POST", "/v1/pause", everybody, "200"},
		{"POST", "/v1/unpause", everybody, "200"},
		{"POST", "/v1/crash", everybody, "200"},
		{"POST", "/v1/decide", `{"select":{"paths":["/user/pool/*"]},"directive":"resume","dry_run":true}`, "200"},
		{"POST", "/v1/reset-backoff", everybody, "200"},
		{"POST", "/v1/dead-letters/redeliver", `{"all":true,"dry_run":true}`, "200"},
		{"POST", "/v1/stop", `{}`, "default"},
		{"GET", "/v1/store", "", "200"},
		{"POST", "/v1/store/checkpoint", `{}`, "200"},
		{"POST", "/v1/store/checkpoint", `{}`, "default"},
		{"POST", "/v1/reload", `{}`, "200"},
		{"POST", "/v1/reload", `{"restart":true}`, "default"},
		{"POST", "/v1/shutdown", `{}`, "200"},
		{"GET", "/v1/replay", "", "default"},
		{"POST", "/v1/replay", `{"at":"2026-01-02T15:04:05Z"}`, "default"},
		{"GET", "/healthz", "", "200"},
		{"GET", "/readyz", "", "200"},
		{"GET", "/v1/kv", "", "200"},
		{"POST", "/v1/kv/put", `{"namespace":"n","key":"k","value":"dmFsdWU=","ttl_ns":60000000000,"if_version":0}`, "200"},
		{"POST", "/v1/kv/put", `{"namespace":"n","key":"k","value":"dmFsdWU=","if_version":0}`, "default"},
		{"GET", "/v1/kv/list?namespace=n&prefix=k&limit=1&reverse", "", "200"},
		{"GET", "/v1/kv/list?namespace=n&cursor=x", "", "default"},
		{"GET", "/v1/kv/entry?namespace=n&key=k", "", "200"},
		{"GET", "/v1/kv/entry?namespace=n&key=nothing", "", "default"},
		{"POST", "/v1/kv/delete", `{"namespace":"n","key":"k"}`, "200"},
		{"POST", "/v1/kv/delete", `{"namespace":"N","key":"k"}`, "default"},
		{"GET", "/v1/cluster", "", "200"},
		{"GET", "/v1/cluster/nodes", "", "200"},
		{"GET", "/v1/cluster/nodes?trees", "", "200"},
		{"GET", "/v1/cluster/events", "", "200"},
		{"GET", "/v1/cluster/where?kind=carts&key=ann", "", "200"},
		{"GET", "/v1/cluster/where?key=ann", "", "default"},
		{"POST", "/v1/cluster/move", `{"kind":"carts","key":"ann","node":"b"}`, "200"},
		{"POST", "/v1/cluster/move", `{"kind":"carts","key":"ann","node":"c"}`, "default"},
		{"GET", "/v1/cluster/journal?kind=carts&key=ann", "", "200"},
		{"GET", "/v1/cluster/journals?kind=carts&prefix=a&after=carts%2Fa&limit=2", "", "200"},
		{"GET", "/v1/cluster/journals?limit=257", "", "default"},
		{"POST", "/v1/cluster/journal/delete", `{"kind":"carts","key":"ann"}`, "200"},
		{"POST", "/v1/cluster/journal/delete", `{"kind":"carts","key":"lives"}`, "default"},
		{"POST", "/v1/cluster/drain", `{"on":true}`, "200"},
	} {
		status, text := s.do(c.method, c.path, c.body)
		if ok := status == 200; ok != (c.status == "200") {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, status, text)
			continue
		}
		path, _, _ := strings.Cut(c.path, "?")
		valid(t, schemaOf(t, pointer(path, c.method, c.status, mediaJSON)), text)
		asked[c.method+" "+path] = true
	}
	if ends.Load() != 1 {
		t.Errorf("it was ended %d times", ends.Load())
	}
	for _, r := range table() {
		if r.answer != nil && !r.stream && !asked[r.method+" "+r.path] && r.path != "/v1/session" {
			t.Errorf("no answer of %s %s was looked at", r.method, r.path)
		}
	}
}

// fakeStore makes one checkpoint.
type fakeStore struct{ made atomic.Bool }

func (*fakeStore) Actors(context.Context) ([]StoredActor, error) {
	return []StoredActor{{Path: "wasm://s/user/a", Type: "t", Ref: 7, Turns: 3}}, nil
}

func (s *fakeStore) Checkpoint(context.Context) error {
	if s.made.Swap(true) {
		return errors.New("they have not come to rest")
	}
	return nil
}

// Events implements Store: there are two of b, and a third one comes.
func (*fakeStore) Events(ctx context.Context, q EventQuery, f func(StoredEvent) error, idle func() error) error {
	for n := max(q.From, 1); n <= 2; n++ {
		if err := f(StoredEvent{ID: "/user/b", Number: n, Offset: 40 + n, Type: "t@1", Tags: []string{q.Tag}, Time: time.Unix(7, 0).UTC(), Payload: json.RawMessage("{}")}); err != nil {
			return err
		}
	}
	if !q.Follow {
		return nil
	}
	if err := idle(); err != nil {
		return err
	}
	_ = f(StoredEvent{ID: "/user/b", Number: 3, Payload: json.RawMessage("1")})
	return errors.New("the store has failed")
}

// Events that are kept are told a line each; what cannot be is refused.
func TestStoredEvents(t *testing.T) {
	s := serveSite(t, func(c Config) Config { return c.WithStore(func() Store { return &fakeStore{} }) })
	var got []string
	for lines := s.stream("/v1/store/events?id=/user/b&from=2&follow", ""); lines.Scan(); {
		got = append(got, lines.Text())
	}
	if want := []string{
		`{"id":"/user/b","number":2,"offset":42,"type":"t@1","tags":[""],"time":"1970-01-01T00:00:07Z","payload":{}}`,
		`{"id":"/user/b","number":3,"offset":0,"type":"","time":"0001-01-01T00:00:00Z","payload":1}`,
		`{"event":"end","reason":"the store has failed"}`,
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for query, want := range map[string]string{"?id=/user/b&tag=x": "id and tag are given", "?follow": "follow needs id or tag", "?from=x": "from is a whole number"} {
		if status, text := s.do("GET", "/v1/store/events"+query, ""); status != 400 || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
}

// stream opens a stream at the socket and returns its lines.
func (s *site) stream(path, accept string) *bufio.Scanner {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, "http://wasmactors"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	res, err := s.unix.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 {
		s.t.Fatal(path, res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 8<<20)
	return lines
}

// Events come as lines and as server-sent events, each as the file says, and who follows an
// actor is told why when it ends.
func TestEventStreams(t *testing.T) {
	s := serveSite(t, nil)
	event, notice := schemaOf(t, "/components/schemas/Event"), schemaOf(t, "/components/schemas/Notice")
	for what, accept := range map[string]string{"lines": "", "server-sent events": mediaSSE} {
		var ref host.Ref
		eventually(t, "the name is free", func() bool { // shortly after the event that tells of the end
			var err error
			ref, err = s.sys.Spawn("brief", host.Func(echo))
			return err == nil
		})
		lines := s.stream("/v1/events?follow&path=/user/brief", accept)
		if p := s.refused("POST", "/v1/ask", `{"to":"brief","message":`); p.Status != 400 {
			t.Error(p)
		}
		post[Answer](s, "/v1/ask", `{"to":"brief","message":0}`)
		post[Answer](s, "/v1/ask", `{"to":"brief","message":1}`)
		s.sys.Stop(ref)
		var kinds []string
		var last string
		for lines.Scan() {
			line := lines.Text()
			if accept == mediaSSE {
				var ok bool
				if line, ok = strings.CutPrefix(line, "data: "); !ok {
					if line := lines.Text(); line != "" && !strings.HasPrefix(line, "id: ") {
						t.Errorf("%s: %q", what, line)
					}
					continue
				}
			}
			var e struct{ Event, Reason string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(what, line, err)
			}
			if kinds = append(kinds, e.Event); e.Event == "end" {
				valid(t, notice, []byte(line))
				last = e.Reason
				continue
			}
			valid(t, event, []byte(line))
		}
		if n := len(kinds); n < 4 || kinds[n-1] != "end" || kinds[n-2] != "stopped" || !slices.Contains(kinds, "failed") || !strings.Contains(last, "stopped") {
			t.Errorf("%s: %v %q", what, kinds, last)
		}
	}
	// Without follow there is an end, and no notice of it; numbers go on.
	n, last := 0, 0.0
	for lines := s.stream("/v1/events?kind=failed&kind=restarted", ""); lines.Scan(); n++ {
		var e map[string]any
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e["event"] != "failed" && e["event"] != "restarted" || e["number"].(float64) <= last {
			t.Errorf("%s", lines.Bytes())
		}
		last = e["number"].(float64)
	}
	if n != 4 {
		t.Error(n, "events")
	}
	if after := s.stream(fmt.Sprintf("/v1/events?after=%v", last), ""); after.Scan() && strings.Contains(after.Text(), fmt.Sprintf(`"number":%v,`, last)) {
		t.Error(after.Text())
	}
}

// The server's end is the end of its streams, and they say so.
func TestStreamsEndWithTheServer(t *testing.T) {
	s := serveSite(t, nil)
	lines := s.stream("/v1/events?follow", "")
	go s.server.Close()
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if !strings.Contains(last, `"event":"end"`) || !strings.Contains(last, "the server ends") {
		t.Error(last)
	}
}

func TestTooManyStreams(t *testing.T) {
	s := serveSite(t, func(c Config) Config { c.bounds.streams, c.bounds.samples = 6, 1; return c })
	for range 3 {
		s.stream("/v1/events?follow", "")
	}
	if p := s.refused("GET", "/v1/events?follow", ""); p.Status != 429 || p.Hint == "" {
		t.Errorf("%+v", p)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for status := 0; status != 200; { // the short ones may be first
			status, _ = s.do("GET", "/v1/flow?seconds=2", "")
		}
	}()
	eventually(t, "two samples at a time", func() bool {
		status, _ := s.do("GET", "/v1/flow?seconds=0.001", "")
		return status == 429
	})
	<-done
}

// Commands change what they say, and are strict about what they are told.
func TestCommands(t *testing.T) {
	s := serveSite(t, nil)
	out := post[observe.Outcome](s, "/v1/pause", `{"select":{"paths":["/user/*"]}}`)
	if out.Done != 2 || out.Failed != 0 || len(out.Changed) != 2 || out.Changed[0].Path != "/user/a" || out.Changed[0].State != observe.Running {
		t.Errorf("%+v", out)
	}
	eventually(t, "not paused", func() bool { return get[observe.Page](s, "/v1/actors?state=paused").Total == 2 })
	if out = post[observe.Outcome](s, "/v1/send", `{"to":"a","message":5}`); out.Done != 1 {
		t.Errorf("%+v", out)
	}
	if a := post[Answer](s, "/v1/ask", `{"to":"a","message":5,"timeout_ns":20000000}`); a.Kind != "timeout" || a.TookNS < int64(20*time.Millisecond) {
		t.Errorf("%+v", a)
	}
	post[observe.Outcome](s, "/v1/unpause", `{"select":{"states":["paused"]}}`)
	if a := post[Answer](s, "/v1/ask", `{"to":"a","message":5}`); a.Kind != "reply" || string(a.Reply) != "5" || a.From != "/user/a" {
		t.Errorf("%+v", a)
	}
	if out = post[observe.Outcome](s, "/v1/stop", `{"select":{"paths":["/user/b"]},"dry_run":true}`); !out.DryRun || out.Total != 1 {
		t.Errorf("%+v", out)
	}
	if _, err := s.sys.Lookup("/user/b"); err != nil {
		t.Error("a dry run stops:", err)
	}
	post[observe.Outcome](s, "/v1/stop", `{"select":{"paths":["/user/b"]}}`)
	eventually(t, "it lives", func() bool { _, err := s.sys.Lookup("/user/b"); return err != nil })
	_ = s.sys.TellPath("/user/b", 5)
	if _, err := s.sys.Spawn("b", host.Func(echo)); err != nil {
		t.Fatal(err)
	}
	if out = post[observe.Outcome](s, "/v1/dead-letters/redeliver", `{"to":["/user/b"]}`); out.Done != 1 {
		t.Errorf("%+v", out)
	}
	for _, c := range []struct{ path, body, code string }{
		{"/v1/stop", `{}`, "no_selection"},
		{"/v1/stop", ``, "no_selection"},
		{"/v1/stop", `{"select":{"paths":[]}}`, "no_selection"},
		{"/v1/stop", `{"selekt":{}}`, "bad_body"},
		{"/v1/stop", `{"select":{"paths":["/user/a"]}} {}`, "bad_body"},
		{"/v1/stop", `[]`, "bad_body"},
		{"/v1/stop", `{"select":{"states":["happy"]}}`, "invalid"},
		{"/v1/stop", `{"select":{"refs":["1"]}}`, "invalid"},
		{"/v1/crash", `{"select":{"paths":["/user/a"]},"reason":"` + strings.Repeat("x", 1001) + `"}`, "bad_body"},
		{"/v1/decide", `{"select":{"paths":["/user/a"]},"directive":"dance"}`, "invalid"},
		{"/v1/dead-letters/redeliver", `{}`, "no_selection"},
		{"/v1/send", `{"to":"a"}`, "bad_body"},
		{"/v1/send", `{"message":1}`, "no_selection"},
		{"/v1/send", `{"to":"nobody","message":1}`, "no_such_actor"},
		{"/v1/send", `{"to":"nobody*","message":1}`, "no_such_actor"},
		{"/v1/send", `{"to":"a","select":{"paths":["/user/a"]},"message":1}`, "bad_body"},
		{"/v1/send", `{"to":"a","message":18446744073709551616}`, "bad_message"},
		{"/v1/send", `{"to":"a","message":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, "bad_message"},
		{"/v1/ask", `{"to":"nobody","message":1}`, "no_such_actor"},
		{"/v1/ask", `{"message":1}`, "bad_body"},
		{"/v1/ask", `{"to":"a","message":1,"timeout_ns":-1}`, "bad_body"},
		{"/v1/ask", `{"to":"a","message":1,"timeout_ns":9223372036854775807}`, "bad_body"},
	} {
		if p := s.refused("POST", c.path, c.body); p.Code != c.code {
			t.Errorf("%s %.100s: %+v, want %s", c.path, c.body, p, c.code)
		}
	}
}

// Who goes away while an answer is waited for does not keep the question open.
func TestAskerGoesAway(t *testing.T) {
	s := serveSite(t, nil)
	c := s.raw("")
	body := `{"to":"a","message":"silence"}`
	fmt.Fprintf(c, "POST /v1/ask HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", s.server.Addr(), s.token.Reveal(), len(body), body)
	eventually(t, "it is not asked", func() bool { return s.sys.View().Stats().Types["native"].Turns > 0 })
	c.Close()
	done := make(chan struct{})
	go func() { s.server.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("the server does not end")
	}
}

// A message, and a question, to the actor of a key starts it if it is not there; patterns and refs are
// about those that are.
func TestMailStartsKeptActors(t *testing.T) {
	s := serveSite(t, nil)
	if _, err := s.sys.Spawn("keys", keyed.New(host.Func(echo)).WithIdle(time.Minute).Props()); err != nil {
		t.Fatal(err)
	}
	passivated := func(key string) {
		t.Helper()
		eventually(t, "it is not passivated", func() bool {
			keeper, err := s.sys.Lookup("/user/keys")
			if err != nil || keyed.Passivate(t.Context(), s.sys, keeper, key) != nil {
				return false
			}
			_, err = s.sys.Lookup("/user/keys/" + key)
			return err != nil
		})
	}
	for range 2 {
		out := post[observe.Outcome](s, "/v1/send", `{"to":"keys/a","message":5,"dry_run":true}`)
		if out.Done != 1 || out.Changed[0].Path != "/user/keys/a" || out.Changed[0].Ref != "" {
			t.Errorf("%+v", out)
		}
		if _, err := s.sys.Lookup("/user/keys/a"); err == nil {
			t.Error("a dry run has started it")
		}
		out = post[observe.Outcome](s, "/v1/send", `{"to":"keys/a","message":5}`)
		if out.Done != 1 || out.Changed[0].Path != "/user/keys/a" {
			t.Errorf("%+v", out)
		}
		eventually(t, "it was not started", func() bool { _, err := s.sys.Lookup("/user/keys/a"); return err == nil })
		passivated("a")
	}
	if a := post[Answer](s, "/v1/ask", `{"to":"keys/a","message":5}`); a.Kind != "reply" || a.To != "/user/keys/a" || a.From != "/user/keys/a" {
		t.Errorf("%+v", a)
	}
	one, err := s.sys.Lookup("/user/keys/a")
	if err != nil {
		t.Fatal(err)
	}
	if out := post[observe.Outcome](s, "/v1/send", `{"to":"/user/keys/*","message":5}`); out.Done != 1 || out.Changed[0].Ref != fmt.Sprintf("%016x", uint64(one.UID())) {
		t.Errorf("%+v", out)
	}
	byRef := fmt.Sprintf(`{"select":{"refs":["%016x"]},"message":5}`, uint64(one.UID()))
	if out := post[observe.Outcome](s, "/v1/send", byRef); out.Done != 1 {
		t.Errorf("%+v", out)
	}
	passivated("a")
	for _, body := range []string{byRef, `{"to":"/user/keys/*","message":5}`, `{"to":"/user/keys/a b","message":5}`, `{"to":"keys/a/below","message":5}`,
		fmt.Sprintf(`{"to":"/user/keys/a#%d","message":5}`, uint64(one.UID()))} {
		if p := s.refused("POST", "/v1/send", body); p.Code != "no_such_actor" {
			t.Errorf("%s: %+v", body, p)
		}
	}
}
