package host

import (
	"context"
	"encoding/hex"
	"log/slog"

	"github.com/wasmactors/wasmactors/abi"
)

// logBuffer is how many events may wait for a log that is slow.
const logBuffer = 4096

// logEvents writes events to a log until the system ends.
func (s *System) logEvents(l *slog.Logger) {
	sub := s.Subscribe(logBuffer, func(e *Event) bool { return !e.Silent && l.Enabled(context.Background(), levelOf(e)) })
	s.logging.Add(1)
	go func() {
		defer s.logging.Done()
		lost := uint64(0)
		for e := range sub.C() {
			ctx := context.Background()
			if e.Trace != nil {
				ctx = s.cfg.tracer.In(ctx, *e.Trace)
			}
			l.LogAttrs(ctx, levelOf(&e), textOf(&e), attrsOf(&e)...)
			if n := sub.Dropped(); n > lost {
				l.Warn("events were lost: the log is too slow", "events", n-lost)
				lost = n
			}
		}
	}()
}

func levelOf(e *Event) slog.Level {
	switch e.Kind {
	case EventFailed, EventEscalated, EventDeadLetter:
		return slog.LevelWarn
	case EventLog:
		return [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}[min(max(e.Level, abi.LogDebug), abi.LogError)]
	case EventRestarted, EventResumed, EventTerminated:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func textOf(e *Event) string {
	if e.Kind == EventLog {
		return e.Text
	}
	return e.Kind.String()
}

func attrsOf(e *Event) []slog.Attr {
	attrs := []slog.Attr{slog.String("actor", e.Ref.Path()), slog.String("type", e.Type), slog.Uint64("incarnation", e.Incarnation)}
	if e.Failure != nil {
		attrs = append(attrs, slog.String("failure", e.Failure.Error()))
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
		attrs = append(attrs, slog.String("reason", d.Reason.String()), slog.Int("bytes", d.Size))
	}
	return attrs
}
