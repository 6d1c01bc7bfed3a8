package httpclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/printable"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// traceScope is the instrumentation scope of the spans of requests.
const traceScope = "github.com/wasmactors/wasmactors/host/service/http"

// maxSpanURL bounds what a span keeps of a URL, in bytes.
const maxSpanURL = 512

// span begins the span of one request, a redirect that is followed being another one, within the
// trace of the actor that asks. Names and attributes are those of OpenTelemetry's semantic
// conventions for HTTP clients; a URL's query and user are left out, since they may be secret.
func (x *exchange) span(ctx context.Context) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, nil
	}
	method, original := x.method, ""
	if !standard[method] {
		method, original = "_OTHER", printable.Line(method, 32)
	}
	u := url.URL{Scheme: x.to.url.Scheme, Host: x.to.url.Host, Path: x.to.url.Path}
	attributes := append(make([]attribute.KeyValue, 0, 6), attribute.String("http.request.method", method),
		attribute.String("server.address", x.to.url.Hostname()), attribute.String("url.full", printable.Line(u.String(), maxSpanURL)))
	if port, err := strconv.Atoi(x.to.url.Port()); err == nil {
		attributes = append(attributes, attribute.Int("server.port", port))
	}
	if original != "" {
		attributes = append(attributes, attribute.String("http.request.method_original", original))
	}
	if x.hops > 0 {
		attributes = append(attributes, attribute.Int("http.request.resend_count", x.hops))
	}
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer(traceScope)
	return tracer.Start(ctx, method, trace.WithTimestamp(x.clock.Now()), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

// standard are the methods that spans are named by: guests may make up others.
var standard = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true, http.MethodDelete: true, http.MethodOptions: true,
}

// endSpan ends the span when the headers of the answer are there, or an error. s may be nil.
func endSpan(s trace.Span, at time.Time, answer *http.Response, err error) {
	if s == nil {
		return
	}
	switch {
	case err != nil:
		s.SetAttributes(attribute.String("error.type", string(service.CodeOf(err))))
		s.SetStatus(codes.Error, printable.Line(err.Error(), 200))
	case answer != nil:
		s.SetAttributes(attribute.Int("http.response.status_code", answer.StatusCode))
		if answer.StatusCode >= 400 {
			s.SetAttributes(attribute.String("error.type", strconv.Itoa(answer.StatusCode)))
			s.SetStatus(codes.Error, "")
		}
	}
	s.End(trace.WithTimestamp(at))
}
