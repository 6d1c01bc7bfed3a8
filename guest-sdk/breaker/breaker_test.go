//go:build !wasip1

package breaker_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/breaker"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

const target actor.Ref = 1 << 41

// shop asks a target for everything it is told.
type shop struct {
	b     *breaker.Breaker
	heard []string
}

func (s *shop) note(what string) func(*actor.Context) {
	return func(*actor.Context) { s.heard = append(s.heard, what) }
}

func (s *shop) took(what string) func(*actor.Context, time.Duration) {
	return func(_ *actor.Context, d time.Duration) { s.heard = append(s.heard, what+" "+d.String()) }
}

func newShop() *shop {
	s := &shop{}
	s.b = breaker.New(breaker.Settings{MaxFailures: 2, CallTimeout: time.Second, ResetTimeout: time.Minute}).
		OnOpen(s.note("open")).OnClose(s.note("closed")).OnHalfOpen(s.note("half-open")).OnRefused(s.note("refused")).
		OnSuccess(s.took("good")).OnFailure(s.took("bad")).OnTimeout(s.took("late")).
		FailIf(func(msg *actor.Message) bool { return msg.Is("bad") }).Timer(7)
	return s
}

func (s *shop) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case s.b.Receive(ctx, msg):
		return nil
	case msg.Is("call"):
		return s.b.Call(ctx, func() error { return nil })
	case msg.Is("fail"):
		if err := s.b.Call(ctx, func() error { return errors.New("no") }); err == nil {
			return errors.New("an error is swallowed")
		}
		return nil
	}
	from, correlation := ctx.Sender(), ctx.Correlation()
	then := func(ctx *actor.Context, m *actor.Message) error {
		return ctx.Answer(from, correlation, actor.Raw(m.Payload()))
	}
	err := s.b.Ask(ctx, target, actor.Raw(msg.Payload()), then)
	if msg.Is("path") {
		err = s.b.AskPath(ctx, "/user/x", actor.Null, then)
	}
	if err != nil {
		return ctx.ReplyError(err.Error())
	}
	return nil
}

// caller makes one call of each kind a message; it is what must not allocate.
type caller struct {
	b    *breaker.Breaker
	then func(*actor.Context, *actor.Message) error
	good int
	shut int
}

func (c *caller) Receive(ctx *actor.Context, msg *actor.Message) error {
	if err := c.b.Ask(ctx, target, actor.Int(1e6), c.then); err != nil {
		c.shut++
	}
	return nil
}

func init() {
	actor.Register("shop", func() actor.Actor { return newShop() })
	actor.Register("caller", func() actor.Actor {
		c := &caller{b: breaker.New(breaker.Settings{MaxFailures: 1, ResetTimeout: 2})}
		c.then = func(*actor.Context, *actor.Message) error { c.good++; return nil }
		return c
	})
}

// Every callback, in order; an answer that does not come fails the call at its timeout.
func TestK15_Callbacks(t *testing.T) {
	a := actortest.Spawn(t, "shop")
	wants := func(want ...string) {
		t.Helper()
		s := a.Actor().(*shop)
		if !slices.Equal(s.heard, want) {
			t.Errorf("heard %q, want %q", s.heard, want)
		}
		s.heard = nil
	}
	ask := func() *actortest.Turn { t.Helper(); return a.Send(actor.Text("x")) }
	first := ask().Ask()
	a.Advance(250 * time.Millisecond)
	a.Answer(first, actor.Text("fine"))
	wants("good 250ms")
	a.Answer(ask().Ask(), actor.Text("bad")) // as FailIf says
	wants("bad 0s")
	a.AnswerError(ask().Ask(), "no") // FailIf says that errors are none
	wants("good 0s")
	a.Answer(ask().Ask(), actor.Text("bad"))
	ask()
	a.Advance(999 * time.Millisecond)
	wants("bad 0s")
	a.Advance(time.Millisecond)
	wants("open", "late 1s")
	r := ask()
	if got := r.Reply(); got.Kind != actortest.ReplyError || !strings.Contains(got.Text(), "open for another 60000 ms") || len(r.Sent) != 1 {
		t.Errorf("%+v", r.Sent)
	}
	wants("refused")
	a.Advance(time.Minute - time.Millisecond)
	wants()
	a.Advance(time.Millisecond) // nobody calls: the timer
	wants("half-open")
	q := ask().Ask()
	if got := ask().Reply(); !strings.Contains(got.Text(), "its one trial call is in progress") {
		t.Errorf("%q", got.Text())
	}
	a.Answer(q, actor.Text("fine"))
	wants("refused", "closed", "good 0s")
	a.Send(actor.Text("fail"))
	a.Send(actor.Text("call"))
	a.Send(actor.Text("fail"))
	wants("bad 0s", "good 0s", "bad 0s")
	a.Restart()
	a.Send(actor.Text("fail"))
	wants("bad 0s") // it has begun anew
	if p := a.Send(actor.Text("path")); len(p.Sent) != 2 || p.Sent[1].Path != "/user/x" {
		t.Errorf("%+v", p.Sent)
	}
}

// once is a host of entries with one message.
type once struct{ begun bool }

func (h *once) Next(int) bool {
	h.begun = !h.begun
	return h.begun
}
func (*once) Flush([]byte)      { panic("a flush") }
func (*once) Log(int, []byte)   {}
func (*once) Panic(text []byte) { panic(string(text)) }

// A call allocates nothing in the guest: not when it is made, answered, or refused.
func TestACallAllocatesNothing(t *testing.T) {
	h := &once{}
	old := bridge.Current
	bridge.Current = h
	defer func() { bridge.Current = old }()
	var state any
	enter := func(e []byte) {
		h.begun = false
		state, _ = bridge.Loop.Turn(state, e)
	}
	enter(abi.AppendEnvelope(nil, &abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &abi.Start{Type: "caller", Path: "x", Self: 9, Args: []byte{0xf6}})}))
	message := abi.AppendEnvelope(nil, &abi.Envelope{Kind: abi.KindMessage, Time: 1 << 60, Sender: 1 << 40, Correlation: 3, Payload: []byte{0xf6}})
	buffer := make([]byte, 0, 200)
	correlation := uint64(1)
	answer := func(kind abi.Kind) {
		buffer = abi.AppendEnvelope(buffer[:0], &abi.Envelope{Kind: kind, Time: 1 << 60, Sender: target, Correlation: correlation, Payload: []byte{0xf6}})
		enter(buffer)
		correlation++
	}
	call := func() {
		enter(message)
		answer(abi.KindReply)
	}
	for range 20 {
		call()
	}
	if n := testing.AllocsPerRun(500, call); n != 0 {
		t.Errorf("%v allocations a call that does well", n)
	}
	enter(message)
	answer(abi.KindReplyError) // the time stands still: the circuit is open from now on
	refused := testing.AllocsPerRun(500, func() { enter(message) })
	if c := bridge.Loop.Actor(state).(*caller); refused != 0 || c.shut < 500 || c.good < 500 {
		t.Errorf("%v allocations a call that is refused; %+v", refused, c)
	}
}

func TestWrongSettingsPanic(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "MaxFailures") {
			t.Errorf("%v", r)
		}
	}()
	breaker.New(breaker.Settings{MaxFailures: -1})
}
