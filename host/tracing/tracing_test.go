package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/tracing"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	*host.System
	tracer *tracing.Tracer
	spans  *tracetest.InMemoryExporter
	clock  *host.VirtualClock
	otel   trace.Tracer
}

func newWorld(t *testing.T, b tracing.Bounds, sampler sdktrace.Sampler, change func(host.Config) host.Config) *world {
	t.Helper()
	w := &world{spans: tracetest.NewInMemoryExporter(), clock: host.NewVirtualClock(time.Unix(1_700_000_000, 0))}
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans), sdktrace.WithSampler(sampler))
	w.tracer, w.otel = tracing.New(p, b), p.Tracer("test")
	cfg := host.NewConfig("test").WithManual().WithClock(w.clock).WithSeed(1).WithTracer(w.tracer)
	if change != nil {
		cfg = change(cfg)
	}
	var err error
	if w.System, err = host.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w.RunUntilIdle(1000)
	w.spans.Reset()
	return w
}

func (w *world) spawn(t *testing.T, name string, p host.Props) host.Ref {
	t.Helper()
	ref, err := w.Spawn(name, p)
	if err != nil {
		t.Fatal(err)
	}
	w.RunUntilIdle(1000)
	w.spans.Reset()
	return ref
}

// tree is the spans that have ended, each with those above it.
func tree(spans tracetest.SpanStubs) (out []string) {
	var path func(s tracetest.SpanStub) string
	path = func(s tracetest.SpanStub) string {
		for _, p := range spans {
			if p.SpanContext.SpanID() == s.Parent.SpanID() {
				return path(p) + " > " + s.Name
			}
		}
		return s.Name
	}
	for _, s := range spans {
		out = append(out, path(s))
	}
	slices.Sort(out)
	return out
}

func value(s tracetest.SpanStub, key string) attribute.Value {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value
		}
	}
	return attribute.Value{}
}

func crashing() host.Props {
	return host.Func(func(_ *host.Context, m host.Message) error {
		if m.Payload[0] == 0 {
			return errors.New("no zero, please")
		}
		return nil
	})
}

// A span of the application, the ask within it, the turn: one trace, with the conventions'
// attributes.
func TestAnAskWithinASpanOfTheApplication(t *testing.T) {
	w := newWorld(t, tracing.Bounds{}, sdktrace.AlwaysSample(), nil)
	a := w.spawn(t, "a", host.Func(func(c *host.Context, m host.Message) error {
		_, inner := w.otel.Start(c.Head().Trace(context.Background()), "inner")
		inner.End()
		return c.Reply("x")
	}))
	ctx, outer := w.otel.Start(t.Context(), "outer")
	done := make(chan error)
	go func() { _, err := w.Ask(ctx, a, 1); done <- err }()
	for waiting := true; waiting; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			waiting = false
		default:
			w.RunUntilIdle(1000)
		}
	}
	outer.End()
	spans := w.spans.GetSpans()
	want := []string{"outer", "outer > ask native", "outer > ask native > turn native", "outer > ask native > turn native > inner"}
	if got := tree(spans); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, s := range spans {
		switch s.Name {
		case "turn native":
			if s.SpanKind != trace.SpanKindConsumer || value(s, "wasmactors.actor.path").AsString() != "/user/a" ||
				value(s, "messaging.operation.type").AsString() != "process" || !value(s, "wasmactors.message.question").AsBool() {
				t.Errorf("%+v", s)
			}
		case "ask native":
			if s.SpanKind != trace.SpanKindClient || value(s, "messaging.message.body.size").AsInt64() != 1 {
				t.Errorf("%+v", s)
			}
		}
	}
}

// A failure is an event and a status, and the start that follows has a link to it. Logs have
// its IDs.
func TestACrashIsAnEventOfItsSpan(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, tracing.Bounds{}, sdktrace.AlwaysSample(), func(c host.Config) host.Config {
		return c.WithLog(slog.New(slog.NewJSONHandler(&log, nil)))
	})
	a := w.spawn(t, "a", crashing())
	if err := w.Tell(a, 0); err != nil {
		t.Fatal(err)
	}
	w.RunUntilIdle(1000)
	var failed, started tracetest.SpanStub
	for _, s := range w.spans.GetSpans() {
		switch s.Name {
		case "turn native":
			failed = s
		case "start native":
			started = s
		}
	}
	if failed.Status.Code != codes.Error || len(failed.Events) != 1 || failed.Events[0].Name != "exception" {
		t.Fatalf("%+v", failed)
	}
	for _, a := range failed.Events[0].Attributes {
		if string(a.Key) == "exception.message" && a.Value.AsString() != "no zero, please" {
			t.Errorf("%v", a)
		}
	}
	if len(started.Links) != 1 || started.Links[0].SpanContext.SpanID() != failed.SpanContext.SpanID() || started.Parent.SpanID() != failed.SpanContext.SpanID() {
		t.Errorf("%+v", started)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id := failed.SpanContext.TraceID().String(); !strings.Contains(log.String(), `"trace_id":"`+id+`"`) {
		t.Errorf("%s is not in %s", id, log.String())
	}
}

// Two that answer each other for ever are recorded up to the bound; then messages are free
// again.
func TestATraceIsBounded(t *testing.T) {
	w := newWorld(t, tracing.Bounds{Spans: 10}, sdktrace.AlwaysSample(), nil)
	carried := 0
	back := func(c *host.Context, m host.Message) error {
		if len(m.Headers) > 0 {
			carried++
		}
		return c.Reply(1)
	}
	again := func(c *host.Context, m host.Message) error { return c.Tell(m.Sender, 1) }
	a := w.spawn(t, "a", host.Func(again))
	b := w.spawn(t, "b", host.Func(back))
	if err := w.TellFrom(b, a, 1); err != nil {
		t.Fatal(err)
	}
	w.RunUntilIdle(500)
	if n := len(w.spans.GetSpans()); n != 10 || carried > 10 {
		t.Errorf("%d spans, %d messages in the trace", n, carried)
	}
	if s := w.tracer.Stats(); s.Recorded < 10 || s.Long != 1 {
		t.Errorf("%+v", s)
	}
}

// The sampler decides at the root, and what it does not take has no headers below.
func TestSamplingIsDecidedAtTheRoot(t *testing.T) {
	w := newWorld(t, tracing.Bounds{}, sdktrace.NeverSample(), nil)
	headers := 0
	b := w.spawn(t, "b", host.Func(func(_ *host.Context, m host.Message) error { headers += len(m.Headers); return nil }))
	a := w.spawn(t, "a", host.Func(func(c *host.Context, m host.Message) error { return c.Tell(b, 1) }))
	for range 10 {
		if err := w.Tell(a, 1); err != nil {
			t.Fatal(err)
		}
	}
	w.RunUntilIdle(1000)
	if n := len(w.spans.GetSpans()); n != 0 || headers != 0 {
		t.Errorf("%d spans, %d bytes of headers", n, headers)
	}
}
