package host

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// Of what is there when a pipe looks the result counts, then the end of the actor.
func TestTheResultThatIsThereCounts(t *testing.T) {
	result, open := make(chan int, 1), make(chan struct{})
	closed := make(chan struct{})
	close(closed)
	for range 64 { // a select chooses at random
		for _, c := range []struct {
			there       bool
			late, ended chan struct{}
			why         error
		}{
			{true, closed, closed, nil},
			{true, closed, open, nil},
			{true, open, closed, nil},
			{false, closed, closed, ErrStopped},
			{false, closed, open, ErrTimeout},
			{false, open, closed, ErrStopped},
		} {
			want := 0
			if c.there {
				want = 7
				result <- want
			}
			if r, why := first(result, c.late, c.ended); r != want || why != c.why {
				t.Fatalf("%+v: %d, %v", c, r, why)
			}
		}
	}
}

// atOnce is a clock whose alarms ring before AfterFunc returns.
type atOnce struct{ Clock }

func (c atOnce) AfterFunc(d time.Duration, f func()) clock.Timer {
	f()
	return c.Clock.AfterFunc(0, func() {})
}

// An answer that has come by the deadline is what the pipe sends.
func TestAPipeSendsTheAnswerThatIsThere(t *testing.T) {
	s, _ := manual(t, nil)
	in := s.Inbox(100)
	defer in.Close()
	to := must(s.Spawn("to", Func(func(_ *Context, m Message) error { return in.put(m) })))(t)
	answers := must(s.Spawn("answers", Func(func(ctx *Context, _ Message) error { return ctx.Reply("a") })))(t)
	for range 32 {
		ask := must(s.Request(answers, nil))(t)
		s.RunUntilIdle(100)
		p := s.PipeTo(to).WithTimeout(time.Second)
		usual := s.cfg.clock
		s.cfg.clock = atOnce{usual} // nothing runs but the pipe
		err := p.Answer(ask)
		var m Message
		waitFor(t, "what is piped", func() bool {
			s.RunUntilIdle(100)
			var ok bool
			m, ok = in.TryReceive()
			return ok
		})
		s.cfg.clock = usual
		if reason, failed := m.Failure(); err != nil || failed {
			t.Fatalf("%v, %s", err, reason)
		}
	}
}
