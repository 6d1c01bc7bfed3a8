package otlp

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	logspb "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector notes what it is sent, as the protocol's own types.
type collector struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	spans  []*tracepb.ExportTraceServiceRequest
	logs   []*logspb.ExportLogsServiceRequest
	before func(http.ResponseWriter, *http.Request) bool // has answered
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before != nil && c.before(w, r) {
		return
	}
	if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "secret" {
		c.t.Errorf("%v", r.Header)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		c.t.Error(err)
		return
	}
	text, err := io.ReadAll(z)
	if err != nil {
		c.t.Error(err)
	}
	read := func(m proto.Message) {
		if err := (protojson.UnmarshalOptions{}).Unmarshal(hexIDs(text), m); err != nil {
			c.t.Errorf("%v in %s", err, text)
		}
	}
	switch r.URL.Path {
	case "/prefix/v1/traces":
		m := &tracepb.ExportTraceServiceRequest{}
		read(m)
		c.spans = append(c.spans, m)
	case "/prefix/v1/logs":
		m := &logspb.ExportLogsServiceRequest{}
		read(m)
		c.logs = append(c.logs, m)
	default:
		c.t.Errorf("%s", r.URL)
	}
	_, _ = io.WriteString(w, "{}")
}

func open(t *testing.T, c *collector, change func(*Config)) *Pipeline {
	t.Helper()
	cfg := Config{Endpoint: c.URL + "/prefix", Headers: map[string]string{"Authorization": "secret"}, Service: "test", Version: "1.2"}
	if change != nil {
		change(&cfg)
	}
	p, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { http.DefaultTransport.(*http.Transport).CloseIdleConnections() })
	return p
}

// What an application would see of a system's spans and logs, with their places.
func TestASystemsSpansAndLogsReachACollector(t *testing.T) {
	c := newCollector(t)
	p := open(t, c, nil)
	sys, err := host.New(host.NewConfig("test").WithTracer(p.Tracer).WithLog(p.Log))
	if err != nil {
		t.Fatal(err)
	}
	a, err := sys.Spawn("a", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Payload[0] == 0 {
			return errors.New("no zero, please")
		}
		return ctx.Reply(1)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sys.Ask(t.Context(), a, 1); err != nil {
		t.Fatal(err)
	}
	var failed *host.TurnError
	if _, err := sys.Ask(t.Context(), a, 0); !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if err := sys.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	ids := map[string]bool{}
	for _, r := range c.spans {
		for _, rs := range r.ResourceSpans {
			if rs.Resource.Attributes[0].Value.GetStringValue() != "test" {
				t.Errorf("%v", rs.Resource)
			}
			for _, s := range rs.ScopeSpans[0].Spans {
				names[s.Name]++
				if len(s.TraceId) != 16 || len(s.SpanId) != 8 || s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano == 0 {
					t.Errorf("%v", s)
				}
				if len(s.Events) > 0 {
					ids[string(s.TraceId)] = true
				}
			}
		}
	}
	if names["ask native"] != 2 || names["turn native"] != 2 || names["start native"] < 2 {
		t.Errorf("%v", names)
	}
	found := false
	for _, r := range c.logs {
		for _, l := range r.ResourceLogs[0].ScopeLogs[0].LogRecords {
			if l.Body.GetStringValue() == "failed" {
				found = ids[string(l.TraceId)]
			}
		}
	}
	if !found {
		t.Errorf("no record of the failure with its trace in %v", c.logs)
	}
}

// Every kind of value comes through.
func TestValues(t *testing.T) {
	c := newCollector(t)
	p := open(t, c, nil)
	state, _ := trace.ParseTraceState("a=b")
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: [16]byte{1}, SpanID: [8]byte{2}, TraceFlags: 1, TraceState: state})
	_, s := p.spans.Tracer("other").Start(trace.ContextWithSpanContext(t.Context(), parent), "x", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(time.Unix(1, 2)),
		trace.WithLinks(trace.Link{SpanContext: parent, Attributes: []attribute.KeyValue{attribute.Bool("l", true)}}))
	s.SetAttributes(attribute.Bool("b", true), attribute.Int64("i", math.MinInt64), attribute.Float64("f", 0.5), attribute.Float64("nan", math.NaN()),
		attribute.StringSlice("s", []string{"x", "y"}), attribute.String("t", "\x00\"ü"))
	s.AddEvent("e", trace.WithTimestamp(time.Unix(3, 4)))
	s.SetStatus(codes.Error, "bad")
	s.End(trace.WithTimestamp(time.Unix(5, 6)))
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := c.spans[0].ResourceSpans[0].ScopeSpans[0].Spans[0]
	text := protojson.Format(got)
	if got.TraceState != "a=b" || got.Kind != 2 || got.StartTimeUnixNano != 1e9+2 || got.EndTimeUnixNano != 5e9+6 || got.Events[0].TimeUnixNano != 3e9+4 ||
		got.Status.Message != "bad" || got.Status.Code != 2 || got.ParentSpanId[0] != 2 || got.Links[0].TraceId[0] != 1 || len(got.Attributes) != 6 ||
		got.Attributes[1].Value.GetIntValue() != math.MinInt64 || got.Attributes[2].Value.GetDoubleValue() != 0.5 || got.Attributes[5].Value.GetStringValue() != "\x00\"ü" {
		t.Errorf("%s", text)
	}
}

// A collector that is busy is tried again, one that refuses is not, and what it says of a
// part is told.
func TestWhatTheCollectorAnswers(t *testing.T) {
	for _, test := range []struct {
		name  string
		codes []int
		body  string
		tries int
		fails string
	}{
		{"busy at first", []int{503, 200}, "", 2, ""},
		{"refused", []int{400}, "no", 1, "400"},
		{"a part", []int{200}, `{"partialSuccess": {"rejectedSpans": "1", "errorMessage": "too old"}}`, 1, "too old"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCollector(t)
			tries := 0
			c.before = func(w http.ResponseWriter, r *http.Request) bool {
				code := test.codes[min(tries, len(test.codes)-1)]
				tries++
				w.WriteHeader(code)
				_, _ = io.WriteString(w, test.body)
				return true
			}
			u, err := parseEndpoint(c.URL)
			if err != nil {
				t.Fatal(err)
			}
			e := &exporter{client: c.Client(), base: u}
			err = e.post(t.Context(), "traces", traces{})
			if tries != test.tries || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%d tries, %v", tries, err)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		u, _ := parseEndpoint("127.0.0.1:1")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		if err := (&exporter{client: http.DefaultClient, base: u}).post(ctx, "traces", traces{}); err == nil {
			t.Error("no error")
		}
	})
}

func TestEndpoints(t *testing.T) {
	for text, want := range map[string]string{
		"localhost:4318": "http://localhost:4318", "https://c.example/x": "https://c.example/x",
		"ftp://x": "", "http://": "", "http://x?y": "", "grpc://x:4317": "", "http://%": "",
	} {
		u, err := parseEndpoint(text)
		if (err == nil) != (want != "") || err == nil && u.String() != want {
			t.Errorf("%s: %v, %v", text, u, err)
		}
	}
	if _, err := Open(Config{Endpoint: "x:1", Sample: 2}); err == nil {
		t.Error("a sample of 2")
	}
}
