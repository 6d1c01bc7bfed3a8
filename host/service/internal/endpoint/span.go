package endpoint

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// traceScope is the instrumentation scope of the spans, before the name of the service.
const traceScope = "github.com/wasmactors/wasmactors/host/service/"

// Span begins a client's span for what an actor asks of a target by TCP or UDP, within the trace of the actor. end ends it with the error
// of the attempt, or nil. Without a trace there is no span.
func Span(ctx context.Context, clock interface{ Now() time.Time }, name, protocol string, to Target) (_ context.Context, end func(error)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(error) {}
	}
	address := to.Host
	transport := protocol
	var attributes []attribute.KeyValue
	if to.Unix != "" {
		address, transport = to.Unix, "unix"
	} else {
		attributes = append(attributes, attribute.Int("server.port", int(to.Port)))
	}
	attributes = append(attributes, attribute.String("network.transport", transport), attribute.String("server.address", printable.Line(address, 256)))
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer(traceScope + protocol)
	ctx, span := tracer.Start(ctx, name, trace.WithTimestamp(clock.Now()), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			span.SetAttributes(attribute.String("error.type", string(service.CodeOf(err))))
			span.SetStatus(codes.Error, "")
		}
		span.End(trace.WithTimestamp(clock.Now()))
	}
}
