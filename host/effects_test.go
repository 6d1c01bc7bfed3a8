package host

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// What an actor in Go sends, asks, answers and forwards leaves at the end of its turn, in
// order, and not at all if the turn fails, its own stop included.
func TestTurnsInGoAreAtomic(t *testing.T) {
	for _, end := range []string{"well", "error", "panic"} {
		t.Run(end, func(t *testing.T) {
			s, _ := manual(t, nil)
			var got []string
			sink := must(s.Spawn("sink", Func(func(_ *Context, m Message) error {
				var text string
				if err := m.Decode(&text); err != nil {
					return err
				}
				got = append(got, text)
				return nil
			})))(t)
			other := must(s.Spawn("other", newCounter()))(t)
			ref := must(s.Spawn("actor", Func(func(ctx *Context, m Message) error {
				_ = ctx.Tell(sink, "sent")
				_ = ctx.Forward(sink)
				if err := ctx.Ask(sink, "asked", 1, time.Minute); err != nil {
					t.Error(err)
				}
				_ = ctx.Reply("answered")
				ctx.Stop(other)
				ctx.Stop(ctx.Self())
				switch end {
				case "error":
					return errors.New("failed")
				case "panic":
					panic("failed")
				}
				return nil
			})))(t)
			p := must(s.Request(ref, "question"))(t)
			s.RunUntilIdle(1000)
			m := <-p.Answer()
			_, gone := s.Lookup("/user/other")
			if end == "well" {
				if want := []string{"sent", "question", "asked"}; !slices.Equal(got, want) || m.Kind != abi.KindReply || gone == nil {
					t.Errorf("%q, %v, %v", got, m.Kind, gone)
				}
			} else if len(got) != 0 || m.Err() == nil || gone != nil {
				t.Errorf("%q, %v, %v", got, m.Err(), gone)
			}
			if _, err := s.Lookup("/user/actor"); (err == nil) != (end != "well") {
				t.Errorf("it has stopped itself, which is undone if the turn fails: %v", err)
			}
		})
	}
}
