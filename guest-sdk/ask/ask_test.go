//go:build !wasip1

package ask_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/ask"
)

const boss = actor.Ref(999)

var targets = []actor.Ref{11, 12, 13}

type asker struct{}

func (asker) Receive(ctx *actor.Context, m *actor.Message) error {
	if reason, failed := ask.Failure(m); failed {
		ctx.Tell(boss, actor.Text("failed: "+reason))
		return nil
	}
	several := func(w ask.Want) {
		ask.Several(ctx, w, targets, actor.Text("q"), time.Second, func(ctx *actor.Context, results []ask.Result, err error) error {
			out := ""
			for i, r := range results {
				if r.Target != targets[i] {
					return errors.New("the results are not in order")
				}
				if r.Err != nil {
					out += r.Err.Error() + ", "
				} else {
					out += string(r.Payload[1:]) + ", "
				}
			}
			if err != nil {
				out += err.Error()
			}
			ctx.Tell(boss, actor.Text(out))
			return nil
		})
	}
	switch text := m.Text(); {
	case text == "all":
		several(ask.All())
	case text == "first":
		several(ask.First())
	case text == "two":
		several(ask.Quorum(2))
	case text == "settled":
		several(ask.Settled())
	case text == "four":
		several(ask.Quorum(4))
	case text == "nobody":
		ask.Several(ctx, ask.All(), nil, nil, time.Second, nil)
	case text == "crowd":
		ask.Several(ctx, ask.All(), make([]actor.Ref, ask.MaxTargets+1), nil, time.Second, nil)
	case text == "defaults":
		ask.Again(ctx, 11, nil, ask.Retry{On: func(*ask.Error) bool { return true }}, func(ctx *actor.Context, _ *actor.Message, err error) error {
			ctx.Tell(boss, actor.Text(err.Error()))
			return nil
		})
	case text == "pipe":
		ask.Pipe(ctx, 11, actor.Text("q"), time.Second, boss)
	case strings.HasPrefix(text, "retry"):
		r := ask.Retry{Within: time.Second, Each: 300 * time.Millisecond, Wait: func(_ *actor.Context, n int) time.Duration { return time.Duration(n) * 100 * time.Millisecond },
			On: func(err *ask.Error) bool { return err.Kind == ask.TimedOut || err.Reason == "busy" }}
		if text == "retry key" {
			r.Key, r.Attempts = "k", 2
		}
		ask.Again(ctx, 11, actor.Text("q"), r, func(ctx *actor.Context, m *actor.Message, err error) error {
			if err != nil {
				ctx.Tell(boss, actor.Text(err.Error()))
			} else {
				ctx.Tell(boss, actor.Text("got "+m.Text()))
			}
			return nil
		})
	default:
		left, ok := ask.Remaining(ctx, m)
		ctx.Tell(boss, actor.Text(left.String()+" "+strconv.FormatBool(ok)+" "+ask.Within(ctx, m, 2*time.Second).String()))
	}
	return nil
}

func init() { actor.Register("asker", func() actor.Actor { return asker{} }) }

// told is what the turn tells the boss, "" for nothing.
func told(t *testing.T, turn *actortest.Turn) string {
	t.Helper()
	if turn.Failure != nil {
		t.Fatal(turn.Failure)
	}
	for _, s := range turn.Sent {
		if s.To == boss {
			return s.Text()
		}
	}
	return ""
}

// The answers come in any order; the ask ends when what is wanted has come or cannot come any more, and
// gives the others up.
func TestSeveral(t *testing.T) {
	for _, c := range []struct {
		want, answers string // a digit: that target answers; x and a digit: with an error
		told          string
		cancelled     int
	}{
		{"all", "201", "a0, a1, a2, ", 0},
		{"all", "2x0", "no, given up, a2, 1 of 3 have answered, 3 were to", 1},
		{"first", "1", "given up, a1, given up, ", 2},
		{"first", "x0x12", "no, no, a2, ", 0},
		{"first", "x0x1x2", "no, no, no, 0 of 3 have answered, 1 were to", 0},
		{"two", "x21", "", 0},
		{"two", "x210", "a0, a1, no, ", 0},
		{"two", "10", "a0, a1, given up, ", 1},
		{"two", "x1x0", "no, no, given up, 0 of 3 have answered, 2 were to", 1},
		{"settled", "x10x2", "a0, no, no, ", 0},
	} {
		a := actortest.Spawn(t, "asker")
		asks := a.Send(actor.Text(c.want)).Sent
		if len(asks) != 3 {
			t.Fatal(len(asks))
		}
		got, cancelled := "", 0
		for i := 0; i < len(c.answers); i++ {
			if got != "" {
				t.Errorf("%s %s: it ends early", c.want, c.answers)
			}
			var turn *actortest.Turn
			if c.answers[i] == 'x' {
				i++
				turn = a.AnswerError(asks[c.answers[i]-'0'], "no")
			} else {
				turn = a.Answer(asks[c.answers[i]-'0'], actor.Text("a"+c.answers[i:i+1]))
			}
			got = told(t, turn)
			cancelled = len(turn.CancelledAsks)
		}
		if got != c.told || cancelled != c.cancelled {
			t.Errorf("%s %s: %q, %d given up; want %q, %d", c.want, c.answers, got, cancelled, c.told, c.cancelled)
		}
		if turns := a.Advance(2 * time.Second); c.told != "" && len(turns) != 0 {
			t.Errorf("%s %s: %d turns follow", c.want, c.answers, len(turns))
		}
	}
	for _, wrong := range []string{"four", "nobody", "crowd"} {
		if turn := actortest.Spawn(t, "asker").Send(actor.Text(wrong)); turn.Failure == nil {
			t.Errorf("%s: it is not refused", wrong)
		}
	}
	a := actortest.Spawn(t, "asker")
	a.Send(actor.Text("settled"))
	turns := a.Advance(2 * time.Second)
	if want := "no answer of 11 within 1s, no answer of 12 within 1s, no answer of 13 within 1s, "; told(t, turns[len(turns)-1]) != want {
		t.Errorf("%q", told(t, turns[len(turns)-1]))
	}
}

