package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
	"github.com/wasmactors/wasmactors/host/tracing"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// traced is a gateway before an actor in Go, whose spans are kept. Its time stands still.
type traced struct {
	t     *testing.T
	sys   *host.System
	g     *gateway.Gateway
	spans *tracetest.InMemoryExporter
}

func newTraced(t *testing.T, b tracing.Bounds, p host.Props, services ...func(*host.System, host.Props) host.Props) *traced {
	t.Helper()
	x := &traced{t: t, spans: tracetest.NewInMemoryExporter()}
	tracer := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(x.spans)), b)
	var err error
	if x.sys, err = host.New(host.NewConfig("site").WithTracer(tracer).WithClock(host.NewVirtualClock(time.Unix(1e9, 0)))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.sys.Close(context.Background()) })
	for _, f := range services {
		p = f(x.sys, p)
	}
	if _, err := x.sys.Spawn("api", p); err != nil {
		t.Fatal(err)
	}
	if x.g, err = gateway.New(x.sys, gateway.Config{Traces: tracer.Provider(), Routes: []gateway.Route{{Pattern: "GET /users/{id}", To: gateway.Target{Path: "/user/api"}}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.g.Close() })
	return x
}

func (x *traced) get(path string, headers ...string) int {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	x.g.ServeHTTP(w, r)
	return w.Code
}

// rests waits until all turns are over, and so are their spans.
func (x *traced) rests() {
	x.t.Helper()
	if err := x.sys.Idle(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
}

// server is the span of the last request.
func (x *traced) server() tracetest.SpanStub {
	x.t.Helper()
	all := x.spans.GetSpans()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].SpanKind == trace.SpanKindServer {
			return all[i]
		}
	}
	x.t.Fatalf("no server span among %d", len(all))
	return tracetest.SpanStub{}
}

func attributesOf(s tracetest.SpanStub) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[string(a.Key)] = a.Value.Emit()
	}
	return out
}

const (
	callersID   = "0af7651916cd43dd8448eb211c80319c"
	callersSpan = "b7ad6b7169203331"
	parent      = "00-" + callersID + "-" + callersSpan + "-01"
)

