package host

import (
	"log/slog"
	"math"

	"github.com/wasmactors/wasmactors/host/internal/look"
)

// logBuffer is how many events may wait for a log that is slow.
const logBuffer = 4096

// AllDeadLetters is for [Config.WithLoggedDeadLetters].
const AllDeadLetters = math.MaxInt

// logEvents writes events to a log until the system ends.
func (s *System) logEvents(to *slog.Logger) {
	l := &look.Log{To: to, System: s.cfg.Name, Letters: s.cfg.Letters, Tracer: s.cfg.Tracer}
	if !s.cfg.LettersAtEnd {
		l.Ending = s.ending.Load
	}
	sub := s.Subscribe(logBuffer, l.Filter())
	s.logging.Go(func() { l.Write(sub) })
}
