// Package otlp sends traces and logs to an OpenTelemetry collector, by OTLP over HTTP with
// JSON. An application that has exporters of its own needs only host/tracing.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/wasmactors/wasmactors/host/tracing"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Config says where to send traces and logs. Zero fields mean the defaults.
type Config struct {
	Endpoint string            // URL of the collector, such as http://localhost:4318
	Headers  map[string]string // of every request, for example for authentication
	Service  string            // service.name; default "wasmactors"
	Version  string            // service.version
	Sample   float64           // the part of the traces that begin here that is recorded, above 0 to 1; default 1
	Level    slog.Level        // of the log: this one and worse ones; the zero value is slog.LevelInfo
	Bounds   tracing.Bounds
	// Failed is told of batches that were lost, by any goroutine; nil: OpenTelemetry's error
	// handler is told.
	Failed func(error)
}

// Pipeline is a way to a collector.
type Pipeline struct {
	Tracer *tracing.Tracer
	// Log is for host.Config.WithLog: records have the IDs of their spans.
	Log *slog.Logger

	spans *sdktrace.TracerProvider
	logs  *sdklog.LoggerProvider
	once  sync.Once
	err   error
}

// Open makes a pipeline; it sends nothing until there is something to send. An error says
// what is wrong with the configuration.
func Open(c Config) (*Pipeline, error) {
	base, err := parseEndpoint(c.Endpoint)
	if err != nil {
		return nil, err
	}
	if c.Sample < 0 || c.Sample > 1 {
		return nil, errors.New("otlp: the part of the traces that is recorded must be above 0 and at most 1")
	}
	e := &exporter{client: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}, base: base, headers: c.Headers, failed: c.Failed}
	r := resource.NewSchemaless(attribute.String("service.name", cmp.Or(c.Service, "wasmactors")), attribute.String("service.version", c.Version))
	p := &Pipeline{
		spans: sdktrace.NewTracerProvider(sdktrace.WithResource(r), sdktrace.WithBatcher(spanExporter{e}),
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cmp.Or(c.Sample, 1))))),
		logs: sdklog.NewLoggerProvider(sdklog.WithResource(r), sdklog.WithProcessor(sdklog.NewBatchProcessor(logExporter{e}))),
	}
	p.Tracer = tracing.New(p.spans, c.Bounds)
	p.Log = slog.New(levelled{otelslog.NewHandler(tracing.Scope, otelslog.WithLoggerProvider(p.logs)), c.Level})
	return p, nil
}

// Close sends what waits, until ctx ends. It is called when the system has ended, and is
// idempotent.
func (p *Pipeline) Close(ctx context.Context) error {
	p.once.Do(func() { p.err = errors.Join(p.spans.Shutdown(ctx), p.logs.Shutdown(ctx)) })
	return p.err
}

// levelled is a handler that drops what is below a level.
type levelled struct {
	slog.Handler
	level slog.Level
}

// Enabled implements slog.Handler.
func (h levelled) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h levelled) WithAttrs(a []slog.Attr) slog.Handler {
	return levelled{h.Handler.WithAttrs(a), h.level}
}

// WithGroup implements slog.Handler.
func (h levelled) WithGroup(name string) slog.Handler {
	return levelled{h.Handler.WithGroup(name), h.level}
}
