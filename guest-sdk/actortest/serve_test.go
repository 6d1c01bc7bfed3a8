//go:build !wasip1

package actortest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// asker asks the service store for whatever it is told to, with 1 s of patience, and notes what it hears.
type asker struct{ heard []string }

func (c *asker) note(format string, a ...any) { c.heard = append(c.heard, fmt.Sprintf(format, a...)) }

func (c *asker) Receive(ctx *actor.Context, msg *actor.Message) error {
	what, name, _ := strings.Cut(msg.Text(), " ")
	then := func(ctx *actor.Context, m *actor.Message, err error) error {
		switch {
		case errors.Is(err, service.ErrConflict):
			return err
		case err != nil:
			c.note("%v", err)
		default:
			c.note("%s", m.Text())
		}
		return nil
	}
	store, _ := ctx.Service("store")
	switch what {
	case "ask":
		service.Ask(ctx, "store", name, actor.Text("x"), time.Second, then)
	case "tell":
		service.Tell(ctx, "store", name, nil)
	case "map":
		service.Tell(ctx, "store", "put", actor.Func(func(w *abi.Writer) { w.Map(2); w.Text("n"); w.Int(5); w.Text("key"); w.Text("k") }))
	case "raw":
		ctx.Tell(max(store, 1), actor.Text(name))
	case "forward":
		ctx.Forward(store)
	case "watch":
		ctx.Watch(store)
	case "hire":
		ctx.Spawn("asker", name, nil)
	case "greedy":
		service.Ask(ctx, "other", "get", nil, time.Second, func(*actor.Context, *actor.Message, error) error { return errors.New("no other") })
		service.Ask(ctx, "other", "get", nil, time.Second, then)
		service.Tell(ctx, "other", "put", nil)
		ctx.Tell(ctx.Self(), actor.Text("more"))
	case "open":
		service.Ask(ctx, "store", "open", nil, time.Second, func(ctx *actor.Context, m *actor.Message, err error) error {
			if err != nil {
				return err
			}
			ref := m.Reader().Ref()
			service.AskRef(ctx, ref, "read", nil, time.Second, then)
			service.TellRef(ctx, ref, "close", nil)
			ctx.Tell(ref, actor.Text("plain"))
			return nil
		})
	case "event":
		c.note("event %s", name)
		return ctx.Reply(actor.Text("thanks"))
	case "heard":
		return ctx.Reply(actor.Text(strings.Join(c.heard, "; ")))
	default:
		if msg.Kind() == actor.KindTerminated {
			c.note("gone")
			return nil
		}
		return actor.ErrUnhandled
	}
	return nil
}

func init() { actor.Register("asker", func() actor.Actor { return &asker{} }) }

func heard(w *actortest.World, a *actortest.Actor) string {
	return w.Ask(a, actor.Text("heard")).Text()
}

// A fake answers at once, later, with an error or never; what was asked is on record.
func TestServe(t *testing.T) {
	w := actortest.NewWorld(t)
	store := w.Serve("store", func(c *actortest.Call) {
		switch c.Op {
		case "get":
			c.Answer(actor.Text("got " + c.Text()))
		case "slow":
			c.Fail(service.Busy, "later")
		case "late", "later":
			w.After(map[string]time.Duration{"late": time.Second, "later": 1001 * time.Millisecond}[c.Op], func() { c.Answer(actor.Text(c.Op)) })
		case "put":
			c.Answer(nil) // nobody minds
		case "never":
		}
	})
	a := w.Spawn("asker")
	for _, op := range []string{"get", "slow", "late", "later", "never"} {
		w.Tell(a, actor.Text("ask "+op))
	}
	w.Tell(a, actor.Text("tell put"))
	expect(t, "at once", heard(w, a), "got x; busy: later")
	w.Advance(999 * time.Millisecond)
	expect(t, "before its time", heard(w, a), "got x; busy: later")
	never := store.Calls()[4]
	if never.Cancelled() || never.Answered() {
		t.Error("the asker still waits")
	}
	w.Advance(time.Second)
	expect(t, "in the last moment, and after it", heard(w, a), "got x; busy: later; late; timeout: no answer to later within 1s; timeout: no answer to never within 1s")
	if !never.Cancelled() {
		t.Error("the time is over")
	}
	expect(t, "an answer that came too late", texts(w.Dead()), " later")

	var ops []string
	for _, c := range store.Calls() {
		ops = append(ops, fmt.Sprint(c.Op, c.Wanted, c.Sender == a.Ref())+c.Path+c.At.Format(" .000 ")+c.Timeout.String())
	}
	expect(t, "calls", strings.Join(ops, " "), "gettrue true/user/asker .000 1s slowtrue true/user/asker .000 1s latetrue true/user/asker .000 1s "+
		"latertrue true/user/asker .000 1s nevertrue true/user/asker .000 1s putfalse true/user/asker .000 0s")
}

