package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// A fault fails one turn: those before it in the same call of a guest count, those behind
// it run again.
func TestFaultsOfGuests(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		var of Ref
		var seen []string
		at := 1
		l := newStage(t, func(c Config) Config {
			return c.WithFaults(func(u *Turn) *abi.Failure {
				if u.Actor != of || of.IsZero() || u.Kind != abi.KindMessage {
					return nil
				}
				seen = append(seen, fmt.Sprint(u.Incarnation, " ", u.Number))
				if at--; at == 0 {
					return &abi.Failure{Kind: abi.FailureTrap, Reason: "unreachable"}
				}
				return nil
			})
		})
		g := l.spawn("g", puppet(t))
		of, at = g, 2
		taken, failed := 0, 0
		stop := must(l.View().Tap(g, 0, func(m *Tapped) {
			switch {
			case m.Failure != nil:
				failed++
			case !m.Out && m.Kind == abi.KindMessage:
				taken++
			}
		}, nil))(t)
		defer stop()
		for _, text := range []string{"a", "b", "c"} {
			l.post(g, script(now(toProbe(text))))
		}
		l.run()
		l.wants("message a", "message c")
		if taken != 2 || failed != 1 { // those behind the fault are not told of
			t.Errorf("%d turns were told of, and %d failures", taken, failed)
		}
		if want := []string{"0 1", "0 2", "1 5"}; !slices.Equal(seen, want) {
			t.Errorf("%q, want %q", seen, want)
		}
		if e := l.raw(EventFailed); len(e) != 1 || e[0].Failure.Kind != abi.FailureTrap || e[0].Failure.Turn != 2 || e[0].Mail == nil {
			t.Errorf("%+v", e)
		}
	})
}

func TestFaultsOfNatives(t *testing.T) {
	l := newStage(t, func(c Config) Config {
		return c.WithFaults(func(u *Turn) *abi.Failure {
			if string(u.Payload) == "\x02" {
				return &abi.Failure{Kind: abi.FailureNativePanic, Reason: "a fault"}
			}
			return nil
		})
	})
	a := l.spawn("a", Func(func(ctx *Context, m Message) error {
		return tellProbe(ctx, fmt.Sprint("x", m.Payload[0]))
	}))
	for i := range 3 {
		l.say(a, i+1)
	}
	l.wants("message x1", "message x3")
	if e := l.raw(EventFailed); len(e) != 1 || e[0].Failure.Reason != "a fault" || e[0].Failure.Turn != 2 {
		t.Errorf("%+v", e)
	}
}

// Whoever makes the mailboxes gets what the props say, and the ref that messages go to.
func TestMailboxesOfASystem(t *testing.T) {
	made := map[string]bool{}
	s, _ := manual(t, func(c Config) Config {
		return c.WithMailboxes(func(ref Ref, next func(MailboxLimits) Mailbox) func(MailboxLimits) Mailbox {
			made[ref.Path()] = next != nil
			return next
		})
	})
	idle := Func(func(*Context, Message) error { return nil })
	must(s.Spawn("usual", idle))(t)
	must(s.Spawn("own", idle.WithMailbox(func(MailboxLimits) Mailbox { return &holding{} })))(t)
	if want := map[string]bool{"/user": false, "/system": false, "/user/usual": false, "/user/own": true}; fmt.Sprint(made) != fmt.Sprint(want) {
		t.Errorf("%v", made)
	}
}

// With nested turns what a turn sends is handled before anything else, depth first.
func TestNested(t *testing.T) {
	var order []string
	s, _ := manual(t, func(c Config) Config { return c.WithNested() })
	var a, b, c, d Ref
	actor := func(name string, then func(ctx *Context, text string)) Ref {
		return must(s.Spawn(name, Func(func(ctx *Context, m Message) error {
			var text string
			if err := m.Decode(&text); err != nil {
				return err
			}
			order = append(order, name+text)
			then(ctx, text)
			return nil
		})))(t)
	}
	d = actor("d", func(*Context, string) {})
	c = actor("c", func(*Context, string) {})
	b = actor("b", func(ctx *Context, text string) { _ = ctx.Tell(d, text) })
	a = actor("a", func(ctx *Context, text string) {
		if text == "1" {
			_ = ctx.Tell(ctx.Self(), "self")
			_ = ctx.Tell(b, text)
			_ = ctx.Tell(c, text)
		}
	})
	s.RunUntilIdle(1000)
	_ = s.Tell(a, "1")
	_ = s.Tell(a, "2")
	s.RunUntilIdle(1000)
	if got := fmt.Sprint(order); got != "[a1 b1 d1 c1 a2 aself]" {
		t.Error(got)
	}
}
