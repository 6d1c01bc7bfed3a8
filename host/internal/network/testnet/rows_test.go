package testnet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

const (
	delay = time.Millisecond
	far   = 20 * delay // longer than any exchange here takes
)

var start = time.Unix(1_700_000_000, 0)

// pair is two systems that are joined.
type pair struct {
	*Net
	t    *testing.T
	a, b *host.System
}

func join(t *testing.T) *pair {
	t.Helper()
	n := New(start, delay)
	p := &pair{Net: n, t: t}
	for i, s := range []**host.System{&p.a, &p.b} {
		var err error
		if *s, err = n.Start(host.NewConfig([]string{"a", "b"}[i]).WithSeed(7).WithGuardian(supervision.Default().WithOtherwise(supervision.Restart))); err != nil { // one seed: only the node differs
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, s := range []*host.System{p.a, p.b} {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

func (p *pair) run(d time.Duration) {
	p.t.Helper()
	if err := p.Run(d); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) spawn(s *host.System, name string, f func(*host.Context, host.Message) error) host.Ref {
	p.t.Helper()
	ref, err := s.Spawn(name, host.Func(f))
	if err != nil {
		p.t.Fatal(err)
	}
	p.run(0)
	return ref
}

// ask is what a question from outside of a system has ended with.
func (p *pair) ask(s *host.System, to host.Ref, v any) host.Message {
	p.t.Helper()
	pending, err := s.Request(to, v)
	if err != nil {
		p.t.Fatal(err)
	}
	p.run(far)
	select {
	case m := <-pending.Answer():
		return m
	default:
		pending.Cancel()
		p.t.Fatal("no answer")
		return host.Message{}
	}
}

func (p *pair) equal(what string, got, want []string) {
	p.t.Helper()
	if !slices.Equal(got, want) {
		p.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func text(m host.Message) string {
	var s string
	if m.Decode(&s) != nil {
		return m.Kind.String()
	}
	return s
}

func echo(ctx *host.Context, m host.Message) error {
	return ctx.Reply(text(m) + " from " + ctx.Self().Name())
}

func quiet(*host.Context, host.Message) error { return nil }

// Refs contain the node, so that equal seeds do not make equal refs.
func TestRefsContainTheNode(t *testing.T) {
	p := join(t)
	x, y := p.spawn(p.a, "x", quiet), p.spawn(p.b, "x", quiet)
	in := p.b.Inbox(1)
	defer in.Close()
	if x.UID().Node() != 1 || y.UID().Node() != 2 || in.Ref().UID().Node() != 2 {
		t.Errorf("%v, %v, %v", x.UID().Node(), y.UID().Node(), in.Ref().UID().Node())
	}
	here, there := p.a.Inbox(1), p.b.Inbox(1)
	defer here.Close()
	defer there.Close()
	if a, b := here.Ref().UID(), there.Ref().UID(); a == b {
		t.Errorf("%x on both nodes", a)
	}
}

// Tell (A01, A23): in the order of the sender, once, with headers and the sender's ref; who stops meanwhile gets no more, and
// what it gets no more is a dead letter of its node.
func TestTell(t *testing.T) {
	p := join(t)
	var got []string
	y := p.spawn(p.b, "y", func(ctx *host.Context, m host.Message) error {
		h, _ := abi.FindHeader(m.Headers, "h")
		got = append(got, text(m)+string(h)+" "+m.Sender.Path())
		return nil
	})
	x := p.spawn(p.a, "x", func(ctx *host.Context, m host.Message) error {
		return errors.Join(ctx.Tell(y, "1"), ctx.Tell(y, host.Headed{Value: "2", Headers: map[string]string{"h": "!"}}), ctx.Tell(y, "3"))
	})
	if err := p.a.Tell(x, "go"); err != nil {
		t.Fatal(err)
	}
	p.run(0)
	p.equal("before it has arrived", got, nil)
	p.run(far)
	p.equal("got", got, []string{"1 /user/x", "2! /user/x", "3 /user/x"})
	p.b.Stop(y)
	p.run(far)
	if err := p.a.Tell(y, "late"); err != nil {
		t.Error(err)
	}
	p.run(far)
	if letters, _ := p.b.DeadLetters(); len(letters) != 1 || letters[0].Reason != host.DeadUnknown || letters[0].Recipient != y.UID() {
		t.Errorf("%+v", letters)
	}
	if err := p.a.Tell(mustRef(t, p.a, abi.Ref(3)<<54|5), "nobody"); !errors.Is(err, host.ErrUnknown) {
		t.Errorf("a node that does not exist: %v", err)
	}
}

func mustRef(t *testing.T, s *host.System, uid abi.Ref) host.Ref {
	t.Helper()
	ref, err := s.RefOf(uid, host.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// Ask (A07, J01): from outside and by actors, answered, refused, failed and late, as within a system.
func TestAsk(t *testing.T) {
	p := join(t)
	y := p.spawn(p.b, "y", func(ctx *host.Context, m host.Message) error {
		switch text(m) {
		case "fail":
			return errors.New("as asked")
		case "no":
			return ctx.ReplyError("no")
		case "silence":
			return nil
		}
		return echo(ctx, m)
	})
	if m := p.ask(p.a, y, "hi"); text(m) != "hi from y" || m.Sender.UID() != y.UID() || m.Sender.Path() != "/user/y" {
		t.Errorf("%+v", m)
	}
	var replied *host.ReplyError
	if m := p.ask(p.a, y, "no"); !errors.As(m.Err(), &replied) {
		t.Errorf("%v", m.Err())
	}
	var failed *host.TurnError
	if m := p.ask(p.a, y, "fail"); !errors.As(m.Err(), &failed) || failed.Failure.Kind != abi.FailureGuestError || failed.Ref.UID() != y.UID() ||
		failed.Ref != y || !strings.HasPrefix(m.Err().Error(), "host: /user/y has failed: ") {
		t.Errorf("%v", m.Err())
	}
	gone := p.spawn(p.b, "gone", quiet)
	p.b.Stop(gone)
	p.run(far)
	if m := p.ask(p.a, gone, "hi"); !errors.Is(m.Err(), host.ErrUnknown) {
		t.Errorf("of nobody: %v", m.Err())
	}
	var got []string
	x := p.spawn(p.a, "x", func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			got = append(got, m.Kind.String()+" "+text(m))
			return nil
		}
		return errors.Join(ctx.Ask(y, "hi", 1, far), ctx.Ask(y, "silence", 2, far/2), ctx.Ask(gone, "hi", 3, far))
	})
	if err := p.a.Tell(x, "go"); err != nil {
		t.Fatal(err)
	}
	p.run(far)
	p.equal("an actor's", got, []string{"reply hi from y", "reply_error host: no such actor", "ask_timeout "})
}

// Forward (A11): whoever the question is forwarded to may answer, wherever it is; the asker hears of a failure there.
func TestForward(t *testing.T) {
	p := join(t)
	for name, s := range map[string]*host.System{"back": p.a, "on": p.b} {
		z := p.spawn(s, "z"+name, echo)
		y := p.spawn(p.b, "y"+name, func(ctx *host.Context, m host.Message) error { return ctx.Forward(z) })
		if m := p.ask(p.a, y, "hi"); text(m) != "hi from z"+name || m.Sender.UID() != z.UID() {
			t.Errorf("%s: %+v, %v", name, m, m.Err())
		}
		dies := p.spawn(s, "d"+name, func(*host.Context, host.Message) error { return errors.New("no") })
		y = p.spawn(p.b, "w"+name, func(ctx *host.Context, m host.Message) error { return ctx.Forward(dies) })
		var failed *host.TurnError
		if m := p.ask(p.a, y, "hi"); !errors.As(m.Err(), &failed) || failed.Ref != dies {
			t.Errorf("%s: %v", name, m.Err())
		}
	}
}

// The paths of actors that fail and end are told by their node, also to who knows only their refs: an actor in Go finds them
// in what it is told of the end, and in the text in the place of an answer.
func TestPathsOfWhatFailsElsewhere(t *testing.T) {
	p := join(t)
	y := p.spawn(p.b, "y", func(_ *host.Context, m host.Message) error { return errors.New("as asked") })
	var got []string
	x := p.spawn(p.a, "x", func(ctx *host.Context, m host.Message) error {
		switch m.Kind {
		case abi.KindMessage:
			ref := mustRef(t, ctx.System(), y.UID())
			return errors.Join(ctx.Watch(ref), ctx.Ask(ref, "fail", 1, far))
		case abi.KindTerminated:
			got = append(got, m.Sender.URI())
		default:
			got = append(got, text(m))
		}
		return nil
	})
	_ = p.a.Tell(x, "go")
	p.run(far)
	p.b.Stop(y)
	p.run(far)
	p.equal("got", got, []string{"host: /user/y has failed: guest_error: as asked", "wasm://b@2/user/y"})
}

// Watch (B10 to B13): of an end, after everything that was sent before; of one that has ended; not any more. From outside, too.
func TestWatch(t *testing.T) {
	p := join(t)
	var got []string
	x := p.spawn(p.a, "x", func(ctx *host.Context, m host.Message) error {
		var uid uint64
		switch {
		case m.Kind == abi.KindTerminated:
			got = append(got, "end: "+text(m))
		case m.Decode(&uid) == nil:
			ref, err := ctx.System().RefOf(abi.Ref(uid), host.Ref{})
			return errors.Join(err, ctx.Watch(ref))
		default:
			got = append(got, text(m))
		}
		return nil
	})
	y := p.spawn(p.b, "y", func(ctx *host.Context, m host.Message) error {
		if err := ctx.Tell(x, "last words"); err != nil {
			return err
		}
		ctx.Stop(ctx.Self())
		return nil
	})
	in := p.a.Inbox(0)
	defer in.Close()
	in.Watch(y)
	ended, err := p.a.Ended(y)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.a.Tell(x, uint64(y.UID()))
	p.run(far)
	_ = p.b.Tell(y, "go")
	p.run(far)
	p.equal("got", got, []string{"last words", "end: stopped"})
	if m, ok := in.TryReceive(); !ok || m.Kind != abi.KindTerminated || m.Sender != y {
		t.Errorf("%+v", m)
	}
	select {
	case <-ended:
	default:
		t.Error("its end is not known")
	}
	_ = p.a.Tell(x, uint64(y.UID())) // again: it has gone
	p.run(far)
	p.equal("got", got, []string{"last words", "end: stopped", "end: unknown"})
	z := p.spawn(p.b, "z", quiet)
	in.Watch(z)
	p.run(far)
	in.Unwatch(z)
	p.run(far)
	before := p.Frames()
	p.b.Stop(z)
	p.run(far)
	if m, ok := in.TryReceive(); ok || p.Frames() != before {
		t.Errorf("%+v, %d frames", m, p.Frames()-before)
	}
}

// Stop (B01 to B06): at once, with what runs, after what waits, for good; a kill is the supervisor's to decide about.
func TestStop(t *testing.T) {
	for name, stop := range map[string]func(s *host.System, ref host.Ref) error{
		"stop":     func(s *host.System, ref host.Ref) error { s.Stop(ref); return nil },
		"stop now": func(s *host.System, ref host.Ref) error { s.StopNow(ref); return nil },
		"pill":     (*host.System).PoisonPill,
		"by an actor": func(s *host.System, ref host.Ref) error {
			x, err := s.Spawn("x", host.Func(func(ctx *host.Context, m host.Message) error { ctx.Stop(ref); return nil }))
			return errors.Join(err, s.Tell(x, "go"))
		},
	} {
		p := join(t)
		y := p.spawn(p.b, "y", quiet)
		if err := stop(p.a, y); err != nil {
			t.Fatal(err)
		}
		p.run(0)
		if _, err := p.b.Lookup("/user/y"); err != nil {
			t.Errorf("%s: gone before it can know: %v", name, err)
		}
		p.run(far)
		if _, err := p.b.Lookup("/user/y"); !errors.Is(err, host.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := join(t)
	y, err := p.b.Spawn("y", host.Func(quiet).WithLifetime(supervision.Permanent))
	if err != nil {
		t.Fatal(err)
	}
	p.run(0)
	if err := p.a.Operate().Kill(y); err != nil {
		t.Fatal(err)
	}
	p.run(far)
	if info, err := p.b.View().Info(y); err != nil || info.Incarnation != 1 {
		t.Errorf("killed: %+v, %v", info.Incarnation, err)
	}
	over := make(chan error, 1)
	go func() { over <- p.a.StopGracefully(context.Background(), y) }()
	for len(over) == 0 {
		p.run(far)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if _, err := p.b.Lookup("/user/y"); !errors.Is(err, host.ErrUnknown) {
		t.Errorf("for good: %v", err)
	}
}

// Identify (B24): by the text of a ref, in its turn; of one that has gone in the negative.
func TestIdentify(t *testing.T) {
	p := join(t)
	y := p.spawn(p.b, "y", quiet)
	in := p.a.Inbox(0)
	defer in.Close()
	var got []string
	x := p.spawn(p.a, "x", func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			got = append(got, m.Kind.String()+" "+m.Sender.Path())
			return nil
		}
		return ctx.At(y.String()).Identify(1, far)
	})
	for _, want := range []abi.Kind{abi.KindReply, abi.KindReplyError} {
		if n := in.Identify(y.String(), 5); n != 1 {
			t.Errorf("%d asked", n)
		}
		_ = p.a.Tell(x, "go")
		p.run(far)
		if m, ok := in.TryReceive(); !ok || m.Kind != want || m.Correlation != 5 || m.Sender.UID() != y.UID() {
			t.Errorf("%+v, want %v", m, want)
		}
		p.b.Stop(y)
		p.run(far)
	}
	if len(got) != 2 || got[0] != "reply /user/y" {
		t.Errorf("%q", got)
	}
}

// Handles of asks hear that the asker does not wait any more, on whichever node it is.
func TestHandlesHearThatNobodyWaits(t *testing.T) {
	p := join(t)
	var r *host.Reply
	y := p.spawn(p.b, "y", func(ctx *host.Context, m host.Message) (err error) { r, err = ctx.Later(); return err })
	pending, err := p.a.Request(y, "hi")
	if err != nil {
		t.Fatal(err)
	}
	p.run(far)
	select {
	case <-r.Gone():
		t.Error("gone too early")
	default:
	}
	pending.Cancel()
	p.run(far)
	select {
	case <-r.Gone():
	default:
		t.Error("it still works for nobody")
	}
}

// The network is asked only when nobody of the node has a ref.
func TestLocalMessagesDoNotTravel(t *testing.T) {
	p := join(t)
	y := p.spawn(p.a, "y", echo)
	if m := p.ask(p.a, y, "hi"); text(m) != "hi from y" {
		t.Error(text(m))
	}
	in := p.a.Inbox(0)
	in.Watch(y)
	p.a.Stop(y)
	p.run(far)
	in.Close()
	if n := p.Frames(); n != 0 {
		t.Errorf("%d frames", n)
	}
}

// Frames that are none, or that are for another node, have no effect.
func TestFramesAreChecked(t *testing.T) {
	p := join(t)
	y := p.spawn(p.b, "y", quiet)
	for name, x := range map[string]struct {
		to    abi.Ref
		frame []byte
	}{"malformed": {y.UID(), []byte{9}}, "another node's": {abi.Ref(1)<<54 | 5, []byte{2, 8, 0, 0, 0, 0, 0}}} {
		if err := p.nodes[1].port.Arrive(x.to, x.frame); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
