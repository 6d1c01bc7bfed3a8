package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host/observe"
)

// Notice is a line of a stream that is about the stream itself.
type Notice struct {
	Event   string `json:"event"`             // "dropped" or "end"
	Dropped uint64 `json:"dropped,omitempty"` // dropped: since the previous line of this kind
	Reason  string `json:"reason,omitempty"`  // end
}

// outlet writes the pieces of a stream, each within its time: a client that does not read is cut off.
type outlet struct {
	c    *call
	time time.Duration
	sse  bool
	b    *bufio.Writer
}

// begin opens a stream, if there are not too many.
func (s *Server) begin(c *call) (o *outlet, done func(), err error) {
	streams := s.rooms[c.share()].streams
	if !streams.TryAcquire(1) {
		return nil, nil, &Problem{http.StatusTooManyRequests, "busy", strconv.FormatInt(c.share().of(int64(s.cfg.bounds.streams)), 10) + " streams are open already", "close one"}
	}
	o = &outlet{c: c, time: s.cfg.bounds.writeTime, sse: strings.Contains(c.r.Header.Get("Accept"), mediaSSE)}
	o.b = bufio.NewWriterSize(c.w, 8<<10)
	media := mediaLines
	if o.sse {
		media = mediaSSE
	}
	c.w.Header().Set("Content-Type", media)
	if err := o.flush(); err != nil { // who waits sees that it is open
		streams.Release(1)
		return nil, nil, err
	}
	return o, func() { streams.Release(1) }, nil
}

// write adds a line.
func (o *outlet) write(id string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_ = o.c.rc.SetWriteDeadline(now().Add(o.time))
	if o.sse {
		if id != "" {
			_, _ = o.b.WriteString("id: " + id + "\n")
		}
		_, _ = o.b.WriteString("data: ")
		text = bytes.ReplaceAll(text, []byte("\n"), nil)
	}
	_, _ = o.b.Write(text)
	_ = o.b.WriteByte('\n')
	if o.sse {
		return o.b.WriteByte('\n')
	}
	return nil
}

func (o *outlet) flush() error {
	_ = o.c.rc.SetWriteDeadline(now().Add(o.time))
	if err := o.b.Flush(); err != nil {
		return err
	}
	return o.c.rc.Flush()
}

// atOnce is how many lines are written before they are sent.
const atOnce = 64

// lastWords is how long a stream about an actor that has ended waits for its last lines.
const lastWords = time.Second

// pour writes a stream until it, the server or the reader's patience ends. gone, which may
// be nil, says that the actor it is about has ended.
func pour[T any](s *Server, o *outlet, from *observe.Stream[T], id func(T) string, gone <-chan struct{}) {
	defer from.Close()
	var told uint64
	var late <-chan time.Time
	put := func(v T) error {
		if n := from.Dropped(); n > told {
			err := o.write("", Notice{Event: "dropped", Dropped: n - told})
			if told = n; err != nil {
				return err
			}
		}
		return o.write(id(v), v)
	}
	end := func(text string) {
		if n := from.Dropped(); n > told {
			_ = o.write("", Notice{Event: "dropped", Dropped: n - told})
		}
		_ = o.write("", Notice{Event: "end", Reason: text})
		_ = o.flush()
	}
	rest := func() error { // what waits already
		for range atOnce {
			select {
			case v, more := <-from.C():
				if !more {
					return o.flush()
				}
				if err := put(v); err != nil {
					return err
				}
			default:
				return o.flush()
			}
		}
		return o.flush()
	}
	for {
		select {
		case v, more := <-from.C():
			if !more {
				end(from.Reason())
				return
			}
			err := put(v)
			if err == nil {
				err = rest()
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.cut.Add(1)
				s.cfg.log.Warn("a stream was not read in time and is cut off", "path", o.c.r.URL.Path, "from", o.c.r.RemoteAddr)
			}
			if err != nil {
				return
			}
		case <-gone: // the stream will end, unless its last event was lost
			gone, late = nil, time.After(lastWords)
		case <-late:
			end("the actor has stopped")
			return
		case <-o.c.r.Context().Done():
			if s.ctx.Err() != nil {
				_ = rest()
				end(context.Cause(s.ctx).Error())
			}
			return
		}
	}
}

