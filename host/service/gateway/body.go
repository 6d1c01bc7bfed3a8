package gateway

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/stream"
)

// canStream reports whether bodies may be larger than a message.
const canStream = true

// bodyWindow is how much of a body is buffered on its way to the actor, in bytes.
const bodyWindow = 64 << 10

// upgrade serves a request otherwise than by one answer; false: it is an ordinary request.
func (x *exchange) upgrade() bool {
	switch {
	case x.route.Upgrade.WebSocket && wantsWebSocket(x.r):
		x.webSocket()
	case x.route.Upgrade.Events && wantsEvents(x.r):
		x.events()
	case x.route.Upgrade.WebSocket && !x.route.Upgrade.Events && x.r.Method == http.MethodGet:
		h := x.w.Header() // RFC 9110, 15.5.22
		h.Set("Upgrade", "websocket")
		h.Set("Connection", "Upgrade")
		x.refuse(problem{status: http.StatusUpgradeRequired, text: "this path is for WebSockets"})
	default:
		return false
	}
	return true
}

// streamRequest makes a source of a body, of which first was read already, and returns its
// ref. done is called when the answer was given: what the actor has not read by then is dropped.
func (x *exchange) streamRequest(first []byte, rest io.Reader) (ref host.Ref, done func(), p problem) {
	props, src := stream.NewSource(stream.Params{Window: bodyWindow, Idle: x.route.Handler, Clock: x.g.clock})
	ref, err := x.spawn(props)
	if err != nil {
		src.Abandon()
		return host.Ref{}, nil, x.g.problemOf(err, host.Ref{})
	}
	control := http.NewResponseController(x.w.ResponseWriter)
	_ = control.EnableFullDuplex() // of HTTP/1; HTTP/2 always is
	body := &pacedBody{from: rest, control: control, clock: x.g.clock, most: x.route.Body}
	x.streamed = body
	copied := make(chan struct{})
	executor.Go(x.g.clock, func() {
		defer close(copied)
		_, err := src.Write(first)
		if err == nil {
			_, err = io.Copy(src, body)
		}
		x.late = isTimeout(err)
		src.CloseWithError(bodyError(err))
	})
	return ref, func() {
		src.Abandon()
		body.cut()
		x.closeUnread()
		executor.Take(x.g.clock, copied)
	}, problem{}
}

// hangUp makes the connection close after the answer. A connection of HTTP/2 has other requests beside
// this one, and its body does not hinder them.
func (x *exchange) hangUp() {
	if x.r.ProtoMajor == 1 {
		x.w.Header().Set("Connection", "close")
	}
}

// closeUnread makes the connection close after an answer that begins before the request's body
// has ended: the unread rest would be in the way of the next request.
func (x *exchange) closeUnread() {
	if x.streamed != nil && x.w.status == 0 && !x.streamed.atEnd() {
		x.hangUp()
	}
}

// bodyProblem is the outcome of a request whose body is streamed: a body that does not come
// looks like a client that has gone.
func (x *exchange) bodyProblem(p problem) problem {
	if p.status == statusGone && x.late && x.w.status == 0 {
		x.hangUp()
		return problem{status: http.StatusRequestTimeout, text: "the body did not come in time"}
	}
	return p
}

// pacedBody is a body each part of which must come in time.
type pacedBody struct {
	from    io.Reader
	control *http.ResponseController
	clock   host.Clock
	most    time.Duration

	mu    sync.Mutex
	state bodyState
}

// bodyState is how far a body was read.
type bodyState uint8

const (
	bodyOpen bodyState = iota
	bodyEnded
	bodyCut // it is not to be read any more
)

// Read reads on. When a body has ended, net/http reads ahead on the connection, and takes one
// whose deadline passes for one whose client has gone: also for its later requests.
func (b *pacedBody) Read(p []byte) (int, error) {
	if !b.deadline(bodyOpen, b.clock.Now().Add(b.most)) {
		return 0, io.ErrClosedPipe
	}
	n, err := b.from.Read(p)
	if err == io.EOF {
		b.deadline(bodyEnded, time.Time{})
	}
	return n, err
}

// cut ends a Read that waits, unless everything was read.
func (b *pacedBody) cut() { b.deadline(bodyCut, time.Unix(1, 0)) }

// deadline sets a deadline and the state, unless the state is final.
func (b *pacedBody) deadline(next bodyState, at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != bodyOpen {
		return false
	}
	b.state = next
	_ = b.control.SetReadDeadline(at)
	return true
}

func (b *pacedBody) atEnd() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == bodyEnded
}

// bodyError is the error for the actor if a body could not be read to its end.
func bodyError(err error) error {
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return service.Errorf(service.TooLarge, "the body is larger than %d bytes", large.Limit)
	case isTimeout(err):
		return service.Errorf(service.Timeout, "the body did not come in time")
	}
	return service.Errorf(service.Cancelled, "the client has disconnected")
}

// readAhead is how many parts of a streamed answer are asked for at once.
const readAhead = 2

// partSize is how many bytes are asked for, of an actor or a stream.
const partSize = 32 << 10

