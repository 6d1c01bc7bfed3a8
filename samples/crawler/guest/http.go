package main

import (
	"bytes"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
)

// Bounds of a request.
const (
	patience  = 20 * time.Second
	mostBytes = 256 << 10 // of a page
)

// response is what a web server has answered.
type response struct {
	status     int
	kind       string // Content-Type
	location   string
	retryAfter string
	body       []byte // of a success
}

// get requests a page, and calls then with the whole of it.
func get(ctx *actor.Context, url, agent string, redirects httpx.Redirects, then func(*actor.Context, *response, error) error) {
	q := httpx.Request{URL: url, Redirects: redirects, Timeout: patience, Most: mostBytes}
	q.Set("user-agent", agent)
	q.Set("accept", "text/html, text/plain")
	httpx.Do(ctx, &q, func(ctx *actor.Context, res *httpx.Response, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		r := &response{status: res.Status, kind: res.Header("content-type"), location: res.Header("location"), retryAfter: res.Header("retry-after")}
		if !res.OK() {
			res.Discard(ctx)
			return then(ctx, r, nil)
		}
		return res.ReadAll(ctx, mostBytes, patience, func(ctx *actor.Context, body []byte, err error) error {
			r.body = bytes.Clone(body)
			return then(ctx, r, err)
		})
	})
}
