package host

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
)

// What patterns are watched is bounded, for an actor, its tree and the system; so is what a guest
// reaches by them.
func TestPatternsHaveBounds(t *testing.T) {
	l := newStage(t, nil)
	var errs []error
	w := l.spawn("w", Func(func(ctx *Context, m Message) error {
		var n int
		if m.Decode(&n) != nil {
			return nil
		}
		errs = nil
		for i := range n {
			_, err := ctx.At(fmt.Sprintf("/user/x%d*", i)).Watch(PresentAndFuture)
			errs = append(errs, err)
		}
		return nil
	}))
	l.say(w, lookouts.Most+1)
	for i, err := range errs {
		if errors.Is(err, ErrLimit) != (i == lookouts.Most) {
			t.Errorf("pattern %d: %v", i, err)
		}
	}
	l.Stop(w)
	l.run()

	// A guest's patterns reach whom it may send to, now and later.
	g := l.spawn("guest", puppet(t, on(abi.KindTerminated, toProbe("terminated"))).WithCapabilities(Capabilities{Send: []string{"/user/probe", "/user/a*"}}))
	l.say(g, script(now(abi.AppendWatch(nil, 0, "+/user/*"))))
	l.spawn("b", newCounter())
	l.spawn("a", newCounter())
	for _, path := range []string{"/user/b", "/user/a"} {
		ref, err := l.Lookup(path)
		if err != nil {
			t.Fatal(err)
		}
		l.Stop(ref)
		l.run()
	}
	l.wants("message terminated")

	// A flood of starts is thinned out, and nobody who is there is missed.
	l.Operate().Pause(g, false)
	l.run()
	var refs []Ref
	for i := range 3 * sysmail.MostBorn {
		ref, err := l.Spawn(fmt.Sprintf("a%d", i), newCounter())
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	l.Operate().Unpause(g, false)
	l.run()
	for _, ref := range refs {
		l.Stop(ref)
	}
	l.run()
	if n := len(l.got); n != len(refs) {
		t.Errorf("%d of %d ends were told", n, len(refs))
	}
}

// A search by a guest is paid for before it is made.
func TestWatchingByPatternsIsPaid(t *testing.T) {
	fuel := func(watchers string) uint64 {
		l := newStage(t, nil)
		for i := range 500 {
			l.spawn(fmt.Sprintf("a%d", i), newCounter())
		}
		g := l.spawn("guest", puppet(t))
		before, _ := l.View().Info(g)
		l.say(g, script(now(abi.AppendWatch(nil, 0, watchers))))
		after, _ := l.View().Info(g)
		return after.Fuel - before.Fuel
	}
	one, all := fuel("/user/a1"), fuel("/user/a*")
	if all < one+500*400 {
		t.Errorf("watching 500 costs %d, one %d", all, one)
	}
}

// Identifying by a pattern is an ask of each that matches, or of nobody.
func TestIdentifyByPatterns(t *testing.T) {
	l := newStage(t, nil)
	var names []string
	var n int
	var err error
	w := l.spawn("w", Func(func(ctx *Context, m Message) error {
		var path string
		switch {
		case m.Kind != abi.KindMessage:
			names = append(names, fmt.Sprint(m.Sender.Name(), m.Correlation, m.Kind))
		case m.Decode(&path) == nil:
			n, err = ctx.At(path).IdentifyAll(5, time.Second)
		}
		return nil
	}).WithLimits(Limits{Asks: 3}))
	for _, name := range []string{"a1", "a2", "b1", "c1", "c2", "c3", "c4"} {
		l.spawn(name, newCounter())
	}
	l.say(w, "../a*")
	slices.Sort(names)
	if want := []string{"a15 reply", "a26 reply"}; n != 2 || err != nil || !slices.Equal(names, want) {
		t.Errorf("%d, %v, %q", n, err, names)
	}
	names = nil
	if l.say(w, "/user/c*"); n != 0 || !errors.Is(err, ErrLimit) || names != nil {
		t.Errorf("%d, %v, %q", n, err, names)
	}
	if l.say(w, "/user/none*"); n != 0 || err != nil && !errors.Is(err, ErrUnknown) {
		t.Errorf("%d, %v", n, err)
	}
}