// The test itself may answer, too.
func TestServeByTheTest(t *testing.T) {
	w := actortest.NewWorld(t)
	store := w.Serve("store", nil)
	a := w.Spawn("asker")
	w.Tell(a, actor.Text("ask one"))
	w.Tell(a, actor.Text("ask two"))
	calls := store.Calls()
	calls[1].Answer(actor.Text("2"))
	calls[0].Fail(service.NotFound, "")
	expect(t, "answers", heard(w, a), "2; not_found")
	store.Tell(a.Ref(), actor.Text("event 3"))
	var answer string
	store.Ask(a.Ref(), actor.Text("event 4"), func(s actortest.Sent) { answer = s.Text() })
	expect(t, "events", heard(w, a)+" "+answer, "2; not_found; event 3; event 4 thanks")

	w.Tell(a, actor.Text("ask three"))
	w.Tell(a, actor.Text("ask four"))
	three, four := store.Calls()[2], store.Calls()[3]
	three.Fail(service.Conflict, "now") // and the turn fails: the actor is restarted
	if !four.Cancelled() {
		t.Error("the asker was restarted")
	}
	w.Dead()
	for _, op := range []string{"a", "b", "c", "five"} {
		w.Tell(a, actor.Text("ask "+op)) // the last with the correlation of four
	}
	four.Answer(actor.Text("4"))
	expect(t, "an answer to the incarnation before", texts(w.Dead())+heard(w, a), " 4")
	store.Calls()[7].Answer(actor.Text("5"))
	expect(t, "after a restart", heard(w, a), "5")
}

// What a service refuses, its fake refuses.
func TestServeGrants(t *testing.T) {
	w := actortest.NewWorld(t)
	early := w.Spawn("asker", actortest.Named("early"))
	store := w.Serve("store", func(c *actortest.Call) { c.Answer(actor.Text("yes")) })
	a := w.Spawn("asker")
	w.Tell(a, actor.Text("hire kid"))
	kid := w.Find("/user/asker/kid")
	poor := w.Spawn("asker", actortest.Named("poor"), actortest.Without("store"))
	w.Tell(poor, actor.Text("hire kid"))

	for _, x := range []*actortest.Actor{early, poor, w.Find("/user/poor/kid")} {
		w.Tell(x, actor.Text("ask get"))
		expect(t, "without a grant", heard(w, x), "denied: the actor was started without the service store: add store to its capabilities in the manifest, unless the host does not run it")
	}
	w.Tell(kid, actor.Text("ask get"))
	expect(t, "a child of who has a grant", heard(w, kid), "yes")
	n := len(store.Calls())
	expect(t, "forwarded", w.Ask(a, actor.Text("forward")).Text(), "denied: a forwarded message carries no grant")
	w.Tell(a, actor.Text("raw x"))
	w.Tell(poor, actor.Text("raw x"))
	if len(store.Calls()) != n {
		t.Errorf("%d calls", len(store.Calls()))
	}
	w.Tell(a, actor.Text("greedy"))
	if f := w.Failures(); len(f) != 1 || f[0].Failure.Reason != "no other" {
		t.Errorf("what then returns at once: %+v", f)
	}
}

