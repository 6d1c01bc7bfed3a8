package keyed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/supervision"
)

// order is an order to a keeper.
func order(verb string, v any) host.Headed {
	return host.Headed{Value: v, Headers: map[string]string{keyed.Header: verb}}
}

// show is a page of keys as a text.
func (w *world) show(r host.Ref, p keyed.Page) (s string) {
	w.t.Helper()
	for _, e := range w.page(r, p) {
		s += e.Key + " " + e.State + ";"
	}
	return s
}

// Actors that a restart of the keeper leaves begin anew, take their places, and end when they are idle, also if no further
// message comes.
func TestKeptActorsOfARestartedKeeper(t *testing.T) {
	w := newWorldThat(t, true)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute).WithMax(2))
	w.asks(r, keyed.For("a", "who"), "a 1")
	w.tell(r, "b", "x")
	must(0, w.Restart(r))(t)
	w.run()
	w.there("a", "b")
	w.asks(r, keyed.For("a", "who"), "a 1")
	w.asks(r, keyed.For("c", "who"), keyed.ErrFull.Error())
	if got := w.show(r, keyed.Page{}); got != "a awake;b awake;" {
		t.Error(got)
	}
	must(0, w.Restart(r))(t)
	w.run()
	w.pass(time.Minute - 1)
	w.there("a", "b")
	w.pass(1)
	w.there()
}

// What is an order is no message for a key, whatever else it says.
func TestOrdersReachNoKey(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	w.tell(r, "a", "0")
	w.heard = nil
	w.post(r, host.Headed{Value: "b", Headers: map[string]string{keyed.Header: "passivate", keyed.HeaderKey: "a"}})
	w.run()
	w.wants()
	w.there("a")
}

func TestBadOrders(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	w.tell(r, "a", "0")
	for _, c := range []struct {
		order host.Headed
		want  string
	}{
		{order("keys", "x"), "keyed: the payload is not a map with past, after and most"},
		{order("passivate", 7), "keyed: the payload is not a key"},
		{order("passivate", ""), keyed.ErrBadKey.Error()},
		{order("passivate", strings.Repeat("k", abi.MaxName+1)), keyed.ErrBadKey.Error()},
		{order("passivate", "nobody"), "<nil>"},
		{order(strings.Repeat("o", 41), nil), "keyed: there is no such order: " + strings.Repeat("o", 40)},
	} {
		w.asks(r, c.order, c.want)
	}
	w.there("a")
}

// Whoever is named as a manager may give orders, and nobody else.
func TestManagersMayManage(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithManagers("/user/boss", "/user/staff/*"))
	w.tell(r, "a", "0")
	actor := host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			w.heard = append(w.heard, ctx.Self().Name()+": "+answerOf(m))
			return nil
		}
		return ctx.Ask(r, order("passivate", "nobody"), 1, time.Second)
	})
	must(w.Spawn("boss", actor))(t)
	must(w.Spawn("boss2", actor))(t)
	must(w.Spawn("staff", host.Func(func(*host.Context, host.Message) error { return nil }).WithChildren(host.Child{Name: "one", Props: actor})))(t)
	w.run()
	w.heard = nil
	for _, path := range []string{"/user/boss", "/user/boss2", "/user/staff/one"} {
		must(0, w.TellPath(path, "x"))(t)
		w.run()
	}
	w.wants("boss: <nil>", "boss2: keyed: the sender may not manage the keys", "one: <nil>")
}

// A message with headers gets the key's beside its own; that key counts.
func TestForKeepsOtherHeaders(t *testing.T) {
	h := keyed.For("a", host.Headed{Value: "x", Headers: map[string]string{"other": "o", keyed.HeaderKey: "b"}})
	if h.Value != "x" || len(h.Headers) != 2 || h.Headers["other"] != "o" || h.Headers[keyed.HeaderKey] != "a" {
		t.Errorf("%+v", h)
	}
}

// The borders of what a name is made of.
func TestBordersOfNames(t *testing.T) {
	for key, want := range map[string]string{
		"AZaz09_.-": "AZaz09_.-", "@[`{/:": "~40~5B~60~7B~2F~3A", ",^": "~2C~5E",
		strings.Repeat("x", abi.MaxName): strings.Repeat("x", abi.MaxName), strings.Repeat("/", abi.MaxName/3): strings.Repeat("~2F", abi.MaxName/3),
	} {
		if got, err := keyed.Name(key); got != want || err != nil {
			t.Errorf("%q: %q, %v", key, got, err)
		}
		if again, ok := keyed.Key(want); !ok || again != key {
			t.Errorf("%q: %q, %v", want, again, ok)
		}
	}
}

