package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/resend"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// The pattern of semantics 1.1: a supervisor that sends again what was possibly lost,
// and what was amended in it.

// porter carries texts; some of them break it, a number of times.
type porter struct {
	did    *[]string
	breaks map[string]int
}

func (p *porter) Receive(ctx *Context, m Message) error {
	var text string
	if err := m.Decode(&text); err != nil {
		return err
	}
	if p.breaks[text] > 0 {
		p.breaks[text]--
		return errors.New(text)
	}
	*p.did = append(*p.did, text)
	if strings.HasPrefix(text, "ask") {
		if err := ctx.Reply("done " + text); err != nil {
			return err
		}
	}
	if text == "lazy" {
		return nil
	}
	return ctx.Head().Confirm(m.ID())
}

// always waits as long every time.
func always(d time.Duration) backoff.Policy {
	return backoff.WithJitter(backoff.Constant(d), backoff.NoJitter())
}

func newPorter(t testing.TB, o Resend, breaks map[string]int) (l *lab, ref Ref, did *[]string, r *resender) {
	l = newLab(t, supervision.Default())
	did = &[]string{}
	ref = l.spawn("r", Resender(Native(func() Actor { return &porter{did: did, breaks: breaks} }), o))
	return l, ref, did, l.table.Get(ref.UID()).behaviour.(*native).now.(*resender)
}

func TestC_1_1_ResendsWhatWasLost(t *testing.T) {
	l, ref, did, r := newPorter(t, Resend{Policy: always(10 * ms)}, map[string]int{"c": 2})
	for _, text := range []string{"a", "b", "c", "d", "e"} {
		l.Tell(ref, text)
	}
	l.run()
	if !slices.Equal(*did, []string{"a", "b"}) || len(r.keeper.State().Unconfirmed) != 3 {
		t.Fatalf("%v, %d unconfirmed", *did, len(r.keeper.State().Unconfirmed))
	}
	l.tell(ref, "f") // waits its turn
	l.pass(10 * ms)  // c breaks the second child, too
	if !slices.Equal(*did, []string{"a", "b"}) {
		t.Fatalf("%v", *did)
	}
	l.pass(10 * ms)
	if !slices.Equal(*did, []string{"a", "b", "c", "d", "e", "f"}) || len(r.keeper.State().Unconfirmed) != 0 || r.keeper.State().Crashes != 0 || l.clock.Pending() != 0 {
		t.Errorf("%v, %d unconfirmed, %d crashes, %d timers", *did, len(r.keeper.State().Unconfirmed), r.keeper.State().Crashes, l.clock.Pending())
	}
	if n := len(l.letters()); n != 0 { // what the dead child had not read is not a dead letter: it comes again
		t.Errorf("%v", l.letters())
	}
	l.tell(ref, "g")
	if (*did)[6] != "g" {
		t.Errorf("%v", *did)
	}
}

// The sender stays the original one, so that an ask is answered, over a crash.
func TestC_1_1_OriginalSenders(t *testing.T) {
	l, ref, _, _ := newPorter(t, Resend{Policy: always(10 * ms)}, map[string]int{"ask": 3})
	p := must(l.Request(ref, "ask"))(t)
	l.run()
	for range 3 {
		select {
		case <-p.Answer():
			t.Fatal("too early")
		default:
		}
		l.pass(10 * ms)
	}
	var text string
	if m := <-p.Answer(); m.Decode(&text) != nil || text != "done ask" || m.Sender.Path() != "/user/r/child" {
		t.Errorf("%q from %v", text, m.Sender)
	}
}

// The wait is the slotted backoff by default, and one tick is pending at a time.
func TestC_1_1_OneTick(t *testing.T) {
	l, ref, did, r := newPorter(t, Resend{Attempts: 1000}, map[string]int{"x": 12})
	l.tell(ref, "x")
	waited := map[time.Duration]bool{}
	for i := range 12 {
		before, _ := l.clock.Next()
		l.tell(ref, fmt.Sprint("new ", i)) // schedules nothing
		if after, ok := l.clock.Next(); !ok || !after.Equal(before) || l.clock.Pending() != 1 {
			t.Fatalf("%d timers, at %v, was %v", l.clock.Pending(), after, before)
		}
		if r.keeper.State().Crashes != i+1 {
			t.Fatalf("%d crashes, want %d", r.keeper.State().Crashes, i+1)
		}
		limit := 10 * ms * (1<<min(i+1, 10) - 1)
		when, ok := l.clock.Next()
		if !ok || when.Sub(l.clock.Now()) > limit {
			t.Fatalf("crash %d: waits %v, at most %v", i+1, when.Sub(l.clock.Now()), limit)
		}
		waited[when.Sub(l.clock.Now())] = true
		if when.After(l.clock.Now()) {
			l.pass(when.Sub(l.clock.Now()) - 1) // nothing begins before
			if r.keeper.State().Crashes != i+1 || r.keeper.Child() != 0 {
				t.Fatalf("crash %d: it does not wait", i+1)
			}
		}
		l.clock.AdvanceToNext()
		l.run()
	}
	if len(waited) < 6 {
		t.Errorf("the waits are %v", waited)
	}
	if len(*did) != 13 || (*did)[0] != "x" || (*did)[12] != "new 11" {
		t.Errorf("%v", *did)
	}
}

