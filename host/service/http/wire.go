package httpclient

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// request are the arguments of do and upload.
type request struct {
	Method    string   `cbor:"method,omitempty"`
	URL       string   `cbor:"url"`
	Headers   []Header `cbor:"headers,omitempty"`
	Body      []byte   `cbor:"body,omitempty"`      // do
	Size      *uint64  `cbor:"size,omitempty"`      // upload: bytes that will come
	Redirects *uint64  `cbor:"redirects,omitempty"` // at most this many, and as the grant says
	Inline    *uint64  `cbor:"inline,omitempty"`    // bytes of the answer's body that may come with it
	Max       *uint64  `cbor:"max,omitempty"`       // bytes that the answer's body may have
	Stream    bool     `cbor:"stream,omitempty"`    // the answer's body is a stream, however small
	Decode    bool     `cbor:"decode,omitempty"`    // the answer's body may be sent as gzip, and is unpacked
}

// decode reads the arguments of a request.
func decode(r *service.Request[Grant], q *request) error {
	whole := *q
	if whole.read(r.Args) {
		*q = whole
		return nil
	}
	return r.Decode(q)
}

// read reads arguments as guests write them, without reflection. It is false if they are in any way unusual, or wrong:
// then q is worth nothing, and service.Request.Decode has the last word. The body is a part of args.
func (q *request) read(args []byte) bool {
	r := abi.NewReader(args)
	if r.Peek() != abi.TypeMap {
		return false
	}
	var seen uint16
	for range r.Map() {
		if r.Peek() != abi.TypeText {
			return false
		}
		var bit uint16
		switch string(r.TextBytes()) {
		case "method":
			bit, q.Method = 1<<0, r.Text()
		case "url":
			bit, q.URL = 1<<1, r.Text()
		case "headers":
			bit, q.Headers = 1<<2, readHeaders(r)
		case "body":
			bit, q.Body = 1<<3, r.ByteString()
		case "size":
			bit, q.Size = 1<<4, readNumber(r)
		case "redirects":
			bit, q.Redirects = 1<<5, readNumber(r)
		case "inline":
			bit, q.Inline = 1<<6, readNumber(r)
		case "max":
			bit, q.Max = 1<<7, readNumber(r)
		case "stream":
			bit, q.Stream = 1<<8, r.Bool()
		case "decode":
			bit, q.Decode = 1<<9, r.Bool()
		}
		if bit == 0 || seen&bit != 0 || !r.OK() {
			return false
		}
		seen |= bit
	}
	return r.Done() == nil
}

func readNumber(r *abi.Reader) *uint64 {
	n := r.Uint()
	return &n
}

func readHeaders(r *abi.Reader) []Header {
	n := r.Array()
	list := make([]Header, 0, min(n, MaxHeaders+1)) // more than that are an error anyway
	for range n {
		if r.Array() != 2 {
			r.Fail(abi.ErrUnknownKey)
			return nil
		}
		list = append(list, Header{Name: r.Text(), Value: r.Text()})
	}
	return list
}

// answer is the answer to do, and to the end of an upload.
type answer struct {
	status  int
	headers []Header
	url     string // "" unless redirects were followed
	body    []byte
	stream  host.Ref // zero: body is complete
	length  int64    // of the stream; -1: not known
}

// encode writes an answer.
func (a *answer) encode() (host.Raw, error) {
	size := 64 + len(a.body)
	for i := range a.headers {
		size += len(a.headers[i].Name) + len(a.headers[i].Value) + 8
	}
	w := abi.NewWriter(make([]byte, 0, size))
	n := 3
	if a.url != "" {
		n++
	}
	if !a.stream.IsZero() && a.length >= 0 {
		n++
	}
	w.Map(n)
	w.Text("status")
	w.Uint(uint64(a.status))
	w.Text("headers")
	w.Array(len(a.headers))
	for i := range a.headers {
		w.Array(2)
		w.Text(a.headers[i].Name)
		w.Text(a.headers[i].Value)
	}
	if a.url != "" {
		w.Text("url")
		w.Text(a.url)
	}
	if a.stream.IsZero() {
		w.Text("body")
		w.ByteString(a.body)
		return w.Bytes(), nil
	}
	w.Text("stream")
	w.Ref(a.stream.UID())
	if a.length >= 0 {
		w.Text("length")
		w.Uint(uint64(a.length))
	}
	return w.Bytes(), nil
}

// limit is a bound of the grant that a request may lower.
func limit(asked *uint64, granted service.Size) int64 {
	if asked != nil && *asked < uint64(granted) {
		return int64(*asked)
	}
	return int64(granted)
}
