package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/paths"
	"github.com/wasmactors/wasmactors/host/internal/price"
)

// byPattern are commands that stand for all that a pattern names.
var byPattern = map[string]func(path string) []byte{
	"send":     func(path string) []byte { return sendPath(path, 1) },
	"forward":  func(path string) []byte { return abi.AppendForward(nil, 0, path) },
	"watch":    func(path string) []byte { return abi.AppendWatch(nil, 0, path) },
	"look out": func(path string) []byte { return abi.AppendWatch(nil, 0, "+"+path) },
	"identify": func(path string) []byte { return who(1, path) },
}

// What a command by a pattern costs, and what becomes of it, does not depend on actors that the guest
// may not send to: neither where its capabilities have names nor where they have patterns.
func TestPatternsTellNothingOfOthers(t *testing.T) {
	family := Func(func(ctx *Context, m Message) error {
		for _, name := range []string{"a", "hidden", "secret"} {
			if _, err := ctx.Spawn(name, newCounter()); err != nil {
				return err
			}
		}
		return nil
	})
	look := func(command func(string) []byte, path string, caps []string, there bool) (fuel uint64, letters []string) {
		l := newStage(t, nil)
		for _, name := range []string{"open", "open2", "other-x"} {
			l.spawn(name, newCounter())
		}
		g := l.spawn("g", puppet(t).WithCapabilities(Capabilities{Send: caps}))
		if there {
			for i := range 40 {
				k := l.spawn(fmt.Sprint("secret", i), family)
				if i < 3 {
					l.say(k, 1)
				}
			}
		}
		l.letters()
		before, _ := l.View().Info(g)
		l.say(g, script(now(command(path))))
		after, _ := l.View().Info(g)
		return after.Fuel - before.Fuel, l.letters()
	}
	for _, caps := range [][]string{{"/user/open", "/user/open/x/b"}, {"/user/open*"}, {"/user/*-x"}, {"/user/*/b"}, {"/user/open/**"}, {"/user/open*", "/user/?*-x", "/user/*/none/?"}} {
		for _, path := range []string{"/user/*", "/user/s*", "/user/*/a", "/user/*/*", "/user/secret1/*", "/*/secret?", "../*e*", "/user/*/b", "/user/*/?/b", "/user/s*/none/*"} {
			for what, command := range byPattern {
				fuel, letters := look(command, path, caps, true)
				same, too := look(command, path, caps, false)
				if fuel != same || !slices.Equal(letters, too) {
					t.Errorf("%s %s with %q costs %d, %q; if nobody else is there %d, %q", what, path, caps, fuel, letters, same, too)
				}
			}
		}
	}
}

// The charge does depend on those that the guest may send to, whether the pattern matches them or not.
func TestPatternsPayForThoseThatAreReached(t *testing.T) {
	for _, path := range []string{"/user/open*", "/user/*none"} {
		for what, command := range byPattern {
			fuel := func(n int) uint64 {
				l := newStage(t, nil)
				for i := range n {
					l.spawn(fmt.Sprint("open", i), newCounter())
				}
				g := l.spawn("g", puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/open*"}}))
				before, _ := l.View().Info(g)
				l.say(g, script(now(command(path))))
				after, _ := l.View().Info(g)
				return after.Fuel - before.Fuel
			}
			if few, many := fuel(5), fuel(305); many < few+300*200 {
				t.Errorf("%s %s: 5 cost %d, 305 %d", what, path, few, many)
			}
		}
	}
}

// A search over a crowd that the guest must not know of looks at nobody where a capability has a name, and
// elsewhere it is work of the turn's that kill and deadline end; hundreds of them are not to be had in a turn.
func TestSearchesPassACrowd(t *testing.T) {
	l := newStage(t, nil)
	const crowd = 20_000
	parent := l.spawn("crowd", Func(func(ctx *Context, m Message) error {
		for range crowd {
			if _, err := ctx.Spawn("", Func(func(*Context, Message) error { return nil })); err != nil {
				return err
			}
		}
		return nil
	}).WithLimits(Limits{Children: crowd}))
	l.say(parent, 1)
	l.log.Close()
	l.log = l.Subscribe(eventRoom, nil) // nobody looks at the events of so many starts
	for _, c := range []struct {
		cap, path   string
		passed, all bool
	}{
		{"/user/crowd/x", "/user/crowd/*", false, false}, {"/user/x/**", "/user/*/*", false, false}, {"/user/crowd/x*", "/user/crowd/y*", false, false},
		{"/user/crowd/*", "/user/crowd/*", false, true}, {"/user/crowd/x*", "/user/crowd/*", true, false}, {"/user/*/*/y", "/user/*/*/*", true, false},
	} {
		a := l.table.Get(l.spawn("", puppet(t).WithCapabilities(Capabilities{Send: []string{c.cap}})).UID())
		p, _ := a.parsePath(c.path)
		visits, passed := 0, 0
		if _, f := a.sys.nodes.Reachable(p, a.rules.Load().compiled.send, paths.Toll{
			Visit: func(n int, _ string) *abi.Failure { visits += n; return nil },
			Pass: func(n int) *abi.Failure {
				if passed += n; n > 2*paths.MostPassed {
					t.Errorf("%d are passed at once", n)
				}
				return nil
			},
		}); f != nil {
			t.Fatal(f)
		}
		if passed >= crowd != c.passed || visits >= crowd != c.all || !c.all && visits > 10 || !c.passed && passed > 10 {
			t.Errorf("%s with %s: %d visits, %d passed", c.path, c.cap, visits, passed)
		}
		if paths.Passes(p.Elements, a.rules.Load().compiled.send) != c.passed {
			t.Errorf("%s with %s may pass others: %v", c.path, c.cap, !c.passed)
		}
	}
	for n, failed := range map[int]bool{price.FewSearches: false, 200: true} {
		g := l.spawn("", puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/crowd/x*"}}).WithLimits(Limits{Fuel: 20_000_000}))
		l.raw()
		l.say(g, script(now(slices.Repeat(sendPath("/user/crowd/*", 1), n))))
		fails := l.raw(EventFailed)
		if (len(fails) > 0) != failed || failed && !strings.Contains(fails[0].Failure.Reason, "spent on the turn's commands") {
			t.Errorf("%d searches: %v", n, fails)
		}
	}
	late := l.spawn("late", puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/crowd/x*"}}).WithLimits(Limits{Deadline: time.Nanosecond}))
	l.raw()
	l.say(late, script(now(slices.Repeat(sendPath("/user/crowd/*", 1), 3))))
	if fails := l.raw(EventFailed); len(fails) != 1 || fails[0].Failure.Kind != abi.FailureDeadline {
		t.Errorf("beyond the deadline: %v", fails)
	}
}
