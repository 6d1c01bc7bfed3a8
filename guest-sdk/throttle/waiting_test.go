//go:build !wasip1

package throttle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/throttle"
)

// curious does what it is told by a function, and notes what it hears.
type curious struct {
	t     *throttle.Throttler
	do    func(s *curious, ctx *actor.Context) error
	heard []string
}

var asked func(s *curious, ctx *actor.Context) error

func (s *curious) Receive(ctx *actor.Context, msg *actor.Message) error {
	if s.t.Receive(ctx, msg) {
		return nil
	}
	if msg.Kind() != actor.KindMessage {
		s.heard = append(s.heard, "a stray "+msg.Kind().String())
		return nil
	}
	return s.do(s, ctx)
}

func (s *curious) answered(_ *actor.Context, msg *actor.Message) error {
	s.heard = append(s.heard, msg.Text())
	return nil
}

func init() {
	actor.Register("curious", func() actor.Actor {
		return &curious{t: throttle.New(throttle.Rate{N: 1, Per: time.Second}, 1), do: asked}
	})
}

// does spawns a curious actor and has it do something.
func does(t *testing.T, do func(s *curious, ctx *actor.Context) error) (*actortest.Actor, *actortest.Turn) {
	t.Helper()
	asked = do
	a := actortest.Spawn(t, "curious")
	return a, a.Send(actor.Text("go"))
}

// The answer to a question goes to its function, whether the question has waited or not; without a function it goes
// nowhere.
func TestAnswersOfThrottledQuestions(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		a, turn := does(t, func(s *curious, ctx *actor.Context) error {
			then := s.answered
			if !wanted {
				then = nil
			}
			for range 2 {
				if err := s.t.Ask(ctx, target, actor.Int(1), time.Minute, then); err != nil {
					return err
				}
			}
			return nil
		})
		a.Answer(turn.Ask(), actor.Text("first"))
		turns := a.Advance(time.Second)
		if len(turns) != 1 {
			t.Fatalf("%d turns", len(turns))
		}
		a.Answer(turns[0].Ask(), actor.Text("second"))
		var want []string
		if wanted {
			want = []string{"first", "second"}
		}
		if got := a.Actor().(*curious).heard; !slices.Equal(got, want) {
			t.Errorf("a function: %v: %q", wanted, got)
		}
	}
}

// The bounds hold exactly, also if they are 0.
func TestBoundsOfWhatWaits(t *testing.T) {
	for _, c := range []struct{ messages, bytes, small, wait int }{
		{0, 100, 1, 0}, {1, 100, 2, 1}, {9, 0, 1, 0}, {9, 1, 2, 1}, {9, 5, 9, 5}, {-1, 100, 1, 0}, {9, -1, 1, 0},
	} {
		a, turn := does(t, func(s *curious, ctx *actor.Context) error {
			s.t.Limit(c.messages, c.bytes)
			for range 1 + c.small { // one starts at once
				if err := s.t.Tell(ctx, target, actor.Int(1)); err != nil {
					ctx.ReplyError(err.Error())
				}
			}
			return nil
		})
		refused := 0
		for _, s := range turn.Sent {
			if s.Kind == actortest.ReplyError {
				refused++
			}
		}
		if n := a.Actor().(*curious).t.Waiting(); n != c.wait || refused != c.small-c.wait {
			t.Errorf("%+v: %d wait, %d were refused", c, n, refused)
		}
	}
}

// However many wait, they keep their order, also if the first ones have started before the rest came. There is one
// timer at a time.
func TestOrderOfManyThatWait(t *testing.T) {
	const most = 40
	next := 0
	a, turn := does(t, func(s *curious, ctx *actor.Context) error {
		for range 7 {
			if err := s.t.Tell(ctx, target, actor.Int(next)); err != nil {
				return err
			}
			next++
		}
		return nil
	})
	var got []int
	timers := 0
	take := func(turn *actortest.Turn) {
		if turn.Failure != nil {
			t.Fatal(turn.Failure)
		}
		for _, s := range turn.Sent {
			got = append(got, int(abi.NewReader(s.Payload).Uint()))
		}
		if timers += len(turn.Timers); timers > 1 {
			t.Fatalf("%d timers", timers)
		}
	}
	take(turn)
	for second := 0; len(got) < most && second < 2*most; second++ {
		for _, turn := range a.Advance(time.Second) {
			timers--
			take(turn)
		}
		if second%4 == 3 && next < most {
			take(a.Send(actor.Text("more")))
		}
	}
	for i, n := range got {
		if n != i {
			t.Fatalf("out of order: %v", got)
		}
	}
	if len(got) < most || timers != 0 && a.Actor().(*curious).t.Waiting() == 0 {
		t.Errorf("%d of %d, %d timers", len(got), most, timers)
	}
}

// A message to nobody says so at once, also if it would wait.
func TestNobodyIsToldAtOnce(t *testing.T) {
	_, turn := does(t, func(s *curious, ctx *actor.Context) error {
		s.t.Tell(ctx, target, actor.Int(1))
		return s.t.Tell(ctx, 0, actor.Int(2))
	})
	if turn.Failure == nil {
		t.Error("it waits")
	}
}
