package httpclient

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// exchange is one request with the redirects that follow it.
type exchange struct {
	*holder
	clock     host.Clock
	agent     string // of requests that set none
	method    string
	to        *target
	header    http.Header
	body      []byte        // kept for redirects
	source    io.ReadCloser // a body that can be read once; nil: body
	size      int64         // of source; -1: unknown
	redirects int
	hops      int
	keyed     bool // the host has set the key of the request
}

// run requests until there is an answer that is not a redirect to be followed. ctx bounds the
// reading of its body, too; cancel ends it.
func (x *exchange) run(ctx context.Context, cancel context.CancelCauseFunc) (*http.Response, error) {
	for {
		answer, err := x.hop(ctx, cancel)
		if err != nil {
			return nil, err
		}
		next, err := x.follow(answer)
		if next == nil || err != nil {
			if err != nil {
				answer.Body.Close()
			}
			return answer, err
		}
		// Read a short rest, so that the connection can be used again.
		_, _ = io.CopyN(io.Discard, answer.Body, 4<<10)
		answer.Body.Close()
		x.to = next
		x.hops++
	}
}

// hop makes one request.
func (x *exchange) hop(ctx context.Context, cancel context.CancelCauseFunc) (answer *http.Response, err error) {
	n, err := x.permits.find(x.method, x.to, x.header)
	if err != nil {
		return nil, x.afterHops(err)
	}
	done, err := x.breakers.Allow(x.to.origin())
	if err != nil {
		return nil, err
	}
	failed := false
	defer func() { done(failed) }()
	ctx, span := x.span(ctx)
	defer func() { endSpan(span, x.clock.Now(), answer, err) }()
	request := x.request(ctx)
	if x.grant.Header > 0 {
		timer := x.clock.AfterFunc(x.grant.Header, func() { cancel(errHeaderTime) })
		defer timer.Stop()
	}
	answer, err = x.pools[n].RoundTrip(request)
	if err != nil {
		err = explain(ctx, x.to, err)
		failed = blames(err)
		return nil, x.afterHops(err)
	}
	failed = answer.StatusCode >= 500 && answer.StatusCode != http.StatusNotImplemented
	if answer.StatusCode == http.StatusSwitchingProtocols {
		answer.Body.Close()
		return nil, service.Errorf(service.Failed, "%s has changed the protocol without being asked", x.to.origin())
	}
	return answer, nil
}

// blames reports whether an error is the server's failure.
func blames(err error) bool {
	switch service.CodeOf(err) {
	case service.Failed, service.Timeout:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// afterHops says of an error that a redirect has led to it.
func (x *exchange) afterHops(err error) error {
	coded, ok := as[*service.Error](err)
	if x.hops == 0 || !ok {
		return err
	}
	e := *coded
	e.Text = "after a redirect: " + e.Text
	return &e
}

func (x *exchange) request(ctx context.Context) *http.Request {
	r := (&http.Request{
		Method: x.method, URL: x.to.url, Host: x.to.authority(), Header: x.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	switch {
	case x.source != nil && x.size == 0:
		x.source.Close()
		r.Body = http.NoBody
	case x.source != nil:
		r.Body, r.ContentLength = x.source, x.size
	case len(x.body) > 0:
		r.ContentLength = int64(len(x.body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
		r.Body, _ = r.GetBody()
	}
	if _, set := r.Header["User-Agent"]; !set {
		r.Header.Set("User-Agent", x.agent)
	}
	if x.grant.Trace && trace.SpanContextFromContext(ctx).IsValid() {
		r.Header.Del("Tracestate")
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	}
	return r
}

// follow returns where an answer redirects to, nil if it does not or must not be followed.
func (x *exchange) follow(answer *http.Response) (*target, error) {
	method := x.method
	switch answer.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound:
		if method == http.MethodPost {
			method = http.MethodGet
		}
	case http.StatusSeeOther:
		if method != http.MethodHead {
			method = http.MethodGet
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := answer.Header.Get("Location")
	if location == "" || x.redirects == 0 || method == x.method && x.source != nil {
		return nil, nil
	}
	if x.hops == x.redirects {
		return nil, service.Errorf(service.Failed, "more than %d redirects", x.redirects)
	}
	next, err := x.to.relative(location)
	if err != nil {
		return nil, &service.Error{Code: service.Failed, Text: "the server redirects to what is not a URL to follow: " + textOf(err), Err: err}
	}
	if method != x.method {
		x.method, x.body, x.source = method, nil, nil
		if x.keyed {
			x.header.Del(idempotencyKey)
		}
		for name := range x.header {
			if containsFold(ofBody, name) {
				delete(x.header, name)
			}
		}
	}
	if next.origin() != x.to.origin() {
		if len(x.body) > 0 {
			keepOnly(x.header, append(ofBody, travels...))
		} else {
			keepOnly(x.header, travels)
		}
	}
	return next, nil
}

func containsFold(list []string, name string) bool {
	for _, s := range list {
		if strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}

// patient reads a body and ends the exchange if no data comes for too long.
type patient struct {
	io.Reader
	clock  host.Clock
	idle   time.Duration
	cancel context.CancelCauseFunc
}

func (p *patient) Read(b []byte) (int, error) {
	timer := p.clock.AfterFunc(p.idle, func() { p.cancel(errIdle) })
	defer timer.Stop()
	return p.Reader.Read(b)
}
