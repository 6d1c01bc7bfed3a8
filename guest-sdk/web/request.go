package web

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Request is a request. Slices that it returns are valid until the handler returns; texts
// are copies.
type Request struct {
	method, path, route []byte
	values, who         []byte // encoded
	query, headers      []byte
	body                []byte
	stream              actor.Ref
	length              int64
	remote, id          []byte

	reader   abi.Reader // behind what was read so far
	next     int        // the element that it is at
	of       *route
	own      bool     // the values are those of segments, not the gateway's
	segments [][]byte // of the path
}

// reset begins another request. What it refers to lies in the inbox.
func (q *Request) reset(from *abi.Reader) {
	q.values, q.who, q.query, q.headers, q.body, q.stream, q.length, q.remote, q.id = nil, nil, nil, nil, nil, 0, -1, nil, nil
	q.next, q.of, q.own = elements, nil, false
	q.reader = *from
}

// need reads up to an element, if that was not read yet. Most handlers need few of them, and
// reading is what costs most.
func (q *Request) need(element int) {
	r := &q.reader
	for ; q.next <= element; q.next++ {
		if r.Null() {
			continue
		}
		switch q.next {
		case atValues:
			q.values = r.Raw()
		case atQuery:
			q.query = r.TextBytes()
		case atHeaders:
			q.headers = r.ByteString()
		case atBody:
			q.body = r.ByteString()
		case atStream:
			q.stream = r.Ref()
		case atLength:
			q.length = r.Int()
		case atRemote:
			q.remote = r.TextBytes()
		case atID:
			q.id = r.TextBytes()
		case atWho:
			q.who = r.Raw()
		}
	}
}

// Method is GET, POST, ...
func (q *Request) Method() string { return string(q.method) }

// Path is the path, unescaped.
func (q *Request) Path() string { return string(q.path) }

// Route is the pattern of the manifest's route.
func (q *Request) Route() string { return string(q.route) }

// ID is the request's id; it is in the response, too, as X-Request-Id.
func (q *Request) ID() string { q.need(atID); return string(q.id) }

// Remote is the address of the client, without its port.
func (q *Request) Remote() string { q.need(atRemote); return string(q.remote) }

// Body is the body, if it has come with the request: see [Request.Stream].
func (q *Request) Body() []byte { q.need(atBody); return q.body }

// Stream is the ref of a source of the body, if that is larger than a message, and its
// length, -1 if it is not known; the ref is 0 if the body is there. See package stream.
func (q *Request) Stream() (ref actor.Ref, length int64) {
	q.need(atLength)
	return q.stream, q.length
}

// segment splits the path.
func (q *Request) segment() {
	q.segments = q.segments[:0]
	if len(q.path) == 0 {
		return
	}
	at := 1
	for i := 1; i <= len(q.path); i++ {
		if i == len(q.path) || q.path[i] == '/' {
			q.segments = append(q.segments, q.path[at:i])
			at = i + 1
		}
	}
}

// PathValue is the value of a wildcard of the pattern, "" if it has none of this name.
func (q *Request) PathValue(name string) string {
	if q.of == nil {
		return ""
	}
	if q.own {
		return q.ownValue(name)
	}
	q.need(atValues)
	i := 0
	for _, p := range q.of.parts {
		if p.kind != one && (p.kind != rest || p.text == "") {
			continue
		}
		if p.text != name {
			i++
			continue
		}
		var r abi.Reader
		r.Reset(q.values)
		for n := r.Array(); n > 0; n-- {
			v := r.TextBytes()
			if i--; i < 0 {
				return string(v)
			}
		}
		return ""
	}
	return ""
}

func (q *Request) ownValue(name string) string {
	for i, p := range q.of.parts {
		switch {
		case p.text != name || name == "" || i >= len(q.segments):
		case p.kind == one:
			return string(q.segments[i])
		case p.kind == rest:
			n := 1
			for _, s := range q.segments[:i] {
				n += len(s) + 1
			}
			return string(q.path[n:])
		}
	}
	return ""
}

// Header is the first value of a header, "" if it is not there. Names are case-insensitive.
func (q *Request) Header(name string) string {
	q.need(atHeaders)
	var r abi.Reader
	r.Reset(q.headers)
	for r.More() {
		k, v := r.TextBytes(), r.TextBytes()
		if same(k, name) {
			return string(v)
		}
	}
	return ""
}

// Headers calls f with all headers, their names in lower case and sorted.
func (q *Request) Headers(f func(name, value []byte)) {
	q.need(atHeaders)
	var r abi.Reader
	r.Reset(q.headers)
	for r.More() {
		k, v := r.TextBytes(), r.TextBytes()
		f(k, v)
	}
}

// same compares a name in lower case with any.
func same(small []byte, name string) bool {
	if len(small) != len(name) {
		return false
	}
	for i := range small {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != small[i] {
			return false
		}
	}
	return true
}

// RawQuery is the query as it was sent, without the question mark.
func (q *Request) RawQuery() string { q.need(atQuery); return string(q.query) }

// Query is the first value of a parameter of the query, unescaped; "" if it is not there.
func (q *Request) Query(name string) string { q.need(atQuery); return lookup(q.query, name) }

// Form is like Query, for a body that is a form (application/x-www-form-urlencoded).
func (q *Request) Form(name string) string { q.need(atBody); return lookup(q.body, name) }

func lookup(b []byte, name string) string {
	for len(b) > 0 {
		to := 0
		for to < len(b) && b[to] != '&' {
			to++
		}
		pair := b[:to]
		b = b[min(to+1, len(b)):]
		eq := 0
		for eq < len(pair) && pair[eq] != '=' {
			eq++
		}
		if unescape(pair[:eq]) == name {
			return unescape(pair[min(eq+1, len(pair)):])
		}
	}
	return ""
}

// unescape replaces + and %XX by what they stand for; any other % stays.
func unescape(b []byte) string {
	plain := true
	for _, c := range b {
		if c == '%' || c == '+' {
			plain = false
			break
		}
	}
	if plain {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '+' {
			c = ' '
		} else if c == '%' && i+2 < len(b) {
			hi, ok := digit(b[i+1])
			lo, ok2 := digit(b[i+2])
			if ok && ok2 {
				c = hi<<4 | lo
				i += 2
			}
		}
		out = append(out, c)
	}
	return string(out)
}

func digit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// User is who makes the request, as the gateway has authenticated it: the kind is basic, jwt or
// mtls, "" for an anonymous client.
func (q *Request) User() (kind, name string) {
	q.identity(func(key []byte, r *abi.Reader) {
		switch string(key) {
		case "kind":
			kind = r.Text()
		case "name":
			name = r.Text()
		default:
			r.Skip()
		}
	})
	return kind, name
}

// Claim reads a claim of the token that the manifest's route names, nil if the token has none.
func (q *Request) Claim(name string) (claim *abi.Reader) {
	q.identity(func(key []byte, r *abi.Reader) {
		if string(key) != "claims" {
			r.Skip()
			return
		}
		for n := r.Map(); n > 0 && r.OK(); n-- {
			k, v := r.TextBytes(), r.Raw()
			if string(k) == name {
				claim = abi.NewReader(v)
			}
		}
	})
	return claim
}

func (q *Request) identity(f func(key []byte, r *abi.Reader)) {
	q.need(atWho)
	if len(q.who) == 0 {
		return
	}
	var r abi.Reader
	r.Reset(q.who)
	for n := r.Map(); n > 0 && r.OK(); n-- {
		f(r.TextBytes(), &r)
	}
}
