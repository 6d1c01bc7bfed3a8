//go:build !wasip1

package actortest_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// clerk does what it is told.
type clerk struct {
	heard []string
	busy  bool
}

func (c *clerk) Started(ctx *actor.Context) error {
	if ctx.Cause() != "" {
		ctx.Info(fmt.Sprint("again ", ctx.Incarnation(), ": ", ctx.Cause()))
	}
	var name actor.Text
	if ctx.Args().Null() {
		return nil
	}
	if err := ctx.DecodeArgs(&name); err != nil {
		return err
	}
	ctx.Tell(ctx.Parent(), name)
	return nil
}

func (c *clerk) Stopped(ctx *actor.Context) { ctx.TellPath("/user/log", actor.Text("bye")) }

func (c *clerk) Receive(ctx *actor.Context, msg *actor.Message) error {
	c.heard = append(c.heard, msg.Kind().String()+" "+msg.Text())
	if c.busy && msg.Kind() == actor.KindMessage && !msg.Is("open") {
		ctx.Stash()
		return nil
	}
	switch text := msg.Text(); {
	case msg.Kind() == actor.KindTimer, msg.Kind() == actor.KindReceiveTimeout:
		ctx.Tell(2, actor.Int(int64(msg.Correlation())))
	case msg.Kind() != actor.KindMessage:
		return actor.ErrUnhandled
	case text == "echo":
		return ctx.Reply(actor.Text(msg.Header("tone") + "echo"))
	case text == "no":
		return ctx.ReplyError("no")
	case text == "error":
		ctx.Tell(9, actor.Int(1))
		ctx.Warn("about to fail")
		return errors.New("what a mess")
	case text == "panic":
		panic("oh")
	case text == "ask":
		asker := ctx.Sender()
		ctx.Ask(7, actor.Int(1), time.Second, func(ctx *actor.Context, answer *actor.Message) error {
			ctx.Tell(asker, actor.Text(answer.Kind().String()+" "+answer.Text()))
			return nil
		})
	case text == "spawn":
		ctx.Watch(ctx.Spawn("clerk", "junior", actor.Text("hello")))
	case text == "forward":
		ctx.ForwardPath("/user/other")
	case text == "timers":
		ctx.After(1, time.Second, nil)
		ctx.Every(2, 400*time.Millisecond, nil)
		ctx.After(3, time.Millisecond, nil)
		ctx.Cancel(3)
	case text == "quiet":
		ctx.SetReceiveTimeout(time.Minute)
	case text == "close":
		c.busy = true
	case text == "open":
		c.busy = false
		ctx.Unstash()
	case text == "die":
		ctx.StopSelf()
	case text == "random":
		return ctx.Reply(actor.Uint(ctx.Rand().Uint64()))
	case text == "time":
		return ctx.Reply(actor.Text(ctx.Now().Format(time.RFC3339)))
	default:
		return actor.ErrUnhandled
	}
	return nil
}

func init() { actor.Register("clerk", func() actor.Actor { return &clerk{} }) }

func TestReply(t *testing.T) {
	c := actortest.Spawn(t, "clerk")
	if got := c.Send(actor.Text("echo")).Reply(); got.Text() != "echo" || got.Kind != actortest.Reply || got.To != actortest.Tester {
		t.Errorf("%+v", got)
	}
	if got := c.Send(actor.Text("no")).Reply(); got.Text() != "no" || got.Kind != actortest.ReplyError {
		t.Errorf("%+v", got)
	}
	turn := c.Deliver(actortest.Message{Sender: 5, Correlation: 6, Headers: map[string]string{"a": "b", "tone": "loud "}, Body: actor.Text("echo")})
	if got := turn.Reply(); got.Text() != "loud echo" || got.To != 5 || got.Correlation != 6 {
		t.Errorf("%+v", got)
	}
	if turn := c.Send(actor.Text("what?")); !turn.Unhandled || turn.Failure != nil {
		t.Errorf("%+v", turn)
	}
}

