package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/wasmactors/wasmactors/host/admin"
)

// maxLine bounds a line of a stream, in bytes.
const maxLine = 8 << 20

// Lines makes a request and calls each for every line of the answer, until one call fails.
func (c *Client) Lines(ctx context.Context, method, path string, body any, each func(line []byte) error) error {
	res, err := c.do(ctx, method, path, nil, body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		if err := each(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return errors.Join(ErrCut, err)
	}
	return nil
}

// Stream calls each for every line, until one call fails, and returns why the server says
// that the stream has ended: "" if there was nothing to follow. A line that says how many
// were lost is a *admin.Notice, and is passed to lost.
func (c *Client) Stream(ctx context.Context, path string, query url.Values, each func(line []byte) error, lost func(n uint64)) (reason string, err error) {
	res, err := c.do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		var n admin.Notice
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			return "", err
		}
		switch n.Event {
		case "end":
			return n.Reason, nil
		case "dropped":
			lost(n.Dropped)
			continue
		}
		if err := each(lines.Bytes()); err != nil {
			return "", err
		}
	}
	if err := lines.Err(); err != nil {
		return "", errors.Join(ErrCut, err)
	}
	if query.Has("follow") || path == "/v1/trace" {
		return "", ErrCut
	}
	return "", nil
}
