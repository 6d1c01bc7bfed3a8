package router_test

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/router"
)

// keeps starts a keeper as /user/keys and returns the paths of the keys.
func (w *world) keeps(idle time.Duration, keys ...string) (paths []string) {
	w.t.Helper()
	must(w.Spawn("keys", keyed.New(w.worker).WithIdle(idle).Props()))(w.t)
	w.run()
	for _, k := range keys {
		paths = append(paths, "/user/keys/"+k)
	}
	return paths
}

// there are the keys whose actors are there.
func (w *world) there() (names []string) {
	for _, r := range w.Select("/user/keys/*") {
		names = append(names, r.Name())
	}
	slices.Sort(names)
	return names
}

// A routee that a keeper stands for is started by what it is sent, whatever the logic, and again after it
// was passivated; answers pass the router by. The keeper is not a routee.
func TestKeptRoutees(t *testing.T) {
	each(t, func(w *world) {
		paths := w.keeps(time.Minute, "a", "b")
		r := w.start(router.Group(router.RoundRobin, paths...))
		for range 2 {
			w.asks(r, "who", "a 1", "b 1", "a 2")
			w.asks(r, router.Keyed("x", "who"), "b 2") // the path says for whom it is, and no header
			w.pass(time.Minute)
			if got := w.there(); len(got) != 0 {
				t.Fatal("they are not passivated:", got)
			}
		}
		if err := w.Tell(r, router.ToAll("x")); err != nil {
			t.Error(err)
		}
		w.run()
		w.wants("a:x", "b:x") // each its own, by one keeper
		if got := w.ask(r, host.Headed{Headers: map[string]string{router.Header: "routees"}}); got != "/user/keys/a /user/keys/b" {
			t.Error(got)
		}
		// The keeper can be one, too, and leaves as one.
		for _, err := range []string{w.ask(r, order("add", "/user/keys")), w.ask(r, order("remove", "/user/keys"))} {
			if err != "done" {
				t.Error(err)
			}
		}
		if got := w.ask(r, order("remove", "/user/keys/a")); got != "done" {
			t.Error(got)
		}
		w.asks(r, "who", "b 2", "b 3")
	})
}

func order(op string, v any) host.Headed {
	return host.Headed{Value: v, Headers: map[string]string{router.Header: op}}
}

func TestKeptRouteesOfLogics(t *testing.T) {
	for name, c := range map[string]struct {
		make router.Make
		want []string
	}{
		"broadcast":       {router.Broadcast, []string{"a:x", "b:x"}},
		"scatter-gather":  {router.ScatterGather(time.Second), []string{"a:x", "b:x"}},
		"tail-chopping":   {router.TailChopping(time.Second, 0), nil},
		"random":          {router.Random, nil},
		"smallest":        {router.SmallestMailbox, nil},
		"hashing":         {router.ConsistentHashing(router.Hashing{}), nil},
		"hashing by load": {router.ConsistentHashing(router.Hashing{Load: 1.5}), nil},
	} {
		w := inGo(t)
		r := w.start(router.Group(c.make, w.keeps(time.Minute, "a", "b")...))
		for range 2 { // whoever it is has begun with this question
			if got := w.ask(r, router.Keyed("k", "who")); got != "a 1" && got != "b 1" {
				t.Errorf("%s: %q", name, got)
			}
			w.pass(time.Minute)
			if got := w.there(); len(got) != 0 {
				t.Errorf("%s: %q are there", name, got)
			}
			w.heard = nil
		}
		w.tell(r, router.Keyed("k", "x"))
		if c.want != nil {
			w.wants(c.want...)
		} else if len(w.heard) != 1 {
			t.Errorf("%s: %q", name, w.heard)
		}
	}
}

// How much a kept routee has to do is its own, and what waits for it at the keeper; not what the keeper
// has.
func TestLoadOfKeptRoutees(t *testing.T) {
	w := inGo(t)
	paths := w.keeps(time.Hour, "a", "b", "c")
	keeper := must(w.Lookup("/user/keys"))(t)
	r := w.start(router.Group(router.SmallestMailbox, paths...))
	// All are as good as idle while the keeper has not come to them: one after the other gets its share.
	if err := w.Operate().Pause(keeper, false); err != nil {
		t.Fatal(err)
	}
	w.run()
	for range 6 {
		w.tell(r, "x")
	}
	if err := w.Operate().Unpause(keeper, false); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.wants("a:x", "a:x", "b:x", "b:x", "c:x", "c:x")
	// One that does not come to its messages is passed over, whatever else the keeper does.
	if err := w.Operate().Pause(must(w.Lookup("/user/keys/a"))(t), false); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.tell(r, "1", "2", "3")
	if slices.Contains(w.heard, "a:1") || len(w.heard) != 3 {
		t.Error(w.heard)
	}
}

// Orders to end reach the actors that are there, and never their keeper; when that ends, its keys are
// missing, and come back with the next one.
func TestEndsOfKeptRoutees(t *testing.T) {
	w := inGo(t)
	paths := w.keeps(time.Hour, "a", "b")
	keeper := must(w.Lookup("/user/keys"))(t)
	r := w.start(router.Group(router.RoundRobin, paths...))
	w.asks(r, "who", "a 1")
	for _, op := range []string{"kill", "stop"} {
		if got := w.ask(r, order(op, nil)); got != "done" {
			t.Error(op, got)
		}
		if i, err := w.View().Info(keeper); err != nil || i.Restarts != 0 || i.Crashes != 0 {
			t.Errorf("%s: the keeper: %+v %v", op, i, err)
		}
	}
	if got := w.there(); len(got) != 0 {
		t.Errorf("%q are there", got)
	}
	w.pass(time.Second) // one that was killed is not started again at once
	w.asks(r, "who", "b 1", "a 1")
	w.Stop(keeper)
	w.run()
	w.asks(r, "who", router.ErrNoRoutee.Error())
	w.keeps(time.Hour)
	w.asks(r, "who", "b 1", "a 1")
	if w.children(r) != 0 {
		t.Error("the group has children")
	}
}

// Who manages a router cannot make it reach keys that it is not admitted, and made-up keys are bounded by
// the keeper: for each sender, too, since that stays who it was.
func TestHostileKeysOfRouters(t *testing.T) {
	w := inGo(t)
	must(w.Spawn("keys", keyed.New(w.worker).WithMaxPerSender(2).WithMax(3).Props()))(t)
	friend := must(w.Spawn("friend", w.worker))(t)
	w.run()
	r := w.start(router.Group(router.Broadcast).WithManagers("/user/friend").WithAdmitted("/user/keys/f*"))
	send := func(v any) {
		t.Helper()
		if err := w.TellFrom(friend, r, v); err != nil {
			t.Fatal(err)
		}
		w.run()
	}
	for _, k := range []string{"a", "f1", "f2", "f3", "f4", "f~zz", "*", "f 5"} {
		send(order("add", "/user/keys/"+k))
	}
	if got := w.ask(r, order("routees", nil)); got != "/user/keys/f1 /user/keys/f2 /user/keys/f3 /user/keys/f4 /user/keys/f~zz" {
		t.Error(got)
	}
	send("x")
	if got := w.there(); !slices.Equal(got, []string{"f1", "f2"}) {
		t.Errorf("%q are there", got)
	}
	if err := w.Tell(r, "y"); err != nil { // Go code has no share, and the bound all the same
		t.Fatal(err)
	}
	w.run()
	if got := w.there(); !slices.Equal(got, []string{"f1", "f2", "f3"}) {
		t.Errorf("%q are there", got)
	}
}