// streamAnswer writes an answer whose body comes in parts, each of which is asked for:
// {"stream": ref} or {"stream": ref, "key": n}. The ref is that of a source, such as a service has
// given to the actor, or of an actor that answers ["read", {"max": bytes, "key": n}] like one. The
// status and the headers of a were checked and are in x.w.Header(). by is who has answered.
func (x *exchange) streamAnswer(a *answer, by host.Ref) problem {
	bad := func(err error) problem {
		x.clearHeaders()
		return problem{status: http.StatusBadGateway, text: "the actor's answer is not valid", cause: err}
	}
	from, key, err := decodeHow(a.how)
	if err != nil {
		return bad(err)
	}
	ref, err := x.g.sys.RefOf(from, by)
	if err != nil {
		return bad(err)
	}
	s := &partReader{x: x, from: ref, ask: readRequest(key)}
	defer s.end()
	if x.r.Method == http.MethodHead {
		x.closeUnread()
		x.w.WriteHeader(a.status)
		return problem{}
	}
	first, p := s.next() // before the status is sent: an immediate failure still gets its own status
	if p.status != 0 {
		x.clearHeaders()
		return p
	}
	h := x.w.Header()
	if !a.typed {
		h["Content-Type"] = bytesType
	}
	if _, ok := h["X-Content-Type-Options"]; !ok {
		h["X-Content-Type-Options"] = noSniff
	}
	if a.length >= 0 {
		h["Content-Length"] = []string{strconv.FormatInt(a.length, 10)}
	}
	x.closeUnread()
	x.w.WriteHeader(a.status)
	control := http.NewResponseController(x.w.ResponseWriter)
	sent := int64(0)
	for part := first; part != nil; {
		if sent += int64(len(part)); a.length >= 0 && sent > a.length || x.g.cfg.Limits.Answer > 0 && sent > x.g.cfg.Limits.Answer {
			return problem{status: http.StatusBadGateway, text: "the answer is longer than it may be"}
		}
		_ = control.SetWriteDeadline(x.g.clock.Now().Add(x.g.cfg.Timeouts.Write))
		if _, err := x.w.Write(part); err != nil {
			x.note = "the client has disconnected"
			return problem{}
		}
		if len(part) < partSize {
			_ = control.Flush()
		}
		if part, p = s.next(); p.status != 0 {
			return p // the answer breaks off
		}
	}
	if a.length >= 0 && sent < a.length {
		return problem{status: http.StatusBadGateway, text: "the answer is shorter than its Content-Length"}
	}
	return problem{}
}

func decodeHow(how []byte) (from abi.Ref, key []byte, err error) {
	r := abi.NewReader(how)
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "stream":
			from = r.Ref()
		case "key":
			key = r.Raw()
		default:
			return 0, nil, errors.New(`a body that is a map has the keys "stream" (a ref) and "key"`)
		}
	}
	if err := r.Done(); err != nil {
		return 0, nil, err
	}
	if from == 0 {
		return 0, nil, errors.New(`a body that is a map has the key "stream" (a ref)`)
	}
	return from, key, nil
}

// readRequest is ["read", {"max": bytes, "key": key}].
func readRequest(key []byte) host.Raw {
	w := abi.NewWriter(nil)
	w.Array(2)
	w.Text("read")
	n := 1
	if key != nil {
		n++
	}
	w.Map(n)
	w.Text("max")
	w.Uint(partSize)
	if key != nil {
		w.Text("key")
		w.Raw(key)
	}
	return w.Bytes()
}

// partReader asks for parts, some of them ahead.
type partReader struct {
	x     *exchange
	from  host.Ref
	ask   host.Raw
	ahead []*host.Pending
	over  bool
}

// next is the next part, nil at the end.
func (s *partReader) next() ([]byte, problem) {
	x := s.x
	for len(s.ahead) < readAhead {
		q, err := x.g.sys.Request(s.from, host.Bound{Value: s.ask})
		if err != nil {
			if len(s.ahead) == 0 {
				return nil, x.g.problemOf(err, s.from)
			}
			break // the end may be among those under way
		}
		s.ahead = append(s.ahead, q)
	}
	q := s.ahead[0]
	expired := make(chan struct{})
	timer := x.g.clock.AfterFunc(x.route.Handler, func() { close(expired) })
	defer timer.Stop()
	m, which := executor.Take(x.g.clock, q.Answer(), x.r.Context().Done(), expired)
	switch which {
	case 0:
		s.ahead = s.ahead[1:]
		if err := m.Err(); err != nil {
			return nil, x.g.problemOf(err, s.from)
		}
		r := abi.NewReader(m.Payload)
		if r.Null() && r.Done() == nil {
			s.over = true
			return nil, problem{}
		}
		part := r.ByteString()
		if err := r.Done(); err != nil {
			return nil, problem{status: http.StatusBadGateway, text: "the actor's answer is not valid", cause: err}
		}
		if part == nil {
			part = []byte{}
		}
		return part, problem{}
	case 1:
		return nil, problem{status: statusGone, text: "the client has disconnected"}
	default:
		return nil, problem{status: http.StatusGatewayTimeout, text: "no part of the answer in time"}
	}
}

// end gives up what is under way, and says so.
func (s *partReader) end() {
	for _, q := range s.ahead {
		q.Cancel()
	}
	if !s.over {
		w := abi.NewWriter(nil)
		w.Array(2)
		w.Text("close")
		w.Null()
		_ = s.x.g.sys.TryTell(s.from, host.Raw(w.Bytes()))
	}
}
