//go:build !wasip1

package reliable_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/reliable"
)

// giver sends what it is told to who has said "hello".
type giver struct {
	out  *reliable.Sender
	lost int
}

func (g *giver) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch {
	case g.out.Receive(ctx, msg):
		return nil
	case msg.Is("hello"):
		g.out.Connect(ctx, ctx.Sender())
		return nil
	}
	if err := g.out.Send(ctx, actor.Raw(msg.Payload())); err != nil {
		return ctx.ReplyError(err.Error())
	}
	return nil
}

// taker keeps what it takes.
type taker struct {
	in    reliable.Receiver
	taken []string
}

func (x *taker) Receive(ctx *actor.Context, msg *actor.Message) error {
	if !x.in.Accept(ctx, msg) {
		return nil
	}
	if msg.Is("bad") {
		return errors.New("as told")
	}
	x.taken = append(x.taken, msg.Text())
	return nil
}

func init() {
	actor.Register("giver", func() actor.Actor {
		g := &giver{}
		g.out = reliable.NewSender(0, 5).Limit(3, 1000).RetryAfter(time.Second).Attempts(2).Stream(7).OnLost(func(*actor.Context) { g.lost++ })
		return g
	})
	actor.Register("taker", func() actor.Actor { return &taker{} })
}

// TestK21_SenderInAGuest: what is dropped on the way comes again, is taken once and in order; a turn that fails
// acknowledges nothing; bounds; a target that does not answer is lost, and another one gets what is left.
func TestK21_SenderInAGuest(t *testing.T) {
	g, x := actortest.Spawn(t, "giver"), actortest.Spawn(t, "taker")
	say := func(from actor.Ref, text string) []actortest.Sent {
		t.Helper()
		return g.Deliver(actortest.Message{Sender: from, Body: actor.Text(text)}).Sent
	}
	pass := func(sent ...actortest.Sent) (acks []actortest.Sent) {
		for _, s := range sent {
			acks = append(acks, x.Pass(s).Sent...)
		}
		return acks
	}
	due := func() (sent []actortest.Sent) {
		for _, turn := range g.Advance(time.Second) {
			sent = append(sent, turn.Sent...)
		}
		return sent
	}
	out := func() *reliable.Sender { return g.Actor().(*giver).out }
	taken := func(want ...string) {
		t.Helper()
		if got := x.Actor().(*taker).taken; !slices.Equal(got, want) {
			t.Errorf("taken %q, want %q", got, want)
		}
	}
	say(x.Ref(), "hello")
	one, two := say(1, "1"), say(1, "2")
	if acks := pass(two...); len(acks) != 0 { // 1 is missing
		t.Errorf("%+v", acks)
	}
	taken()
	acks := pass(append(one, one...)...)
	taken("1")
	if len(acks) != 2 || acks[0].Header("wasmactors.reliable.ack") != "7 0 1" {
		t.Errorf("%+v", acks)
	}
	g.Pass(acks[0])
	if out().Len() != 1 {
		t.Errorf("%d are left", out().Len())
	}
	for _, a := range pass(due()...) {
		g.Pass(a)
	}
	taken("1", "2")
	if out().Len() != 0 || len(due()) != 0 {
		t.Error("something is left")
	}
	if f := x.Pass(say(1, "bad")[0]); f.Failure == nil || len(f.Sent) != 0 {
		t.Errorf("%+v", f)
	}
	x.Restart()
	if out().Len() != 1 {
		t.Error("a turn that has failed has acknowledged")
	}
	say(1, "3")
	say(1, "4")
	if s := say(1, "5"); len(s) != 1 || s[0].Kind != actortest.ReplyError || !strings.Contains(s[0].Text(), "unacknowledged messages") {
		t.Errorf("%+v", s)
	}
	for i, want := range []int{3, 3, 0, 0} {
		if s := due(); len(s) != want {
			t.Errorf("attempt %d: %d", i, len(s))
		}
	}
	if !out().Lost() || g.Actor().(*giver).lost != 1 {
		t.Error("it is not lost")
	}
	var unsent []string
	out().Unsent(func(p []byte) { unsent = append(unsent, string(p[1:])) })
	if !slices.Equal(unsent, []string{"bad", "3", "4"}) {
		t.Errorf("%q", unsent)
	}
	x = actortest.Spawn(t, "taker", actortest.Named("other"))
	again := say(x.Ref(), "hello")
	if len(again) != 3 {
		t.Errorf("%+v", again)
	}
	g.Terminated(x.Ref(), "stopped")
	if !out().Lost() || g.Actor().(*giver).lost != 2 {
		t.Error("the end of the target is not seen")
	}
	if x.Pass(actortest.Sent{Payload: []byte{0x61, 'x'}}); len(x.Actor().(*taker).taken) != 1 {
		t.Error("what comes from no sender is not for the actor")
	}
}
