package keyed_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
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
	must(0, w.Operate().Restart(r))(t)
	w.run()
	w.there("a", "b")
	w.asks(r, keyed.For("a", "who"), "a 1")
	w.asks(r, keyed.For("c", "who"), keyed.ErrFull.Error())
	if got := w.show(r, keyed.Page{}); got != "a awake;b awake;" {
		t.Error(got)
	}
	must(0, w.Operate().Restart(r))(t)
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

// An actor that has ended before it is asked to is as if it had been.
func TestPassivateOfOneThatHasEnded(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	w.tell(r, "a", "0")
	must(0, w.Operate().Pause(r, false))(t)
	w.run()
	p := must(w.Request(r, order("passivate", "a")))(t)
	w.Stop(must(w.Lookup("/user/users/a"))(t))
	w.run()
	must(0, w.Operate().Unpause(r, false))(t)
	w.run()
	if m := <-p.Answer(); answerOf(m) != "<nil>" {
		t.Error(answerOf(m))
	}
	w.asks(r, keyed.For("a", "who"), "a 1")
}
