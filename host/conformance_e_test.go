package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// KindsOfMailboxes are the mailboxes of host/mailbox by name, see conformance_kinds_test.go.
var KindsOfMailboxes = map[string]func(MailboxLimits) Mailbox{}

// boxed is props with a mailbox for so many messages.
func boxed(t testing.TB, p Props, kind string, most int) Props {
	t.Helper()
	if KindsOfMailboxes[kind] == nil {
		t.Fatalf("there is no mailbox %q", kind)
	}
	return p.WithMailbox(KindsOfMailboxes[kind]).WithLimits(Limits{Mailbox: most})
}

// teller is an actor that tells the probe what it is told: either sort, what it is sent for v, and its props.
type teller struct {
	name  string
	props func(*testing.T) Props
	say   func(v string) any
	crash any
	keep  func(v string) any // stashed the first time
	open  any
}

func tellers() []teller {
	return []teller{
		{"native", func(*testing.T) Props {
			return Native(func() Actor { return &telling{} })
		}, func(v string) any { return v }, "crash", func(v string) any { return "keep " + v }, "open"},
		{"guest", func(t *testing.T) Props { return puppet(t) }, func(v string) any { return script(now(toProbe(v))) }, script(trap()),
			func(v string) any { return script(now(abi.AppendStash(nil), toProbe(v))) }, script(now(abi.AppendUnstash(nil)))},
	}
}

type telling struct{ opened bool }

func (a *telling) Receive(ctx *Context, m Message) error {
	var v string
	_ = m.Decode(&v)
	kept, keep := strings.CutPrefix(v, "keep ")
	switch {
	case v == "crash":
		return errors.New("crashed")
	case v == "open":
		a.opened = true
		ctx.Unstash()
		return nil
	case keep && !a.opened:
		return ctx.Stash()
	case keep:
		v = kept
	}
	return tellProbe(ctx, v)
}

// forTellers runs a row for both sorts, guests in every manner.
func forTellers(t *testing.T, f func(l *stage, s teller)) {
	everyManner(t, func(t *testing.T) {
		for _, s := range tellers() {
			if s.name == "native" && manner != oneByOne {
				continue
			}
			t.Run(s.name, func(t *testing.T) { f(newStage(t, nil), s) })
		}
	})
}

func headed(v any, key, value string) Headed {
	return Headed{Value: v, Headers: map[string]string{key: value}}
}

func told(words string) (out []string) {
	for _, w := range strings.Fields(words) {
		out = append(out, "message "+w)
	}
	return out
}

// E07, E10: an actor has the mailbox that its props say, else the usual one, from its beginning to its end.
func TestE10_TheMailboxIsChosenOnce(t *testing.T) {
	l := newStage(t, nil)
	p := Native(func() Actor { return &telling{} })
	usual, a := l.spawn("usual", p), l.spawn("a", boxed(t, p, "priority", 9))
	if l.table.Get(usual.UID()).box.Other != nil {
		t.Error("the usual mailbox is another")
	}
	before := l.table.Get(a.UID()).box.Other
	l.say(a, "crash")
	if after := l.table.Get(a.UID()).box.Other; before == nil || after != before {
		t.Errorf("%v, and after a restart %v", before, after)
	}
}

// E13: what does not fit goes at once, the newest or the oldest, and is a dead letter; an ask ends.
func TestE13_WhatDoesNotFitIsDropped(t *testing.T) {
	forTellers(t, func(l *stage, s teller) {
		for kind, kept := range map[string]string{"drop-newest": "a b", "drop-oldest": "c d"} {
			a := l.spawn(kind, boxed(l.t, s.props(l.t), kind, 2))
			before, _ := l.DeadLetters()
			for _, v := range []string{"a", "b", "c", "d"} {
				l.post(a, s.say(v)) // no error
			}
			if n := l.table.Get(a.UID()).box.Len(); n != 2 {
				l.t.Errorf("%d wait", n)
			}
			l.run()
			l.wants(told(kept)...)
			all, _ := l.DeadLetters()
			if len(all) != len(before)+2 || all[len(before)].Reason != DeadDropped {
				l.t.Errorf("%v", all)
			}
		}
	})
	l := newStage(t, nil)
	a := l.spawn("a", boxed(t, Func(func(ctx *Context, m Message) error { return ctx.Reply("done") }), "drop-oldest", 1))
	first := must(l.Request(a, 1))(t)
	second := must(l.Request(a, 2))(t)
	l.run()
	if m := <-first.Answer(); !errors.Is(m.Err(), ErrDropped) {
		t.Errorf("%v", m.Err())
	}
	if m := <-second.Answer(); m.Err() != nil {
		t.Errorf("%v", m.Err())
	}
}

