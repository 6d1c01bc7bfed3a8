package persist_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/persist"
)

func TestH01_TheIDIsThePath(t *testing.T) {
	both(t, func(w *world) {
		a, b := w.spawn("a", "diary", ""), w.spawn("b", "diary", "")
		w.say(a, "put x")
		w.say(b, "put y")
		if x, y := w.events("/user/a"), w.events("/user/b"); !slices.Equal(x, []string{"1:x"}) || !slices.Equal(y, []string{"1:y"}) {
			t.Error(x, y)
		}
		var ids []string
		for id, err := range w.journal.IDs(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if !slices.Equal(ids, []string{"/user/a", "/user/b"}) {
			t.Error(ids)
		}
	})
}

func TestH02_Persist(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.wants("recovered 0: ")
		w.say(a, "put x", "put y", "state")
		w.wants("put x", "put y", "state 2: x y")
		w.again()
		a = w.spawn("a", "diary", "")
		w.wants("recovered 2: x y")
		w.say(a, "put z", "state")
		w.wants("put z", "state 3: x y z")
	})
}

func TestH03_AllOrNothing(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.say(a, "all a b c", "all d secret e", "state")
		if got := w.events("/user/a"); !slices.Equal(got, []string{"1:a", "2:b", "3:c"}) {
			t.Error(got)
		}
		if last := w.heard[len(w.heard)-1]; last != "state 3: a b c" {
			t.Error(w.heard)
		}
	})
}

// What a turn stores goes with the turn: a failed one has stored nothing, and is not in the state afterwards, whatever the
// supervisor says.
func TestH04_AFailedTurnStoresNothing(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.say(a, "put x", "fail y", "state", "put z", "state")
		if got := w.events("/user/a"); !slices.Equal(got, []string{"1:x", "2:z"}) {
			t.Error(got)
		}
		if got := strings.Join(w.heard, "; "); !strings.Contains(got, "state 1: x; put z; state 2: x z") || strings.Contains(got, "never") {
			t.Error(got)
		}
	})
}

func TestH06_NestedOrder(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.heard = nil
		w.say(a, "nest", "put b")
		w.wants("a-outer-1", "a-outer-2", "a-inner-1", "a-inner-2", "put b")
		if got := w.events("/user/a"); len(got) != 5 || got[4] != "5:b" {
			t.Error(got)
		}
	})
}

// Messages that come before the end of the recovery wait, in order, and no event can be stored before it.
func TestH08_RecoveryComesFirst(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		for i := range 600 {
			w.say(a, fmt.Sprint("put ", i))
		}
		w.again()
		ref := must(w.Spawn("a", w.props("diary", "", 0)))(t)
		if err := w.Tell(ref, "state"); err != nil {
			t.Fatal(err)
		}
		w.heard = nil
		w.run()
		if len(w.heard) != 2 || !strings.HasPrefix(w.heard[0], "recovered 600: 0 1 2") || !strings.HasPrefix(w.heard[1], "state 600: 0 1 2") || !strings.HasSuffix(w.heard[1], " 599") {
			t.Errorf("%.200q", w.heard)
		}
	})
}

func TestH09_RecoveryOptions(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.say(a, "put a", "put b", "snap", "put c", "put d", "snap", "put e", "stop")
		for args, want := range map[string]string{
			"": "a b c d | e", "nosnap": "a b c d e", "off": "", "to=3": "a b | c", "to=3 nosnap": "a b c", "most=1 nosnap": "a", "snapto=3": "a b | c d e", "snapver=2": "a b c d e",
		} {
			w.heard = nil
			w.say(w.spawn("a", "diary", args), "stop")
			if got := strings.TrimPrefix(w.heard[0], "recovered 5: "); got != want {
				t.Errorf("%q: %q, not %q", args, w.heard, want)
			}
		}
		// Whatever was fed, the next number is the next one.
		w.say(w.spawn("a", "diary", "to=1"), "put f", "stop")
		if got := w.events("/user/a"); len(got) != 6 || got[5] != "6:f" {
			t.Error(got)
		}
	})
}

func TestH12_RejectedEvents(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.heard = nil
		for _, s := range []string{"secret", "torn", "large", "tags a b", "put refuse"} {
			w.say(a, s)
			if last := w.heard[len(w.heard)-1]; !strings.HasPrefix(last, "error ") {
				t.Errorf("%s: %q", s, last)
			}
		}
		w.heard = nil
		w.say(a, "put x", "state")
		w.wants("put x", "state 1: x")
	})
}

