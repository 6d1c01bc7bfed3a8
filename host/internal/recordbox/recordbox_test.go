package recordbox_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/recordbox"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/queue"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// clerk is a recorder that may have no room.
type clerk struct {
	full  bool
	told  []string
	after func() // called when it is told
}

var errNoRoom = errors.New("no room")

func (c *clerk) Turn(*turn.Turn) {}

func (c *clerk) Note(r *record.Record) { c.note(r.Actor, r.Time, r.Message.Position) }

func (c *clerk) note(by abi.Ref, at int64, position uint64) {
	c.told = append(c.told, fmt.Sprint(uint64(by), "/", position, "@", at))
	if c.after != nil {
		c.after()
	}
}

func (c *clerk) Admit(int) error {
	if c.full {
		return errNoRoom
	}
	return nil
}

func (c *clerk) AdmitAll(int64) error { return c.Admit(0) }

// direct is a clerk that takes messages directly.
type direct struct{ *clerk }

func (c direct) Accept(by abi.Ref, at int64, e *record.Envelope, must bool) error {
	if err := c.Admit(0); err != nil && !must {
		return err
	}
	c.note(by, at, e.Position)
	return nil
}

func (direct) Handled(*record.Handled) (uint64, bool) { return 0, false }

// owner is an actor that takes messages over while it flies, and does not care for some.
type owner struct {
	flies bool
	flown []*queue.Envelope
	over  abi.Kind
}

func (o *owner) Flies(e *queue.Envelope) bool {
	if o.flies {
		o.flown = append(o.flown, e)
	}
	return o.flies
}

func (o *owner) StillCounts(e *queue.Envelope) bool { return e.Kind != o.over }

// world is a recorded mailbox and all around it. Time stands still at 1 s.
type world struct {
	owner
	clerk
	own *box.Box
	b   *recordbox.Box
}

func newWorld(t *testing.T, directly, usual bool, limits mailbox.Limits) *world {
	t.Helper()
	w := &world{own: &box.Box{}}
	told := &recordbox.Told{Recorder: &w.clerk, Gate: &w.clerk, Time: &clock.Nanos{}}
	if directly {
		told.Direct = direct{&w.clerk}
	}
	told.Time.Init(clock.NewVirtual(time.Unix(1, 0)))
	a := &account.Account{}
	if err := a.Open(account.NewPool("the system", "system.", nil, 1<<20, 10), 0, 0, false, false); err != nil {
		t.Fatal(err)
	}
	if usual {
		w.own.Init(nil, limits, a)
		w.b = recordbox.Before(&w.owner, 7, told, w.own)
		return w
	}
	w.own.Init(func(l mailbox.Limits) queue.Mailbox {
		w.b = recordbox.New(&w.owner, 7, told, w.own, box.NewPlain(l))
		return w.b
	}, limits, a)
	return w
}

func message(text string) *queue.Envelope {
	e := mailbox.New()
	e.Kind = abi.KindMessage
	e.SetPayload([]byte(text))
	return e
}

// each tries a recorder that is told directly or not, before the actor's own mailbox or another.
func each(t *testing.T, limits mailbox.Limits, f func(t *testing.T, w *world)) {
	for _, direct := range []bool{false, true} {
		for _, usual := range []bool{false, true} {
			t.Run(fmt.Sprintf("direct=%v,usual=%v", direct, usual), func(t *testing.T) { f(t, newWorld(t, direct, usual, limits)) })
		}
	}
}

var roomy = mailbox.Limits{Messages: 100, Bytes: 1 << 16}

func (w *world) popped() (texts []string) {
	for e := w.own.Pop(); e != nil; e = w.own.Pop() {
		texts = append(texts, fmt.Sprintf("%s %d", e.Payload, e.Position))
	}
	return texts
}

func TestMessagesAreNumberedAndTold(t *testing.T) {
	each(t, roomy, func(t *testing.T, w *world) {
		w.after = func() {
			if n := w.b.Inner().Len(); n > len(w.told) {
				t.Errorf("it is told of message %d, and the mailbox has %d already", len(w.told), n)
			}
		}
		if err := w.own.Push(message("a")); err != nil {
			t.Fatal(err)
		}
		if err := w.b.PushAt(message("b"), 5); err != nil {
			t.Fatal(err)
		}
		if !w.own.Force(message("c")) {
			t.Fatal("it is closed")
		}
		second := "7/2@5"
		if w.b.Inner() != (box.Plain{Mailbox: &w.own.Usual}) { // another mailbox's records have the time when it took the message in
			second = "7/2@1000000000"
		}
		if want := []string{"7/1@1000000000", second, "7/3@1000000000"}; !reflect.DeepEqual(w.told, want) {
			t.Errorf("it was told of %v, not %v", w.told, want)
		}
		if got := w.popped(); !reflect.DeepEqual(got, []string{"a 1", "b 2", "c 3"}) {
			t.Errorf("%v", got)
		}
	})
}