// A request from outside, the turn that handles it and the request that the actor makes in turn are one trace,
// which began with the caller and goes on at the server that is called.
func TestATraceGoesThroughFromCallerToCalled(t *testing.T) {
	called := make(chan http.Header, 1)
	client := httpclient.New(httpclient.Options{Answer: roundTrip(func(r *http.Request) (*http.Response, error) {
		called <- r.Header
		return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})})
	var web host.Ref
	done := make(chan struct{})
	x := newTraced(t, tracing.Bounds{}, host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Correlation == 0 {
			return nil
		}
		if web.IsZero() {
			return ctx.ReplyError("failed: no service")
		}
		if err := ctx.Tell(web, []any{"do", map[string]any{"url": "http://example.com/a?secret=1"}}); err != nil {
			return err
		}
		return ctx.ReplyError("not_found: nobody")
	}), func(sys *host.System, p host.Props) host.Props {
		running, err := client.Start(sys, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		web = running.Ref()
		go func() { <-sys.Terminated(); close(done) }()
		return p.WithGrant("http", client.Grant(httpclient.Grant{Hosts: []string{"http://example.com"}, Trace: true}, service.Bounds{}))
	})
	if status := x.get("/users/7?q=1", "Traceparent", parent, "Tracestate", "vendor=x", "User-Agent", "tester"); status != 404 {
		t.Fatal(status)
	}
	s := x.server()
	if s.SpanContext.TraceID().String() != callersID || s.Parent.SpanID().String() != callersSpan || !s.Parent.IsRemote() || s.SpanContext.TraceState().String() != "vendor=x" {
		t.Errorf("the span is %+v below %+v", s.SpanContext, s.Parent)
	}
	got := attributesOf(s)
	for key, want := range map[string]string{
		"http.request.method": "GET", "http.route": "/users/{id}", "http.response.status_code": "404", "url.path": "/users/7", "url.scheme": "http",
		"client.address": "192.0.2.1", "server.address": "example.com", "user_agent.original": "tester", "network.protocol.version": "1.1",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if s.Name != "GET /users/{id}" || s.EndTime.Before(s.StartTime) || s.Status.Code != 0 {
		t.Errorf("%s %+v", s.Name, s.Status)
	}
	header := <-called
	if v := header.Get("Traceparent"); !strings.HasPrefix(v, "00-"+callersID+"-") || strings.Contains(v, callersSpan) || header.Get("Tracestate") != "vendor=x" {
		t.Errorf("the server was called with %v", header)
	}
	var client1 tracetest.SpanStub
	eventually(t, func() bool {
		for _, s := range x.spans.GetSpans() {
			if s.SpanKind == trace.SpanKindClient && s.Name == "GET" {
				client1 = s
				return true
			}
		}
		return false
	})
	if got := attributesOf(client1); got["url.full"] != "http://example.com/a" || got["http.response.status_code"] != "404" || got["error.type"] != "404" || client1.SpanContext.TraceID().String() != callersID ||
		!strings.Contains(header.Get("Traceparent"), client1.SpanContext.SpanID().String()) {
		t.Errorf("%v in %v", got, client1.SpanContext)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What is not valid begins a trace of its own; a trace that its caller does not record is not recorded.
func TestWhichTraceparentIsTaken(t *testing.T) {
	x := newTraced(t, tracing.Bounds{}, host.Func(func(ctx *host.Context, m host.Message) error { return ctx.ReplyError("not_found: nobody") }))
	for name, c := range map[string]struct {
		headers []string
		taken   bool
		state   string
	}{
		"none":            {nil, false, ""},
		"valid":           {[]string{"Traceparent", parent}, true, ""},
		"upper case":      {[]string{"Traceparent", strings.ToUpper(parent)}, false, ""},
		"twice":           {[]string{"Traceparent", parent, "Traceparent", parent}, false, ""},
		"zeros":           {[]string{"Traceparent", "00-00000000000000000000000000000000-" + callersSpan + "-01"}, false, ""},
		"version ff":      {[]string{"Traceparent", "ff" + parent[2:]}, false, ""},
		"too long":        {[]string{"Traceparent", parent + "-x"}, false, ""},
		"garbage":         {[]string{"Traceparent", "\xff"}, false, ""},
		"two states":      {[]string{"Traceparent", parent, "Tracestate", "a=1", "Tracestate", "b=2"}, true, "a=1,b=2"},
		"a long state":    {[]string{"Traceparent", parent, "Tracestate", "a=" + strings.Repeat("x", 511)}, true, ""},
		"an invalid one":  {[]string{"Traceparent", parent, "Tracestate", "a=\x01,=,"}, true, ""},
		"a state of none": {[]string{"Tracestate", "a=1"}, false, ""},
	} {
		x.spans.Reset()
		if status := x.get("/users/1", c.headers...); status != 404 && name != "garbage" {
			t.Errorf("%s: %d", name, status)
		}
		s := x.server()
		if taken := s.SpanContext.TraceID().String() == callersID; taken != c.taken || taken && s.SpanContext.TraceState().String() != c.state {
			t.Errorf("%s: %v, %q", name, s.SpanContext.TraceID(), s.SpanContext.TraceState())
		}
	}
	x.rests() // the answer comes before the span of the actor's turn ends
	x.spans.Reset()
	x.get("/users/1", "Traceparent", parent[:len(parent)-1]+"0")
	x.rests()
	if n := len(x.spans.GetSpans()); n != 0 {
		t.Errorf("%d spans of a trace that is not recorded", n)
	}
}

// Callers cannot take the room of the spans of actors: neither with one trace, nor with many.
func TestCallersSpansAreBounded(t *testing.T) {
	reply := host.Func(func(ctx *host.Context, m host.Message) error { return ctx.ReplyError("not_found: nobody") })
	x := newTraced(t, tracing.Bounds{Spans: 30}, reply)
	for range 100 {
		x.get("/users/1", "Traceparent", parent)
	}
	n := 0
	for _, s := range x.spans.GetSpans() {
		if s.SpanContext.TraceID().String() == callersID {
			n++
		}
	}
	if n == 0 || n > 30 {
		t.Errorf("%d spans of one trace", n)
	}
	x = newTraced(t, tracing.Bounds{Rate: 64}, reply)
	x.spans.Reset()
	for i := range 200 {
		x.get("/users/1", "Traceparent", fmt.Sprintf("00-%032x-%s-01", i+1, callersSpan))
	}
	servers := 0
	for _, s := range x.spans.GetSpans() {
		if s.SpanKind == trace.SpanKindServer {
			servers++
		}
	}
	if servers == 0 || servers > 64 {
		t.Errorf("%d server spans within a rate of 64", servers)
	}
}

// A path that callers make up is in no name: names of spans are few.
func TestNamesOfSpansAreFew(t *testing.T) {
	x := newTraced(t, tracing.Bounds{}, host.Func(func(ctx *host.Context, m host.Message) error { return ctx.ReplyError("failed: no") }))
	x.get("/nowhere/1")
	if s := x.server(); s.Name != "GET" || attributesOf(s)["http.route"] != "" {
		t.Errorf("%s %v", s.Name, s.Attributes)
	}
	x.get("/users/1")
	if s := x.server(); s.Status.Code != 1 || attributesOf(s)["error.type"] != "502" {
		t.Errorf("%+v %v", s.Status, s.Attributes)
	}
	r := httptest.NewRequest("MADEUP", "/users/1", nil)
	x.g.ServeHTTP(httptest.NewRecorder(), r)
	if s := x.server(); s.Name != "_OTHER" || attributesOf(s)["http.request.method_original"] != "MADEUP" {
		t.Errorf("%s %v", s.Name, s.Attributes)
	}
}

// Connections, routes and statuses are counted; what callers and actors make up is not a label.
func TestFiguresOfAGateway(t *testing.T) {
	s := open(t, gateway.Config{Routes: []gateway.Route{{Pattern: "GET /x/{id}", To: gateway.Target{Path: "/user/x"}}}, Health: gateway.Health{Live: "/live"}},
		map[string]host.Props{"x": host.Func(func(ctx *host.Context, m host.Message) error { return ctx.ReplyError("conflict: no") })})
	for i := range 5 {
		s.do("GET", fmt.Sprintf("/x/%d", i), "")
		s.do("GET", fmt.Sprintf("/nowhere/%d", i), "")
	}
	s.do("GET", "/live", "")
	f := s.g.Figures()
	got := map[string]string{}
	for _, r := range f.Routes {
		got[r.Route] = fmt.Sprint(r.Statuses, r.Times.N())
	}
	want := map[string]string{"GET /x/{id}": "map[409:5] 5", gateway.NoRoute: "map[404:5] 5", gateway.HealthRoute: "map[200:1] 1"}
	if fmt.Sprint(got) != fmt.Sprint(want) || f.Connections != 1 || f.Accepted != 1 || f.Open != 0 || f.WebSockets != 0 {
		t.Errorf("%v %+v", got, f)
	}
	s.client.CloseIdleConnections()
	eventually(t, func() bool { return s.g.Figures().Connections == 0 })
}

// eventually waits for what other goroutines do.
func eventually(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}