// eventParams choose events.
func eventParams() []param {
	return []param{
		{name: "path", kind: textsParam, about: "a glob on the actor's path"}, {name: "type", kind: textsParam, about: "a glob on the actor's type"},
		{name: "kind", kind: textsParam, about: "a kind of event, such as failed"}, {name: "not-path", kind: textsParam, about: "leave out: a glob on the actor's path"},
		{name: "not-type", kind: textsParam, about: "leave out: a glob on the actor's type"}, {name: "not-kind", kind: textsParam, about: "leave out: a kind of event"},
		{name: "level", about: "of log lines: this level and worse"}, {name: "since", kind: timeParam, about: "past events: not older than this time (RFC 3339)"},
	}
}

// eventQuery reads them.
func (c *call) eventQuery() (q observe.EventQuery, err error) {
	q.Level = c.query.Get("level")
	for name, to := range map[string]*[]string{"path": &q.Paths, "type": &q.Types, "kind": &q.Kinds,
		"not-path": &q.But.Paths, "not-type": &q.But.Types, "not-kind": &q.But.Kinds} {
		if *to, err = c.texts(name); err != nil {
			return q, err
		}
	}
	q.Since, err = c.since()
	return q, err
}

func (s *Server) events(c *call) error {
	q, err := c.eventQuery()
	if err != nil {
		return err
	}
	if q.Follow, err = c.flag("follow"); err != nil {
		return err
	}
	after, err := c.count("after", 1<<62)
	if err != nil {
		return err
	}
	if id := c.r.Header.Get("Last-Event-ID"); id != "" && after == 0 { // a browser that comes back
		after, _ = strconv.Atoi(id)
	}
	q.After = uint64(max(after, 0))
	var gone <-chan struct{}
	if q.Follow && len(q.Paths) == 1 && !strings.ContainsAny(q.Paths[0], "*?") {
		ref, err := s.at().sys.Lookup(q.Paths[0])
		if err != nil {
			return err
		}
		var forget func()
		if gone, forget, err = s.at().sys.WatchEnd(ref); err != nil {
			return err
		}
		defer forget()
	}
	stream, err := s.at().model.Events(q)
	if err != nil {
		return err
	}
	o, done, err := s.begin(c)
	if err != nil {
		stream.Close()
		return err
	}
	defer done()
	if !q.Follow {
		return history(o, stream)
	}
	pour(s, o, stream, eventID, gone)
	return nil
}

// history writes what is there, without a notice of the end.
func history(o *outlet, from *observe.Stream[observe.Event]) error {
	defer from.Close()
	for e := range from.C() {
		if o.write(eventID(e), e) != nil {
			return nil
		}
	}
	_ = o.flush()
	return nil
}

func (s *Server) trace(c *call) error {
	var o observe.TraceOptions
	var err error
	if o.Messages, err = c.count("messages", 1<<30); err != nil {
		return err
	}
	if o.Payload, err = c.count("payload", 64<<10); err != nil {
		return err
	}
	if o.For, err = c.seconds("seconds", 0, time.Hour); err != nil {
		return err
	}
	if s.replay != nil {
		return s.traceRecorded(c, o)
	}
	stream, err := s.at().model.Trace(c.query.Get("path"), o)
	if err != nil {
		return err
	}
	out, done, err := s.begin(c)
	if err != nil {
		stream.Close()
		return err
	}
	defer done()
	pour(s, out, stream, func(observe.TraceRecord) string { return "" }, nil)
	return nil
}

// eventID is what a browser that comes back begins behind.
func eventID(e observe.Event) string { return strconv.FormatUint(e.Number, 10) }
