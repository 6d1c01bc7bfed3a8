package host

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// atOnce is a clock whose alarms ring before AfterFunc returns.
type atOnce struct{ Clock }

func (c atOnce) AfterFunc(d time.Duration, f func()) clock.Timer {
	f()
	return c.Clock.AfterFunc(0, func() {})
}

// An answer that has come by the deadline is what the pipe sends.
func TestAPipeSendsTheAnswerThatIsThere(t *testing.T) {
	s, _ := manual(t, nil)
	piped := make(chan Message, 1)
	to := must(s.Spawn("to", Func(func(_ *Context, m Message) error { piped <- m.Clone(); return nil })))(t)
	answers := must(s.Spawn("answers", Func(func(ctx *Context, _ Message) error { return ctx.Reply("a") })))(t)
	for range 32 {
		ask := must(s.Request(answers, nil))(t)
		s.RunUntilIdle(100)
		p := s.PipeTo(to).WithTimeout(time.Second)
		usual := s.cfg.Clock
		s.cfg.Clock = atOnce{usual} // nothing runs but the pipe
		err := p.Answer(ask)
		var m Message
		waitFor(t, "what is piped", func() bool {
			s.RunUntilIdle(100)
			select {
			case m = <-piped:
				return true
			default:
				return false
			}
		})
		s.cfg.Clock = usual
		if reason, failed := m.Failure(); err != nil || failed {
			t.Fatalf("%v, %s", err, reason)
		}
	}
}
