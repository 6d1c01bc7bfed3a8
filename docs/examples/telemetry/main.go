// Command telemetry is a program whose actors are seen by Prometheus and OpenTelemetry.
//
//	go run ./docs/examples/telemetry -otlp http://localhost:4318 &
//	curl localhost:9090/count
//	curl localhost:9090/metrics
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/metrics"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/tracing"
	"github.com/wasmactors/wasmactors/host/tracing/otlp"
)

func main() {
	listen := flag.String("listen", "localhost:9090", "address")
	collector := flag.String("otlp", "", "URL of an OpenTelemetry collector; without it nothing is traced")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", *listen)
	if err == nil {
		fmt.Println("listening on", l.Addr())
		err = run(ctx, l, *collector)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, l net.Listener, collector string) (err error) {
	cfg := host.NewConfig("telemetry").WithLog(slog.Default())
	options := metrics.Options{}.WithActors("/user/counter")
	if collector != "" {
		// An application that has a TracerProvider gives it to tracing.New instead.
		p, err := otlp.Open(otlp.Config{Endpoint: collector, Service: "telemetry", Sample: 0.1, Bounds: tracing.Bounds{Rate: 1000}})
		if err != nil {
			return errors.Join(err, l.Close())
		}
		defer p.Close(context.WithoutCancel(ctx)) // when the system has ended
		cfg = cfg.WithTracer(p.Tracer).WithLog(p.Log)
		options = options.WithSpans(func() metrics.Spans {
			s := p.Tracer.Stats()
			return metrics.Spans{Recorded: s.Recorded, Long: s.Long, Fast: s.Fast, Traces: s.Traces}
		})
	}
	sys, err := host.New(cfg)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, sys.Close(context.WithoutCancel(ctx))) }()
	observer := observe.New(sys, observe.Options{})
	defer observer.Close()
	shown, err := metrics.New(observer, options)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	counter, err := sys.Spawn("counter", host.Native(func() host.Actor { return &count{} }))
	if err != nil {
		return errors.Join(err, l.Close())
	}

	mux := http.NewServeMux()
	mux.Handle("GET /metrics", shown)
	mux.HandleFunc("GET /count", func(w http.ResponseWriter, r *http.Request) {
		// The span of the request, if there is one in its context, is the parent of the ask's.
		n, err := host.AskAs[int](r.Context(), sys, counter, "next")
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, n)
	})
	web := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return cmp.Or(web.Shutdown(end), ignore(<-served))
}

func ignore(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

type count struct{ n int }

func (c *count) Receive(ctx *host.Context, m host.Message) error {
	c.n++
	return ctx.Reply(c.n)
}
