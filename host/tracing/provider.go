package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

// Provider makes tracers whose spans count for the same [Bounds] as those of messages, for code that is
// between actors and the world, such as the gateway and the HTTP client. Each scope has its share of
// the rate, like a tree of actors. Contexts of [Tracer.In] have it, too:
// trace.SpanFromContext(ctx).TracerProvider().
func (t *Tracer) Provider() trace.TracerProvider { return bounded{of: t} }

// bounded is a TracerProvider.
type bounded struct {
	embedded.TracerProvider
	of *Tracer
}

// Tracer implements trace.TracerProvider.
func (b bounded) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return boundedTracer{of: b.of, scope: name, tracer: b.of.provider.Tracer(name, options...)}
}

type boundedTracer struct {
	embedded.Tracer
	of     *Tracer
	scope  string
	tracer trace.Tracer
}

// Start implements trace.Tracer. A span that is not recorded still carries on the trace of ctx.
func (b boundedTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	cfg := trace.NewSpanStartConfig(options...)
	at := cfg.Timestamp()
	if at.IsZero() {
		at = time.Now()
	}
	parent := trace.SpanContextFromContext(ctx)
	if cfg.NewRoot() {
		parent = trace.SpanContext{}
	}
	root := !parent.IsValid()
	may := false
	switch {
	case root:
		may = b.of.limits.mayBegin(b.scope, at)
	case parent.IsSampled():
		may = b.of.limits.take(parent.TraceID(), b.scope, at)
	}
	if !may {
		return noop.NewTracerProvider().Tracer("").Start(ctx, name)
	}
	ctx, span := b.tracer.Start(ctx, name, options...)
	if root && span.SpanContext().IsSampled() {
		b.of.limits.begin(span.SpanContext().TraceID(), b.scope)
	}
	return ctx, span
}

// place is a span that is recorded elsewhere. It knows who records.
type place struct {
	trace.Span
	provider trace.TracerProvider
}

// TracerProvider implements trace.Span.
func (p place) TracerProvider() trace.TracerProvider { return p.provider }
