package host

import (
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/stray"
	"github.com/wasmactors/wasmactors/supervision"
)

// Who guesses fails with every further guess; its neighbours do not, nor does who writes
// to actors that have stopped.
func TestWhoGuessesFails(t *testing.T) {
	s, _ := manual(t, func(c Config) Config { return c.WithGuardian(supervision.Stopping()) })
	gone := must(s.Spawn("gone", newCounter()))(t)
	s.Stop(gone)
	s.RunUntilIdle(1000)
	spray := func(to func(i int) Ref) Props {
		return Func(func(ctx *Context, m Message) error {
			for i := range stray.Burst / 8 {
				_ = ctx.Tell(to(i), nil)
			}
			return nil
		})
	}
	guesser := must(s.Spawn("guesser", spray(func(i int) Ref { return newRef(abi.Ref(1000003*(i+1)), "") })))(t)
	honest := must(s.Spawn("honest", spray(func(int) Ref { return gone })))(t)
	for round := range 9 {
		for _, ref := range []Ref{guesser, honest} {
			if err := s.Tell(ref, nil); err != nil && !errors.Is(err, ErrStopped) {
				t.Fatal(err)
			}
		}
		s.RunUntilIdle(1 << 20)
		if _, err := s.Lookup("/user/guesser"); (err == nil) != (round < 8) {
			t.Errorf("round %d: %v", round, err)
		}
	}
	if _, err := s.Lookup("/user/honest"); err != nil {
		t.Error("the honest one has failed, too")
	}
}

// An answer counts only from the actor that was asked: others that know the asker's ref
// and the correlation are told no, in every kind of ask, and the ask goes on.
func TestForgedAnswersAreRefused(t *testing.T) {
	s, _ := manual(t, nil)
	silent := must(s.Spawn("silent", Func(func(*Context, Message) error { return nil })))(t)
	forger := must(s.Spawn("forger", newCounter()))(t)
	var answers []Message
	asker := must(s.Spawn("asker", Func(func(ctx *Context, m Message) error {
		if m.Kind == abi.KindMessage {
			return ctx.Ask(silent, "question", 7, time.Minute)
		}
		answers = append(answers, m.Clone())
		return nil
	})))(t)
	if err := s.Tell(asker, nil); err != nil {
		t.Fatal(err)
	}
	p, err := s.Request(silent, "question")
	if err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(1000)
	answer := func(from, to abi.Ref, correlation uint64) {
		e := must(message.Envelope("answer"))(t)
		e.Kind, e.Sender, e.Correlation = abi.KindReply, from, correlation
		_ = s.deliver(nil, to, e)
		s.RunUntilIdle(1000)
	}
	answer(forger.UID(), asker.UID(), 7)
	answer(forger.UID(), s.outside.RefOf(p), 1)
	answer(silent.UID(), asker.UID(), 8) // of no ask
	select {
	case m := <-p.Answer():
		t.Errorf("an ask from Go took %+v", m)
	default:
	}
	if len(answers) != 0 {
		t.Errorf("an ask of an actor took %+v", answers)
	}
	letters, _ := s.DeadLetters()
	forged := 0
	for _, l := range letters {
		if l.Reason == DeadForged {
			forged++
		}
	}
	if forged != 2 {
		t.Errorf("%d of 2 were found out: %+v", forged, letters)
	}
	answer(silent.UID(), asker.UID(), 7)
	answer(silent.UID(), s.outside.RefOf(p), 1)
	if m := <-p.Answer(); m.Err() != nil || len(answers) != 1 {
		t.Errorf("%v, %d answers: the one that was asked must be heard", m.Err(), len(answers))
	}
}
