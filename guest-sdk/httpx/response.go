package httpx

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
)

// Response is an answer. Body and headers are valid until the function that was given it returns;
// what is kept longer is copied.
type Response struct {
	Status int
	URL    string    // of the server that has answered, after redirects
	Body   []byte    // the whole of it, unless there is a Stream
	Stream actor.Ref // what the body is read from; 0: Body is all
	Length int64     // of the stream, in bytes; -1: not known

	headers []byte // array of pairs, checked
}

// OK reports whether the status is a success, 200 to 299.
func (r *Response) OK() bool { return r.Status >= 200 && r.Status < 300 }

// Header is the first value of a header, or "".
func (r *Response) Header(name string) string {
	value := ""
	r.Each(func(n, v []byte) bool {
		if !same(n, name) {
			return true
		}
		value = string(v)
		return false
	})
	return value
}

// Each calls f with each header, sorted by name, until it returns false. Names are in lower
// case.
func (r *Response) Each(f func(name, value []byte) bool) {
	if len(r.headers) == 0 {
		return
	}
	in := abi.NewReader(r.headers)
	for range in.Array() {
		in.Array()
		if !f(in.TextBytes(), in.TextBytes()) {
			return
		}
	}
}

// same compares a name in lower case with any.
func same(low []byte, name string) bool {
	if len(low) != len(name) {
		return false
	}
	for i := range low {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != low[i] {
			return false
		}
	}
	return true
}

// Parse reads the answer to a do, for code that asks the service without this package.
func Parse(m *actor.Message) (*Response, error) {
	res := &Response{Length: -1}
	r := m.Reader()
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "status":
			res.Status = int(min(r.Uint(), 999))
		case "url":
			res.URL = r.Text()
		case "body":
			res.Body = r.ByteString()
		case "stream":
			res.Stream = r.Ref()
		case "length":
			res.Length = int64(min(r.Uint(), 1<<62))
		case "headers":
			res.headers = r.Raw()
		default:
			r.Skip()
		}
	}
	if r.Done() != nil || !pairs(res.headers) {
		return nil, misunderstood
	}
	return res, nil
}

// pairs reports whether headers have the form that Each expects.
func pairs(headers []byte) bool {
	if len(headers) == 0 {
		return true
	}
	r := abi.NewReader(headers)
	for range r.Array() {
		if r.Array() != 2 {
			return false
		}
		r.TextBytes()
		r.TextBytes()
	}
	return r.Done() == nil
}

// ReadAll calls then with the whole body, at once if it has come with the answer. A body of more
// than limit bytes is not read further: service.ErrTooLarge.
func (r *Response) ReadAll(ctx *actor.Context, limit int, timeout time.Duration, then func(ctx *actor.Context, body []byte, err error) error) error {
	switch {
	case r.Stream != 0 && r.Length <= int64(limit):
		stream.ReadAll(ctx, r.Stream, limit, timeout, then)
		return nil
	case r.Stream != 0 || len(r.Body) > limit:
		r.Discard(ctx)
		return then(ctx, nil, &service.Error{Code: service.TooLarge, Text: "the body has more bytes than were to be read"})
	}
	return then(ctx, r.Body, nil)
}

// Discard says that the body is not wanted, which frees the connection. It is not needed for a body
// that has come with the answer.
func (r *Response) Discard(ctx *actor.Context) {
	if r.Stream != 0 {
		stream.Close(ctx, r.Stream)
	}
}