func TestNoRoomForARecord(t *testing.T) {
	each(t, roomy, func(t *testing.T, w *world) {
		w.full = true
		e := message("a")
		if err := w.own.Push(e); !errors.Is(err, errNoRoom) || e.Position != 0 {
			t.Errorf("%v, position %d", err, e.Position)
		}
		if w.own.Len() != 0 || len(w.told) != 0 || w.b.Position() != 0 {
			t.Errorf("%d wait, %v was told, position %d", w.own.Len(), w.told, w.b.Position())
		}
		if !w.own.Force(message("b")) || w.b.Position() != 1 {
			t.Error("what the host forces in is not recorded")
		}
		w.full = false
		if err := w.own.Push(message("c")); err != nil {
			t.Error(err)
		}
		if got := w.popped(); !reflect.DeepEqual(got, []string{"b 1", "c 2"}) {
			t.Errorf("%v", got)
		}
	})
}

func TestRefusedMessagesAreNotTold(t *testing.T) {
	each(t, mailbox.Limits{Messages: 1, Bytes: 1 << 10}, func(t *testing.T, w *world) {
		if err := w.own.Push(message("a")); err != nil {
			t.Fatal(err)
		}
		e := message("b")
		if err := w.b.PushAt(e, 5); !errors.Is(err, errs.ErrMailboxFull) || errs.KeyOf(err, "") == "" || e.Position != 0 {
			t.Errorf("%v, position %d", err, e.Position)
		}
		w.b.Limit(mailbox.Limits{Messages: 2, Bytes: 1 << 10})
		if err := w.own.Push(e); err != nil || len(w.told) != 2 || w.b.Position() != 2 {
			t.Errorf("%v; %v was told", err, w.told)
		}
		var left []string
		w.own.Close(func(e *queue.Envelope) {
			left = append(left, string(e.Payload))
			if w.own.Push(message("to itself")) == nil { // as what is drained may lead to
				t.Error("a closed mailbox takes a message in")
			}
		})
		if !reflect.DeepEqual(left, []string{"a", "b"}) || w.own.Force(message("c")) || len(w.told) != 2 {
			t.Errorf("%v was left; %v was told", left, w.told)
		}
	})
}

func TestARebuiltMailbox(t *testing.T) {
	each(t, roomy, func(t *testing.T, w *world) {
		w.flies = true
		if w.own.Push(message("a")) != nil || !w.own.Force(message("b")) || len(w.flown) != 2 || w.own.Len() != 0 || w.b.Position() != 0 {
			t.Errorf("%d messages fly, %d wait", len(w.flown), w.own.Len())
		}
		w.b.Begin(40)
		if !w.b.PutBack(message("saved")) || w.b.Position() != 40 || !w.b.Repeat(w.flown[0], 41) || w.b.Position() != 41 {
			t.Errorf("position %d", w.b.Position())
		}
		w.flies = false
		if err := w.own.Push(message("new")); err != nil || w.b.Position() != 42 || len(w.told) != 1 {
			t.Errorf("%v; position %d, %v was told", err, w.b.Position(), w.told)
		}
		if got := w.popped(); !reflect.DeepEqual(got, []string{"saved 0", "a 41", "new 42"}) {
			t.Errorf("%v", got)
		}
	})
}

func TestCountingLeavesAllInItsOrder(t *testing.T) {
	each(t, roomy, func(t *testing.T, w *world) {
		w.over = abi.KindTimer
		for i, kind := range []abi.Kind{abi.KindMessage, abi.KindTimer, abi.KindReply, abi.KindMessage} {
			e := message(fmt.Sprint(i))
			if e.Kind = kind; !w.own.Force(e) {
				t.Fatal("it is closed")
			}
		}
		var counted []string
		if at := w.b.Counting(func(e *queue.Envelope) { counted = append(counted, string(e.Payload)) }); at != 4 || !reflect.DeepEqual(counted, []string{"0", "2", "3"}) {
			t.Errorf("%v, position %d", counted, at)
		}
		if got := w.popped(); !reflect.DeepEqual(got, []string{"0 1", "1 2", "2 3", "3 4"}) {
			t.Errorf("%v", got)
		}
	})
}