// Drawback (a): what waits for a confirmation is bounded, and the oldest goes first.
func TestC_1_1_KeepIsBounded(t *testing.T) {
	l, ref, did, r := newPorter(t, Resend{Policy: always(10 * ms), Keep: 3}, map[string]int{"a": 1})
	for _, text := range []string{"a", "b", "c", "d", "e"} {
		l.Tell(ref, text)
	}
	l.run()
	if len(r.keeper.State().Unconfirmed) != 3 || !slices.Equal(l.letters(), []DeadReason{DeadEvicted, DeadEvicted}) {
		t.Errorf("%d unconfirmed, %v", len(r.keeper.State().Unconfirmed), l.letters())
	}
	l.pass(10 * ms)
	if !slices.Equal(*did, []string{"c", "d", "e"}) {
		t.Errorf("%v", *did)
	}
}

// Drawback (b) and 1: the number of crashes is limited, counted until all is confirmed.
func TestC_1_1_GivesUp(t *testing.T) {
	l, ref, did, _ := newPorter(t, Resend{Policy: always(10 * ms), MaxCrashes: 3, Attempts: 100}, map[string]int{"x": 3, "y": 99})
	l.tell(ref, "x")
	for range 3 {
		l.pass(10 * ms)
	}
	if !slices.Equal(*did, []string{"x"}) {
		t.Fatalf("%v", *did)
	}
	l.seen()
	l.tell(ref, "y", "z")
	for range 3 {
		l.pass(10 * ms)
	}
	var own []Event
	for _, e := range l.seen(EventFailed) {
		if e.Ref == ref {
			own = append(own, e)
		}
	}
	if len(own) != 1 || own[0].Failure.Reason != resend.ErrTooManyCrashes.Error() {
		t.Errorf("%+v", own)
	}
	// Drawback 7: what was not confirmed is not lost silently, and no timer is left.
	if !slices.Equal(l.letters(), []DeadReason{DeadStopped, DeadStopped}) || l.clock.Pending() != 0 {
		t.Errorf("%v, %d timers", l.letters(), l.clock.Pending())
	}
	l.tell(ref, "again")
	if !slices.Equal(*did, []string{"x", "again"}) {
		t.Errorf("%v", *did)
	}
}

// Drawback 2: an incarnation never gets a message twice, and 4: a poison message at the
// head neither blocks the others for ever nor is hidden by healthy ones.
func TestC_1_1_PoisonMessages(t *testing.T) {
	l, ref, did, r := newPorter(t, Resend{Policy: always(10 * ms), Attempts: 3}, map[string]int{"poison": 99})
	for _, text := range []string{"a", "poison", "b", "c"} {
		l.Tell(ref, text)
	}
	l.run()
	for i := range 3 {
		if r.keeper.State().Crashes != i+1 || !slices.Equal(*did, []string{"a"}) {
			t.Fatalf("%d crashes, %v", r.keeper.State().Crashes, *did)
		}
		l.pass(10 * ms)
	}
	if !slices.Equal(*did, []string{"a", "b", "c"}) || !slices.Equal(l.letters(), []DeadReason{DeadCrashed}) || r.keeper.State().Crashes != 0 {
		t.Errorf("%v, %v, %d crashes", *did, l.letters(), r.keeper.State().Crashes)
	}
}

// Drawback 4, 5: a confirmation of one among several does not end the growth, and new
// messages do not pass while others wait.
func TestC_1_1_OneConfirmationResetsNothing(t *testing.T) {
	l, ref, did, r := newPorter(t, Resend{Policy: always(10 * ms), Attempts: 100}, map[string]int{"a": 1, "c": 1})
	for _, text := range []string{"a", "b", "c"} {
		l.Tell(ref, text)
	}
	l.run()
	l.pass(10 * ms) // a and b go, c breaks it again
	if r.keeper.State().Crashes != 2 || !slices.Equal(*did, []string{"a", "b"}) {
		t.Errorf("%d crashes, %v", r.keeper.State().Crashes, *did)
	}
	l.tell(ref, "new")
	if r.keeper.State().Unsent != 2 {
		t.Errorf("%d unsent", r.keeper.State().Unsent)
	}
	l.pass(10 * ms)
	if r.keeper.State().Crashes != 0 || !slices.Equal(*did, []string{"a", "b", "c", "new"}) {
		t.Errorf("%d crashes, %v", r.keeper.State().Crashes, *did)
	}
}

