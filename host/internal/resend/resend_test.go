package resend_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/resend"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// child takes what a resender sends, as long as it has room.
type child struct {
	t       *rapid.T
	ref     abi.Ref
	room    int
	got     []uint64 // by this incarnation
	of      map[uint64]*mailbox.Envelope
	dropped []*mailbox.Envelope
	reasons []event.DeadReason
	alone   bool // a timer runs
	waits   []int
	refuses error // a start
}

func (c *child) Begin() (abi.Ref, error) {
	if c.refuses != nil {
		return 0, c.refuses
	}
	c.ref++
	c.got = nil
	return c.ref, nil
}

func (c *child) Send(to abi.Ref, e *mailbox.Envelope, number uint64) event.DeadReason {
	if to != c.ref {
		c.t.Fatalf("a message for %d, the child is %d", to, c.ref)
	}
	if len(c.got) >= c.room {
		return event.DeadMailboxFull
	}
	if len(c.got) > 0 && c.got[len(c.got)-1] >= number {
		c.t.Fatalf("an incarnation gets %d after %v", number, c.got)
	}
	if was := c.of[number]; was != nil && was != e {
		c.t.Fatalf("two messages have number %d", number)
	}
	c.of[number] = e
	c.got = append(c.got, number)
	return 0
}

func (c *child) Drop(e *mailbox.Envelope, reason event.DeadReason) {
	c.dropped, c.reasons = append(c.dropped, e), append(c.reasons, reason)
}

func (c *child) Wait(crashes int) error { c.waits = append(c.waits, crashes); return nil }

func (c *child) Alone(d time.Duration) { c.alone = d > 0 }

// TestNothingIsLost: each message is confirmed, unconfirmed or a dead letter, never two of these. An incarnation gets none
// twice and none out of order, and after a crash one at a time until all that was unconfirmed is confirmed.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := resend.Rules{Keep: rapid.IntRange(1, 6).Draw(t, "keep"), Attempts: rapid.IntRange(1, 3).Draw(t, "attempts"), Patience: time.Second}
		k, c := resend.New(rules), &child{t: t, room: rapid.IntRange(1, 5).Draw(t, "room"), of: map[uint64]*mailbox.Envelope{}}
		if err := k.Begin(c); err != nil {
			t.Fatal(err)
		}
		var held, confirmed []*mailbox.Envelope
		up, patient := true, true // patient: since the last crash nothing was given up
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before := k.State()
			switch rapid.SampledFrom([]string{"hold", "hold", "confirm", "end", "fail", "time"}).Draw(t, "step") {
			case "hold":
				e := new(mailbox.Envelope)
				held = append(held, e)
				k.Hold(c, e)
			case "confirm":
				if len(c.got) == 0 || !up {
					continue
				}
				n := rapid.SampledFrom(c.got).Draw(t, "number")
				if e := c.of[n]; slices.Contains(before.Unconfirmed, e) {
					confirmed = append(confirmed, e)
				}
				c.room++
				k.Confirmed(c, n)
			case "fail":
				if len(c.got) > 0 && up {
					k.Failed(c, rapid.SampledFrom(c.got).Draw(t, "number"))
				}
			case "end":
				if !up {
					continue
				}
				if err := k.Ended(c); err != nil || c.alone || k.Child() != 0 {
					t.Fatalf("an end: %v, a timer %v, the child %d", err, c.alone, k.Child())
				}
				up, patient = false, true
			case "time":
				if !up {
					up, c.room = true, max(c.room, 1)
					if err := k.Begin(c); err != nil {
						t.Fatal(err)
					}
					if n := len(before.Unconfirmed); n > 0 && len(c.got) != 1 {
						t.Fatalf("after an end %v is sent, of %d", c.got, n)
					}
				} else if c.alone {
					c.alone, patient = false, false
					k.Impatient(c)
				}
			}
			s := k.State()
			if len(s.Unconfirmed) > rules.Keep {
				t.Fatalf("%d are kept, at most %d may be", len(s.Unconfirmed), rules.Keep)
			}
			if len(s.Unconfirmed)+len(confirmed)+len(c.dropped) != len(held) {
				t.Fatalf("%d unconfirmed, %d confirmed and %d dropped are not %d", len(s.Unconfirmed), len(confirmed), len(c.dropped), len(held))
			}
			if up && s.Crashes > 0 && patient && len(s.Unconfirmed)-s.Unsent > 1 {
				t.Fatalf("%d are under way after a crash", len(s.Unconfirmed)-s.Unsent)
			}
			if !slices.IsSortedFunc(s.Unconfirmed, func(x, y *mailbox.Envelope) int { return slices.Index(held, x) - slices.Index(held, y) }) {
				t.Fatal("they have changed their order")
			}
		}
		k.Stop(c)
		if n := len(confirmed) + len(c.dropped); n != len(held) || len(k.State().Unconfirmed) != 0 {
			t.Fatalf("at the end %d of %d are accounted for", n, len(held))
		}
	})
}

// TestEnds: a limit of crashes, what a failed start leaves, and why a message is dropped.
func TestEnds(t *testing.T) {
	k, c := resend.New(resend.Rules{Keep: 2, Attempts: 2, Crashes: 1, Patience: time.Second}), &child{room: 10, of: map[uint64]*mailbox.Envelope{}}
	if c.refuses = errors.New("no"); k.Begin(c) != c.refuses || k.Child() != 0 {
		t.Error("a start that failed has a child")
	}
	c.refuses = nil
	if err := k.Begin(c); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		k.Hold(c, new(mailbox.Envelope))
	}
	k.Failed(c, 2)
	k.Failed(c, 2)
	if want := []event.DeadReason{event.DeadEvicted, event.DeadCrashed}; !slices.Equal(c.reasons, want) {
		t.Errorf("dropped for %v, want %v", c.reasons, want)
	}
	if err := k.Ended(c); err != nil || !slices.Equal(c.waits, []int{0}) {
		t.Errorf("the first end: %v, waits %v", err, c.waits)
	}
	if err := k.Begin(c); err != nil {
		t.Fatal(err)
	}
	if err := k.Ended(c); err != resend.ErrTooManyCrashes {
		t.Errorf("the second end: %v", err)
	}
}
