package all_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/blob"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
	"github.com/wasmactors/wasmactors/host/service/kv"
	"github.com/wasmactors/wasmactors/host/service/pubsub"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/host/service/sql"
	"github.com/wasmactors/wasmactors/host/service/tcp"
)

// flowing is a world with a probe, to which the guest's streams give their elements as texts.
type flowing struct {
	*servicetest.World
	t     *testing.T
	probe host.Ref
	got   chan string
	grant any
}

func flowFrom(t *testing.T, kind service.Kind, settings, grant any) *flowing {
	env := &service.Env{Base: t.TempDir(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	f := &flowing{World: servicetest.New(t, kind, env, settings, nil), t: t, got: make(chan string, 10_000), grant: grant}
	probe, err := f.World.System.Spawn("probe", host.Func(func(_ *host.Context, m host.Message) error {
		var s string
		if m.Kind == abi.KindMessage && m.Decode(&s) == nil {
			f.got <- s
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	f.probe = probe
	events := f.Subscribe(1000, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	go func() {
		for e := range events.C() {
			f.got <- "it has failed: " + e.Failure.Error()
			f.got <- "end"
			return
		}
	}()
	return f
}

// stream starts a stream of the guest.
func (f *flowing) stream(typ, arg string) host.Ref {
	return f.Spawn(typ, typ, f.grant, []any{uint64(f.probe.UID()), arg})
}

// comes is what the probe gets next.
func (f *flowing) comes() string {
	f.t.Helper()
	select {
	case s := <-f.got:
		return s
	case <-time.After(time.Minute):
		f.t.Fatal("nothing comes")
		return ""
	}
}

func (f *flowing) rest() (all []string) {
	f.t.Helper()
	for s := f.comes(); s != "end"; s = f.comes() {
		all = append(all, s)
	}
	return all
}

func (f *flowing) do(op string, args any) {
	f.t.Helper()
	who, err := f.Lookup("/user/asker")
	if err != nil {
		who = f.Asker("asker", f.grant)
	}
	if err := f.Request(who, op, args, nil); err != nil {
		f.t.Fatal(err)
	}
}

type m = map[string]any

// All rows of a query, which do not fit into one answer.
func TestFlowOfRows(t *testing.T) {
	f := flowFrom(t, sql.Service, &sql.Settings{Databases: map[string]sql.DatabaseSettings{"main": {File: "main.db"}}}, sql.Service.Grant(sql.Grant{Databases: map[string]string{"main": "rw"}}, service.Bounds{}))
	f.do("exec", m{"sql": "create table t(n integer, s text)"})
	f.do("exec", m{"sql": "with recursive c(n) as (select 1 union all select n+1 from c where n < 3000) insert into t select n, 'row '||n from c"})
	f.stream("flow-rows", "select s from t order by n")
	all := f.rest()
	if len(all) != 3000 || all[0] != "row 1" || all[2999] != "row 3000" {
		t.Fatalf("%d rows: %.300q", len(all), all)
	}
}

// All lines of an object that comes in parts.
func TestFlowOfAnObject(t *testing.T) {
	f := flowFrom(t, blob.Service, &blob.Settings{Folder: "blobs"}, blob.Service.Grant(blob.Grant{Namespace: "n", Access: "rw"}, service.Bounds{}))
	var want []string
	for i := range 3000 {
		want = append(want, fmt.Sprint("line number ", i))
	}
	f.do("put", m{"name": "lines", "data": []byte(strings.Join(want, "\n"))})
	f.stream("flow-blob", "lines")
	if all := f.rest(); !slices.Equal(all, want) {
		t.Fatalf("%d lines: %.300q", len(all), all)
	}
}

// What is published while the stream runs, until its reader has enough.
func TestFlowOfATopic(t *testing.T) {
	f := flowFrom(t, pubsub.Service, nil, pubsub.Service.Grant(pubsub.Grant{Publish: []string{">"}, Subscribe: []string{">"}}, service.Bounds{}))
	f.stream("flow-topic", "news.*")
	for f.do("publish", m{"topic": "news.now", "value": "begin"}); len(f.got) == 0; time.Sleep(time.Millisecond) { // it may not have subscribed yet
		f.do("publish", m{"topic": "news.now", "value": "begin"})
	}
	var want []string
	for i := range 20 {
		f.do("publish", m{"topic": "news.now", "value": fmt.Sprint("event ", i)})
		want = append(want, fmt.Sprint("event ", i))
	}
	f.do("publish", m{"topic": "news.now", "value": "last"})
	all := slices.DeleteFunc(f.rest(), func(s string) bool { return s == "begin" })
	if !slices.Equal(all, want) {
		t.Fatal(all)
	}
}

// The messages of a server: more than the window has room for, until the stream has enough and closes.
func TestFlowOfFrames(t *testing.T) {
	f := flowFrom(t, tcp.Service, nil, tcp.Service.Grant(tcp.Grant{Connect: []string{"127.0.0.1:*"}}, service.Bounds{}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		defer c.Close()
		hello := make([]byte, 6)
		if _, err := io.ReadFull(c, hello); err != nil || string(hello) != "hello\n" {
			served <- fmt.Errorf("%q %v", hello, err)
			return
		}
		for i := range 5000 {
			if _, err := fmt.Fprintln(c, "frame", i); err != nil {
				break
			}
		}
		_, _ = io.Copy(io.Discard, c) // until it is closed
		served <- nil
	}()
	f.stream("flow-frames", l.Addr().String()+" hello")
	all := f.rest()
	if len(all) != 1000 || all[0] != "frame 0" || all[999] != "frame 999" {
		t.Fatalf("%d frames: %.300q", len(all), all)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}

	// One that ends before.
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.ReadFull(c, make([]byte, len("x\n"))) // what is closed with bytes unread is reset
			fmt.Fprint(c, "only\nthese\n")
			_ = c.Close()
		}
	}()
	f.Spawn("again", "flow-frames", f.grant, []any{uint64(f.probe.UID()), l.Addr().String() + " x"})
	if all := f.rest(); !slices.Equal(all, []string{"only", "these"}) {
		t.Fatal(all)
	}
}

// What a stream has stored is what another one gives: all entries of a range, which do not fit into one answer.
func TestFlowOfEntries(t *testing.T) {
	f := flowFrom(t, kv.Service, &kv.Settings{}, kv.Service.Grant(kv.Grant{Namespace: "n", Mode: "rw"}, service.Bounds{}))
	stored, err := f.World.System.Ended(f.Spawn("store", "flow-store", f.grant, nil))
	if err != nil {
		t.Fatal(err)
	}
	<-stored
	f.do("put", m{"key": "other", "value": []byte{1}})
	f.stream("flow-entries", "key ")
	var want []string
	for i := range 500 {
		want = append(want, fmt.Sprint("key ", 1001+i))
	}
	if all := f.rest(); !slices.Equal(all, want) {
		t.Fatalf("%d entries: %.300q", len(all), all)
	}
}

// The lines of a body that comes in parts, server-sent events, and a status that is no success.
func TestFlowOfBodies(t *testing.T) {
	f := flowFrom(t, httpclient.Service, nil, httpclient.Service.Grant(httpclient.Grant{Hosts: []string{"http://127.0.0.1:*"}, Private: []string{"loopback"}}, service.Bounds{}))
	var want []string
	for i := range 900 {
		want = append(want, strings.Repeat(fmt.Sprint("line ", i, " "), 40))
	}
	next := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/lines":
			_, _ = io.WriteString(w, strings.Join(want, "\n"))
		case "/events":
			for i := range 3 {
				fmt.Fprintf(w, ": a comment\nid: %d\nevent: add\ndata: a\ndata: %d\n\n", i, i)
				w.(http.Flusher).Flush()
				select {
				case <-next:
				case <-r.Context().Done():
				}
			}
		default:
			http.Error(w, "no", http.StatusTeapot)
		}
	}))
	defer s.Close()
	f.stream("flow-body", s.URL+"/lines")
	if all := f.rest(); !slices.Equal(all, want) {
		t.Fatalf("%d lines: %.100q", len(all), all[:min(len(all), 3)])
	}
	f.stream("flow-events", s.URL+"/events")
	for i := range 3 { // each comes before the next one is sent
		if got := f.comes(); got != fmt.Sprintf("add %d a\n%d", i, i) {
			t.Fatalf("%q", got)
		}
		select {
		case next <- struct{}{}:
		case <-time.After(time.Minute):
			t.Fatal("the server is not there")
		}
	}
	if got := f.comes(); got != "end" {
		t.Fatalf("%q", got)
	}
	f.Spawn("missing", "flow-body", f.grant, []any{uint64(f.probe.UID()), s.URL + "/none"})
	if got := f.comes(); !strings.Contains(got, "status 418") {
		t.Fatalf("%q", got)
	}
}