// Drawback 6: confirmations of older incarnations and of strangers are refused.
func TestC_1_1_ForeignConfirmations(t *testing.T) {
	l, ref, did, r := newPorter(t, Resend{Policy: always(10 * ms)}, map[string]int{"a": 1})
	old := l.at("r/child")
	l.tell(ref, "a")
	for _, from := range []Ref{old, {}, l.spawn("stranger", newCounter())} {
		e := message.CloneEnvelope(r.keeper.State().Unconfirmed[0])
		e.Sender = from.UID()
		e.SetHeaders(abi.AppendHeader(nil, abi.HeaderConfirm, "1"))
		l.deliver(nil, ref.UID(), e)
		l.run()
	}
	if len(r.keeper.State().Unconfirmed) != 1 {
		t.Fatalf("%d unconfirmed", len(r.keeper.State().Unconfirmed))
	}
	l.pass(10 * ms)
	if !slices.Equal(*did, []string{"a"}) || len(r.keeper.State().Unconfirmed) != 0 {
		t.Errorf("%v, %d unconfirmed", *did, len(r.keeper.State().Unconfirmed))
	}
	if l.at("r/child") == old {
		t.Error("the child is the same")
	}
}

// A child that does not confirm holds the others up for a while only.
func TestResenderHasPatience(t *testing.T) {
	l, ref, did, r := newPorter(t, Resend{Policy: always(10 * ms), Patience: time.Second}, map[string]int{"x": 1})
	l.tell(ref, "lazy", "x", "y")
	l.pass(10 * ms) // lazy again: it had not confirmed
	if !slices.Equal(*did, []string{"lazy", "lazy"}) {
		t.Errorf("%v", *did)
	}
	l.pass(time.Second - 1)
	if len(*did) != 2 {
		t.Errorf("%v", *did)
	}
	l.pass(1)
	if !slices.Equal(*did, []string{"lazy", "lazy", "x", "y"}) || len(r.keeper.State().Unconfirmed) != 1 || l.clock.Pending() != 0 {
		t.Errorf("%v, %d unconfirmed, %d timers", *did, len(r.keeper.State().Unconfirmed), l.clock.Pending())
	}
}

// A child that cannot start, or ends by itself, is started again after the wait; a
// child whose mailbox is full gets the rest later.
func TestResenderStartsAgain(t *testing.T) {
	var got []string
	sick := 3
	l := newLab(t, supervision.Default())
	ref := l.spawn("r", Resender(newLister(&got, &sick), Resend{Policy: always(10 * ms)}))
	for range 3 {
		if l.state("r/child") != "gone" {
			t.Fatal(l.View().Tree())
		}
		l.pass(10 * ms)
	}
	l.tell(ref, "quit")
	if l.state("r/child") != "gone" || l.clock.Pending() != 1 {
		t.Error(l.View().Tree())
	}
	l.Stop(ref)
	l.run()
	if l.clock.Pending() != 0 || l.state("r") != "gone" {
		t.Error(l.View().Tree())
	}

	var did []string
	ref = l.spawn("small", Resender(Native(func() Actor { return &porter{did: &did} }).WithLimits(Limits{Mailbox: 2}), Resend{}))
	for i := range 20 {
		l.Tell(ref, fmt.Sprint(i))
	}
	l.run()
	if len(did) != 20 || did[19] != "19" {
		t.Errorf("%v", did)
	}
	// A message whose headers leave no room for another is refused.
	e := mailbox.New()
	e.SetPayload([]byte{0xf6})
	var headers []byte
	for i := range abi.MaxHeaders {
		headers = abi.AppendHeader(headers, fmt.Sprint(i), "x")
	}
	e.SetHeaders(headers)
	l.deliver(nil, ref.UID(), e)
	l.run()
	if r := l.letters(); r[len(r)-1] != DeadLimit {
		t.Errorf("%v", r)
	}
}

// A guest confirms in the turn that does the work: what it does, it does once.
func TestC_1_1_GuestsConfirm(t *testing.T) { awakeOrNot(t, rowC_1_1_GuestsConfirm) }

func rowC_1_1_GuestsConfirm(t *testing.T) {
	l := newLab(t, supervision.Default())
	sink := l.sinkhole()
	ref := l.spawn("r", Resender(familyGuest(t, "carrier"), Resend{Policy: always(10 * ms), Attempts: 2}))
	for _, v := range []any{1, 2, "boom", 3, 4} {
		l.Tell(ref, v)
	}
	l.run()
	l.pass(10 * ms)
	l.pass(10 * ms)
	if len(*sink) != 4 || !slices.Equal(l.letters(), []DeadReason{DeadCrashed}) {
		t.Errorf("%v, %v", *sink, l.letters())
	}
	if n := l.get(ref); n != 7 { // of the third child: 3 and 4
		t.Errorf("%d", n)
	}
	if left := l.table.Get(ref.UID()).behaviour.(*native).now.(*resender).keeper.State().Unconfirmed; len(left) != 0 {
		t.Errorf("%d unconfirmed", len(left))
	}
}
