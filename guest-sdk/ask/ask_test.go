//go:build !wasip1

package ask_test

import (
	"errors"
	"slices"
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
	again := func(r ask.Retry) {
		r.On = func(*ask.Error) bool { return true }
		ask.Again(ctx, 11, nil, r, func(ctx *actor.Context, _ *actor.Message, err error) error {
			ctx.Tell(boss, actor.Text(err.Error()))
			return nil
		})
	}
	next := func() {
		ctx.Debug("the next ask is " + strconv.FormatUint(ctx.AskWith(11, nil, time.Second, nil), 10))
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
		next()
	case text == "nobody":
		ask.Several(ctx, ask.All(), nil, nil, time.Second, nil)
		next()
	case text == "crowd":
		ask.Several(ctx, ask.All(), slices.Repeat(targets[:1], ask.MaxTargets+1), nil, time.Second, nil)
		next()
	case text == "defaults":
		again(ask.Retry{})
	case text == "once":
		again(ask.Retry{Attempts: 1})
	case text == "in a hurry":
		again(ask.Retry{Within: 10*time.Millisecond + time.Microsecond, Each: 10 * time.Millisecond, Wait: func(*actor.Context, int) time.Duration { return 0 }})
	case text == "full house":
		ask.Several(ctx, ask.First(), slices.Repeat(targets[:1], ask.MaxTargets), nil, time.Second, nil)
	case strings.HasPrefix(text, "fail "):
		ask.Fail(ctx, boss, text[len("fail "):])
	case strings.HasPrefix(text, "wait "):
		var longest time.Duration
		f := strings.Fields(text)
		least, _ := time.ParseDuration(f[1])
		most, _ := time.ParseDuration(f[2])
		n, _ := strconv.Atoi(f[3])
		for range 200 {
			longest = max(longest, ask.Doubling(least, most)(ctx, n))
		}
		ctx.Tell(boss, actor.Text(longest.String()))
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
		{"all", "2x0", "no, given up, a2, 1 of 3 have answered, 3 were required", 1},
		{"first", "1", "given up, a1, given up, ", 2},
		{"first", "x0x12", "no, no, a2, ", 0},
		{"first", "x0x1x2", "no, no, no, 0 of 3 have answered, 1 were required", 0},
		{"two", "x21", "", 0},
		{"two", "x210", "a0, a1, no, ", 0},
		{"two", "10", "a0, a1, given up, ", 1},
		{"two", "x1x0", "no, no, given up, 0 of 3 have answered, 2 were required", 1},
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
		turn := actortest.Spawn(t, "asker").Send(actor.Text(wrong))
		if turn.Failure == nil {
			t.Errorf("%s: it is not refused", wrong)
		}
		if want := "the next ask is 1"; len(turn.Logs) != 1 || turn.Logs[0].Text != want {
			t.Errorf("%s: %v, want %q", wrong, turn.Logs, want)
		}
	}
	if turn := actortest.Spawn(t, "asker").Send(actor.Text("full house")); turn.Failure != nil || len(turn.Sent) != ask.MaxTargets {
		t.Errorf("as many as may be asked: %v, %d asks", turn.Failure, len(turn.Sent))
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

// One attempt is one attempt; and a question that is asked again shortly before the end has the shortest timeout
// that there is, as the host takes none below.
func TestAgainAtItsEnds(t *testing.T) {
	a := actortest.Spawn(t, "asker")
	if got := told(t, a.AnswerError(a.Send(actor.Text("once")).Sent[0], "busy")); got != "busy" {
		t.Errorf("after one attempt of one: %q", got)
	}
	a.Send(actor.Text("in a hurry"))
	turns := a.Advance(10 * time.Millisecond)
	last := turns[len(turns)-1]
	if last.Failure != nil || len(last.Sent) != 1 || last.Sent[0].Timeout != time.Duration(abi.MinAskTimeout) || last.Sent[0].Header(abi.HeaderAttempt) != "2" {
		t.Errorf("1 us before the end: %v, %+v", last.Failure, last.Sent)
	}
}

// The longest of 200 waits is below what Doubling says, and above three quarters of it.
func TestDoubling(t *testing.T) {
	a := actortest.Spawn(t, "asker")
	for _, c := range []struct {
		args string
		most time.Duration
	}{
		{"10ms 1s 1", 10 * time.Millisecond},
		{"10ms 1s 7", 640 * time.Millisecond},
		{"10ms 1s 8", time.Second},
		{"1ns 100h 33", 1 << 32},
		{"1ns 2000000h 63", 1 << 62},
		{"1ns 100h 64", 100 * time.Hour}, // it would overflow
		{"1ns 100h 65", 100 * time.Hour},
		{"3ns 100h 63", 100 * time.Hour},
		{"10ms 1s 1000", time.Second},
		{"0s 1s 1", time.Second},
		{"-1s 1s 3", time.Second},
		{"10ms 0s 1", 0},
		{"10ms -1s 1", 0},
	} {
		got, err := time.ParseDuration(told(t, a.Send(actor.Text("wait "+c.args))))
		if err != nil || got > c.most || got < c.most/4*3 || got == c.most && got > 0 {
			t.Errorf("%s: up to %v, %v; want %v", c.args, got, err, c.most)
		}
	}
}

// A failure's reason is cut to what a header takes, between two characters; the payload has the whole of it.
func TestReasonsOfFailuresAreCut(t *testing.T) {
	a := actortest.Spawn(t, "asker")
	const most = abi.MaxHeaderValue
	x := strings.Repeat("x", most)
	for _, c := range []struct{ reason, header string }{
		{x[:most-1], x[:most-1]},
		{x, x},
		{x + "x", x},
		{x + "é", x},
		{x[:most-1] + "é", x[:most-1]},
		{x[:most-2] + "é", x[:most-2] + "é"},
		{x[:most-2] + "é!", x[:most-2] + "é"},
		{x[:most-1] + "😀", x[:most-1]},
		{x[:most-3] + "😀x", x[:most-3]},
		{x[:most-4] + "😀x", x[:most-4] + "😀"},
	} {
		turn := a.Send(actor.Text("fail " + c.reason))
		if turn.Failure != nil || len(turn.Sent) != 1 {
			t.Fatalf("%.5q...: %v, %d messages", c.reason[most-5:], turn.Failure, len(turn.Sent))
		}
		if s := turn.Sent[0]; s.Text() != c.reason || s.Header(abi.HeaderFailure) != c.header {
			t.Errorf("%q at the end: %q, %d bytes", c.reason[most-5:], s.Header(abi.HeaderFailure), len(s.Header(abi.HeaderFailure)))
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
