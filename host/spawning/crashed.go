package spawning

import (
	"fmt"

	"github.com/wasmactors/wasmactors/host/internal/message"
)

// Crashed says what becomes of a message whose turn fails. The zero value drops it.
type Crashed struct {
	letter bool
	times  int
}

// Letter makes the message a dead letter.
func Letter() Crashed { return Crashed{letter: true} }

// Redeliver delivers the message again, up to n times (1 to message.MaxRedeliveries), and then makes it a dead letter.
func Redeliver(n int) Crashed {
	return Crashed{letter: true, times: min(max(n, 1), message.MaxRedeliveries)}
}

// TimesOf is how often the message is delivered again.
func TimesOf(m Crashed) int { return m.times }

// IsLetter reports whether the message becomes a dead letter in the end.
func IsLetter(m Crashed) bool { return m.letter }

// String describes it for a person.
func (m Crashed) String() string {
	switch {
	case m.times > 0:
		return fmt.Sprintf("is delivered again, up to %d times, and then a dead letter", m.times)
	case m.letter:
		return "becomes a dead letter"
	}
	return "is dropped"
}