// E14: a sender from Go waits for room, and not for ever; an actor does not wait.
func TestE14_SendersFromGoWait(t *testing.T) {
	clock := NewVirtualClock(time.Unix(1_700_000_000, 0))
	s := must(New(NewConfig("test").WithClock(clock).WithWorkers(2)))(t)
	defer s.Close(context.Background())
	enter, leave := make(chan any), make(chan bool)
	a := must(s.Spawn("a", boxed(t, Func(func(ctx *Context, m Message) error {
		var v any
		_ = m.Decode(&v)
		ctx.Block()
		enter <- v
		<-leave
		if m.Correlation != 0 {
			return ctx.Reply(v)
		}
		return nil
	}), "block a second", 1)))(t)
	tell := func(v any) {
		if err := s.Offer(t.Context(), a, v); err != nil {
			t.Error(err)
		}
	}
	tell("first")
	<-enter
	tell("second") // it waits in the mailbox, and all others for it
	if err := s.Tell(a, "told"); !errors.Is(err, ErrMailboxFull) {
		t.Errorf("a plain Tell: %v", err)
	}
	b := must(s.Spawn("b", Func(func(ctx *Context, m Message) error {
		_ = ctx.Tell(a, "by an actor")
		return ctx.Reply("goes on")
	})))(t)
	if m, err := s.Ask(t.Context(), b, nil); err != nil {
		t.Errorf("%v %v", m, err)
	}
	box := s.table.Get(a.UID()).box.Other.(interface{ Waiting() int })
	waits := func(n int) {
		for box.Waiting() != n {
			time.Sleep(10 * time.Microsecond)
		}
	}
	done := make(chan error, 2)
	go func() { done <- s.Offer(t.Context(), a, "too late") }()
	waits(1)
	clock.Advance(time.Second)
	if err := <-done; !errors.Is(err, ErrMailboxFull) || errs.KeyOf(err, "") != "limits.mailbox" {
		t.Errorf("%v", err)
	}
	go func() { _, err := s.Ask(t.Context(), a, "asked"); done <- err }()
	waits(1)
	go func() { done <- s.Offer(t.Context(), a, "offered") }()
	waits(2)
	for _, want := range []any{"second", "asked", "offered"} {
		leave <- true
		if v := <-enter; v != want {
			t.Errorf("%v, want %v", v, want)
		}
	}
	leave <- true
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	tell("x")
	<-enter
	tell("y")
	go func() { done <- s.Offer(ctx, a, "given up") }()
	waits(1)
	cancel()
	if err := <-done; !errors.Is(err, ErrMailboxFull) {
		t.Error(err)
	}
	go func() { done <- s.Offer(t.Context(), a, "its actor ends") }()
	waits(1)
	s.Stop(a)
	leave <- true
	if err := <-done; !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	if err := s.Offer(t.Context(), a, "gone"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	letters, _ := s.DeadLetters()
	for end := time.Now().Add(10 * time.Second); len(letters) < 7 && time.Now().Before(end); letters, _ = s.DeadLetters() {
		time.Sleep(time.Millisecond) // what waits in the mailbox ends after those that wait for it
	}
	var got []string
	for _, d := range letters {
		got = append(got, d.Reason.Name())
	}
	if want := []string{"mailbox_full", "mailbox_full", "mailbox_full", "mailbox_full", "stopped", "stopped", "unknown"}; !slices.Equal(sorted(got), want) {
		t.Errorf("%q", got)
	}
}

func sorted(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }

// E15, E16: the most urgent first, by header or by type; of equally urgent ones the first; what is
// the host's comes last.
func TestE16_StablePriority(t *testing.T) {
	forTellers(t, func(l *stage, s teller) {
		a := l.spawn("a", boxed(l.t, s.props(l.t), "priority", 100))
		for i, level := range []string{"3", "0", "2", "0", "x", "1", "77"} {
			l.post(a, headed(s.say(fmt.Sprint(i)), "priority", level))
		}
		l.post(a, s.say("none"))
		if err := l.PoisonPill(a); err != nil {
			l.t.Error(err)
		}
		l.post(a, headed(s.say("urgent"), "priority", "0"))
		l.run()
		l.wants(told("1 3 urgent 5 2 0 4 6 none")...)
		if l.alive(a) {
			l.t.Error("the poison pill is lost")
		}
	})
	l := newStage(t, nil)
	a := l.spawn("a", boxed(t, Native(func() Actor { return &telling{} }), "priority by type", 100))
	for _, v := range []any{"low", "low", "high", "pigdog", "pigdog2", "pigdog3", "high"} {
		l.post(a, v)
	}
	l.run()
	l.wants(told("high high pigdog pigdog2 pigdog3 low low")...)
}

// E17: priority and bounds together: the least urgent give way.
func TestE17_BoundedPriority(t *testing.T) {
	forTellers(t, func(l *stage, s teller) {
		a := l.spawn("a", boxed(l.t, s.props(l.t), "priority/drop-oldest", 2))
		for i, level := range []string{"3", "3", "0", "1", "2", "0"} {
			l.post(a, headed(s.say(fmt.Sprint(i)), "priority", level))
		}
		l.run()
		l.wants(told("2 5")...)
		b := l.spawn("b", boxed(l.t, s.props(l.t), "priority", 2))
		for i := range 3 {
			err := l.TellFrom(l.probe, b, headed(s.say("x"), "priority", "0"))
			if full := i == 2; full != errors.Is(err, ErrMailboxFull) {
				l.t.Error(err)
			}
		}
	})
}

// E18: control messages before others, each in order.
func TestE18_ControlFirst(t *testing.T) {
	forTellers(t, func(l *stage, s teller) {
		a := l.spawn("a", boxed(l.t, s.props(l.t), "control-aware", 100))
		l.post(a, s.say("1"))
		l.post(a, headed(s.say("c1"), "control", ""))
		l.post(a, s.say("2"))
		l.post(a, headed(s.say("c2"), "control", "yes"))
		l.run()
		l.wants(told("c1 c2 1 2")...)
	})
}

// E19: a stash goes with every kind, and does not lose the bound: what was unstashed is there
// besides, and nothing else gets in until there is room.
func TestE19_StashWithEveryKind(t *testing.T) {
	forTellers(t, func(l *stage, s teller) {
		for kind := range KindsOfMailboxes {
			l.got = nil
			a := l.spawn("a", boxed(l.t, s.props(l.t), kind, 3))
			box := &l.table.Get(a.UID()).box
			for i := range 3 {
				l.say(a, s.keep(fmt.Sprint("kept", i)))
			}
			if s.name == "guest" {
				l.wants(told("kept0 kept1 kept2")...) // as it is kept
			}
			l.say(a, s.open)
			if s.name == "guest" {
				// The puppet keeps them again, and tells again.
				if len(l.got) != 3 {
					l.t.Errorf("%s: %q", kind, l.got)
				}
			} else {
				l.wants(told("kept0 kept1 kept2")...)
			}
			if box.Len() != 0 {
				l.t.Errorf("%s: %d wait", kind, box.Len())
			}
			l.Stop(a)
			l.run()
		}
	})
	// The bound after an unstash.
	for kind, make := range KindsOfMailboxes {
		b := make(MailboxLimits{Messages: 3, Bytes: 1000})
		var stash []*Envelope
		for i := range 3 {
			if err := b.Push(&Envelope{Payload: []byte{byte(i)}}); err != nil {
				t.Fatal(err)
			}
			stash = append(stash, b.Pop())
		}
		for range 3 {
			_ = b.Push(&Envelope{})
		}
		b.PushFront(stash...)
		for range 5 {
			_ = b.Push(&Envelope{})
			if b.Len() != 6 {
				t.Errorf("%s: %d wait", kind, b.Len())
			}
		}
	}
}

// Whatever the kind, each message ends once, over crashes, restarts, redelivery and the stop.
func TestE21_EachMessageEndsOnce(t *testing.T) {
	forTellers(t, func(l *stage, s teller) {
		for kind := range KindsOfMailboxes {
			for _, crashed := range []CrashedMessage{DeadLetterCrashed(), RedeliverCrashed(1)} {
				l.got = nil
				a := l.spawn("a", boxed(l.t, s.props(l.t), kind, 5).WithCrashedMessage(crashed))
				_, before := l.DeadLetters()
				sent := 0
				send := func(v any) {
					sent++
					_ = l.TellFrom(l.probe, a, headed(v, "idempotency-key", fmt.Sprint(sent%4)))
				}
				for i := range 30 {
					switch {
					case i%7 == 6:
						send(s.crash)
					case i%11 == 10:
						l.run()
						fallthrough
					default:
						send(s.say(fmt.Sprint(i)))
					}
				}
				l.RunUntilIdle(1)
				l.Stop(a)
				l.run()
				_, after := l.DeadLetters()
				letters := int(after - before)
				if len(l.got)+letters != sent {
					l.t.Errorf("%s: of %d messages %d were handled, %d are dead letters", kind, sent, len(l.got), letters)
				}
			}
		}
	})
}

// A key that was handled is known; one whose turn has failed is not, so that the sender may try again.
func TestE21_DuplicatesAreDropped(t *testing.T) {
	forTellers(t, func(l *stage, s teller) {
		a := l.spawn("a", boxed(l.t, s.props(l.t), "deduplicating", 100))
		key := func(v any, k string) any { return headed(v, "idempotency-key", k) }
		l.post(a, key(s.say("1"), "k"))
		l.post(a, key(s.say("again"), "k"))
		l.post(a, s.say("no key"))
		l.run()
		l.say(a, key(s.say("later"), "k"))
		l.wants("message 1", "message no key")
		l.say(a, key(s.crash, "k2"))
		l.say(a, key(s.say("retry"), "k2"))
		l.say(a, key(s.say("again"), "k2"))
		l.wants("message retry")
		all, _ := l.DeadLetters()
		n := 0
		for _, d := range all {
			if d.Reason == DeadDuplicate {
				n++
			}
		}
		if n != 3 {
			l.t.Errorf("%d duplicates", n)
		}
		p := must(l.Request(a, key(s.say("asked"), "k3")))(l.t)
		q := must(l.Request(a, key(s.say("asked again"), "k3")))(l.t)
		l.run()
		l.wants("message asked")
		if m := <-q.Answer(); !errors.Is(m.Err(), ErrDuplicate) {
			l.t.Error(m.Err())
		}
		p.Cancel()
	})
}

// E22: a suspended actor's messages wait, in every kind of mailbox, and within its bounds.
func TestE22_SuspendedActorsKeepTheirMail(t *testing.T) {
	for kind := range KindsOfMailboxes {
		l := newStage(t, func(c Config) Config {
			return c.WithGuardian(supervision.Default().WithBackoff(supervision.Backoff{Policy: backoff.WithJitter(backoff.Constant(time.Second), backoff.NoJitter()), Stash: 4}))
		})
		a := l.spawn("a", boxed(t, Native(func() Actor { return &telling{} }), kind, 3))
		l.say(a, "crash")
		for i := range 5 {
			_ = l.TellFrom(l.probe, a, fmt.Sprint(i))
		}
		l.run()
		if n := l.table.Get(a.UID()).box.Len(); n != 3 {
			t.Errorf("%s: %d wait", kind, n)
		}
		i, err := l.View().Info(a)
		if err != nil || i.Mailbox != 3 || i.MailboxBytes != 6 || i.State != StateDelayed {
			t.Errorf("%s: %+v, %v", kind, i, err)
		}
		l.pass(time.Second)
		want := "0 1 2"
		if strings.Contains(kind, "drop-oldest") {
			want = "2 3 4"
		}
		l.wants(told(want)...)
	}
}

// In a delay only so many wait, and with priorities the least urgent are evicted.
func TestE22_ABoundedDelayEvictsTheLeastUrgent(t *testing.T) {
	l := newStage(t, func(c Config) Config {
		return c.WithGuardian(supervision.Default().WithBackoff(supervision.Backoff{Policy: backoff.WithJitter(backoff.Constant(time.Second), backoff.NoJitter()), Stash: 2}))
	})
	a := l.spawn("a", boxed(t, Native(func() Actor { return &telling{} }), "priority", 10))
	l.say(a, "crash")
	for i, level := range []string{"0", "2", "3", "0", "1"} {
		l.post(a, headed(fmt.Sprint(i), "priority", level))
	}
	l.run()
	l.pass(time.Second)
	l.wants(told("0 3")...)
	var reasons []string
	all, _ := l.DeadLetters()
	for _, d := range all {
		reasons = append(reasons, d.Reason.Name())
	}
	if !slices.Equal(reasons, []string{"evicted", "evicted", "evicted"}) {
		t.Errorf("%q", reasons)
	}
}

// What waits is on the account in every kind, and refused where there is no room.
func TestEveryKindPaysForWhatWaits(t *testing.T) {
	for kind := range KindsOfMailboxes {
		l := newStage(t, nil)
		p := boxed(t, Native(func() Actor { return &telling{} }), kind, 1000).WithLimits(Limits{Held: 32 << 10})
		a := l.spawn("a", p)
		n := 0
		for ; n < 1000 && l.TellFrom(l.probe, a, strings.Repeat("x", 1000)) == nil; n++ {
		}
		if n < 10 || n > 30 {
			t.Errorf("%s: %d messages got in", kind, n)
		}
		held := must(l.View().Held(a))(t)
		if held.Mailbox < int64(n)*1000 || held.Mailbox > 32<<10 {
			t.Errorf("%s: %d bytes on the account for %d messages", kind, held.Mailbox, n)
		}
		l.run()
		l.Stop(a)
		l.run()
	}
}

// Headers from Go stand in the order of their keys.
func TestHeadersAreSorted(t *testing.T) {
	l := newStage(t, nil)
	var got []byte
	a := l.spawn("a", Func(func(_ *Context, m Message) error { got = slices.Clone(m.Headers); return nil }))
	l.say(a, Headed{Value: "v", Headers: map[string]string{"b": "2", "a": "1"}})
	if want := abi.AppendHeader(abi.AppendHeader(nil, "a", "1"), "b", "2"); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}
