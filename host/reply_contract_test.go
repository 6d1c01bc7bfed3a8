package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/supervision"
)

// later is an actor that hands its reply handles to the test.
func later(t *testing.T, l Limits) (*System, *VirtualClock, Ref, *[]*Reply, *[]error) {
	t.Helper()
	s, clock := manual(t, func(c Config) Config { return c.WithGuardian(supervision.Stopping()) })
	var handles []*Reply
	var errs []error
	ref := must(s.Spawn("later", Func(func(ctx *Context, m Message) error {
		r, err := ctx.Later()
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		handles = append(handles, r)
		return nil
	}).WithLimits(l)))(t)
	return s, clock, ref, &handles, &errs
}

// A handle answers once, after the turn, from another goroutine; the second time is an error.
func TestReplyIsGivenOnce(t *testing.T) {
	s, _, ref, handles, errs := later(t, Limits{})
	p := must(s.Request(ref, "question"))(t)
	s.RunUntilIdle(1000)
	r := (*handles)[0]
	done := make(chan error)
	go func() { done <- r.Send("answer") }()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var got string
	if m := <-p.Answer(); m.Decode(&got) != nil || got != "answer" || m.Sender != ref {
		t.Errorf("%q from %v", got, m.Sender)
	}
	if err := r.Send("again"); !errors.Is(err, ErrUsed) {
		t.Error(err)
	}
	if err := s.Tell(ref, "from nobody"); err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(1000)
	if len(*errs) != 1 || !errors.Is((*errs)[0], ErrNoQuestion) {
		t.Errorf("%v", *errs)
	}
}

// Handles that were not used are bounded; using one, and an asker that gives up, makes room.
func TestRepliesAreBounded(t *testing.T) {
	s, _, ref, handles, errs := later(t, Limits{Replies: 2})
	var asks []*Pending
	ask := func() {
		asks = append(asks, must(s.Request(ref, "question"))(t))
		s.RunUntilIdle(1000)
	}
	ask()
	ask()
	ask()
	if len(*handles) != 2 || len(*errs) != 1 || !errors.Is((*errs)[0], ErrLimit) {
		t.Fatalf("%d handles, %v", len(*handles), *errs)
	}
	if err := (*handles)[0].Fail("no"); err != nil {
		t.Error(err)
	}
	var refused *ReplyError
	if m := <-asks[0].Answer(); !errors.As(m.Err(), &refused) || refused.Reason != "no" {
		t.Error(m.Err())
	}
	asks[1].Cancel()
	s.RunUntilIdle(1000)
	select {
	case <-(*handles)[1].Gone():
	default:
		t.Error("it is not told that nobody waits")
	}
	if err := (*handles)[1].Send("late"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	ask()
	ask()
	if len(*handles) != 4 {
		t.Errorf("%d handles: there was room for two", len(*handles))
	}
}

// An ask from Go ends at once with the failure of its turn, and without a deadline at the
// system's.
func TestAskEndsWithTheFailure(t *testing.T) {
	s, clock, silent, _, _ := later(t, Limits{})
	failing := must(s.Spawn("failing", newCounter()))(t)
	ask := func(to Ref, v any) error {
		done := make(chan error, 1)
		go func() {
			_, err := s.Ask(context.Background(), to, v)
			done <- err
		}()
		for {
			s.RunUntilIdle(1000)
			select {
			case err := <-done:
				return err
			case <-time.After(time.Millisecond):
				if to == silent {
					clock.Advance(DefaultAskTimeout / 4)
				}
			}
		}
	}
	var failed *TurnError
	if err := ask(failing, "crash"); !errors.As(err, &failed) || failed.Ref != failing {
		t.Error(err)
	}
	if err := ask(failing, "get"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if err := ask(silent, "question"); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
}

// A restart of the actor leaves its handles valid: they stand for the actor.
func TestRepliesOutliveRestarts(t *testing.T) {
	s, _ := manual(t, nil)
	var r *Reply
	ref := must(s.Spawn("later", Func(func(ctx *Context, m Message) (err error) {
		if r == nil {
			r, err = ctx.Later()
			return err
		}
		return errors.New("failed")
	})))(t)
	p := must(s.Request(ref, "question"))(t)
	if err := s.Tell(ref, "fail"); err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(1000)
	if n := s.View().Tree().Children[0].Incarnation; n != 1 {
		t.Fatalf("incarnation %d", n)
	}
	if err := r.Send("answer"); err != nil {
		t.Error(err)
	}
	if m := <-p.Answer(); m.Err() != nil {
		t.Error(m.Err())
	}
}