// A recovery that fails stops the actor, whatever its supervisor says, and the reason names the event.
func TestH13_RecoveryFails(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.say(a, "put x", "put poison", "put z")
		if got := w.events("/user/a"); !slices.Equal(got, []string{"1:x", "2:z"}) {
			t.Error("an event that cannot be applied was stored: ", got)
		}
		w.say(a, "stop")
		reasons := w.failures(func() { w.spawn("a", "stranger", "") })
		if len(reasons) != 1 || !strings.Contains(reasons[0], "event 1 is of the unknown type diary.note@2") {
			t.Error(reasons)
		}
		if _, err := w.Lookup("/user/a"); err == nil {
			t.Error("it goes on")
		}
		w.heard = nil
		w.spawn("a", "diary", "")
		w.wants("recovered 2: x z")
	})
}

// A poison pill does not overtake what waits for the recovery, or for an event.
func TestH15_PoisonPills(t *testing.T) {
	both(t, func(w *world) {
		w.say(w.spawn("a", "diary", ""), "put x", "stop")
		w.heard = nil
		ref := must(w.Spawn("a", w.props("diary", "", 0)))(t)
		for _, m := range []string{"put y", "put z", "", "put late"} {
			err := error(nil)
			if m == "" {
				err = w.PoisonPill(ref)
			} else {
				err = w.Tell(ref, m)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		w.run()
		w.wants("recovered 1: x", "put y", "put z")
	})
}

func TestH16_DeleteEvents(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.say(a, "put a", "put b", "snap", "put c", "delete 2")
		if got := w.events("/user/a"); !slices.Equal(got, []string{"3:c"}) {
			t.Error(got)
		}
		w.say(a, "delete 99", "put d", "stop")
		w.heard = nil
		w.spawn("a", "diary", "")
		w.wants("recovered 4: a b | d")
	})
}

func TestH17_Snapshots(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "keeper", "")
		w.say(a, "put a", "put b", "put c", "put d", "put snap", "stop") // after three, and because of one
		w.heard = nil
		a = w.spawn("a", "keeper", "")
		w.wants("recovered 5: a b c d snap |")
		w.say(a, "put e", "put f", "put g") // the second one that the incarnation knows of
		if got := w.events("/user/a"); len(got) != 8 {
			t.Error(got)
		}
		w.say(a, "put h", "put i", "put j") // the third: the first goes, and the events in the second
		if got := w.events("/user/a"); !slices.Equal(got, []string{"9:h", "10:i", "11:j"}) {
			t.Error(got)
		}
		w.say(a, "stop")
		w.heard = nil
		w.say(w.spawn("a", "keeper", "snapto=10"), "stop")
		w.wants("recovered 11: a b c d snap | e f g | h i j")
	})
}

func TestH18_DeleteSnapshots(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.say(a, "put a", "snap", "put b", "snap", "put c", "snap", "unsnap 2 3", "stop")
		w.heard = nil
		w.say(w.spawn("a", "diary", ""), "unsnap 0 9", "stop")
		w.wants("recovered 3: a | b c")
		w.heard = nil
		w.spawn("a", "diary", "")
		w.wants("recovered 3: a b c")
	})
}

// Old events become those of today: renamed, split, dropped, one upcaster after the other.
func TestH24_H32_OldEvents(t *testing.T) {
	both(t, func(w *world) {
		old := w.journal.Props(persist.Definition{
			Schema: new(persist.Schema).Type("diary.note", 1).Type("diary.pair", 1).Type("diary.gone", 1),
		}, func(l *persist.Log) persist.Actor { return &writer{log: l} }, 0)
		ref := must(w.Spawn("a", old))(t)
		w.run()
		w.say(ref, "diary.note@1 x", "diary.pair@1 y+z", "diary.gone@1 ?", "stop")
		w.heard = nil
		a := w.spawn("a", "diary", "")
		w.wants("recovered 3: old x y old z")
		w.say(a, "put n")
		if got := w.events("/user/a"); len(got) != 4 || got[3] != "4:n" {
			t.Error(got)
		}
	})
}