func TestFailedTurnsHaveDoneNothing(t *testing.T) {
	c := actortest.Spawn(t, "clerk")
	turn := c.Send(actor.Text("error"))
	if f := turn.Failure; f == nil || f.Kind != abi.FailureGuestError || f.Reason != "what a mess" || f.Turn != 2 {
		t.Fatalf("%+v", f)
	}
	if len(turn.Sent) != 0 || len(turn.Logs) != 1 || turn.Logs[0] != (actortest.Log{Level: abi.LogWarn, Text: "about to fail"}) {
		t.Errorf("%+v", turn)
	}
	if turn := c.Restart(); turn.Failure != nil || turn.Logs[0].Text != "again 1: guest_error: what a mess" {
		t.Errorf("%+v", turn)
	}
	if heard := c.Actor().(*clerk).heard; len(heard) != 0 {
		t.Errorf("the new incarnation remembers %q", heard)
	}
	f := c.Send(actor.Text("panic")).Failure
	if f == nil || f.Error() != "guest_panic: oh" || !strings.Contains(f.GuestStack, "clerk") || !strings.Contains(f.GuestStack, "actortest_test.go:") {
		t.Errorf("%+v", f)
	}
	c.Restart()
	if c.Send(actor.Text("echo")).Reply().Text() != "echo" {
		t.Error("not alive")
	}
}

func TestStartFails(t *testing.T) {
	c := actortest.Spawn(t, "clerk", actortest.Args(actor.Int(3)))
	if f := c.Started().Failure; f == nil || !strings.Contains(f.Reason, "an item of another type") {
		t.Errorf("%+v", f)
	}
}

func TestAsks(t *testing.T) {
	c := actortest.Spawn(t, "clerk")
	first, second, third := c.Send(actor.Text("ask")).Ask(), c.Send(actor.Text("ask")).Ask(), c.Send(actor.Text("ask")).Ask()
	if first.To != 7 || first.Timeout != time.Second || first.Int() != 1 {
		t.Errorf("%+v", first)
	}
	if got := c.Answer(second, actor.Text("yes")).Sent[0]; got.Text() != "reply yes" || got.To != actortest.Tester {
		t.Errorf("%+v", got)
	}
	if got := c.AnswerError(first, "never").Sent[0].Text(); got != "reply_error never" {
		t.Errorf("%q", got)
	}
	if turns := c.Advance(999 * time.Millisecond); len(turns) != 0 {
		t.Errorf("%+v", turns)
	}
	turns := c.Advance(time.Millisecond)
	if len(turns) != 1 || turns[0].Sent[0].Text() != "ask_timeout " {
		t.Errorf("%+v", turns)
	}
	fails(t, "no open question 3", func(t testing.TB) { onto(c, t).Answer(third, nil) })
}

func TestConversation(t *testing.T) {
	boss := actortest.Spawn(t, "clerk", actortest.Named("boss"))
	turn := boss.Send(actor.Text("spawn"))
	if len(turn.Spawned) != 1 || turn.Watched[0].To != turn.Spawned[0].Ref || turn.Spawned[0].Name != "junior" {
		t.Fatalf("%+v", turn)
	}
	junior := boss.Child(turn.Spawned[0])
	hello := junior.Started().Sent[0]
	if hello.To != boss.Ref() || hello.From != junior.Ref() || hello.Text() != "hello" || junior.Ref() != turn.Spawned[0].Ref {
		t.Errorf("%+v", hello)
	}
	if !boss.Pass(hello).Unhandled {
		t.Error("the boss has an ear for it")
	}
	forwarded := boss.Send(actor.Text("forward")).Sent[0]
	if forwarded.Path != "/user/other" || forwarded.From != actortest.Tester || forwarded.Text() != "forward" {
		t.Errorf("%+v", forwarded)
	}
	question := boss.Send(actor.Text("ask")).Ask()
	junior.Pass(question)
	if heard := junior.Actor().(*clerk).heard; len(heard) != 1 || heard[0] != "message " {
		t.Errorf("%q", heard)
	}
	if f := boss.Terminated(junior.Ref(), "stopped").Failure; f == nil || f.Kind != abi.FailureDeathPact {
		t.Errorf("%+v", f)
	}
}

func TestRefsOfChildrenDoNotRepeat(t *testing.T) {
	c := actortest.Spawn(t, "clerk")
	seen := map[actor.Ref]bool{}
	for range 3 {
		ref := c.Send(actor.Text("spawn")).Spawned[0].Ref
		if seen[ref] {
			t.Errorf("%d twice", ref)
		}
		seen[ref] = true
		c.Send(actor.Text("panic"))
		c.Restart()
	}
}

