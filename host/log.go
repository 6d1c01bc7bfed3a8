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

// logEvents writes events to a log until the system ends.
func (s *System) logEvents(to *slog.Logger) {
	l := &look.Log{To: to, System: s.cfg.name, Letters: s.cfg.letters.first, Tracer: s.cfg.tracer}
	if s.cfg.letters.atEnds == endUnlogged {
		l.Ending = s.ending.Load
	}
	sub := s.Subscribe(logBuffer, l.Filter())
	s.logging.Go(func() { l.Write(sub) })
}
