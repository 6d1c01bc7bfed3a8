package events

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/ref"
)

// happening is an event on its way to subscribers.
type happening struct {
	event *host.Event
	at    time.Time
	class int

	path, from             string // "": unknown
	elements, fromElements []string
	length                 int // of both paths
	texts                  map[view][]byte
}

// view is what of an event a subscriber may see.
type view struct{ path, from, reasons bool }

// longestReason bounds the words of a guest, in bytes.
const longestReason = 256

// newHappening returns nil for an event that no subscriber may get.
func newHappening(e *host.Event, class int, system string) *happening {
	h := &happening{event: e, at: e.Time, class: class, path: pathOf(e.Ref.Path(), system)}
	if d := e.Dead; d != nil {
		h.path, h.from = pathOf(d.Path, system), pathOf(d.From, system)
	}
	h.elements, h.fromElements = elements(h.path), elements(h.from)
	h.length = len(h.path) + len(h.from)
	if h.path == "" && h.from == "" {
		return nil
	}
	return h
}

// pathOf is a path that can be told, without the name of the system: of an actor, or where one could be. A guest
// can write anything into the path of a message that is not delivered.
func pathOf(path, system string) string {
	if rest, ok := strings.CutPrefix(path, ref.Scheme+system); ok && rest != "" && (rest[0] == '/' || rest[0] == '@') {
		path = ref.Of(0, path).Path()
	}
	if len(path) > longestPath || !strings.HasPrefix(path, "/") || path == "/temp" || !utf8.ValidString(path) {
		return ""
	}
	return path
}

func elements(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path[1:], "/")
}

// encode is the value of the event, for all subscribers with this view. There are neither payloads nor refs in it.
func (h *happening) encode(v view) []byte {
	v.path, v.from = v.path && h.path != "", v.from && h.from != ""
	if b := h.texts[v]; b != nil {
		return b
	}
	if h.texts == nil {
		h.texts = map[view][]byte{}
	}
	b := h.write(v)
	h.texts[v] = b
	return b
}

func (h *happening) write(v view) []byte {
	e := h.event
	var w writer
	w.number("time", uint64(max(e.Time.UnixNano(), 0)))
	if v.path {
		w.text("path", h.path)
	}
	if v.from {
		w.text("from", h.from)
	}
	if d := e.Dead; d != nil {
		w.text("kind", d.Kind.String())
		w.number("bytes", uint64(d.Size))
		return w.bytes()
	}
	w.text("type", e.Type)
	w.number("incarnation", e.Incarnation)
	if e.Failure != nil {
		w.text("failure", e.Failure.Kind.String())
	}
	if e.Directive != 0 {
		w.text("directive", e.Directive.String())
		w.number("delay", uint64(max(e.Delay, 0)))
		w.number("failures", uint64(max(e.Failures, 0)))
	}
	if v.reasons {
		reason := e.Note
		if e.Failure != nil {
			reason = e.Failure.Error()
		}
		if reason != "" {
			w.text("reason", clip(reason))
		}
	}
	return w.bytes()
}

// clip cuts a text of a guest, and makes it UTF-8.
func clip(s string) string {
	if len(s) > longestReason {
		s = s[:longestReason]
	}
	return strings.ToValidUTF8(s, "")
}

// writer writes a map whose size is known at its end.
type writer struct {
	n    int
	body abi.Writer
}

func (w *writer) text(key, v string)          { w.n++; w.body.Text(key); w.body.Text(v) }
func (w *writer) number(key string, v uint64) { w.n++; w.body.Text(key); w.body.Uint(v) }

func (w *writer) bytes() []byte {
	all := abi.NewWriter(make([]byte, 0, 8+len(w.body.Bytes())))
	all.Map(w.n)
	return append(all.Bytes(), w.body.Bytes()...)
}