func TestClock(t *testing.T) {
	c := actortest.Spawn(t, "clerk", actortest.At(time.Date(2024, 5, 6, 7, 8, 0, 0, time.UTC)))
	if turn := c.Send(actor.Text("timers")); len(turn.Timers) != 3 || turn.Timers[1].Period != 400*time.Millisecond || turn.Cancelled[0] != 3 {
		t.Errorf("%+v", turn)
	}
	var order []int64
	for _, turn := range c.Advance(1200 * time.Millisecond) {
		order = append(order, turn.Sent[0].Int())
	}
	if fmt.Sprint(order) != "[2 2 1 2]" {
		t.Error(order)
	}
	c.Advance(58*time.Second + 800*time.Millisecond)
	if got := c.Send(actor.Text("time")).Reply().Text(); got != "2024-05-06T07:09:00Z" || !c.Now().Equal(time.Date(2024, 5, 6, 7, 9, 0, 0, time.UTC)) {
		t.Error(got)
	}
	c.Restart()
	if turns := c.Advance(time.Hour); len(turns) != 0 {
		t.Errorf("%d timers have survived", len(turns))
	}
}

func TestReceiveTimeout(t *testing.T) {
	c := actortest.Spawn(t, "clerk")
	if turn := c.Send(actor.Text("quiet")); turn.ReceiveTimeout == nil || *turn.ReceiveTimeout != time.Minute {
		t.Fatalf("%+v", turn)
	}
	c.Advance(50 * time.Second)
	c.Send(actor.Text("echo"))
	if turns := c.Advance(50 * time.Second); len(turns) != 0 {
		t.Error("too early")
	}
	if turns := c.Advance(70 * time.Second); len(turns) != 2 {
		t.Errorf("%d turns", len(turns))
	}
}

func TestStash(t *testing.T) {
	c := actortest.Spawn(t, "clerk")
	c.Send(actor.Text("close"))
	for _, text := range []string{"echo", "close", "no"} {
		if turn := c.Send(actor.Text(text)); !turn.Stashed || len(turn.Sent) != 0 {
			t.Errorf("%+v", turn)
		}
	}
	back := c.Send(actor.Text("open")).Unstashed
	if len(back) != 3 || back[0].Reply().Text() != "echo" || !back[2].Stashed {
		t.Fatalf("%+v", back)
	}
	if back = c.Restart().Unstashed; len(back) != 1 || back[0].Reply().Kind != actortest.ReplyError {
		t.Errorf("%+v", back)
	}
}

func TestTheEnd(t *testing.T) {
	c := actortest.Spawn(t, "clerk")
	turn := c.Send(actor.Text("die"))
	if turn.Stopped[0].To != c.Ref() || turn.Last == nil || turn.Last.Sent[0].Path != "/user/log" || !c.Ended() {
		t.Errorf("%+v", turn)
	}
	fails(t, "the actor has ended", func(t testing.TB) { onto(c, t).Send(nil) })
	d := actortest.Spawn(t, "clerk")
	if bye := d.Stop().Sent[0]; bye.Text() != "bye" || !d.Ended() {
		t.Errorf("%+v", bye)
	}
}

func TestSeeds(t *testing.T) {
	draw := func(options ...actortest.Option) string {
		r := abi.NewReader(actortest.Spawn(t, "clerk", options...).Send(actor.Text("random")).Reply().Payload)
		return fmt.Sprint(r.Uint())
	}
	if a, b := draw(), draw(); a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := draw(), draw(actortest.Seed(7)); a == b {
		t.Error("the seed does not matter")
	}
}

func TestInParallel(t *testing.T) {
	var all sync.WaitGroup
	for i := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			c := actortest.Spawn(t, "clerk", actortest.Named(fmt.Sprint("c", i)))
			for range 100 {
				c.Send(actor.Text("echo"))
			}
			if n := len(c.Actor().(*clerk).heard); n != 100 {
				t.Errorf("%d messages heard", n)
			}
		}()
	}
	all.Wait()
}

func TestMisuseIsSaid(t *testing.T) {
	fails(t, `no type "cleric" is registered; there are: clerk`, func(t testing.TB) { actortest.Spawn(t, "cleric") })
	fails(t, "no reply among the 0 messages", func(t testing.TB) { actortest.Spawn(t, "clerk").Send(actor.Text("close")).Reply() })
	fails(t, "no reply, the turn has failed: guest_panic: oh", func(t testing.TB) { actortest.Spawn(t, "clerk").Send(actor.Text("panic")).Reply() })
	fails(t, "0 questions, not one", func(t testing.TB) { actortest.Spawn(t, "clerk").Send(actor.Text("echo")).Ask() })
	fails(t, "was not restarted: guest_panic: oh", func(t testing.TB) {
		c := actortest.Spawn(t, "clerk")
		c.Send(actor.Text("panic"))
		c.Send(actor.Text("echo"))
	})
}

