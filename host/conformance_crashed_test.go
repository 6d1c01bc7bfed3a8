package host

import (
	"errors"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/supervision"
)

// What becomes of the message whose turn has failed.

// frail fails at some messages, a number of times each.
type frail struct {
	got  *[]string
	left map[string]int
}

func (a *frail) Receive(ctx *Context, m Message) error {
	var text string
	if err := m.Decode(&text); err != nil {
		return err
	}
	if a.left[text] > 0 {
		a.left[text]--
		return errors.New(text)
	}
	if text == "stash" {
		return ctx.Stash()
	}
	*a.got = append(*a.got, text)
	return nil
}

func newFrail(got *[]string, left map[string]int) Props {
	return Native(func() Actor { return &frail{got, left} })
}

func TestCrashedMessage(t *testing.T) {
	for _, c := range []struct {
		name    string
		policy  CrashedMessage
		left    map[string]int
		got     []string
		letters []DeadReason
		crashes uint64
	}{
		{"drop", DropCrashed(), map[string]int{"b": 1}, []string{"a", "c"}, nil, 1},
		{"dead letter", DeadLetterCrashed(), map[string]int{"b": 1}, []string{"a", "c"}, []DeadReason{DeadCrashed}, 1},
		{"again, and it goes", RedeliverCrashed(3), map[string]int{"b": 2}, []string{"a", "b", "c"}, nil, 2},
		{"again, the last time goes", RedeliverCrashed(3), map[string]int{"b": 3}, []string{"a", "b", "c"}, nil, 3},
		{"again in vain", RedeliverCrashed(3), map[string]int{"b": 9}, []string{"a", "c"}, []DeadReason{DeadCrashed}, 4},
		{"each has its own count", RedeliverCrashed(1), map[string]int{"a": 1, "b": 1, "c": 2}, []string{"a", "b"}, []DeadReason{DeadCrashed}, 4},
		{"once at least", RedeliverCrashed(-1), map[string]int{"b": 1}, []string{"a", "b", "c"}, nil, 1},
	} {
		for _, directive := range []supervision.Directive{supervision.Restart, supervision.Resume} {
			left := map[string]int{}
			for k, v := range c.left {
				left[k] = v
			}
			var got []string
			l := newLab(t, otherwise(directive))
			ref := l.spawn("a", newFrail(&got, left).WithCrashedMessage(c.policy))
			l.tell(ref, "a", "b", "c")
			if !slices.Equal(got, c.got) || !slices.Equal(l.letters(), c.letters) || l.View().Stats().Crashes != c.crashes {
				t.Errorf("%s, %v: %v, dead letters %v, %d crashes", c.name, directive, got, l.letters(), l.View().Stats().Crashes)
			}
		}
	}
}

// The report says how often the message had been delivered before.
func TestRedeliveriesAreReported(t *testing.T) {
	var got []string
	l := newLab(t, supervision.Default())
	l.tell(l.spawn("a", newFrail(&got, map[string]int{"x": 9}).WithCrashedMessage(RedeliverCrashed(2))), "x")
	var n []int
	for _, e := range l.seen(EventFailed) {
		n = append(n, e.Mail.Redelivered)
	}
	if !slices.Equal(n, []int{0, 1, 2}) {
		t.Errorf("%v", n)
	}
}

// What was stashed before the message that crashed stays before it, and its failures
// are not counted against others.
func TestRedeliveryKeepsTheOrder(t *testing.T) {
	var got []string
	l := newLab(t, supervision.Default())
	stashed := 1
	p := Native(func() Actor { return &stasher{frail{&got, map[string]int{}}, &stashed} }).WithCrashedMessage(RedeliverCrashed(1))
	ref := l.spawn("a", p)
	l.tell(ref, "early", "boom", "late")
	if !slices.Equal(got, []string{"early", "boom", "late"}) {
		t.Errorf("%v, %v", got, l.letters())
	}
}

// stasher puts the first message aside and fails at the second, in its first life; and
// fails at "early" once in its second.
type stasher struct {
	frail
	stashed *int
}

func (a *stasher) Receive(ctx *Context, m Message) error {
	var text string
	if err := m.Decode(&text); err != nil {
		return err
	}
	switch {
	case text == "early" && ctx.Head().Incarnation() == 0:
		return ctx.Stash()
	case text == "boom" && ctx.Head().Incarnation() == 0, text == "early" && ctx.Head().Incarnation() == 1:
		return errors.New(text)
	}
	return a.frail.Receive(ctx, m)
}

// A batch of a guest: what went before the crash stays done, the message is delivered
// again, what follows it comes after it.
func TestRedeliveryToGuests(t *testing.T) { awakeOrNot(t, rowRedeliveryToGuests) }

func rowRedeliveryToGuests(t *testing.T) {
	for times, want := range map[int]int{0: 15, 2: 15} {
		policy := DeadLetterCrashed()
		if times > 0 {
			policy = RedeliverCrashed(times)
		}
		l := newLab(t, otherwise(supervision.Resume))
		ref := l.spawn("a", familyGuest(t, "worker").WithCrashedMessage(policy))
		for _, v := range []any{1, 2, "panic now", 4, 8} {
			l.Tell(ref, v)
		}
		l.run()
		if got := l.get(ref); got != want || l.View().Stats().Crashes != uint64(times+1) || !slices.Equal(l.letters(), []DeadReason{DeadCrashed}) {
			t.Errorf("%d times: it holds %d after %d crashes, %v", times, got, l.View().Stats().Crashes, l.letters())
		}
	}
}
