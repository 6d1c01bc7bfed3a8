package gateway

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/printable"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceScope is the instrumentation scope of the spans of requests.
const traceScope = "github.com/wasmactors/wasmactors/host/service/gateway"

// Bounds of what a span keeps of a request, in bytes.
const (
	maxSpanPath  = 512
	maxSpanAgent = 200
)

// beginSpan begins the span of a request, within the trace that its caller states, and puts it into
// the context of the request: the ask of the actor continues it. Names and attributes are those of
// OpenTelemetry's semantic conventions for HTTP servers.
func (x *exchange) beginSpan() {
	if x.g.tracer == nil {
		return
	}
	r := x.r
	ctx := callersTrace(r.Context(), r.Header)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	attributes := append(make([]attribute.KeyValue, 0, 10), attribute.String("url.scheme", scheme), attribute.String("url.path", printable.Line(r.URL.Path, maxSpanPath)),
		attribute.String("network.protocol.version", strings.TrimSuffix(strconv.Itoa(r.ProtoMajor)+"."+strconv.Itoa(r.ProtoMinor), ".0")), attribute.String("wasmactors.request.id", x.id))
	method := methodOf(r.Method)
	attributes = append(attributes, attribute.String("http.request.method", method))
	if method == otherMethod {
		attributes = append(attributes, attribute.String("http.request.method_original", printable.Line(r.Method, 32)))
	}
	if from := x.remoteText(); from != "" {
		attributes = append(attributes, attribute.String("client.address", from))
	}
	if name, _, err := net.SplitHostPort(r.Host); err == nil || r.Host != "" {
		if err != nil {
			name = r.Host
		}
		attributes = append(attributes, attribute.String("server.address", printable.Line(name, 255)))
	}
	if agent := r.UserAgent(); agent != "" {
		attributes = append(attributes, attribute.String("user_agent.original", printable.Line(agent, maxSpanAgent)))
	}
	ctx, x.span = x.g.tracer.Start(ctx, method, trace.WithTimestamp(x.begun), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
	x.r = r.WithContext(ctx)
}

// endSpan ends the span with the route and the status. Its name is only then known.
func (x *exchange) endSpan() {
	if x.span == nil {
		return
	}
	defer func() { x.span.End(trace.WithTimestamp(x.g.clock.Now())) }()
	if !x.span.IsRecording() {
		return
	}
	status := x.answered()
	attributes := append(make([]attribute.KeyValue, 0, 4), attribute.Int("http.response.status_code", status), attribute.Int64("http.response.body.size", x.w.bytes))
	if x.route != nil {
		route := pathOfPattern(x.route.Pattern)
		attributes = append(attributes, attribute.String("http.route", route))
		x.span.SetName(methodOf(x.r.Method) + " " + route)
	}
	if status >= http.StatusInternalServerError || status == statusGone {
		attributes = append(attributes, attribute.String("error.type", strconv.Itoa(status)))
		x.span.SetStatus(codes.Error, printable.Line(x.note, 200))
	}
	x.span.SetAttributes(attributes...)
}

// callersTrace is ctx with the place in a trace that the headers state, if they state one
// validly: traceparent once, as in W3C Trace Context, and a tracestate of at most host.MaxTraceState bytes;
// a longer or an invalid one is dropped.
func callersTrace(ctx context.Context, h http.Header) context.Context {
	if len(h["Traceparent"]) != 1 {
		return ctx
	}
	carrier := propagation.MapCarrier{"traceparent": h.Get("Traceparent")}
	if state := strings.Join(h["Tracestate"], ","); len(state) <= host.MaxTraceState {
		carrier["tracestate"] = state
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// otherMethod stands for methods that are not standard: callers may make up any number.
const otherMethod = "_OTHER"

func methodOf(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	}
	return otherMethod
}

// pathOfPattern is a pattern without its method and host.
func pathOfPattern(pattern string) string {
	if i := strings.IndexByte(pattern, '/'); i >= 0 {
		return pattern[i:]
	}
	return pattern
}
