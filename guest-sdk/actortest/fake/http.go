//go:build !wasip1

package fake

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sort"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
)

// HTTP is the service http. All web servers of the world are one handler: the host of a request's URL tells them apart, as in
// patterns of http.ServeMux. There are no rules about hosts, methods and headers: every request is granted.
type HTTP struct {
	Service
	handler  http.Handler
	requests []*Request
}

// Request is one that the servers have received.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
	Path   string // of the actor
	At     time.Time
}

// InlineBody is how many bytes of a body come with the answer, as in the service; a larger body is a stream.
const InlineBody = 32 << 10

const mostRedirects = 10

// NewHTTP makes the service, and the servers.
func NewHTTP(w *actortest.World, servers http.Handler) *HTTP {
	h := &HTTP{handler: servers}
	h.begin(w, httpx.Service, h.do)
	return h
}

// Requests are those so far, in their order. Those that [Service.Fail] has kept from the servers are not among them.
func (h *HTTP) Requests() []*Request { return h.requests }

// asked are the arguments of do and upload.
type asked struct {
	method, url string
	header      http.Header
	body        []byte
	stay        bool
	streamed    bool
	most        int64
	inline      int64
}

func (h *HTTP) do(c *actortest.Call) (actor.Encoder, *service.Error) {
	if c.Op != "do" && c.Op != "upload" {
		return nil, wrong(service.BadRequest, "there is no operation "+c.Op)
	}
	q := asked{header: http.Header{}, inline: InlineBody}
	if err := fields(c.Reader(), q.field); err != nil {
		return nil, err
	}
	to, err := url.Parse(q.url)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return nil, wrong(service.BadRequest, "the URL "+q.url)
	}
	if q.method == "" {
		q.method = map[string]string{"do": "GET", "upload": "POST"}[c.Op]
	}
	if c.Op == "do" {
		return h.answers(c, &q)
	}
	sink := &sink{h: h, call: c, q: &q}
	sink.fake = h.Open(sink.part)
	return actor.Func(func(w *abi.Writer) {
		w.Map(1)
		w.Text("sink")
		w.Ref(sink.fake.Ref())
	}), nil
}

func (q *asked) field(key string, r *abi.Reader) bool {
	switch key {
	case "method":
		q.method = r.Text()
	case "url":
		q.url = r.Text()
	case "headers":
		for range r.Array() {
			if r.Array() != 2 || !r.OK() {
				r.Fail(abi.ErrArity)
				break
			}
			name := r.Text()
			q.header.Add(name, r.Text())
		}
	case "body":
		q.body = append([]byte{}, r.ByteString()...)
	case "size":
		r.Uint()
	case "redirects":
		q.stay = r.Uint() == 0
	case "stream":
		q.streamed = r.Bool()
	case "max":
		q.most = r.Int()
	case "inline":
		q.inline = r.Int()
	case "decode":
		r.Bool() // what the handler writes is not packed
	default:
		return false
	}
	return true
}

// answers has the servers answer, and follows their redirects.
func (h *HTTP) answers(c *actortest.Call, q *asked) (actor.Encoder, *service.Error) {
	for range mostRedirects + 1 {
		in := httptest.NewRequest(q.method, q.url, bytes.NewReader(q.body))
		in.RemoteAddr, in.Header = "192.0.2.1:1234", q.header.Clone()
		h.requests = append(h.requests, &Request{Method: q.method, URL: q.url, Header: q.header.Clone(), Body: q.body, Path: c.Path, At: c.At})
		out := httptest.NewRecorder()
		if broken := serve(h.handler, out, in); broken {
			return nil, wrong(service.Failed, "the server has closed the connection")
		}
		res := out.Result()
		next, err := res.Location()
		if err != nil || q.stay || res.StatusCode/100 != 3 {
			return h.response(q, res)
		}
		if res.StatusCode != http.StatusTemporaryRedirect && res.StatusCode != http.StatusPermanentRedirect && q.method != "HEAD" {
			q.method, q.body = "GET", nil
			for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language"} {
				q.header.Del(name)
			}
		}
		if from, _ := url.Parse(q.url); from.Host != next.Host {
			q.header.Del("Authorization")
			q.header.Del("Cookie")
		}
		q.url = in.URL.ResolveReference(next).String()
	}
	return nil, wrong(service.Failed, "more redirects than are followed")
}

