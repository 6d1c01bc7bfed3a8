package keyed_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// An address is found once and holds while the actor of the key comes and goes; one with a uid is that
// incarnation, and a path that nobody can have is nobody's.
func TestAddress(t *testing.T) {
	w := newWorld(t)
	keeper := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	a := must(w.AddressOf("/user/users/a"))(t)
	if !a.Kept() || a.To != keeper || a.Path() != "/user/users/a" {
		t.Fatal(a)
	}
	if ref, there := w.Find(a); there || w.starts["a"] != 0 {
		t.Error("who asks where it is starts it", ref)
	}
	for range 3 {
		w.asks(a.To, a.Message("who"), "a 1")
		ref, there := w.Find(a)
		if !there || ref.Path() != a.Path() {
			t.Error(ref, there)
		}
		one := must(w.AddressOf(fmt.Sprintf("/user/users/a#%d", uint64(ref.UID()))))(t)
		if one.Kept() || one.To != ref {
			t.Error(one)
		}
		w.pass(time.Minute)
		if _, there := w.Find(a); there {
			t.Error("it is not passivated")
		}
		if _, there := w.Find(one); there {
			t.Error("the ref of an incarnation means another one")
		}
		if err := w.Tell(one.To, one.Message("x")); !errors.Is(err, host.ErrUnknown) {
			t.Error(err)
		}
		if _, err := w.AddressOf(one.Path() + fmt.Sprintf("#%d", uint64(ref.UID()))); !errors.Is(err, host.ErrUnknown) {
			t.Error("it has gone:", err)
		}
	}
	if w.starts["a"] != 3 {
		t.Error(w.starts)
	}
	plain := must(w.AddressOf("/user/mute"))(t)
	if plain.Kept() || plain.Path() != "/user/mute" || plain.Message(5) != any(5) {
		t.Error(plain)
	}
	for _, path := range []string{"/user/users/", "/user/users/*", "/user/users/a b", "/user/users/../users/a", "/user/users/none/x", "/user/none", "users/a", ""} {
		if a, err := w.AddressOf(path); !errors.Is(err, host.ErrUnknown) || a != (host.Address{}) {
			t.Errorf("%q: %v %v", path, a, err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { w.Find(a); w.Find(plain) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What is passed on to the actor of a key is for that one, and what else becomes of the message is not.
func TestPassToAnAddress(t *testing.T) {
	w := newWorld(t)
	keeper := w.start(keyed.New(w.worker()).WithIdle(time.Minute).WithField("none"))
	a, b := must(w.AddressOf("/user/users/a"))(t), must(w.AddressOf("/user/users/b"))(t)
	var errs error
	front := must(w.Spawn("front", host.Func(func(ctx *host.Context, m host.Message) error {
		errs = errors.Join(ctx.Head().PassTo(a), ctx.Head().ForwardTo(b, "h"), ctx.Head().Pass(keeper), ctx.Head().PassTo(a))
		return nil
	})))(t)
	w.run()
	if err := w.Tell(front, keyed.For("other", "1")); err != nil {
		t.Fatal(err)
	}
	w.run()
	slices.Sort(w.heard) // actors run in any order
	w.wants("a:1", "a:1", "b:1", "other:1")
	if errs != nil {
		t.Error(errs)
	}
	// A question is answered by who got it.
	asks := must(w.Spawn("asks", host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Head().PassTo(b) })))(t)
	w.run()
	w.asks(asks, "who", "b 2")
}
