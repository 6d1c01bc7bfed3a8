package main

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/metrics"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/tracing/otlp"
	"go.opentelemetry.io/otel/trace"
)

// telemetryFlags are the flags for metrics and traces of commands that run a bundle.
func telemetryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "otlp", Usage: "send traces and logs to the OpenTelemetry collector at `URL`, such as http://localhost:4318, by OTLP over HTTP; headers come from the variable OTEL_EXPORTER_OTLP_HEADERS"},
		&cli.StringFlag{Name: "otlp-sample", Value: "1", Usage: "record `PART` of the traces that begin here, above 0 and at most 1"},
		&cli.StringSliceFlag{Name: "metrics-actor", Usage: "show the actor with this `PATH` by itself in /metrics, besides its type; may be repeated"},
	}
}

// telemetry sends a run's metrics and traces to a collector.
type telemetry struct {
	box      *blackbox.Recorder // nil: none
	tape     *recorder.Recorder // nil: none
	env      *environment
	pipeline *otlp.Pipeline // nil: none
	actors   []string
	cluster  func() *metrics.Cluster // nil: the run is in none

	mu   sync.Mutex
	lost error // why the first batch was lost, until it was reported
	told bool
	warn func(text string) // prints a warning during the run; nil: not possible
}

// openTelemetry reads the flags. It does not connect yet.
func openTelemetry(c *cli.Context, env *environment, service string) (*telemetry, error) {
	t := &telemetry{env: env, actors: c.StringSlice("metrics-actor")}
	if err := metrics.CheckActors(t.actors); err != nil {
		return nil, usage("--metrics-actor: %v", err)
	}
	if !c.IsSet("otlp") {
		if c.IsSet("otlp-sample") {
			return nil, usage("--otlp-sample needs --otlp URL")
		}
		return t, nil
	}
	sample, err := strconv.ParseFloat(c.String("otlp-sample"), 64)
	if err != nil || !(sample > 0 && sample <= 1) {
		return nil, usage("--otlp-sample must be a number above 0 and at most 1, not %q", c.String("otlp-sample"))
	}
	headers, err := parseHeaders(os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"))
	if err != nil {
		return nil, err
	}
	t.pipeline, err = otlp.Open(otlp.Config{
		Endpoint: c.String("otlp"), Headers: headers, Service: service, Version: c.App.Version, Sample: sample,
		Failed: t.failed,
	})
	if err != nil {
		return nil, usage("--otlp: %v", err)
	}
	return t, nil
}

// failed notes that data was lost. It reports the first time.
func (t *telemetry) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told || t.lost != nil {
		return
	}
	if t.warn == nil {
		t.lost = err
		return
	}
	t.told = true
	t.warn(lostText(err))
}

// warnBy sets the function that reports losses during the run; any goroutine may call it.
func (t *telemetry) warnBy(warn func(text string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.warn = warn
}

func lostText(err error) string { return "traces or logs are lost: " + oneLine(err.Error()) }

// parseHeaders reads name=value,name=value, as OpenTelemetry's variable has it.
func parseHeaders(text string) (map[string]string, error) {
	out := map[string]string{}
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, usage("OTEL_EXPORTER_OTLP_HEADERS must be name=value pairs, separated by commas") // it may hold a secret
		}
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return out, nil
}

// configure turns tracing of a system on.
func (t *telemetry) configure(cfg host.Config) host.Config {
	if t.pipeline == nil {
		return cfg
	}
	return cfg.WithTracer(t.pipeline.Tracer).WithLog(t.pipeline.Log).WithLoggedDeadLetters(host.AllDeadLetters)
}

// traces is what records spans beside those of messages; nil: nothing.
func (t *telemetry) traces() trace.TracerProvider {
	if t.pipeline == nil {
		return nil
	}
	return t.pipeline.Tracer.Provider()
}

// metrics is the handler of /metrics for a system.
func (t *telemetry) metrics(of *observe.Observer, b *bundle.Bundle, version string) (http.Handler, error) {
	o := metrics.Options{}.WithVersion(version).WithActors(t.actors...).WithGuests(b.Metrics).WithServices(b.Services).WithGateway(b.Gateway)
	if t.pipeline != nil {
		o = o.WithSpans(func() metrics.Spans {
			s := t.pipeline.Tracer.Stats()
			return metrics.Spans{Recorded: s.Recorded, Long: s.Long, Fast: s.Fast, Traces: s.Traces}
		})
	}
	if t.cluster != nil {
		o = o.WithCluster(t.cluster)
	}
	return metrics.New(of, o)
}

// lastBatch is how long the end of a run waits for a collector.
const lastBatch = 5 * time.Second

// close sends what is left. It is called when the system has ended and nothing else writes to
// standard error.
func (t *telemetry) close() {
	if t.pipeline == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastBatch)
	defer cancel()
	if err := t.pipeline.Close(ctx); err != nil {
		t.failed(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost != nil {
		t.env.note(lostText(t.lost))
	}
}
