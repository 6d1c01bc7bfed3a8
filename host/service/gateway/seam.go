package gateway

import (
	"io"

	"github.com/wasmactors/wasmactors/host"
)

// Where streams, server-sent events and WebSockets plug in. What this file does is the
// least; the functions are called at these points of a request:
//
//	upgrade        after routing, authentication and bounds, before the body is read
//	streamRequest  for a body of more than Limits.Inline bytes
//	streamAnswer   for an answer whose body is a map: {"stream": ...}, {"events": ...}
//
// An exchange has: r and w (w is a recorder; http.NewResponseController reaches the
// connection through it), route, who, id, the target (x.choose() gives x.lease, held until
// the exchange ends: an actor on demand lives as long), and spawn for actors below the
// gateway's. Whatever goes on after ServeHTTP has returned (a connection that was hijacked)
// is counted by keep, and ended by the channel of x.g.draining().

// canStream reports whether streamRequest is there.
var canStream = false

// upgrade serves a request in another way than by one answer; false: it is an ordinary one.
func (x *exchange) upgrade() bool { return false }

// streamRequest makes a source of a body, of which first was read already, and returns its
// ref. done is called when the answer was given.
func (x *exchange) streamRequest(first []byte, rest io.Reader) (ref host.Ref, done func(), p problem) {
	return host.Ref{}, nil, problem{status: 413, text: "the body is too large"}
}

// streamAnswer writes an answer whose body comes in parts; how is the CBOR of the map. The
// status and the headers of a were checked and stand in x.w.Header().
func (x *exchange) streamAnswer(a *answer, how []byte) problem {
	return problem{status: 502, text: "the answer is not one of this gateway's"}
}
