package main

import (
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/observe"
)

// A run with --otlp tells a collector of each line: the send, and the guest's turn, which know
// nothing of it.
func TestARunIsTraced(t *testing.T) {
	var mu sync.Mutex
	parents, names := map[string]string{}, map[string]string{} // by span
	service, secret := "", ""
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		secret = r.Header.Get("X-Secret")
		var body struct {
			ResourceSpans []struct {
				Resource struct {
					Attributes []struct{ Value struct{ StringValue string } }
				}
				ScopeSpans []struct {
					Spans []struct{ Name, SpanID, ParentSpanID string }
				}
			}
		}
		z, err := gzip.NewReader(r.Body)
		if err == nil {
			err = json.NewDecoder(z).Decode(&body)
		}
		if err != nil {
			t.Error(err)
		}
		if r.URL.Path != "/v1/traces" {
			return
		}
		for _, rs := range body.ResourceSpans {
			service = rs.Resource.Attributes[0].Value.StringValue
			for _, s := range rs.ScopeSpans[0].Spans {
				parents[s.SpanID], names[s.SpanID] = s.ParentSpanID, s.Name
			}
		}
	}))
	defer c.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-secret=s3")
	code, out, errs := try(t, t.Context(), "{\"to\": \"e\", \"message\": 1}\n", "run", echoBundle(t, ""), "--input", "-", "--otlp", c.URL)
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if code != 0 || !strings.Contains(out, `"reply"`) && !strings.Contains(out, "1") {
		t.Fatalf("%d, %s, %s", code, out, errs)
	}
	mu.Lock()
	defer mu.Unlock()
	found := false
	for span, name := range names {
		found = found || name == "turn echo" && names[parents[span]] == "send echo"
	}
	if !found || service != "echo" || secret != "s3" {
		t.Errorf("%v, service %q, header %q", names, service, secret)
	}
}

func TestTelemetryFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--otlp", "ftp://x"}, "neither http nor https"},
		{[]string{"--otlp", "localhost:4318", "--otlp-sample", "2"}, "above 0 and at most 1"},
		{[]string{"--otlp-sample", "0.5"}, "needs --otlp"},
		{[]string{"--metrics-actor", "/user/*"}, "is a pattern"},
		{[]string{"--metrics-actor", "e"}, "is not the path"},
	} {
		if code, _, errs := try(t, t.Context(), "", append([]string{"run", echoBundle(t, "")}, c.args...)...); code != 2 || !strings.Contains(errs, c.says) {
			t.Errorf("%v: %d, %s", c.args, code, errs)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "hunter2")
	if code, _, errs := try(t, t.Context(), "", "run", echoBundle(t, ""), "--otlp", "localhost:4318"); code != 2 || strings.Contains(errs, "hunter2") {
		t.Errorf("%d, %s", code, errs)
	}
	// A collector that is not there does no harm to the run, and is told once.
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "")
	code, _, errs := try(t, t.Context(), "{\"to\": \"e\", \"message\": 1}\n", "run", echoBundle(t, ""), "--input", "-", "--otlp", "127.0.0.1:1")
	if code != 0 || strings.Count(errs, "are lost") != 1 {
		t.Errorf("%d, %s", code, errs)
	}
}

// What /metrics shows of a run.
func TestTelemetryMetrics(t *testing.T) {
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(t.Context())
	of := observe.New(sys, observe.Options{})
	defer of.Close()
	shown, err := (&telemetry{}).metrics(of, &bundle.Bundle{}, "1.2")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRecorder()
	shown.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if text := r.Body.String(); !strings.Contains(text, `version="1.2"`) || !strings.Contains(text, "wasmactors_ready 1") {
		t.Errorf("%s", text)
	}
}