// A key that is the name of another one's actor is a key of its own.
func TestAKeyLikeANameIsAnother(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	w.asks(r, keyed.For("a/b", "who"), "a~2Fb 1")
	w.asks(r, keyed.For("a~2Fb", "who"), "a~7E2Fb 1")
	w.asks(r, keyed.For("a/b", "who"), "a~2Fb 2")
}

// A field is found behind keys that are no texts, and numbers are decimal.
func TestFieldsOfMaps(t *testing.T) {
	w := newWorld(t)
	c := keyed.New(w.worker()).WithField("id")
	for _, m := range []struct {
		payload string
		want    string
	}{
		{"\xa1\x62id\x18\x7b", "123"},           // {"id": 123}
		{"\xa1\x62id\x38\x7b", "-124"},          // {"id": -124}
		{"\xa2\x01\x61a\x62id\x61b", "b"},       // {1: "a", "id": "b"}
		{"\xa2\x01\xa1\x01\x02\x62id\x03", "3"}, // {1: {1: 2}, "id": 3}
		{"\xa3\x01\x01\x02\x02\x62id\x03", "3"}, // {1: 1, 2: 2, "id": 3}
		{"\xa2\x62ie\x01\x62id\x02", "2"},       // {"ie": 1, "id": 2}
	} {
		if got, err := c.NameOf(host.Message{Payload: []byte(m.payload)}); got != m.want || err != nil {
			t.Errorf("% x: %q, %v", m.payload, got, err)
		}
	}
}

// Messages that wait are bounded in number and bytes, for a key and for all; what is too much is refused, and costs
// nobody else anything.
func TestBufferIsBounded(t *testing.T) {
	const most = 4000
	head := len(keyed.HeaderKey) + len("a") + 3                         // of a message, encoded
	text := func(n int) string { return strings.Repeat("x", n-head-3) } // a message of n bytes
	for _, c := range []struct {
		name   string
		buffer int
		send   []string // key and bytes
		want   string   // which are taken
	}{
		{"a quarter of the bytes", 100, []string{"a 500", "a 500", "a 1", "b 100"}, "++-+"},
		{"one more than a quarter", 100, []string{"a 500", "a 501", "b 100"}, "+-+"},
		{"the first may be larger", 100, []string{"a 3000", "a 100", "b 1000", "c 1"}, "+-+-"},
		{"but not than all", 100, []string{"a 4001", "a 4000", "b 1"}, "-+-"},
		{"all bytes", 100, []string{"a 1000", "b 1000", "c 1000", "d 1000", "e 1"}, "++++-"},
		{"one byte more", 100, []string{"a 1000", "b 1000", "c 1000", "d 999", "e 100"}, "++++-"},
		{"a quarter of the number", 8, []string{"a 100", "a 100", "a 100", "b 100"}, "++-+"},
		{"at least one of a key", 3, []string{"a 100", "a 100", "b 100", "c 100", "d 100"}, "+-++-"},
		{"all of the number", 4, []string{"a 100", "b 100", "c 100", "d 100", "e 100"}, "++++-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.start(keyed.New(w.worker()).WithIdle(time.Hour).WithBuffer(c.buffer, most))
			keys := []string{"a", "b", "c", "d", "e"}
			for _, key := range keys { // all are asked to end, and none comes to it
				w.tell(r, key, "0")
				must(0, w.Pause(must(w.Lookup("/user/users/"+key))(t), false))(t)
				w.run()
				w.post(r, order("passivate", key))
				w.run()
			}
			got := ""
			for _, s := range c.send {
				var key string
				var n int
				if _, err := fmt.Sscan(s, &key, &n); err != nil {
					t.Fatal(err)
				}
				p := must(w.Request(r, keyed.For(key, text(max(n, head+3)))))(t)
				w.run()
				select {
				case m := <-p.Answer():
					if answerOf(m) != keyed.ErrBuffer.Error() {
						t.Fatal(answerOf(m))
					}
					got += "-"
				default:
					defer p.Cancel()
					got += "+"
				}
			}
			if got != c.want {
				t.Errorf("%q: %s, not %s", c.send, got, c.want)
			}
		})
	}
}

// A message that cannot wait takes no place that was freed for its key: another one gets it.
func TestPlaceOfWhatCannotWait(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(1).WithAtLimit(keyed.Evict).WithBuffer(100, 1000))
	w.tell(r, "a", "0")
	w.asks(r, keyed.For("b", strings.Repeat("x", 2000)), keyed.ErrBuffer.Error())
	w.there()
	if got := w.show(r, keyed.Page{}); got != "" {
		t.Errorf("there is %q", got)
	}
	w.asks(r, keyed.For("c", "who"), "c 1")
}