func TestPipe(t *testing.T) {
	a := actortest.Spawn(t, "asker")
	turn := a.Answer(a.Send(actor.Text("pipe")).Sent[0], actor.Text("a"))
	if s := turn.Sent[0]; s.To != boss || s.Text() != "a" || s.Kind != 0 || s.Header(abi.HeaderFailure) != "" {
		t.Errorf("%+v", s)
	}
	turn = a.AnswerError(a.Send(actor.Text("pipe")).Sent[0], "no")
	if s := turn.Sent[0]; s.To != boss || s.Text() != "no" || s.Header(abi.HeaderFailure) != "no" {
		t.Errorf("%+v", s)
	}
	if got := told(t, a.Pass(turn.Sent[0])); got != "failed: no" {
		t.Error(got)
	}
	a.Send(actor.Text("pipe"))
	turns := a.Advance(time.Second)
	if s := turns[0].Sent[0]; s.Header(abi.HeaderFailure) != "no answer of 11 within 1s" {
		t.Errorf("%+v", s)
	}
}

// Asked again after what is listed, in its time, with one key, and never more often than it may.
func TestAgain(t *testing.T) {
	a := actortest.Spawn(t, "asker")
	first := a.Send(actor.Text("retry")).Sent[0]
	key := first.Header(abi.HeaderIdempotency)
	if key == "" || first.Header(abi.HeaderAttempt) != "" || first.Timeout != 300*time.Millisecond {
		t.Errorf("%+v", first)
	}
	if turn := a.AnswerError(first, "busy"); len(turn.Sent) != 0 || len(turn.Timers) != 1 || turn.Timers[0].Delay != 100*time.Millisecond {
		t.Errorf("%+v", turn)
	}
	turns := a.Advance(100 * time.Millisecond)
	second := turns[0].Sent[0]
	if second.Header(abi.HeaderIdempotency) != key || second.Header(abi.HeaderAttempt) != "2" || second.Text() != "q" {
		t.Errorf("%+v", second)
	}
	if got := told(t, a.Answer(second, actor.Text("x"))); got != "got x" {
		t.Error(got)
	}
	other := a.Send(actor.Text("retry")).Sent[0]
	if other.Header(abi.HeaderIdempotency) == key {
		t.Error("two questions have one key")
	}
	if got := told(t, a.AnswerError(other, "not listed")); got != "not listed" {
		t.Error(got)
	}
	// 300 ms, wait 100, 300 ms, wait 200: the last attempt has 100 ms.
	a.Send(actor.Text("retry"))
	var last string
	n := 0
	for _, turn := range a.Advance(2 * time.Second) {
		n += len(turn.Sent)
		if got := told(t, turn); got != "" {
			last = got
		}
	}
	if last != "no answer of 11 within 100ms" || n != 3 {
		t.Errorf("%q after %d messages", last, n)
	}
	mine := a.Send(actor.Text("retry key")).Sent[0]
	a.AnswerError(mine, "busy")
	again := a.Advance(100 * time.Millisecond)[0].Sent[0]
	if mine.Header(abi.HeaderIdempotency) != "k" || again.Header(abi.HeaderIdempotency) != "k" {
		t.Errorf("%+v", mine)
	}
	if got := told(t, a.AnswerError(again, "busy")); got != "busy" {
		t.Error(got)
	}
}

// What is not said is as the documentation says: five attempts within 30 s, waits of up to 10 ms, 20 ms and so on.
func TestDefaultsOfAgain(t *testing.T) {
	a := actortest.Spawn(t, "asker")
	for range 30 {
		question := a.Send(actor.Text("defaults")).Sent[0]
		if question.Timeout != 30*time.Second || question.Text() != "" {
			t.Errorf("%+v", question)
		}
		for n := 1; ; n++ {
			turn := a.AnswerError(question, "busy")
			if got := told(t, turn); got != "" {
				if got != "busy" || n != 5 {
					t.Errorf("%q after %d attempts", got, n)
				}
				break
			}
			if most := 10 * time.Millisecond << (n - 1); turn.Timers[0].Delay >= most {
				t.Errorf("a wait of %v, less than %v", turn.Timers[0].Delay, most)
			}
			question = a.Advance(time.Second)[0].Sent[0]
		}
	}
}

func TestRemaining(t *testing.T) {
	a := actortest.Spawn(t, "asker")
	for _, c := range []struct {
		header string
		want   string
	}{
		{"", "0s false 2s"},
		{"x", "0s false 2s"},
		{strconv.FormatInt(a.Now().Add(1500*time.Millisecond).UnixNano(), 10), "1.5s true 1.5s"},
		{strconv.FormatInt(a.Now().Add(time.Hour).UnixNano(), 10), "1h0m0s true 2s"},
		{strconv.FormatInt(a.Now().Add(-time.Hour).UnixNano(), 10), "0s true 1ms"},
	} {
		m := actortest.Message{Body: actor.Text("?")}
		if c.header != "" {
			m.Headers = map[string]string{abi.HeaderDeadline: c.header}
		}
		if got := told(t, a.Deliver(m)); got != c.want {
			t.Errorf("%q: %q, want %q", c.header, got, c.want)
		}
	}
}
