package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// answer is the answer of an actor: [status, headers, body]. Headers are names and
// values in turn, or null; the body is a byte string, a text, null, or a map that describes how
// it will come.
type answer struct {
	status int
	body   []byte // of the payload
	text   bool   // it is a text
	how    []byte // the map; nil: the body is there
	length int64  // that the actor states; -1: it does not
	typed  bool   // it has a Content-Type
}

// Bounds of the headers of an answer.
const (
	maxAnswerHeaders = 100
	maxAnswerHeader  = 32 << 10
)

// write checks an answer and writes it.
func (x *exchange) write(a *answer, m host.Message) problem {
	if err := a.decode(m.Payload, x.w.Header()); err != nil {
		x.clearHeaders()
		return problem{status: http.StatusBadGateway, text: "the actor's answer is not valid", cause: err}
	}
	if a.how != nil {
		return x.streamAnswer(a, m.Sender)
	}
	h := x.w.Header()
	if !a.typed && len(a.body) > 0 {
		if a.text {
			h["Content-Type"] = textType
		} else {
			h["Content-Type"] = bytesType
		}
	}
	if _, ok := h["X-Content-Type-Options"]; !ok {
		h["X-Content-Type-Options"] = noSniff
	}
	if bodyAllowed(a.status) {
		h["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	}
	if d := x.g.cfg.Timeouts.Write; len(a.body) > smallBody {
		_ = http.NewResponseController(x.w.ResponseWriter).SetWriteDeadline(x.g.clock.Now().Add(d))
	}
	x.closeUnread()
	if x.g.zip != nil && x.route.Compress != "off" && len(a.body) > 0 {
		x.g.zip(a).ServeHTTP(&x.w, x.r)
	} else {
		a.ServeHTTP(&x.w, x.r)
	}
	return problem{}
}

// ServeHTTP writes an answer whose headers are there.
func (a *answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(a.status)
	if len(a.body) > 0 && r.Method != http.MethodHead {
		_, _ = w.Write(a.body)
	}
}

// smallBody fits the buffers of any connection, so that writing it does not wait for a slow reader.
const smallBody = 2 << 10

// The values of headers that are nearly always the same; they are never changed.
var (
	textType  = []string{"text/plain; charset=utf-8"}
	bytesType = []string{"application/octet-stream"}
	noSniff   = []string{"nosniff"}
)

// clearHeaders removes the headers of an answer, except those of the gateway itself.
func (x *exchange) clearHeaders() {
	h := x.w.Header()
	for name := range h {
		if name != "Connection" && name != "Vary" && !strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
}

// decode reads an answer, and its headers into h.
func (a *answer) decode(payload []byte, h http.Header) error {
	*a = answer{length: -1}
	r := abi.NewReader(payload)
	if n := r.Array(); r.OK() && n != 3 {
		return fmt.Errorf("an answer is [status, headers, body], not %d elements", n)
	}
	a.status = int(min(r.Uint(), 1<<16))
	if r.OK() && (a.status < 200 || a.status > 599) {
		return fmt.Errorf("%d is not a status of an answer: 200 to 599", a.status)
	}
	if !r.Null() {
		if err := a.headers(r, h); err != nil {
			return err
		}
	}
	switch r.Peek() {
	case abi.TypeBytes:
		a.body = r.ByteString()
	case abi.TypeText:
		a.body, a.text = r.TextBytes(), true
	case abi.TypeMap:
		a.how = r.Raw()
	default:
		if !r.Null() {
			return errors.New("the body is neither bytes nor a text nor null nor a map")
		}
	}
	if err := r.Done(); err != nil {
		return err
	}
	switch {
	case !bodyAllowed(a.status) && (len(a.body) > 0 || a.how != nil):
		return fmt.Errorf("an answer with the status %d has no body", a.status)
	case a.length >= 0 && a.how == nil && len(a.body) > 0 && a.length != int64(len(a.body)):
		return fmt.Errorf("Content-Length is %d, the body has %d bytes", a.length, len(a.body))
	}
	return nil
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified && status != http.StatusResetContent
}

func (a *answer) headers(r *abi.Reader, h http.Header) error {
	n := r.Array()
	if n%2 != 0 || n > 2*maxAnswerHeaders {
		return fmt.Errorf("headers are names and values in turn, at most %d of each, not %d elements", maxAnswerHeaders, n)
	}
	bytes := 0
	for range n / 2 {
		name, value := r.TextBytes(), r.TextBytes()
		if !r.OK() {
			return r.Err()
		}
		if bytes += len(name) + len(value); bytes > maxAnswerHeader {
			return fmt.Errorf("the headers have more than %d bytes", maxAnswerHeader)
		}
		if err := a.header(h, string(name), string(value)); err != nil {
			return err
		}
	}
	return nil
}

// header takes over one header. Headers that concern only the host are skipped.
func (a *answer) header(h http.Header, name, value string) error {
	if !middleware.ValidName(name) {
		return fmt.Errorf("not the name of a header: %q", printable.Line(name, 60))
	}
	if !middleware.ValidValue(value) {
		return fmt.Errorf("the header %s has a control character", name)
	}
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Content-Length":
		n, err := strconv.ParseUint(value, 10, 62)
		if err != nil || a.length >= 0 {
			return fmt.Errorf("Content-Length is not a number, or comes twice")
		}
		a.length = int64(n)
		return nil
	case "Content-Type":
		a.typed = true
		h[name] = []string{value}
		return nil
	case "X-Request-Id", "X-Crash-Report", "Date":
		return nil
	}
	if middleware.HopByHop[name] {
		return nil
	}
	if strings.HasPrefix(name, "Access-Control-") && len(h[name]) > 0 {
		return nil // the route's cors decides
	}
	h[name] = append(h[name], value)
	return nil
}
