package scenario

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Bounds of what is remembered of a scenario.
const (
	mostEvents = 16_384 // events, and as many between two turns
	mostLines  = 20     // of what happened before a failure
	mostText   = 512    // bytes of a text of a guest's
)

// history is what has happened: events, and what the runner has done.
type history struct {
	mu     sync.Mutex // for lines: services have their own goroutines
	events []entry    // the last ones
	gone   uint64     // how many were forgotten
	lines  []line     // the last ones
	lost   uint64     // how many came faster than they could be read
	hidden bool       // what happens is before the beginning, and is not reported
	begun  bool       // the first step is next; starts of actors before it are not reported
}

type entry struct {
	host.Event
	seen uint64 // its number, from 1
	node string // empty: there is only one system
}

type line struct {
	at   time.Time
	text string
}

func (h *history) add(e host.Event, node string) {
	e.Text, e.Note = printable.Clip(e.Text, mostText), printable.Clip(e.Note, mostText)
	e.Mail = nil
	if e.Failure != nil { // shared
		f := *e.Failure
		f.Reason, f.Message = printable.Clip(f.Reason, mostText), printable.Clip(f.Message, mostText)
		f.Stack, f.GuestStack = nil, ""
		e.Failure = &f
	}
	if len(h.events) == mostEvents {
		n := copy(h.events, h.events[mostEvents/2:])
		clear(h.events[n:])
		h.events = h.events[:n]
		h.gone += uint64(mostEvents - n)
	}
	h.events = append(h.events, entry{e, h.gone + uint64(len(h.events)) + 1, node})
	if !h.hidden && (h.begun || e.Kind != host.EventStarted) && e.Kind != host.EventTerminated && !strings.HasPrefix(e.Ref.Path(), "/system") {
		h.note(e.Time, of(node, telling(&e)))
	}
}

// of is a line about a node.
func of(node, text string) string {
	if node == "" {
		return text
	}
	return node + ": " + text
}

func (h *history) note(at time.Time, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.lines) == 4*mostLines {
		h.lines = append(h.lines[:0], h.lines[3*mostLines:]...)
	}
	h.lines = append(h.lines, line{at, printable.Line(text, mostText)})
}

// find is the first matching event after a number, of a node or with "" of any; nil if there is none.
func (h *history) find(behind uint64, node string, fits func(*host.Event) bool) *entry {
	for i := range h.events {
		if e := &h.events[i]; e.seen > behind && (node == "" || e.node == node) && fits(&e.Event) {
			return e
		}
	}
	return nil
}

// last is the last matching event.
func (h *history) last(fits func(*host.Event) bool) *entry {
	for i := len(h.events) - 1; i >= 0; i-- {
		if fits(&h.events[i].Event) {
			return &h.events[i]
		}
	}
	return nil
}

// tail is the most recent history, one line each.
func (h *history) tail(since func(time.Time) time.Duration) (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := max(0, len(h.lines)-mostLines)
	if h.lost > 0 {
		out = append(out, fmt.Sprintf("(%d events came faster than they could be read, and are lost)", h.lost))
	}
	for _, l := range h.lines[from:] {
		out = append(out, fmt.Sprintf("+%-9v %s", since(l.at), l.text))
	}
	return out
}

// saying is the text of an event, for patterns.
func saying(e *host.Event) string {
	switch {
	case e.Kind == host.EventLog:
		return e.Text
	case e.Failure != nil:
		return cause(e)
	case e.Dead != nil:
		return e.Dead.Reason.String()
	case e.Refused != nil:
		return e.Refused.Reason
	}
	return e.Note
}

// cause is a failure in one line: kind, reason, message.
func cause(e *host.Event) string {
	f := e.Failure
	if f == nil {
		return ""
	}
	parts := []string{f.Kind.String()}
	for _, p := range []string{f.Reason, f.Message} {
		if p != "" {
			parts = append(parts, printable.Line(p, mostText))
		}
	}
	return strings.Join(parts, ": ")
}

// telling is an event as a line of a report.
func telling(e *host.Event) string {
	who := e.Ref.Path()
	switch e.Kind {
	case host.EventLog:
		return fmt.Sprintf("log %s: %s: %s", who, host.LevelName(e.Level), e.Text)
	case host.EventFailed, host.EventEscalated:
		text := fmt.Sprintf("%s %s: %s; %s", e.Kind, who, cause(e), e.Directive)
		if e.Delay > 0 {
			text += fmt.Sprintf(" after %v", e.Delay)
		}
		return text
	case host.EventDeadLetter, host.EventSuppressed, host.EventUnhandled:
		return fmt.Sprintf("%s from %s to %s: %s: %s", e.Kind, local(e.Dead.From), local(e.Dead.To()), e.Dead.Reason, shownPayload(e.Dead.Payload))
	case host.EventRefused:
		return fmt.Sprintf("%s %s: %s: %s", e.Kind, who, e.Refused.What, e.Refused.Reason)
	}
	if e.Note != "" {
		return fmt.Sprintf("%s %s: %s", e.Kind, who, e.Note)
	}
	return fmt.Sprintf("%s %s", e.Kind, who)
}

// local is a path without the name of the system.
func local(path string) string {
	if rest, ok := strings.CutPrefix(path, "wasm://"); ok {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
	}
	return path
}
