package host

import (
	"errors"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// whole implements all that an actor in Go may.
type whole struct{ say func(string) }

func (w *whole) Receive(ctx *Context, m Message) error {
	var text string
	_ = m.Decode(&text)
	w.say("core " + text)
	switch text {
	case "fail":
		return errors.New("no")
	case "odd":
		return ErrUnhandled
	case "panic":
		panic("as told")
	case "spawn":
		_, err := ctx.Spawn("child", Func(func(*Context, Message) error { return errors.New("child") }))
		return err
	}
	return ctx.Reply(text)
}
func (w *whole) Started(*Context) error { w.say("started"); return nil }
func (w *whole) Stopped(*Context)       { w.say("stopped") }
func (w *whole) Decide(*Context, Ref, *abi.Failure) supervision.Directive {
	w.say("decides")
	return supervision.Stop
}

// TestK23_InterceptorsInGo: the first one is outermost, what one does not hand on nobody inside sees, what
// comes after comes in the opposite order, also after an error and a panic.
func TestK23_InterceptorsInGo(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart))
	var said []string
	say := func(s string) { said = append(said, s) }
	wants := func(want ...string) {
		t.Helper()
		if !slices.Equal(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
		said = nil
	}
	around := func(name string) Interceptor {
		return func(next Receive) Receive {
			n := 0
			return func(ctx *Context, m Message) (err error) {
				n++
				say(name + " before")
				var text string
				switch _ = m.Decode(&text); text {
				case "stop at " + name:
					return ctx.Reply(n) // handled completely
				case "change":
					m.Payload, _ = Encode("changed by " + name)
				case "panic":
					defer func() { say(name + " after a panic") }()
				}
				if err = next(ctx, m); err != nil {
					say(name + " after: " + err.Error())
				} else {
					say(name + " after")
				}
				return err
			}
		}
	}
	core := Native(func() Actor { return &whole{say} }).WithSupervision(supervision.Default().WithOtherwise(supervision.Ask))
	inner := core.WithInterceptors(around("inner"))
	a := l.spawn("a", inner.WithInterceptors(around("outer"), around("middle")))
	wants("started")
	l.tell(a, "x")
	wants("outer before", "middle before", "inner before", "core x", "inner after", "middle after", "outer after")
	var n int
	if m := l.ask(a, "stop at inner"); m.Decode(&n) != nil || n != 2 {
		t.Errorf("answered %v", m)
	}
	wants("outer before", "middle before", "inner before", "middle after", "outer after")
	l.tell(a, "stop at outer")
	wants("outer before")
	l.tell(a, "change")
	wants("outer before", "middle before", "inner before", "core changed by outer", "inner after", "middle after", "outer after")
	l.tell(a, "odd")
	wants("outer before", "middle before", "inner before", "core odd", "inner after: "+ErrUnhandled.Error(), "middle after: "+ErrUnhandled.Error(), "outer after: "+ErrUnhandled.Error())
	l.tell(a, "spawn")
	l.tell(must(l.Lookup("/user/a/child"))(t), 1)
	if !slices.Contains(said, "decides") {
		t.Errorf("it does not decide about its child: %q", said)
	}
	said = nil
	l.tell(a, "panic")
	wants("outer before", "middle before", "inner before", "core panic", "inner after a panic", "middle after a panic", "outer after a panic", "started")
	l.tell(a, "fail")
	l.tell(a, "stop at outer")
	if n := len(said); n < 2 || said[n-1] != "outer before" {
		t.Errorf("%q", said)
	}
	said = nil
	b := l.spawn("b", inner) // the props themselves are not changed
	l.tell(b, "x")
	wants("started", "inner before", "core x", "inner after")
	l.Stop(b)
	l.run()
	wants("stopped")
	plain := l.spawn("plain", Func(func(*Context, Message) error { return nil }).WithInterceptors(around("one")))
	l.tell(plain, "x")
	l.Stop(plain)
	l.run()
	wants("one before", "one after")
}

func TestInterceptorsAreForActorsInGo(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart))
	none := func(next Receive) Receive { return next }
	for _, p := range []Props{puppet(t), Behave("b", func() Behaviour { return nil })} {
		if _, err := l.Spawn("", p.WithInterceptors(none)); !errors.Is(err, ErrBadProps) {
			t.Errorf("%v", err)
		}
	}
}