// mirror answers with what it gets: as it came, and in a message of its own with a header.
type mirror struct{}

func (mirror) Receive(ctx *actor.Context, msg *actor.Message) error {
	var b actor.Bytes
	if err := msg.Decode(&b); err != nil {
		return err
	}
	ctx.TellWith(ctx.Sender(), b, actor.Header{Key: "a", Value: "b"})
	ctx.Tell(ctx.Sender(), b)
	return ctx.Reply(actor.Raw(msg.Payload()))
}

func init() { actor.Register("mirror", func() actor.Actor { return mirror{} }) }

// A message that is larger than the rings comes in whole, and so does the answer.
func TestLargeMessage(t *testing.T) {
	c := actortest.Spawn(t, "mirror")
	for _, n := range []int{65_400, 65_536, 300_000, 70_000, 10, 2 << 20} {
		large := bytes.Repeat([]byte{byte(n)}, n)
		turn := c.Send(actor.Bytes(large))
		if len(turn.Sent) != 3 {
			t.Fatalf("%d bytes: %d messages: %v", n, len(turn.Sent), turn.Failure)
		}
		for i := range turn.Sent {
			r := abi.NewReader(turn.Sent[i].Payload)
			if got := r.ByteString(); r.Done() != nil || !bytes.Equal(got, large) {
				t.Errorf("%d bytes come back as %d in message %d", n, len(got), i)
			}
		}
	}
}

// nanny decides about her children by their failure's reason.
type nanny struct{}

func (nanny) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Is("fine") {
		ctx.Confirm(msg.ID())
		ctx.ResetBackoff()
		return nil
	}
	ctx.SpawnWith("clerk", "c", actor.Raw{0xf6}, actor.SpawnOptions{
		Lifetime: actor.Permanent, Significant: true, CrashedMessage: "2",
		Supervision: actor.Func(func(w *abi.Writer) { w.Map(1); w.Text("strategy"); w.Text("all-for-one") }),
	})
	return nil
}

func (nanny) Decide(ctx *actor.Context, child actor.Ref, f *abi.Failure) actor.Directive {
	ctx.Tell(child, actor.Text(f.Reason))
	switch f.Reason {
	case "tired":
		return actor.Resume
	case "lost":
		return actor.StopChild
	}
	return actor.DefaultDirective
}

func (nanny) PreRestart(ctx *actor.Context, reason string) {
	ctx.TellPath("/user/log", actor.Text("until then: "+reason))
}

func init() { actor.Register("nanny", func() actor.Actor { return nanny{} }) }

func TestSupervising(t *testing.T) {
	n := actortest.Spawn(t, "nanny")
	for reason, want := range map[string]actor.Directive{"tired": actor.Resume, "lost": actor.StopChild, "odd": actor.DefaultDirective} {
		turn := n.Decide(77, abi.Failure{Kind: abi.FailureGuestError, Reason: reason})
		if turn.Decided != want || len(turn.Sent) != 1 || turn.Sent[0].To != 77 || turn.Sent[0].Text() != reason {
			t.Errorf("%s: %+v", reason, turn)
		}
	}
	spawned := n.Send(actor.Text("go")).Spawned
	if len(spawned) != 1 {
		t.Fatal(spawned)
	}
	want := "\xa4ksignificant\xf5hlifetimeipermanentocrashed-messagea2ksupervision\xa1hstrategykall-for-one"
	if got := string(spawned[0].Options); got != want {
		t.Errorf("%q", got)
	}
	if turn := n.Send(actor.Text("fine")); !turn.BackoffReset || len(turn.Sent) != 0 {
		t.Error("the backoff is not reset, or a message confirmed that nobody has numbered")
	}
	kid := n.Child(actortest.Spawned{Ref: 5, Type: "nanny", Name: "kid", Args: []byte{0xf6}})
	numbered := kid.Deliver(actortest.Message{Body: actor.Text("fine"), Headers: map[string]string{abi.HeaderID: "12"}})
	if len(numbered.Sent) != 1 || numbered.Sent[0].To != n.Ref() || numbered.Sent[0].Header(abi.HeaderConfirm) != "12" || numbered.Sent[0].Header("x") != "" {
		t.Errorf("%+v", numbered.Sent)
	}
	if turn := n.PreRestart("a sibling"); len(turn.Sent) != 1 || turn.Sent[0].Text() != "until then: a sibling" {
		t.Errorf("%+v", turn)
	}
}
