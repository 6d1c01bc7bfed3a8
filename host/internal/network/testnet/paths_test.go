package testnet

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/stray"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// A full path says its node (A21, L02): messages, questions and Identify by paths reach who is there when they arrive, with
// patterns all of them; on its own node a system may be named with its node or without.
func TestPathsOfOtherNodes(t *testing.T) {
	p := join(t)
	var got []string
	hear := func(ctx *host.Context, m host.Message) error {
		got = append(got, ctx.Self().Name()+" "+text(m))
		return nil
	}
	y := p.spawn(p.b, "y", echo)
	if y.URI() != "wasm://b@2/user/y" {
		t.Error(y)
	}
	for _, own := range []string{"/user/y", "wasm://b/user/y", "wasm://b@2/user/y", y.String()} {
		if ref, err := p.b.Lookup(own); err != nil || ref != y {
			t.Errorf("%s: %v, %v", own, ref, err)
		}
	}
	for _, no := range []string{"wasm://b@1/user/y", "wasm://b@02/user/y", "wasm://c@2/user/y"} {
		if _, err := p.b.Lookup(no); !errors.Is(err, host.ErrUnknown) {
			t.Errorf("%s: %v", no, err)
		}
	}
	p.spawn(p.b, "h1", hear)
	p.spawn(p.b, "h2", hear)
	if err := p.a.TellPath("wasm://b@2/user/h2", "one"); err != nil {
		t.Error(err)
	}
	if err := p.a.TellPath("wasm://b@2/user/h?", "all"); err != nil {
		t.Error(err)
	}
	if err := p.a.TellPath("wasm://b@3/user/h?", "no node"); !errors.Is(err, host.ErrUnknown) {
		t.Error(err)
	}
	p.run(far)
	p.equal("got", got, []string{"h2 one", "h1 all", "h2 all"})
	_ = p.a.TellPath("wasm://b@2/user/nobody", "hi")
	p.run(far)
	if letters, _ := p.b.DeadLetters(); len(letters) != 1 || letters[0].Path != "/user/nobody" {
		t.Errorf("%+v", letters)
	}
	in := p.a.Inbox(0)
	defer in.Close()
	for path, want := range map[string]abi.Kind{"wasm://b@2/user/y": abi.KindReply, "wasm://b@2/user/x": abi.KindReplyError} {
		if n := in.Identify(path, 5); n != 1 {
			t.Errorf("%d asked", n)
		}
		p.run(far)
		if m, ok := in.TryReceive(); !ok || m.Kind != want || want == abi.KindReply && m.Sender.URI() != y.URI() {
			t.Errorf("%s: %+v", path, m)
		}
	}
	found := make(chan host.Ref, 1)
	go func() {
		ref, _ := p.a.Identify(context.Background(), "wasm://b@2/user/y")
		found <- ref
	}()
	for len(found) == 0 {
		p.run(far)
	}
	if ref := <-found; ref != y {
		t.Errorf("%v", ref)
	}
}

// A kept actor is reached from another node by its path; what carries the name of the child goes with the message.
func TestKeptActorsOfOtherNodes(t *testing.T) {
	p := join(t)
	k, err := p.b.Spawn("keys", keyed.New(host.Func(echo)).Props())
	if err != nil {
		t.Fatal(err)
	}
	p.run(0)
	ann, err := p.b.AddressOf("/user/keys/ann")
	if err != nil || ann.To != k {
		t.Fatal(ann, err)
	}
	if m := p.ask(p.a, k, ann.Message("hi")); text(m) != "hi from ann" {
		t.Errorf("%q, %v", text(m), m.Err())
	}
	if err := p.a.TellPath("wasm://b@2/user/keys/bob", "hi"); err != nil {
		t.Fatal(err)
	}
	p.run(far)
	if _, err := p.b.Lookup("/user/keys/bob"); err != nil {
		t.Error(err)
	}
}

// Guesses of refs count for the tree of who makes them, wherever the refs are: sent to, watched and forwarded to.
func TestGuessesOnOtherNodesCount(t *testing.T) {
	for name, guess := range map[string]func(*host.Context, host.Ref) error{
		"sent":      func(ctx *host.Context, to host.Ref) error { return ctx.Tell(to, "hi") },
		"watched":   func(ctx *host.Context, to host.Ref) error { return ctx.Watch(to) },
		"forwarded": func(ctx *host.Context, to host.Ref) error { return ctx.Forward(to) },
	} {
		p := join(t)
		p.Delay = time.Nanosecond // the guesses that may be made again are few
		n := abi.Ref(0)
		x := p.spawn(p.a, "x", func(ctx *host.Context, m host.Message) error {
			n++
			ref, err := ctx.System().RefOf(abi.Ref(2)<<54|n, host.Ref{})
			if err != nil {
				return err
			}
			if name == "watched" {
				defer ctx.Unwatch(ref)
			}
			return guess(ctx, ref)
		})
		teller := p.spawn(p.a, "teller", func(ctx *host.Context, m host.Message) error { return ctx.Tell(x, "go") })
		failed := func() uint64 {
			p.run(time.Microsecond)
			info, err := p.a.View().Info(x)
			if err != nil {
				t.Fatal(err)
			}
			return info.Incarnation
		}
		for i := range stray.Burst {
			if i%4096 == 0 {
				p.run(time.Microsecond)
			}
			_ = p.a.Tell(teller, "go")
		}
		if got := failed(); got != 0 {
			t.Errorf("%s: it fails at guess %d", name, n)
		}
		_ = p.a.Tell(teller, "go")
		if got := failed(); got != 1 {
			t.Errorf("%s: %d guesses, %d failures", name, n, got)
		}
		if info, _ := p.a.View().Info(teller); info.Incarnation != 0 {
			t.Errorf("%s: who has not guessed fails", name)
		}
	}
}

// A question that is bound to an incarnation (J01) ends with it on another node, too.
func TestBoundQuestions(t *testing.T) {
	p := join(t)
	y := p.spawn(p.b, "y", func(ctx *host.Context, m host.Message) error {
		if text(m) == "fail" {
			return errors.New("as asked")
		}
		return nil
	})
	pending, err := p.a.Request(y, host.Bound{Value: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	p.run(far)
	if len(pending.Answer()) != 0 {
		t.Error("over too early")
	}
	_ = p.a.Tell(y, "fail")
	p.run(far)
	select {
	case m := <-pending.Answer():
		var failed *host.TurnError
		if !errors.As(m.Err(), &failed) {
			t.Error(m.Err())
		}
	default:
		pending.Cancel()
		t.Error("it still waits")
	}
}
