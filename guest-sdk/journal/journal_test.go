//go:build !wasip1

package journal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/journal"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// reader follows the tag "in" up to a number, and notes what it gets.
type reader struct{ notes []string }

var query journal.Query

func (x *reader) Started(ctx *actor.Context) error {
	journal.Follow(ctx, query, func(_ *actor.Context, p journal.Page, err error) error {
		if err != nil {
			x.notes = append(x.notes, err.Error())
			return nil
		}
		for i := range p.Events {
			e := &p.Events[i]
			x.notes = append(x.notes, fmt.Sprintf("%s#%d@%d %s@%d %v %d %x", e.ID, e.Number, e.Offset, e.Type, e.Version, e.Tags, e.Time, e.Payload))
		}
		x.notes = append(x.notes, fmt.Sprint("next ", p.Next, p.More))
		return nil
	})
	return nil
}

func (*reader) Receive(*actor.Context, *actor.Message) error { return actor.ErrUnhandled }

func init() { actor.Register("reader", func() actor.Actor { return &reader{} }) }

// nothing is a page without events.
func nothing(next uint64) actor.Encoder {
	return actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("events")
		w.Array(0)
		w.Text("next")
		w.Uint(next)
	})
}

func page(next uint64) actor.Encoder {
	return actor.Func(func(w *abi.Writer) {
		w.Map(4)
		w.Text("events")
		w.Array(1)
		w.Map(9)
		w.Text("id")
		w.Text("/user/ada")
		w.Text("number")
		w.Uint(3)
		w.Text("offset")
		w.Uint(40)
		w.Text("type")
		w.Text("note.put")
		w.Text("version")
		w.Uint(2)
		w.Text("tags")
		w.Array(1)
		w.Text("in")
		w.Text("time")
		w.Int(7)
		w.Text("later")
		w.Array(0)
		w.Text("payload")
		w.ByteString([]byte{1})
		w.Text("next")
		w.Uint(next)
		w.Text("more")
		w.Bool(true)
		w.Text("unknown")
		w.Null()
	})
}

// Follow goes on where the page before has ended, asks again after what may pass, and is over after anything else.
func TestFollow(t *testing.T) {
	query = journal.Query{Tag: "in", From: 5, Limit: 2, Bytes: 100}
	w := actortest.NewWorld(t)
	svc := w.Serve("journal", nil)
	a := w.Spawn("reader")
	last := func() *actortest.Call { return svc.Calls()[len(svc.Calls())-1] }
	expect := func(what, want string) {
		t.Helper()
		x := a.Actor().(*reader)
		if got := strings.Join(x.notes, "; "); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		x.notes = nil
	}
	number := func(name string) (n uint64) {
		t.Helper()
		r := abi.NewReader(last().Field(name))
		n = r.Uint()
		if r.Done() != nil {
			t.Errorf("%s is no number", name)
		}
		return n
	}
	if c := last(); c.Op != "read" || number("from") != 5 || number("limit") != 2 || number("bytes") != 100 || len(c.Field("wait")) != 0 {
		t.Errorf("%s %x", c.Op, c.Args)
	}
	last().Answer(page(41))
	expect("a page", "/user/ada#3@40 note.put@2 [in] 7 01; next 41 true")
	if number("from") != 41 {
		t.Error("it does not go on behind the page")
	}
	n := len(svc.Calls())
	last().Answer(nothing(50))
	expect("nothing", "")
	if len(svc.Calls()) != n {
		t.Error("it asks again at once for what is not there")
	}
	w.Advance(time.Second)
	if len(svc.Calls()) != n+1 || number("from") != 50 {
		t.Error("it does not look again")
	}
	w.Advance(5 * time.Second)
	if len(svc.Calls()) != n+1 {
		t.Error("it looks again before it has an answer")
	}
	n++
	last().Fail(service.Busy, "later")
	expect("busy", "busy: later")
	if len(svc.Calls()) != n {
		t.Error("it asks again at once")
	}
	w.Advance(time.Second)
	if len(svc.Calls()) != n+1 || number("from") != 50 {
		t.Error("it does not ask again")
	}
	last().Fail(service.Denied, "no")
	w.Advance(time.Hour)
	expect("denied", "denied: no")
	if len(svc.Calls()) != n+1 {
		t.Error("it asks again what was denied")
	}
}

// Up to a number there is an end.
func TestFollowTo(t *testing.T) {
	query = journal.Query{ID: "/user/ada", To: 3}
	w := actortest.NewWorld(t)
	svc := w.Serve("journal", nil)
	w.Spawn("reader")
	if c := svc.Calls()[0]; len(c.Field("from")) != 0 || len(c.Field("to")) == 0 || len(c.Field("id")) == 0 {
		t.Errorf("%x", c.Args)
	}
	svc.Calls()[0].Answer(page(4))
	if n := len(svc.Calls()); n != 1 {
		t.Errorf("%d requests", n)
	}
}
