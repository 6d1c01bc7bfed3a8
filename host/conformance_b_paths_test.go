package host

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// B22: a path is resolved at each delivery: absolute, relative, "..".
func TestB22_Paths(t *testing.T) { everyManner(t, rowB22_Paths) }

func rowB22_Paths(t *testing.T) {
	l := newStage(t, nil)
	l.spawn("other", sinkTo(l))
	child := Child{"child", sinkTo(l)}
	native := l.spawn("native", Func(func(ctx *Context, m Message) error {
		var path string
		if err := m.Decode(&path); err != nil {
			return err
		}
		_ = ctx.At(path).Tell(path)
		return nil
	}).WithChildren(child))
	guest := l.spawn("guest", puppet(t).WithChildren(child))
	for _, path := range []string{"/user/other", "wasm://test/user/other", "./child", "../other", "../native/child", "../../user/other"} {
		l.say(native, path)
		l.say(guest, script(now(sendPath(path, path))))
		l.wants("message "+path, "message "+path)
	}
	for _, path := range []string{"/user/nobody", "./nobody", "../../../..", ".", "./../other", "/user/other/"} {
		l.say(native, path)
		l.say(guest, script(now(sendPath(path, path))))
		l.wants()
	}
	if n := len(l.letters()); n != 12 {
		t.Errorf("%d dead letters", n)
	}
	// A new incarnation is found by the same path.
	l.Stop(must(l.Lookup("/user/other"))(t))
	l.run()
	l.spawn("other", sinkTo(l))
	l.say(native, "/user/other")
	l.wants("message /user/other")
	// With a uid it is that one or nobody.
	if err := l.TellPath(native.String(), "x"); err != nil {
		t.Error(err)
	}
	if err := l.TellPath("/user/other#1", "x"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// B23: '*' and '?' within an element; every match gets the message, the sender, too, if it matches.
func TestB23_Wildcards(t *testing.T) { everyManner(t, rowB23_Wildcards) }

func rowB23_Wildcards(t *testing.T) {
	l := newStage(t, nil)
	told := map[string]int{}
	note := Func(func(ctx *Context, m Message) error {
		var v any
		if m.Decode(&v) == nil && v == "say" {
			return ctx.At("../w*").Tell("hello")
		}
		told[ctx.Self().Path()]++
		return nil
	})
	for _, name := range []string{"w1", "w2", "w10", "x1"} {
		l.spawn(name, note.WithChildren(Child{"in", note}))
	}
	check := func(want ...string) {
		t.Helper()
		var got []string
		for path, n := range told {
			if n == 1 {
				got = append(got, path)
			}
		}
		slices.Sort(got)
		l.equal("told", got, want)
		clear(told)
	}
	tell := func(path string) {
		t.Helper()
		if err := l.TellPath(path, 1); err != nil {
			t.Error(err)
		}
		l.run()
	}
	tell("/user/w?")
	check("/user/w1", "/user/w2")
	tell("/user/w*/in")
	check("/user/w1/in", "/user/w10/in", "/user/w2/in")
	tell("/us*/?1/i*")
	check("/user/w1/in", "/user/x1/in")
	l.say(must(l.Lookup("/user/w1"))(t), "say")
	check("/user/w1", "/user/w10", "/user/w2")
	if err := l.TellPath("/user/y*", 1); !errors.Is(err, ErrUnknown) || len(l.letters()) != 1 {
		t.Errorf("%v, %v", err, l.letters())
	}
	if err := l.TellPath("/user/**", 1); err != nil { // no more than "*"
		t.Error(err)
	}
	l.run()
	l.got = nil
	check("/user/w1", "/user/w10", "/user/w2", "/user/x1")
	l.equal("selected", fmt.Sprint(len(l.Select("/user/w*")), len(l.Select("/user/y*"))), "3 0")
	// A guest reaches those that it may send to.
	g := l.spawn("guest", puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/w*"}}))
	l.say(g, script(now(sendPath("/user/?1", 1))))
	check("/user/w1")
	l.say(g, script(now(abi.AppendForward(nil, 0, "../w?"))))
	check("/user/w1", "/user/w2")
	l.raw()
	l.say(g, script(now(sendPath("/user/x?", 1), sendPath("/user/y?", 1), sendPath("/user/w?none", 1))))
	check()
	var why []string
	for _, e := range l.raw(EventDeadLetter) {
		why = append(why, e.Dead.Reason.String())
	}
	// Whether somebody is there whom it may not send to does not matter.
	l.equal("refused", why, []string{"denied by capability", "denied by capability", "unknown actor"})
}
