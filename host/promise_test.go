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
	if n := len(s.outside.Open()); n > 0 {
		t.Errorf("%d asks are left", n)
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

// Whatever asks and however: when the system has closed, nobody waits for an answer of those that have taken
// the question.
func TestCloseEndsAsks(t *testing.T) {
	for _, own := range []bool{false, true} {
		s := must(New(NewConfig("test").WithWorkers(2).WithAskTimeout(time.Hour)))(t)
		taken := make(chan struct{}, 10)
		mute := must(s.Spawn("mute", Func(func(*Context, Message) error { taken <- struct{}{}; return nil })))(t)
		in := s.Inbox(0)
		defer in.Close()
		ctx := t.Context() // may end, but does not
		if own {
			ctx = context.Background()
		}
		ended := make(chan error, 10)
		ask := func() { _, err := s.Ask(ctx, mute, 1); ended <- err }
		inbox := func() { _, err := s.Ask(ctx, in.Ref(), 1); ended <- err }
		several := func() {
			got, err := s.AskSeveral(ctx, Settled(), []Ref{mute, mute}, 1)
			for _, x := range got {
				err = errors.Join(err, x.Err)
			}
			ended <- err
		}
		go ask()
		go inbox()
		go several()
		p := must(s.Request(mute, 1))(t)
		for range 4 {
			<-taken
		}
		if _, err := in.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ask(ctx, in.Ref(), 1); !errors.Is(err, ErrUnknown) { // it has ended with the system
			t.Error(err)
		}
		late := time.After(10 * time.Second)
		for range 3 {
			select {
			case err := <-ended:
				if !errors.Is(err, ErrStopped) {
					t.Error(err)
				}
			case <-late:
				t.Fatal("an ask waits for ever")
			}
		}
		select {
		case m := <-p.Answer():
			if !errors.Is(m.Err(), ErrStopped) {
				t.Error(m.Err())
			}
		case <-late:
			t.Fatal("a request waits for ever")
		}
		if _, err := s.Ask(ctx, mute, 1); err == nil {
			t.Error("asked after the end")
		}
	}
}

// Asks that are sent while the system closes end, too.
func TestAsksDuringClose(t *testing.T) {
	for range 20 {
		s := must(New(NewConfig("test").WithWorkers(2).WithAskTimeout(time.Hour)))(t)
		mute := must(s.Spawn("mute", Func(func(*Context, Message) error { return nil })))(t)
		in := s.Inbox(1 << 20)
		defer in.Close()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for {
					_, err := s.Ask(context.Background(), []Ref{mute, in.Ref()}[i%2], i)
					if err == nil {
						t.Error("who has answered?")
					}
					if _, gone := s.View().Info(mute); gone != nil {
						return
					}
				}
			})
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		all.Wait()
	}
}
