package web

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Response is the answer to a request: 200 without a body, unless the handler says more.
// The last body that is set counts.
type Response struct {
	status  uint64
	typ     string
	headers abi.Writer // names and values in turn
	count   int
	text    string
	bytes   []byte
	stream  actor.Ref
	body    body
	later   bool

	to          actor.Ref
	correlation uint64
}

// body says which of the fields it is.
type body uint8

const (
	noBody body = iota
	textBody
	bytesBody
	streamBody
)

// reset begins another response.
func (w *Response) reset(to actor.Ref, correlation uint64) {
	headers := w.headers
	headers.Reset(headers.Bytes()[:0])
	*w = Response{status: 200, headers: headers, to: to, correlation: correlation}
}

// Status sets the status, 200 to 599; the gateway refuses others.
func (w *Response) Status(code int) *Response { w.status = uint64(code); return w }

// Header adds a header. If HTTP does not allow the name or the value, the client gets 502.
func (w *Response) Header(name, value string) *Response {
	w.headers.Text(name)
	w.headers.Text(value)
	w.count++
	return w
}

// Type sets the content type.
func (w *Response) Type(contentType string) *Response { w.typ = contentType; return w }

// Text makes a text the body; its type is text/plain if there is no other.
func (w *Response) Text(s string) *Response { w.text, w.body = s, textBody; return w }

// HTML makes a page the body.
func (w *Response) HTML(s string) *Response {
	w.typ = "text/html; charset=utf-8"
	return w.Text(s)
}

// JSON makes a text that is JSON the body.
func (w *Response) JSON(s string) *Response {
	w.typ = "application/json"
	return w.Text(s)
}

// Bytes makes bytes the body; its type is application/octet-stream if there is no other. They
// must not change until the handler returns, or Send is called.
func (w *Response) Bytes(b []byte) *Response { w.bytes, w.body = b, bytesBody; return w }

// Stream makes the content of a source the body: one that a service has given the actor, or the stream
// of a request. The gateway reads it as fast as the client takes it, and nothing of it
// goes through the actor.
func (w *Response) Stream(from actor.Ref) *Response {
	w.stream, w.body = from, streamBody
	return w
}

// Error is a status with a text for people.
func (w *Response) Error(code int, text string) *Response { return w.Status(code).Text(text) }

// Redirect sends the client elsewhere; the code is 301, 302, 303, 307 or 308.
func (w *Response) Redirect(code int, url string) *Response {
	return w.Status(code).Header("Location", url)
}

// Later keeps the response for a later turn: nothing is sent when the handler returns, and
// [Response.Send] of the response that it returns answers. If the actor ends before, the client gets
// an error at once.
func (w *Response) Later() *Response {
	w.later = true
	l := &Response{status: w.status, typ: w.typ, count: w.count, text: w.text, stream: w.stream, body: w.body, to: w.to, correlation: w.correlation}
	l.headers.Reset(append([]byte(nil), w.headers.Bytes()...))
	l.bytes = append([]byte(nil), w.bytes...)
	return l
}

// Send answers with a response that was kept by Later, once. It always returns nil.
func (w *Response) Send(ctx *actor.Context) error { return ctx.Answer(w.to, w.correlation, w) }

// MarshalCBOR writes [status, headers, body].
func (w *Response) MarshalCBOR(out *abi.Writer) {
	out.Array(3)
	out.Uint(w.status)
	n := 2 * w.count
	if w.typ != "" {
		n += 2
	}
	if n == 0 {
		out.Null()
	} else {
		out.Array(n)
		if w.typ != "" {
			out.Text("content-type")
			out.Text(w.typ)
		}
		if w.count > 0 {
			out.Raw(w.headers.Bytes())
		}
	}
	switch w.body {
	case textBody:
		out.Text(w.text)
	case bytesBody:
		out.ByteString(w.bytes)
	case streamBody:
		out.Map(1)
		out.Text("stream")
		out.Ref(w.stream)
	default:
		out.Null()
	}
}
