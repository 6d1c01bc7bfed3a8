package look

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/span"
)

// Log writes events to a log.
type Log struct {
	To      *slog.Logger
	System  string
	Letters int         // so many dead letters are written, and then a line that says that there are no more
	Tracer  span.Tracer // nil: there is none
	Ending  func() bool // from then on no dead letters are written; nil: they always are
}

// Filter selects the events that go to the log.
func (l *Log) Filter() func(*event.Event) bool {
	var letters atomic.Int64
	most := int64(l.Letters)
	return func(e *event.Event) bool {
		if e.Silent || !l.To.Enabled(context.Background(), levelOf(e)) {
			return false
		}
		switch {
		case e.Kind != event.Undelivered, e.Dead.GivenUp():
			return true
		case most == 0, l.Ending != nil && l.Ending():
			return false
		}
		return letters.Load() <= most && letters.Add(1)-1 <= most // one more than are written, for the last line
	}
}

// Write writes events, which [Log.Filter] has selected, until there are no more.
func (l *Log) Write(sub *Subscription) {
	lost, letters := uint64(0), 0
	for e := range sub.C() {
		if e.Kind == event.Undelivered && !e.Dead.GivenUp() {
			if letters++; letters > l.Letters {
				l.line(&e, slog.LevelWarn, "no more dead letters are logged", slog.Int("logged", l.Letters))
				continue
			}
		}
		l.line(&e, levelOf(&e), textOf(&e), attrsOf(&e)...)
		if n := sub.Dropped(); n > lost {
			l.To.Warn("events were lost: the log is too slow", "events", n-lost)
			lost = n
		}
	}
}

// line writes a line with the time of its event, which may have been a while ago.
func (l *Log) line(e *event.Event, level slog.Level, text string, attrs ...slog.Attr) {
	ctx := context.Background()
	if e.Trace != nil && l.Tracer != nil {
		ctx = l.Tracer.In(ctx, *e.Trace)
	}
	r := slog.NewRecord(e.Time, level, text, 0)
	r.AddAttrs(attrs...)
	r.AddAttrs(slog.String("system", l.System))
	_ = l.To.Handler().Handle(ctx, r)
}

func levelOf(e *event.Event) slog.Level {
	switch e.Kind {
	case event.Undelivered:
		if e.Dead.GivenUp() {
			return slog.LevelDebug
		}
		return slog.LevelWarn
	case event.Failed, event.Escalated:
		return slog.LevelWarn
	case event.Log:
		return [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}[min(max(e.Level, abi.LogDebug), abi.LogError)]
	case event.Restarted, event.Resumed, event.Terminated:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func textOf(e *event.Event) string {
	if e.Kind == event.Log {
		return e.Text
	}
	return e.Kind.String()
}

func attrsOf(e *event.Event) []slog.Attr {
	attrs := []slog.Attr{slog.String("actor", e.Ref.Path()), slog.String("type", e.Type), slog.Uint64("incarnation", e.Incarnation)}
	if e.Failure != nil {
		attrs = append(attrs, slog.String("failure", e.Failure.Error()))
	}
	if e.ID != "" {
		attrs = append(attrs, slog.String("report", e.ID))
	}
	if e.Directive != 0 {
		attrs = append(attrs, slog.String("directive", e.Directive.String()), slog.Duration("delay", e.Delay))
	}
	if e.Note != "" {
		attrs = append(attrs, slog.String("note", e.Note))
	}
	if t := e.Trace; t != nil {
		attrs = append(attrs, slog.String("trace_id", hex.EncodeToString(t.TraceID[:])), slog.String("span_id", hex.EncodeToString(t.SpanID[:])))
	}
	if d := e.Dead; d != nil {
		attrs = append(attrs, slog.String("from", d.From), slog.String("to", d.To()), slog.Int("bytes", d.Size))
		if e.Kind != event.Unhandled {
			attrs = append(attrs, slog.String("reason", d.Reason.String()))
		}
		if d.Key != "" {
			attrs = append(attrs, slog.String("key", d.Key))
		}
	}
	if r := e.Refused; r != nil {
		attrs = append(attrs, slog.String("what", r.What), slog.String("reason", r.Reason), slog.String("key", r.Key))
	}
	return attrs
}
