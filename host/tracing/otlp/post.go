package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporter sends batches to a collector, by HTTP and JSON.
type exporter struct {
	client  *http.Client
	base    *url.URL
	headers map[string]string
	failed  func(error) // nil: errors are returned
}

// How a batch is sent.
const (
	sendTimeout = 10 * time.Second // one attempt
	attempts    = 4
	firstWait   = 500 * time.Millisecond
	mostWait    = 10 * time.Second
	mostAnswer  = 64 << 10 // bytes that are read of an answer
)

// parseEndpoint takes a URL, or host:port.
func parseEndpoint(endpoint string) (*url.URL, error) {
	text := endpoint
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("otlp: the endpoint %q is not a URL: %w", endpoint, err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("otlp: the endpoint %q is neither http nor https; gRPC (port 4317) is not supported; HTTP uses port 4318", endpoint)
	case u.Host == "":
		return nil, fmt.Errorf("otlp: the endpoint %q names no host; it is something like http://localhost:4318", endpoint)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("otlp: the endpoint %q has a query or a fragment; it is something like http://localhost:4318", endpoint)
	}
	return u, nil
}

// post sends a batch, and repeats it for a while if the collector says that this may help.
func (e *exporter) post(ctx context.Context, signal string, batch any) error {
	body, err := encode(batch)
	if err != nil {
		return err
	}
	wait := firstWait
	for n := 1; ; n++ {
		after, err := e.try(ctx, signal, body)
		if err == nil || n == attempts || !after.again {
			return err
		}
		pause := min(max(wait, after.wait), mostWait)
		wait *= 2
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		case <-timer.C:
		}
	}
}

func encode(batch any) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(batch); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// retry is what to do after an attempt.
type retry struct {
	again bool
	wait  time.Duration // at least
}

func (e *exporter) try(ctx context.Context, signal string, body []byte) (retry, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base.JoinPath("v1", signal).String(), bytes.NewReader(body))
	if err != nil {
		return retry{}, err
	}
	for k, v := range e.headers {
		r.Header.Set(k, v)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	answer, err := e.client.Do(r)
	if err != nil {
		return retry{again: true}, fmt.Errorf("otlp: %w", err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	switch code := answer.StatusCode; {
	case code < 300:
		return retry{}, rejected(signal, text)
	case code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return retry{true, time.Duration(max(seconds, 0)) * time.Second}, fmt.Errorf("otlp: %s answers %s", r.URL.Redacted(), answer.Status)
	default:
		return retry{}, fmt.Errorf("otlp: %s answers %s: %.200q", r.URL.Redacted(), answer.Status, text)
	}
}

// rejected is what the collector has refused of a batch that it has accepted.
func rejected(signal string, text []byte) error {
	var a struct {
		Partial struct {
			Spans   json.RawMessage `json:"rejectedSpans"`
			Records json.RawMessage `json:"rejectedLogRecords"`
			Message string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(text, &a) != nil || a.Partial.Message == "" {
		return nil
	}
	return fmt.Errorf("otlp: %s: the collector has rejected a part: %.200q", signal, a.Partial.Message)
}

// lost reports a batch that was lost.
func (e *exporter) lost(err error) error {
	if err == nil || e.failed == nil {
		return err
	}
	e.failed(err)
	return nil
}

// spanExporter implements sdktrace.SpanExporter, logExporter sdklog.Exporter.
type (
	spanExporter struct{ *exporter }
	logExporter  struct{ *exporter }
)

func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	return e.lost(e.post(ctx, "traces", spansOf(spans)))
}

func (e spanExporter) Shutdown(context.Context) error { return nil }

func (e logExporter) Export(ctx context.Context, records []sdklog.Record) error {
	if len(records) == 0 {
		return nil
	}
	return e.lost(e.post(ctx, "logs", logsOf(records)))
}

func (e logExporter) Shutdown(context.Context) error   { return nil }
func (e logExporter) ForceFlush(context.Context) error { return nil }
