// Package httpx makes requests to web servers through the host's service http: those that an actor
// was granted under capabilities.http in the manifest, and no others.
//
//	httpx.Get(ctx, "https://api.example.com/v1/users/7", func(ctx *actor.Context, res *httpx.Response, err error) error {
//		if errors.Is(err, service.ErrDenied) { ... }
//		if err != nil || !res.OK() { ... }
//		return ctx.Answer(to, correlation, actor.Bytes(res.Body))
//	})
//
// A request leaves when the turn has ended, and its answer comes in a later one. A turn that
// fails has requested nothing. The end or restart of an actor ends its requests, but what a
// server has received of them it has received.
package httpx

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Service is the name of the grant.
const Service = "http"

// DefaultTimeout is [Request.Timeout] if that is not set.
const DefaultTimeout = 30 * time.Second

// Header is a name and a value. Names are case-insensitive.
type Header struct{ Name, Value string }

// Redirects says how an answer that redirects is handled.
type Redirects uint8

const (
	Follow Redirects = iota // as far as the grant allows
	Stay                    // the redirect is the answer
)

// Body says how an answer's body comes.
type Body uint8

const (
	Whole    Body = iota // with the answer if it is small, as a stream if not
	Streamed             // as a stream, as soon as there are headers
)

// Request is a request. Only URL is needed. It must not change until the call that it is given to
// has returned.
type Request struct {
	Method  string // default GET, of an upload POST
	URL     string
	Headers []Header
	Body    []byte        // at most some 60 KiB; what is larger is an [Upload]
	Timeout time.Duration // 1 ms to 24 h; default DefaultTimeout. The grant may have a shorter one

	Redirects Redirects
	Answer    Body
	Most      int  // largest body of the answer, in bytes; 0: what the grant allows
	Unzip     bool // asks for gzip, and has the host unpack it
}

// Set adds a header.
func (q *Request) Set(name, value string) { q.Headers = append(q.Headers, Header{name, value}) }

func (q *Request) timeout() time.Duration {
	if q.Timeout <= 0 {
		return DefaultTimeout
	}
	return q.Timeout
}

// arguments are the arguments of do and upload.
type arguments struct {
	*Request
	size int64 // of an upload; -1: not known
}

// MarshalCBOR implements actor.Encoder.
func (a arguments) MarshalCBOR(w *abi.Writer) {
	n := 1
	for _, has := range [...]bool{a.Method != "", len(a.Headers) > 0, len(a.Body) > 0, a.size >= 0, a.Redirects == Stay, a.Answer == Streamed, a.Most > 0, a.Unzip} {
		if has {
			n++
		}
	}
	w.Map(n)
	w.Text("url")
	w.Text(a.URL)
	if a.Method != "" {
		w.Text("method")
		w.Text(a.Method)
	}
	if len(a.Headers) > 0 {
		w.Text("headers")
		w.Array(len(a.Headers))
		for i := range a.Headers {
			w.Array(2)
			w.Text(a.Headers[i].Name)
			w.Text(a.Headers[i].Value)
		}
	}
	if len(a.Body) > 0 {
		w.Text("body")
		w.ByteString(a.Body)
	}
	if a.size >= 0 {
		w.Text("size")
		w.Uint(uint64(a.size))
	}
	if a.Redirects == Stay {
		w.Text("redirects")
		w.Uint(0)
	}
	if a.Answer == Streamed {
		w.Text("stream")
		w.Bool(true)
	}
	if a.Most > 0 {
		w.Text("max")
		w.Uint(uint64(a.Most))
	}
	if a.Unzip {
		w.Text("decode")
		w.Bool(true)
	}
}

// Then gets an answer or an error, which is a *service.Error; one of them is nil. Any status is an
// answer. What Then returns is what the turn returns.
type Then = func(ctx *actor.Context, res *Response, err error) error

// Do makes a request, and calls then in a later turn; at once if the actor has no grant.
func Do(ctx *actor.Context, q *Request, then Then) {
	service.Ask(ctx, Service, "do", arguments{q, -1}, q.timeout(), answers(then))
}

// Get is a request of a URL.
func Get(ctx *actor.Context, url string, then Then) { Do(ctx, &Request{URL: url}, then) }

// Post sends a body to a URL.
func Post(ctx *actor.Context, url, contentType string, body []byte, then Then) {
	Do(ctx, &Request{Method: "POST", URL: url, Headers: []Header{{"content-type", contentType}}, Body: body}, then)
}

// Tell makes a request without waiting for an answer.
func Tell(ctx *actor.Context, q *Request) { service.Tell(ctx, Service, "do", arguments{q, -1}) }

// Unknown is the size of an upload that is not known when it begins.
const Unknown = -1

// Upload begins a request whose body comes in parts, of size bytes or [Unknown]. then is called
// with the stream that takes them: write with stream.Write, stream.WriteAll or stream.Pipe, and end
// with [Finish]. The request's Timeout is the time for beginning it.
func Upload(ctx *actor.Context, q *Request, size int64, then func(ctx *actor.Context, to actor.Ref, err error) error) {
	service.Ask(ctx, Service, "upload", arguments{q, max(size, Unknown)}, q.timeout(), func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, 0, err)
		}
		var to actor.Ref
		r := m.Reader()
		for range r.Map() {
			if string(r.TextBytes()) == "sink" {
				to = r.Ref()
			} else {
				r.Skip()
			}
		}
		if r.Done() != nil || to == 0 {
			return then(ctx, 0, misunderstood)
		}
		return then(ctx, to, nil)
	})
}

// Finish ends the body of an upload, and calls then with the server's answer.
func Finish(ctx *actor.Context, to actor.Ref, timeout time.Duration, then Then) {
	service.AskRef(ctx, to, "end", nil, timeout, answers(then))
}

var misunderstood = &service.Error{Code: service.Internal, Text: "the answer of the service http is not understood"}

// answers reads what do is answered with.
func answers(then Then) service.Then {
	return func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		res, err := Parse(m)
		if err != nil {
			return then(ctx, nil, err)
		}
		return then(ctx, res, nil)
	}
}
