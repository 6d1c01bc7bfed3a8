package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"pgregory.net/rapid"
)

// questioners of a question that is sent when they are told to.
var questioners = []struct {
	name string
	ask  func(t *testing.T, to Ref, question Raw, lasting bool) (Props, any)
}{
	{"native", func(_ *testing.T, to Ref, question Raw, lasting bool) (Props, any) {
		v := any(question)
		if lasting {
			v = Marked{Value: question, Marks: Lasting}
		}
		return Func(func(ctx *Context, m Message) error {
			if m.Kind == abi.KindMessage {
				return ctx.Ask(to, v, 7, time.Second)
			}
			return tellProbe(ctx, m.Kind.String())
		}), 1
	}},
	{"guest", func(t *testing.T, to Ref, question Raw, lasting bool) (Props, any) {
		var headers []byte
		if lasting {
			headers = abi.AppendHeader(nil, abi.HeaderDeadline, abi.DeadlineNone)
		}
		return puppet(t, on(abi.KindReply, toProbe("reply")), on(abi.KindReplyError, toProbe("reply_error")), on(abi.KindAskTimeout, toProbe("ask_timeout"))),
			script(now(abi.AppendAsk(nil, to.UID(), "", 7, 1e9, headers, question)))
	}},
}

// A question whose asker has given up is not handled when its turn comes, unless the asker says
// that it is to be.
func TestDeadlines(t *testing.T) { everyManner(t, rowDeadlines) }

func rowDeadlines(t *testing.T) {
	handled := script(now(toProbe("handled")))
	for _, asker := range questioners {
		for _, target := range []struct {
			name  string
			props Props
		}{
			{"native", Func(func(ctx *Context, m Message) error { return tellProbe(ctx, "handled") })},
			{"guest", puppet(t)},
		} {
			t.Run(asker.name+" asks "+target.name, func(t *testing.T) {
				l := newStage(t, nil)
				to := l.spawn("target", target.props)
				for _, c := range []struct {
					after   time.Duration
					lasting bool
					want    []string
					letters []string
				}{
					{time.Second - time.Microsecond, false, []string{"message handled"}, nil},
					{time.Second, false, []string{"message ask_timeout"}, []string{"its asker waits no longer"}},
					{time.Second, true, []string{"message ask_timeout", "message handled"}, nil},
				} {
					props, order := asker.ask(t, to, handled, c.lasting)
					a := l.spawn("", props)
					_, before := l.DeadLetters()
					pause(l, to)
					l.say(a, order)
					l.post(to, handled) // an ordinary message has no deadline
					l.pass(c.after)
					l.got = append([]string(nil), l.got...)
					unpause(l, to)
					l.wants(append(c.want, "message handled")...)
					all, n := l.DeadLetters()
					if got := all[len(all)-int(n-before):]; len(got) != len(c.letters) || len(got) > 0 && got[0].Reason != DeadExpired {
						t.Errorf("after %v: dead letters %v", c.after, got)
					}
					l.Stop(a)
					l.run()
				}
			})
		}
	}
}

func pause(l *stage, ref Ref) {
	l.t.Helper()
	if err := l.Operate().Pause(ref, false); err != nil {
		l.t.Fatal(err)
	}
	l.run()
}

func unpause(l *stage, ref Ref) {
	l.t.Helper()
	if err := l.Operate().Unpause(ref, false); err != nil {
		l.t.Fatal(err)
	}
	l.run()
}

