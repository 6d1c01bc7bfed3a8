package host

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/race"
)

// Asks of a goroutine share what they wait with, one after another. Each gets the answer to its own
// question, whether those before it were answered, refused, failed, given up, or all of it at the same time.
func TestAsksDoNotGetEachOthersAnswers(t *testing.T) {
	s := must(New(NewConfig("test").WithWorkers(2).WithAskTimeout(time.Minute)))(t)
	defer s.Close(context.Background())
	answer := func(ctx *Context, m Message) error {
		var n int
		if err := m.Decode(&n); err != nil {
			return err
		}
		if n%7 == 0 {
			return errors.New("no sevens")
		}
		return ctx.Reply(n)
	}
	willing := must(s.Spawn("willing", Func(answer)))(t)
	narrow := must(s.Spawn("narrow", Func(answer).WithLimits(Limits{Mailbox: 1})))(t)
	first := must(s.Spawn("first", Func(func(ctx *Context, m Message) error { return ctx.Forward(willing) })))(t)
	gone := must(s.Spawn("gone", Func(answer)))(t)
	s.Stop(gone)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 600 {
				n := 10_000*g + i
				to := []Ref{willing, narrow, first, gone, {}}[i%5]
				ctx, cancel := context.Background(), func() {}
				switch i % 3 {
				case 1:
					bounded, end := context.WithTimeout(ctx, time.Duration(i%30)*time.Microsecond)
					ctx, cancel = bounded, end
				case 2:
					open, end := context.WithCancel(ctx)
					ctx, cancel = open, end
					if i%2 == 0 {
						go end()
					}
				}
				m, err := s.Ask(ctx, to, n)
				cancel()
				var got int
				var failed *TurnError
				switch {
				case err == nil:
					if err := m.Decode(&got); err != nil || got != n {
						t.Errorf("asked %d, got %d, %v", n, got, err)
					}
				case errors.As(err, &failed):
					if n%7 != 0 {
						t.Errorf("asked %d: %v", n, err)
					}
				case errors.Is(err, ErrTimeout) && i%3 != 0, errors.Is(err, ErrMailboxFull) && to == narrow:
				case (errors.Is(err, ErrUnknown) || errors.Is(err, ErrStopped)) && (to == gone || to == Ref{}):
				default:
					t.Errorf("asked %d of %v: %v", n, to, err)
				}
			}
		})
	}
	all.Wait()
	for i := range s.outside.shards {
		if n := len(s.outside.shards[i].open); n > 0 {
			t.Errorf("%d asks are left", n)
		}
	}
}

// A question that is refused with an answer to the asker, too, leaves nothing for the next one.
func TestARefusedAskLeavesNothing(t *testing.T) {
	s := must(New(NewConfig("test").WithWorkers(1)))(t)
	defer s.Close(context.Background())
	a := must(s.Spawn("a", Func(func(ctx *Context, m Message) error { return ctx.Reply("yes") })))(t)
	for range 20 {
		if m, err := s.Ask(context.Background(), Ref{}, "q"); !errors.Is(err, ErrUnknown) || m.Payload != nil {
			t.Fatalf("%v %v", m, err)
		}
		if got, err := AskAs[string](context.Background(), s, a, "q"); err != nil || got != "yes" {
			t.Fatalf("%q %v", got, err)
		}
	}
}

// An ask costs the memory of its answer, and nothing else.
func TestAllocationsOfAnAsk(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := must(New(NewConfig("test").WithWorkers(1)))(t)
	defer s.Close(context.Background())
	var yes, q any = Raw(encoded("yes")), Raw(encoded("q"))
	a := must(s.Spawn("a", Func(func(ctx *Context, m Message) error { return ctx.Reply(yes) })))(t)
	bounded, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for name, ctx := range map[string]context.Context{"without a deadline": context.Background(), "with one": bounded} {
		n := testing.AllocsPerRun(2000, func() {
			if _, err := s.Ask(ctx, a, q); err != nil {
				t.Fatal(err)
			}
		})
		if n > 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