// A key whose actor cannot be started is forgotten, and who asks is told.
func TestWorkerThatCannotBeStarted(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker().WithArgs(strings.Repeat("x", 50<<10))).WithMax(2).WithLimits(host.Limits{Tree: host.TreeLimits{Memory: 20 << 10}}))
	for range 3 {
		if got := w.ask(r, keyed.For("a", "who")); !strings.Contains(got, "limit") {
			t.Errorf("%q", got)
		}
	}
	if got := w.show(r, keyed.Page{}); got != "" {
		t.Errorf("there is %q", got)
	}
}

// Who has an actor again is not among those that have ended, and those are shown with when that was.
func TestPastKeys(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	w.tell(r, "a", "0")
	w.tell(r, "b", "0")
	began := w.clock.Now()
	w.pass(time.Minute)
	es := w.page(r, keyed.Page{Past: true})
	if len(es) != 2 || es[0].Key != "a" || !es[0].Since.Equal(began.Add(time.Minute)) {
		t.Errorf("%+v", es)
	}
	w.pass(time.Second)
	w.tell(r, "a", "0")
	if got := w.show(r, keyed.Page{Past: true}); got != "b past;" {
		t.Error(got)
	}
	if es := w.page(r, keyed.Page{}); len(es) != 1 || !es[0].Since.Equal(began.Add(time.Minute+time.Second)) {
		t.Errorf("%+v", es)
	}
}

// An actor that has ended before it is asked to is as if it had been.
func TestPassivateOfOneThatHasEnded(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	w.tell(r, "a", "0")
	must(0, w.Pause(r, false))(t)
	w.run()
	p := must(w.Request(r, order("passivate", "a")))(t)
	w.Stop(must(w.Lookup("/user/users/a"))(t))
	w.run()
	must(0, w.Unpause(r, false))(t)
	w.run()
	if m := <-p.Answer(); answerOf(m) != "<nil>" {
		t.Error(answerOf(m))
	}
	w.asks(r, keyed.For("a", "who"), "a 1")
}

// The delay after failures grows, and is the first one again after an actor that has lived for long.
func TestPenaltyIsThatOfFailuresInARow(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithSupervision(supervision.Default().WithOtherwise(supervision.Stop)))
	penalty := func(lives, want time.Duration) {
		t.Helper()
		w.pass(lives)
		w.tell(r, "a", "crash")
		w.pass(want - 1)
		w.asks(r, keyed.For("a", "who"), keyed.ErrFailed.Error())
		w.pass(1)
		w.asks(r, keyed.For("a", "who"), "a 1")
	}
	penalty(0, 100*time.Millisecond)
	penalty(0, 200*time.Millisecond)
	penalty(time.Minute-1, 400*time.Millisecond)
	penalty(time.Minute, 100*time.Millisecond)
	penalty(0, 200*time.Millisecond)
}

// A failure is forgotten a minute after its delay, also if something else is to be looked at only later.
func TestFailuresAreForgottenInTime(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Hour).WithSupervision(supervision.Default().WithOtherwise(supervision.Stop)))
	for _, others := range []string{"", "z awake;"} {
		if others != "" {
			w.tell(r, "z", "0")
		}
		w.tell(r, "a", "crash")
		if got := w.show(r, keyed.Page{}); got != "a failed;"+others {
			t.Error(got)
		}
		w.pass(time.Minute + 100*time.Millisecond - 1)
		if got := w.show(r, keyed.Page{}); got != "a failed;"+others {
			t.Error(got)
		}
		w.pass(1)
		if got := w.show(r, keyed.Page{}); got != others {
			t.Error(got)
		}
	}
}

// Looking after an actor that is busy, or used again and again, costs the keeper hardly more than a turn each time that it could have
// been idle.
func TestLooksAreRare(t *testing.T) {
	for _, busy := range []string{"timer 1000h", "again"} {
		w := newWorld(t)
		r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
		w.tell(r, "a", busy)
		a := must(w.Lookup("/user/users/a"))(t)
		before := must(w.Info(r))(t).Turns
		const looks = 20
		for range looks {
			for second := range 60 {
				if w.pass(time.Second); busy == "again" && second%30 == 10 {
					w.post(a, "x")
					w.run()
				}
			}
		}
		w.there("a")
		if n := must(w.Info(r))(t).Turns - before; n > 2*looks+1 {
			t.Errorf("%s: %d turns for %d looks", busy, n, looks)
		}
	}
}

// A message that is refused and no question is unhandled.
func TestRefusedMessagesAreUnhandled(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	w.post(r, "without a key")
	w.run()
	for {
		select {
		case e := <-w.log.C():
			if e.Kind == host.EventUnhandled && e.Ref == r {
				return
			}
			continue
		default:
		}
		t.Fatal("nobody is told")
	}
}