// serve reports whether the handler has ended the connection, by a panic with http.ErrAbortHandler.
func serve(h http.Handler, out http.ResponseWriter, in *http.Request) (broken bool) {
	defer func() {
		if v := recover(); v == http.ErrAbortHandler {
			broken = true
		} else if v != nil {
			panic(v)
		}
	}()
	h.ServeHTTP(out, in)
	return false
}

func (h *HTTP) response(q *asked, res *http.Response) (actor.Encoder, *service.Error) {
	body, _ := io.ReadAll(res.Body)
	if q.method == "HEAD" {
		body = nil
	}
	if q.most > 0 && int64(len(body)) > q.most {
		return nil, wrong(service.TooLarge, "the body of the answer is larger than was allowed")
	}
	streamed := q.streamed || int64(len(body)) > q.inline
	var from actor.Ref
	if streamed {
		s := &source{rest: body}
		s.fake = h.Open(s.part)
		from = s.fake.Ref()
	}
	names := make([]string, 0, len(res.Header))
	n := 0
	for name, values := range res.Header {
		names = append(names, name)
		n += len(values)
	}
	sort.Slice(names, func(i, j int) bool { return strings.ToLower(names[i]) < strings.ToLower(names[j]) })
	return actor.Func(func(w *abi.Writer) {
		if streamed {
			w.Map(5)
		} else {
			w.Map(4)
		}
		w.Text("status")
		w.Int(int64(res.StatusCode))
		w.Text("url")
		w.Text(q.url)
		w.Text("headers")
		w.Array(n)
		for _, name := range names {
			for _, v := range res.Header[name] {
				w.Array(2)
				w.Text(strings.ToLower(name))
				w.Text(v)
			}
		}
		if !streamed {
			w.Text("body")
			w.ByteString(body)
			return
		}
		w.Text("stream")
		w.Ref(from)
		w.Text("length")
		w.Uint(uint64(len(body)))
	}), nil
}

// source is a body that is read in parts.
type source struct {
	fake *actortest.Fake
	rest []byte
}

func (s *source) part(c *actortest.Call) {
	switch c.Op {
	case "read":
		most := stream.DefaultPart
		if raw := c.Field("max"); raw != nil {
			most = int(abi.NewReader(raw).Int())
		}
		if len(s.rest) == 0 {
			c.Answer(actor.Func(func(w *abi.Writer) { w.Null() }))
			s.fake.Close()
			return
		}
		n := min(max(most, 1), stream.MaxPart, len(s.rest))
		part := s.rest[:n]
		s.rest = s.rest[n:]
		c.Answer(actor.Bytes(part))
	case "close":
		c.Answer(nil)
		s.fake.Close()
	default:
		c.Fail(service.BadRequest, "a stream that is read has no operation "+c.Op)
	}
}

// sink takes the body of an upload in parts.
type sink struct {
	h    *HTTP
	fake *actortest.Fake
	call *actortest.Call
	q    *asked
}

// room is what a stream takes before it has to wait.
const room = 256 << 10

func (s *sink) part(c *actortest.Call) {
	switch c.Op {
	case "write":
		r := c.Reader()
		part := r.ByteString()
		if r.Done() != nil {
			c.Fail(service.BadRequest, "a part is bytes")
			return
		}
		s.q.body = append(s.q.body, part...)
		c.Answer(actor.Int(room))
	case "end":
		if v, err := s.h.answers(s.call, s.q); err != nil {
			c.Fail(err.Code, err.Text)
		} else {
			c.Answer(encoded(v))
		}
		s.fake.Close()
	case "abort":
		c.Answer(nil)
		s.fake.Close()
	default:
		c.Fail(service.BadRequest, "a stream that is written has no operation "+c.Op)
	}
}
