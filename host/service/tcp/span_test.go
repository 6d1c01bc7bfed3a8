package tcp

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/tracing"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// What an actor asks of the service within a trace has a span there, with where it went and how.
func TestSpans(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	sys, err := host.New(host.NewConfig("test").WithTracer(tracing.New(provider, tracing.Bounds{})))
	if err != nil {
		t.Fatal(err)
	}
	svc, err := New(Options{}).Start(sys, &service.Env{Base: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sys.Close(context.Background())
		_ = svc.Wait(context.Background())
	})
	l := server(t)
	port := l.Addr().(*net.TCPAddr).Port
	nobody := server(t)
	_ = nobody.Close()
	g := usual()
	g.Connect = append(g.Connect, "unix:none.sock")
	answered := make(chan struct{})
	var order []any
	asker, err := sys.Spawn("asker", host.Func(func(ctx *host.Context, m host.Message) error {
		switch m.Kind {
		case abi.KindMessage:
			if len(order) == 0 { // of the socket that was opened
				return nil
			}
			if err := ctx.Ask(svc.Ref(), order, 1, time.Minute); err != nil {
				return err
			}
			order = nil
			return ctx.Reply(nil)
		case abi.KindReply, abi.KindReplyError:
			answered <- struct{}{}
		}
		return nil
	}).WithGrant(Name, Service.Grant(g, service.Bounds{})))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		op   string
		args any
		want string
	}{
		{"connect", map[string]any{"address": l.Addr().String()}, "connect [network.transport=tcp server.address=127.0.0.1 server.port=" + strconv.Itoa(port) + "] Unset"},
		{"connect", map[string]any{"address": nobody.Addr().String()}, "connect [error.type=failed network.transport=tcp server.address=127.0.0.1 server.port=" + strconv.Itoa(nobody.Addr().(*net.TCPAddr).Port) + "] Error"},
		{"connect", map[string]any{"address": "unix:none.sock"}, "connect [error.type=failed network.transport=unix server.address=none.sock] Error"},
	} {
		spans.Reset()
		ctx, outside := provider.Tracer("test").Start(t.Context(), "outside")
		order = []any{c.op, c.args}
		if _, err := sys.Ask(ctx, asker, nil); err != nil {
			t.Fatal(err)
		}
		<-answered
		outside.End()
		got := ""
		for _, s := range spans.GetSpans() {
			if s.InstrumentationScope.Name != "github.com/wasmactors/wasmactors/host/service/tcp" {
				continue
			}
			var all []string
			for _, a := range s.Attributes {
				all = append(all, string(a.Key)+"="+a.Value.Emit())
			}
			slices.Sort(all)
			got += fmt.Sprint(s.Name, " ", all, " ", s.Status.Code)
			if s.SpanContext.TraceID() != outside.SpanContext().TraceID() || !s.Parent.IsValid() || s.EndTime.Before(s.StartTime) {
				t.Errorf("%s is not in the trace: %v", s.Name, s.Parent)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q\nwant %q", c.op, got, c.want)
		}
	}
}