func TestCallArguments(t *testing.T) {
	w := actortest.NewWorld(t)
	store := w.Serve("store", nil)
	a := w.Spawn("asker")
	w.Tell(a, actor.Text("map"))
	c := store.Calls()[0]
	if string(c.Field("key")) != "ak" || string(c.Field("n")) != "\x05" || c.Field("other") != nil || c.Text() != "" {
		t.Errorf("% x", c.Args)
	}
	var m both
	if c.Decode(&m); m != (both{"k", 5}) {
		t.Errorf("%+v", m)
	}
	w.Tell(a, actor.Text("ask get"))
	if c := store.Calls()[1]; c.Field("key") != nil || c.Text() != "x" {
		t.Errorf("% x", c.Args)
	}
}

type both struct {
	key string
	n   int64
}

func (b *both) UnmarshalCBOR(r *abi.Reader) {
	for range r.Map() {
		if r.TextBytes()[0] == 'k' {
			b.key = r.Text()
		} else {
			b.n = r.Int()
		}
	}
}

// What a service opens for somebody is a fake of its own, and ends.
func TestServeOpen(t *testing.T) {
	w := actortest.NewWorld(t)
	var stream *actortest.Fake
	store := w.Serve("store", nil)
	a := w.Spawn("asker")
	w.Tell(a, actor.Text("open"))
	stream = store.Open(func(c *actortest.Call) {
		if c.Op == "read" {
			c.Answer(actor.Text("part"))
		}
	})
	store.Calls()[0].Answer(actor.Uint(stream.Ref()))
	expect(t, "a part", heard(w, a), "part")
	var ops []string
	for _, c := range stream.Calls() {
		ops = append(ops, c.Op, string(c.Args))
	}
	expect(t, "operations", strings.Join(ops, " "), "read \xf6 close \xf6  eplain")

	w.Tell(a, actor.Text("watch"))
	store.Close()
	store.Close()
	w.Tell(a, actor.Text("ask get"))
	expect(t, "the service is down", heard(w, a), "part; gone; unavailable: the actor has stopped")
}

// An actor alone is told its services by the test.
func TestServiceOfOneActor(t *testing.T) {
	a := actortest.Spawn(t, "asker", actortest.Service("store", 77), actortest.Service("bank", 78))
	q := a.Send(actor.Text("ask get")).Ask()
	if q.To != 77 || string(q.Payload) != "\x82cgetax" {
		t.Errorf("%+v", q)
	}
	a.Answer(q, actor.Text("yes"))
	expect(t, "heard", a.Send(actor.Text("heard")).Reply().Text(), "yes")
	turn := actortest.Spawn(t, "asker").Send(actor.Text("tell get"))
	if len(turn.Sent) != 0 || len(turn.Logs) != 1 || turn.Logs[0].Level != abi.LogWarn {
		t.Errorf("%+v", turn)
	}
}

func TestMisuseOfServe(t *testing.T) {
	for want, what := range map[string]func(t testing.TB){
		"a service cannot be called \"a/b\"": func(t testing.TB) { actortest.NewWorld(t).Serve("a/b", nil) },
		"there is a service store already": func(t testing.TB) {
			w := actortest.NewWorld(t)
			w.Serve("store", nil)
			w.Serve("store", nil)
		},
		"store get is answered twice": func(t testing.TB) {
			w := actortest.NewWorld(t)
			w.Serve("store", func(c *actortest.Call) { c.Answer(nil); c.Fail(service.Denied, "x") })
			w.Tell(w.Spawn("asker"), actor.Text("ask get"))
		},
		"a handler runs the world": func(t testing.TB) {
			w := actortest.NewWorld(t)
			w.Serve("store", func(*actortest.Call) { w.Run() })
			w.Tell(w.Spawn("asker"), actor.Text("ask get"))
		},
		"the arguments of store get": func(t testing.TB) {
			w := actortest.NewWorld(t)
			w.Serve("store", func(c *actortest.Call) { c.Decode(new(actor.Int)) })
			w.Tell(w.Spawn("asker"), actor.Text("ask get"))
		},
	} {
		fails(t, want, what)
	}
}