// A question that is handed on, or put aside, keeps its deadline; the answer has none.
func TestDeadlinesTravel(t *testing.T) {
	l := newStage(t, nil)
	last := l.spawn("last", Func(func(ctx *Context, m Message) error {
		at, ok := ctx.Head().Deadline()
		return tellProbe(ctx, fmt.Sprint("last ", ok, " ", at.Sub(ctx.Now()), " ", ctx.Head().Within(time.Hour)))
	}))
	for name, hand := range map[string]func(*Context) error{
		"forward": func(ctx *Context) error { return ctx.Forward(last) },
		"pass":    func(ctx *Context) error { return ctx.Head().Pass(last) },
		"nested":  func(ctx *Context) error { return ctx.Ask(last, nil, 9, ctx.Head().Within(time.Hour)) },
	} {
		via := l.spawn("", Func(func(ctx *Context, m Message) error {
			if m.Kind != abi.KindMessage {
				return nil
			}
			return hand(ctx)
		}))
		a := l.spawn("", Func(func(ctx *Context, m Message) error {
			if m.Kind == abi.KindMessage {
				return ctx.Ask(via, nil, 1, time.Second)
			}
			return nil
		}))
		pause(l, via)
		l.say(a, nil)
		l.pass(250 * ms)
		unpause(l, via)
		if want := "message last true 750ms 750ms"; len(l.got) != 1 || l.got[0] != want {
			t.Errorf("%s: %q, want %q", name, l.got, want)
		}
		l.got = nil
		pause(l, last)
		l.say(a, nil)
		l.pass(time.Second)
		unpause(l, last)
		l.wants()
	}
	// One that is taken out of the stash too late.
	var stashed bool
	holder := l.spawn("holder", Func(func(ctx *Context, m Message) error {
		switch {
		case m.Sender.IsZero():
			ctx.Unstash()
		case !stashed:
			stashed = true
			return ctx.Stash()
		default:
			return tellProbe(ctx, "unstashed")
		}
		return nil
	}))
	a := l.spawn("", Func(func(ctx *Context, m Message) error {
		if m.Kind == abi.KindMessage {
			return ctx.Ask(holder, "stashed", 1, time.Second)
		}
		return nil
	}))
	l.say(a, nil)
	l.pass(2 * time.Second)
	_ = l.Tell(holder, nil)
	l.run()
	l.wants()
	if got := l.letters(); got[len(got)-1] != "its asker waits no longer: stashed" {
		t.Error(got)
	}
	// A message that is not a question, and what has a time of its own.
	l.say(last, nil)
	l.wants("message last false " + time.Time{}.Sub(l.clock.Now()).String() + " 1h0m0s")
}

// A guest cannot write a deadline: what it says is no deadline of its own message, nor of one
// that others send, and modules that are told of deadlines are told the host's.
func TestDeadlinesAreTheHosts(t *testing.T) {
	l := newStage(t, nil)
	to := l.spawn("to", Func(func(ctx *Context, m Message) error {
		at, ok := ctx.Head().Deadline()
		return tellProbe(ctx, fmt.Sprint(ok, " ", max(0, at.Sub(ctx.Now()))))
	}))
	for _, value := range []string{"0", "1", "9223372036854775807", "-5", "x"} {
		forged := abi.AppendHeader(nil, abi.HeaderDeadline, value)
		a := l.spawn("", puppet(t))
		l.say(a, script(now(
			abi.AppendSend(nil, to.UID(), "", 3, 0, forged, nullPayload),
			abi.AppendAsk(nil, to.UID(), "", 4, 1e9, forged, nullPayload),
		)))
		l.wants("message false 0s", "message true 1s")
	}
}

// What a module that is told of deadlines gets: the headers without what others wrote there, and
// the host's, whatever the headers are.
func TestStatedHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, abi.MaxHeaders).Draw(t, "n")
		var headers []byte
		var want []string
		for range n {
			k := rapid.SampledFrom([]string{"a", "b", abi.HeaderDeadline, abi.HeaderID}).Draw(t, "key")
			v := rapid.StringN(0, 40, 100).Draw(t, "value")
			headers = abi.AppendHeader(headers, k, v)
			if k != abi.HeaderDeadline {
				want = append(want, k+"="+v)
			}
		}
		e := &mailbox.Envelope{Headers: headers, Due: rapid.Int64().Draw(t, "due")}
		if rapid.Bool().Draw(t, "question") {
			e.Flags = mark.Due
			if len(want) < abi.MaxHeaders {
				want = append(want, abi.HeaderDeadline+"="+strconv.FormatInt(e.Due, 10))
			}
		}
		before := string(headers)
		var scr scratch
		var got []string
		for range 2 { // its buffer is used again
			got = nil
			for rest := scr.stated(e); ; {
				k, v, next, more := abi.NextHeader(rest)
				if !more {
					break
				}
				got = append(got, string(k)+"="+string(v))
				rest = next
			}
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) || string(headers) != before {
			t.Errorf("%q, want %q", got, want)
		}
		if h := scr.stated(e); len(h) > 0 && int(h[0]&31) != len(want) {
			t.Errorf("%d entries are said to be %d", len(want), h[0]&31)
		}
		if n := testing.AllocsPerRun(10, func() { scr.stated(e) }); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// An ask from Go that was given up early is not handled either, and one that is handed on to
