package gateway

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
)

// The messages of server-sent events: to the route's actor SSEOpen, an ask, and SSEClose, the last;
// from actors with its ref "event", "comment", "close" and "state".
const (
	SSEOpen  = "sse.open"
	SSEClose = "sse.close"
)

func wantsEvents(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	for _, v := range r.Header["Accept"] {
		for _, one := range strings.Split(v, ",") {
			typ, _, _ := strings.Cut(one, ";")
			if strings.EqualFold(strings.TrimSpace(typ), "text/event-stream") {
				return true
			}
		}
	}
	return false
}

// events serves a request for server-sent events, until either side ends it.
func (x *exchange) events() {
	k := &eventStream{x: x, control: http.NewResponseController(x.w.ResponseWriter)}
	c, err := newConn(x, k)
	if err != nil {
		x.refuse(x.g.problemOf(err, host.Ref{}))
		return
	}
	var more func(w *abi.Writer)
	if last := x.r.Header.Get("Last-Event-Id"); last != "" {
		more = func(w *abi.Writer) { w.Text("last"); w.Text(last) }
	}
	if _, ok := x.open(c, SSEOpen, more); !ok {
		c.finish(ended{codePolicy, "refused"})
		return
	}
	h := x.w.Header()
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = []string{"no-store"}
	h["X-Content-Type-Options"] = noSniff
	h["X-Accel-Buffering"] = []string{"no"}
	x.w.WriteHeader(http.StatusOK)
	if err := k.control.Flush(); err != nil {
		c.finish(ended{codeAbnormal, "the connection was lost"})
		return
	}
	c.begin(k.write, nil)
	stop := k.beat(c)
	if _, which := executor.Take(x.g.clock, c.end, x.r.Context().Done()); which == 1 {
		c.finish(ended{codeAbnormal, "the client has disconnected"})
	}
	why := c.wait()
	stop()
	x.note = "closed"
	if why.code == codeAbnormal || why.code == codeTryLater {
		panic(http.ErrAbortHandler) // so that it does not look like an intended end
	}
}

// eventStream is a connection's kind.
type eventStream struct {
	x       *exchange
	control *http.ResponseController
}

// beat sends a comment when nothing waits to be sent, so that neither side nor a proxy between
// them takes the connection for dead.
func (k *eventStream) beat(c *conn) (stop func()) {
	return again(k.x.g.clock, k.x.route.Upgrade.Ping, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.over && c.last == nil && c.bytes == 0 {
			c.push(frame{b: []byte(":\n\n")})
		}
		return !c.over
	})
}

// write writes an event.
func (k *eventStream) write(f frame) error {
	if f.kind == frameClose {
		return nil
	}
	_ = k.control.SetWriteDeadline(k.x.g.clock.Now().Add(k.x.g.cfg.Timeouts.Write))
	if _, err := k.x.w.Write(f.b); err != nil {
		return err
	}
	return k.control.Flush()
}

// frame implements connKind.
func (k *eventStream) frame(op string, r *abi.Reader) (frame, error) {
	bad := func(text string) (frame, error) { return frame{}, service.Errorf(service.BadRequest, "%s", text) }
	switch op {
	case "event":
		b, ok := encodeEvent(r)
		if !ok {
			return bad(`event takes {"data", "event", "id", "retry"}: texts without line breaks but for data, and milliseconds`)
		}
		return frame{b: b}, nil
	case "comment":
		text := r.Text()
		if r.Done() != nil || strings.ContainsAny(text, "\r\n\x00") {
			return bad("comment takes a text without line breaks")
		}
		return frame{b: []byte(": " + text + "\n\n")}, nil
	case "close":
		if r.Null(); r.Done() != nil {
			return bad("close takes null")
		}
		return frame{kind: frameClose, code: codeNormal}, nil
	}
	return bad("an event stream knows event, comment, close and state")
}

// encodeEvent writes an event in the format of the HTML standard.
func encodeEvent(r *abi.Reader) ([]byte, bool) {
	var data, name, id []byte
	var retry uint64
	var hasData, hasID, hasRetry bool
	if r.Peek() != abi.TypeMap {
		return nil, false
	}
	for range r.Map() {
		switch string(r.TextBytes()) {
		case "data":
			data, hasData = r.TextBytes(), true
		case "event":
			name = r.TextBytes()
		case "id":
			id, hasID = r.TextBytes(), true
		case "retry":
			retry, hasRetry = r.Uint(), true
		default:
			return nil, false
		}
	}
	if r.Done() != nil || bytes.ContainsAny(name, "\r\n") || bytes.ContainsAny(id, "\r\n\x00") || !hasData && !hasID && !hasRetry || retry > uint64(24*time.Hour/time.Millisecond) {
		return nil, false
	}
	b := make([]byte, 0, len(data)+len(name)+len(id)+48)
	field := func(name string, value []byte) {
		b = append(append(append(b, name...), ": "...), value...)
		b = append(b, '\n')
	}
	if len(name) > 0 {
		field("event", name)
	}
	if hasID {
		field("id", id)
	}
	if hasRetry {
		field("retry", strconv.AppendUint(nil, retry, 10))
	}
	if hasData {
		for {
			i := bytes.IndexAny(data, "\r\n")
			if i < 0 {
				field("data", data)
				break
			}
			field("data", data[:i])
			if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
				i++
			}
			data = data[i+1:]
		}
	}
	return append(b, '\n'), true
}
