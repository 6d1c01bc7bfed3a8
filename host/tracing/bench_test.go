package tracing_test

import (
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/tracing"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// BenchmarkMessage is a message from outside and the one that its turn sends: without a
// tracer, with one whose roots are not sampled, with one that records all (and drops what it
// has recorded), and beyond the bounds.
func BenchmarkMessage(b *testing.B) {
	provider := func(s sdktrace.Sampler) *sdktrace.TracerProvider {
		return sdktrace.NewTracerProvider(sdktrace.WithSampler(s))
	}
	for _, c := range []struct {
		name   string
		change func(host.Config) host.Config
	}{
		{"no tracer", func(c host.Config) host.Config { return c }},
		{"no-op tracer", func(c host.Config) host.Config {
			return c.WithTracer(tracing.New(noop.NewTracerProvider(), tracing.Bounds{}))
		}},
		{"not sampled", func(c host.Config) host.Config {
			return c.WithTracer(tracing.New(provider(sdktrace.NeverSample()), tracing.Bounds{}))
		}},
		{"1 of 100", func(c host.Config) host.Config {
			return c.WithTracer(tracing.New(provider(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(.01))), tracing.Bounds{Rate: 1 << 30}))
		}},
		{"recorded", func(c host.Config) host.Config {
			return c.WithTracer(tracing.New(provider(sdktrace.AlwaysSample()), tracing.Bounds{Rate: 1 << 30}))
		}},
		{"beyond the rate", func(c host.Config) host.Config {
			return c.WithTracer(tracing.New(provider(sdktrace.AlwaysSample()), tracing.Bounds{Rate: 1}))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			sys, err := host.New(c.change(host.NewConfig("bench").WithManual()))
			if err != nil {
				b.Fatal(err)
			}
			defer sys.Close(b.Context())
			var v any = host.Raw{1}
			end, err := sys.Spawn("end", host.Func(func(*host.Context, host.Message) error { return nil }))
			if err != nil {
				b.Fatal(err)
			}
			begin, err := sys.Spawn("begin", host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Tell(end, v) }))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := sys.Tell(begin, v); err != nil {
					b.Fatal(err)
				}
				sys.RunUntilIdle(10)
			}
		})
	}
}