// several stays for all of them.
func TestGivenUp(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", Func(func(ctx *Context, m Message) error { return errors.Join(tellProbe(ctx, "handled"), ctx.Reply(nil)) }))
	p := must(l.Request(a, "q"))(t)
	p.Cancel()
	l.run()
	l.wants()
	l.equal("dead letters", l.letters(), []string{"its asker waits no longer: q"})
	p = must(l.Request(a, Marked{Value: "q", Marks: Lasting}))(t)
	p.Cancel()
	l.run()
	l.wants("message handled")
	both := l.spawn("both", Func(func(ctx *Context, m Message) error { return errors.Join(ctx.Forward(a), ctx.Forward(a)) }))
	p = must(l.Request(both, "q"))(t)
	l.run()
	l.wants("message handled", "message handled")
	if m := <-p.Answer(); m.Err() != nil {
		t.Error(m.Err())
	}
}

// A timeout says what was asked, of which actor, for how long, and what that one was doing.
func TestTimeoutsSayWhatTheTargetDid(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithAskTimeout(time.Second) })
	ask := func(to Ref, v any) (*Pending, error) {
		return l.outside.Request(to, must(message.Envelope(v))(t), l.outside.Patience(context.Background()))
	}
	fails := func(to Ref, v any, want ...string) {
		t.Helper()
		p := must(ask(to, v))(t)
		l.run()
		l.pass(1500 * ms)
		if m := <-p.Answer(); m.Err() != ErrTimeout {
			t.Fatal(m.Err())
		}
		err := l.outside.TimedOut(p, to, v, nil)
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || !errors.Is(err, ErrTimeout) || !timeout.Timeout() || timeout.Target.UID() != to.UID() {
			t.Fatalf("%T %v", err, err)
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v\nhas no %q", err, part)
			}
		}
	}
	silent := l.spawn("silent", Func(func(*Context, Message) error { return nil }))
	fails(silent, []any{"get", 1}, "asked /user/silent (native) for [\"get\", ...], 1.", "it is idle", "0 messages wait")
	fails(silent, 5, "for int,")
	fails(silent, Marked{Value: Raw(encoded("x")), Marks: NoInfluence}, "for 2 bytes of CBOR,")
	fails(silent, Raw(encoded([]any{"op", nil})), `for ["op", ...],`)
	pause(l, silent)
	l.post(silent, 1)
	fails(silent, "q", "an operator has paused it, 2 messages wait")
	gone := l.spawn("gone", Func(func(*Context, Message) error { return nil }))
	p := must(ask(gone, "q"))(t)
	l.Stop(gone)
	l.run()
	if err := l.outside.TimedOut(p, gone, "q", context.Canceled); !strings.Contains(err.Error(), "there is no such actor now: context canceled") || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The same of one whose turn takes long: it is said for how long.
func TestTimeoutsOfOneInATurn(t *testing.T) {
	s, err := New(NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	for _, says := range []bool{true, false} {
		begun, end := make(chan struct{}), make(chan struct{})
		a := must(s.Spawn("", Func(func(ctx *Context, m Message) error {
			if says {
				ctx.Block()
			}
			close(begun)
			<-end
			return nil
		})))(t)
		if err := s.Tell(a, nil); err != nil {
			t.Fatal(err)
		}
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := s.Ask(ctx, a, "q")
		cancel()
		close(end)
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if timeout.Turn < 15*time.Millisecond || timeout.AtLeast == says || timeout.Info.Mailbox != 1 || !strings.Contains(err.Error(), "it has been in a turn for ") {
			t.Errorf("%v %v %v", timeout.Turn, timeout.AtLeast, err)
		}
	}
}
