package host

import (
	"context"
	"encoding/hex"
	"log/slog"
	"math"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
)

// logBuffer is how many events may wait for a log that is slow.
const logBuffer = 4096

// AllDeadLetters is for [Config.WithLoggedDeadLetters].
const AllDeadLetters = math.MaxInt

// loggedLetters says which dead letters a log gets.
type loggedLetters struct {
	first  int
	atEnds endLetters
}

// endLetters says what happens to the dead letters of a system that ends.
type endLetters uint8

const (
	endLogged endLetters = iota
	endUnlogged
)

// WithLoggedDeadLetters sets how many dead letters the log of [Config.WithLog] gets: the first ones, and
// then a line that says that there are no more. 0 is none, [AllDeadLetters] is all; the default is
// DefaultLoggedDeadLetters, since a sender without a receiver usually goes on sending. Events and
// counts have all of them.
func (c Config) WithLoggedDeadLetters(first int) Config { c.letters.first = max(first, 0); return c }

// WithoutLettersOfTheEnd keeps dead letters out of the log that are made when the system ends, as
// many are: messages that wait in mailboxes, messages to actors that have stopped.
func (c Config) WithoutLettersOfTheEnd() Config { c.letters.atEnds = endUnlogged; return c }

// logFilter selects the events that go to a log.
func (s *System) logFilter(l *slog.Logger) func(*Event) bool {
	var letters atomic.Int64
	most := int64(s.cfg.letters.first)
	return func(e *Event) bool {
		if e.Silent || !l.Enabled(context.Background(), levelOf(e)) {
			return false
		}
		switch {
		case e.Kind != EventDeadLetter, e.Dead.GivenUp():
			return true
		case most == 0, s.cfg.letters.atEnds == endUnlogged && s.ending.Load():
			return false
		}
		return letters.Load() <= most && letters.Add(1)-1 <= most // one more than are written, for the last line
	}
}

// logEvents writes events to a log until the system ends.
func (s *System) logEvents(l *slog.Logger) {
	sub := s.Subscribe(logBuffer, s.logFilter(l))
	s.logging.Add(1)
	go func() {
		defer s.logging.Done()
		lost, letters := uint64(0), 0
		for e := range sub.C() {
			if e.Kind == EventDeadLetter && !e.Dead.GivenUp() {
				if letters++; letters > s.cfg.letters.first {
					s.logLine(l, &e, slog.LevelWarn, "no more dead letters are logged", slog.Int("logged", s.cfg.letters.first))
					continue
				}
			}
			s.logLine(l, &e, levelOf(&e), textOf(&e), attrsOf(&e)...)
			if n := sub.Dropped(); n > lost {
				l.Warn("events were lost: the log is too slow", "events", n-lost)
				lost = n
			}
		}
	}()
}

// logLine writes a line with the time of its event, which may have been a while ago.
func (s *System) logLine(l *slog.Logger, e *Event, level slog.Level, text string, attrs ...slog.Attr) {
	ctx := context.Background()
	if e.Trace != nil && s.cfg.tracer != nil {
		ctx = s.cfg.tracer.In(ctx, *e.Trace)
	}
	r := slog.NewRecord(e.Time, level, text, 0)
	r.AddAttrs(attrs...)
	r.AddAttrs(slog.String("system", s.cfg.name))
	_ = l.Handler().Handle(ctx, r)
}

func levelOf(e *Event) slog.Level {
	switch e.Kind {
	case EventDeadLetter:
		if e.Dead.GivenUp() {
			return slog.LevelDebug
		}
		return slog.LevelWarn
	case EventFailed, EventEscalated:
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
		if e.Kind != EventUnhandled {
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