// writer stores what it is told to.
type writer struct{ log *persist.Log }

func (x *writer) Apply(*persist.Event) error { return nil }

func (x *writer) Receive(ctx *host.Context, m host.Message) error {
	var s string
	if m.Decode(&s) != nil {
		return host.ErrUnhandled
	}
	if s == "stop" {
		ctx.Stop(ctx.Self())
		return nil
	}
	typ, v, _ := strings.Cut(s, " ")
	return x.log.Persist(typ, v)
}

func TestH33_Queries(t *testing.T) {
	w := newWorld(t)
	w.props = w.inGo
	a, b := w.spawn("a", "diary", ""), w.spawn("b", "diary", "")
	w.say(a, "tag red 1", "put 2")
	w.say(b, "tag red 3", "tag blue 4")
	w.say(a, "tag red 5")
	tagged := func(ctx context.Context, q persist.Query) (list []string, last uint64) {
		for e, err := range w.journal.ByTag(ctx, "red", q) {
			if err != nil {
				break
			}
			if e.Offset <= last || e.Time != w.clock.Now().UnixNano() {
				t.Error(e)
			}
			list, last = append(list, fmt.Sprintf("%s %d %s", e.ID, e.Number, e.Payload[1:])), e.Offset
			if len(list) == 5 {
				break
			}
		}
		return list, last
	}
	got, last := tagged(t.Context(), persist.Query{})
	if !slices.Equal(got, []string{"/user/a 1 1", "/user/b 1 3", "/user/a 3 5"}) {
		t.Error(got)
	}
	if got, _ := tagged(t.Context(), persist.Query{From: last + 1}); len(got) != 0 {
		t.Error(got)
	}
	live := make(chan []string, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		got, _ := tagged(ctx, persist.Query{Live: true})
		live <- got
	}()
	w.say(b, "tag red 6", "tag red 7")
	if got := <-live; len(got) != 5 || got[4] != "/user/b 4 7" {
		t.Error(got)
	}
	if got := w.events("/user/b"); !slices.Equal(got, []string{"1:3", "2:4", "3:6", "4:7"}) {
		t.Error(got)
	}
	w.say(a, "delete 1")
	if got, _ := tagged(t.Context(), persist.Query{}); !slices.Equal(got[:2], []string{"/user/b 1 3", "/user/a 3 5"}) {
		t.Error("a deleted event is found: ", got)
	}
}

// The bytes of an actor's events are bounded; what is beyond fails the turn, and nothing of it is stored.
func TestEventsAreBounded(t *testing.T) {
	both(t, func(w *world) {
		ref := must(w.Spawn("a", w.props("diary", "", 4000)))(t)
		w.run()
		var reasons []string
		for range 4 {
			reasons = append(reasons, w.failures(func() { w.say(ref, "put "+strings.Repeat("x", 1000)) })...)
		}
		n := len(w.events("/user/a"))
		if n == 0 || n == 4 || len(reasons) != 4-n || !strings.Contains(reasons[0], "limits.durable") {
			t.Error(n, reasons)
		}
		info := must(w.journal.Info("/user/a"))(t)
		if info.Bytes > 4000 || info.Bytes < 1000 {
			t.Error(info)
		}
		w.say(ref, fmt.Sprint("delete ", n))
		if err := w.journal.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return must(w.journal.Info("/user/a"))(t).Bytes < 200 })
		w.say(ref, "put y")
		if got := w.events("/user/a"); len(got) != 1 {
			t.Error(got)
		}
	})
}

func eventually(t testing.TB, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it has not come to that")
		}
	}
}

// Types that keep no events are refused where events are kept, and the other way round.
func TestWrongTypesAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	w := newWorld(t)
	reasons := w.failures(func() { w.spawn("a", "plain", "") })
	if len(reasons) == 0 || !strings.Contains(reasons[0], "register the type by guest-sdk/persist") {
		t.Error(reasons)
	}
	reasons = w.failures(func() {
		must(w.Spawn("b", host.Guest(must(image())(t), "diary")))(t)
		w.run()
	})
	if len(reasons) == 0 || !strings.Contains(reasons[0], "durable: events") {
		t.Error(reasons)
	}
	for _, r := range reasons {
		if !strings.Contains(r, abi.FailureABIViolation.String()) {
			t.Error(r)
		}
	}
}
