// Package client talks to the server of package admin: over the Unix socket of a bundle that
// runs here, or over TCP with a token.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
)

// Client calls one server. Its methods are for any goroutine. What the server refuses is an
// *admin.Problem.
type Client struct {
	http  *http.Client
	base  string
	token admin.Token
}

// Dial is a client of the server at a socket. Nothing is connected yet.
func Dial(socket string) *Client {
	return &Client{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return endpoint.Dial(ctx, socket) },
	}}, base: "http://wasmactors"}
}

// DialTCP is a client of the server at an address such as 127.0.0.1:7777.
func DialTCP(address string, token admin.Token) *Client {
	return &Client{http: &http.Client{Transport: &http.Transport{}}, base: "http://" + address, token: token}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 64 << 20

// Raw makes a request and returns the body of its answer.
func (c *Client) Raw(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	res, err := c.do(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer to %s has more than %d bytes", path, maxAnswer)
	}
	return text, nil
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	where := c.base + path
	if len(query) > 0 {
		where += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, where, content)
	if err != nil {
		return nil, err
	}
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if text := c.token.Reveal(); text != "" {
		r.Header.Set("Authorization", "Bearer "+text)
	}
	res, err := c.http.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // its text has an address that means nothing to users
			err = u.Err
		}
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		defer res.Body.Close()
		return nil, problem(res)
	}
	return res, nil
}

// problem is the server's reason for not carrying out a request.
func problem(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	var f admin.ErrorBody
	if json.Unmarshal(text, &f) != nil || f.Error.Code == "" {
		return fmt.Errorf("the server has answered %s", res.Status)
	}
	f.Error.Status = res.StatusCode
	return &f.Error
}

// Get asks for something and decodes it.
func Get[T any](ctx context.Context, c *Client, path string, query url.Values) (v T, err error) {
	text, err := c.Raw(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(text, &v)
}

// Post sends a command and decodes what comes back.
func Post[T any](ctx context.Context, c *Client, path string, body any) (v T, err error) {
	text, err := c.Raw(ctx, http.MethodPost, path, nil, body)
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(text, &v)
}

// ErrCut is a stream that has ended without a reason: the process or the
// connection has ended.
var ErrCut = errors.New("the stream was cut off: the bundle has gone")

// Patience is how long a short answer may take.
const Patience = 10 * time.Second
