package httpclient_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
	"github.com/wasmactors/wasmactors/host/tracing"
)

// A server that closes a kept connection gets again what may be repeated, and nothing else.
func TestSentAgain(t *testing.T) {
	for _, row := range []struct {
		in   args
		sent int32
	}{
		{args{}, 2},
		{args{"method": "POST", "body": []byte("x")}, 1},
		{args{"method": "DELETE"}, 1},
		{args{"method": "POST", "body": []byte("x"), "headers": [][2]string{{"idempotency-key", "7"}}}, 2},
	} {
		w := newWorld(t)
		w.name("www.example.com", public)
		var sent atomic.Int32
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					in := bufio.NewReader(conn)
					for first := true; ; first = false {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						if r.URL.Path == "/again" {
							sent.Add(1)
							if !first {
								return // without an answer
							}
						}
						if _, err := conn.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n")); err != nil {
							return
						}
					}
				}()
			}
		}()
		w.put(public+":80", listener.Addr())
		f := start(t, w, nil)
		a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}, Methods: []string{"*"}}, service.Bounds{})
		a.get("http://www.example.com/")
		row.in["url"] = "http://www.example.com/again"
		_, err = a.do(row.in)
		if (err == nil) != (row.sent == 2) || sent.Load() != row.sent {
			t.Errorf("%v: sent %d times, %v", row.in, sent.Load(), err)
		}
		f.close()
	}
}

// A request is in the trace of the turn that has made it, if its grant says so.
func TestTrace(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	got := make(chan http.Header, 1)
	w.serve(public+":80", func(_ http.ResponseWriter, r *http.Request) { got <- r.Header })
	provider := sdktrace.NewTracerProvider()
	f := startWith(t, w, nil, host.NewConfig("test").WithTracer(tracing.New(provider, tracing.Bounds{})))
	grant := httpclient.Grant{Hosts: []string{"http://www.example.com"}, Headers: []string{"traceparent", "tracestate"}}
	forged := args{"url": "http://www.example.com/", "headers": [][2]string{{"traceparent", "forged"}, {"tracestate", "forged"}}}
	for _, on := range []bool{false, true} {
		grant.Trace = on
		a := f.actor(grant, service.Bounds{})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		ctx, span := provider.Tracer("test").Start(ctx, "outside")
		if _, err := a.sys.Ask(ctx, a.ref, order{Op: "do", Args: forged}); err != nil {
			t.Fatal(err)
		}
		span.End()
		h := <-got
		id := trace.SpanFromContext(ctx).SpanContext().TraceID().String()
		switch parent := h.Get("Traceparent"); {
		case on && (!strings.HasPrefix(parent, "00-"+id+"-") || h.Get("Tracestate") != ""):
			t.Errorf("%q is not of %s; %q", parent, id, h.Get("Tracestate"))
		case !on && parent != "forged":
			t.Errorf("%q", parent)
		}
	}
}
