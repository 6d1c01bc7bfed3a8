package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/paths"
	"github.com/wasmactors/wasmactors/host/ref"
)

// heard notes what a guest is answered: "kind correlation sender payload", in order.
func (l *stage) heard(g Ref) *[]string {
	l.t.Helper()
	var out []string
	stop := must(l.View().Tap(g, 1<<16, func(m *Tapped) {
		if m.Out || m.Kind != abi.KindReply && m.Kind != abi.KindReplyError && m.Kind != abi.KindAskTimeout {
			return
		}
		var what any = message.ReasonOf(m.Payload)
		if listed, total, err := abi.DecodeIdentities(m.Payload); err == nil {
			var paths []string
			for _, one := range listed {
				if ref, err := l.Lookup(one.Path); err != nil || ref.UID() != one.Ref {
					l.t.Errorf("%v is %v, %v", one, ref, err)
				}
				paths = append(paths, one.Path)
			}
			what = fmt.Sprint(total, " ", strings.Join(paths, " "))
		} else if slices.Equal(m.Payload, nullPayload) {
			what = "null"
		}
		out = append(out, fmt.Sprintf("%v %d %s: %v", m.Kind, m.Correlation, m.Peer.Name(), what))
	}, nil))(l.t)
	l.t.Cleanup(stop)
	return &out
}

func who(correlation uint64, path string) []byte {
	return abi.AppendIdentify(nil, path, correlation, uint64(time.Second))
}

// B24: a guest asks who is there. It is answered in the name of the actor, in its turn; in the negative
// if nobody is there, or if it may not send there; at once by a list if the path has patterns.
func TestB24_GuestsIdentify(t *testing.T) { everyManner(t, rowB24_GuestsIdentify) }

func rowB24_GuestsIdentify(t *testing.T) {
	l := newStage(t, nil)
	a, b := l.spawn("a1", newCounter()), l.spawn("a2", puppet(t))
	for _, name := range []string{"kid", "kit"} {
		l.spawn(name, newCounter())
	}
	g := l.spawn("g", puppet(t))
	key := childKeyOf(guestOf(l.table.Get(g.UID())))
	heard := l.heard(g)
	is := func(want ...string) {
		t.Helper()
		slices.SortStableFunc(*heard, func(a, b string) int { // between actors there is no order
			return strings.Compare(strings.Fields(a)[1], strings.Fields(b)[1])
		})
		if !slices.Equal(*heard, want) {
			t.Errorf("heard %q\nwant %q", *heard, want)
		}
		*heard = nil
	}
	l.say(g, script(now(who(1, "/user/a1"), who(2, "../a2"), who(3, l.name()+"/user/a1"), who(4, fmt.Sprintf("/user/a1#%d", a.UID())), who(5, "../g"))))
	is("reply 1 a1: null", "reply 2 a2: null", "reply 3 a1: null", "reply 4 a1: null", "reply 5 g: null")
	l.say(g, script(now(who(1, "/user/none"), who(2, fmt.Sprintf("/user/a1#%d", b.UID())), who(3, ""), who(4, "a1"), who(5, "@/user/a1"), who(6, "+/user/a1"), who(7, "/"), who(8, "/user/a1/"))))
	none := func(n int) string { return fmt.Sprintf("reply_error %d : no such actor", n) }
	is(none(1), none(2), none(3), none(4), none(5), none(6), none(7), none(8))

	// Its children, whom it may always send to; they may be of this turn.
	spawned := func(n uint64, name string) []byte {
		return abi.AppendSpawn(nil, abi.ChildRef(key, 0, n), "puppet", name, nil, nil)
	}
	l.say(g, script(now(who(1, "./c1"), spawned(0, "c1"), spawned(1, "c2"), who(2, "./c1"), who(3, "./c?"), who(4, "./d?"), abi.AppendStop(nil, abi.ChildRef(key, 0, 0), ""), who(5, "./c2")))) // a stop overtakes
	is(none(1), "reply_error 2 temp: no such actor", "reply 3 : 2 /user/g/c1 /user/g/c2", "reply 4 : 0 ", "reply 5 c2: null")

	// Patterns: whoever matches, also the asker itself.
	l.say(g, script(now(who(1, "/user/a*"), who(2, "../k?d"), who(3, "/user/none*"), who(4, "/user/*/c?"), who(5, "../g*"), who(6, "x*"), who(7, fmt.Sprintf("/user/a*#%d", b.UID())))))
	is("reply 1 : 2 /user/a1 /user/a2", "reply 2 : 1 /user/kid", "reply 3 : 0 ", "reply 4 : 1 /user/g/c2", "reply 5 : 1 /user/g", "reply 6 : 0 ", "reply 7 : 1 /user/a2")

	// What was sent before is handled before the answer; nobody answers who waits, and the time runs.
	l.Operate().Pause(a, false)
	l.run()
	l.say(g, script(now(abi.AppendSend(nil, a.UID(), "", 0, 0, nil, encoded(7)), who(1, "/user/a1"), who(2, "/user/a?"))))
	is("reply 2 : 2 /user/a1 /user/a2")
	l.pass(time.Second)
	is("ask_timeout 1 : null")
	l.say(g, script(now(who(1, "/user/a1"))))
	l.Operate().Unpause(a, false)
	l.run()
	is("reply 1 a1: null")
	// One that ends first.
	l.Operate().Pause(a, false)
	l.run()
	l.say(g, script(now(who(1, "/user/a1"), who(2, "/user/a1"), abi.AppendCancelAsk(nil, 2))))
	l.Stop(a)
	l.run()
	is("reply_error 1 temp: no such actor")
	// Nobody else may answer: not even the actor itself.
	forger := l.spawn("forger", Func(func(ctx *Context, m Message) error { return nil }))
	l.Operate().Pause(forger, false)
	l.run()
	l.say(g, script(now(who(1, "/user/forger"))))
	forged, _ := message.Envelope("forged")
	forged.Kind, forged.Sender, forged.Correlation = abi.KindReply, forger.UID(), 1
	_ = l.deliver(nil, g.UID(), forged)
	l.run()
	is()
	l.Operate().Unpause(forger, false)
	l.run()
	is("reply 1 forger: null")
	if n := l.table.Get(g.UID()).work.Asks.Len(); n != 0 {
		t.Errorf("%d asks are open", n)
	}
}

// name is the system's, as it stands before paths.
func (l *stage) name() string { return ref.Scheme + l.cfg.Name }

// What a guest may not send to is for it as if it were not there: the answer, when it comes and what it
// costs are the same, whoever is there.
func TestIdentifyTellsNothingOfOthers(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		for _, path := range []string{
			"/user/secret", "/user/secret/a", "../secret", "/user/secret#7", "/system/secret", "/user/open/secret",
			"/user/s*", "/user/secre?", "/user/*", "/user/*/*", "/user/secret/*", "/user/s*/a", "/*/*", "/user/open/*", "/user/*/a", "/user/op?n/*/b",
			"/user/?????????????????????????", "/user/n*/?", "/user/none/*", "/user/*#7",
		} {
			look := func(there bool) (answer []string, fuel uint64, letters string) {
				l := newStage(t, nil)
				family := Func(func(ctx *Context, m Message) error {
					for _, name := range []string{"a", "hidden", "secret"} {
						if _, err := ctx.Spawn(name, newCounter()); err != nil {
							return err
						}
					}
					return nil
				})
				open := l.spawn("open", Func(func(ctx *Context, m Message) error {
					_, err := ctx.Spawn(map[bool]string{true: "secret", false: "other"}[there], newCounter())
					return err
				}))
				g := l.spawn("g", puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/open", "/user/open/x/b", "/user/none/a"}}))
				if there {
					l.say(open, 1)
					l.spawn("none", newCounter()) // on the way to a path that is allowed
					for _, name := range []string{"secret", "secret2", "s"} {
						l.say(l.spawn(name, family), 1)
					}
				}
				heard := l.heard(g)
				before, _ := l.View().Info(g)
				l.say(g, script(now(who(1, path))))
				after, _ := l.View().Info(g)
				for _, d := range l.letters() {
					letters += d + "; "
				}
				return *heard, after.Fuel - before.Fuel, letters
			}
			withThem, fuel, letters := look(true)
			without, same, too := look(false)
			if !slices.Equal(withThem, without) || fuel != same || letters != too {
				t.Errorf("%s: %q for %d, %q; if nobody is there %q for %d, %q", path, withThem, fuel, letters, without, same, too)
			}
			if len(withThem) != 1 || strings.Contains(withThem[0], "secret") {
				t.Errorf("%s: %q", path, withThem)
			}
		}
	})
}

// What a path with patterns finds is what a walk over everybody finds, and the capabilities allow.
func TestReachableIsWhatIsAllowed(t *testing.T) {
	l := newStage(t, nil)
	for _, name := range []string{"a", "ab", "b"} {
		l.spawn(name, Native(func() Actor { return grower(2) }))
	}
	if n := len(l.nodes.Match([]string{"user", "*", "*", "*"})); n != 27 {
		t.Fatal(n)
	}
	patterns := []string{"/user/*", "/user/a*", "/user/?", "/user/*/*", "/user/a/*", "/user/*/a", "/user/a*/?b/*", "/*/a/b", "/user/*/*/ab", "/user/**", "/us*/b/*/a?"}
	caps := [][]string{{"/**"}, {"/user/**"}, {"/user/a"}, {"/user/a", "/user/b"}, {"/user/a*"}, {"/user/*/a"}, {"/user/a/**", "/user/a/b"}, {"/user/*/*/ab", "/user/ab/*/a"}, {"/user/a/b/ab", "/user/ab/b/ab", "/user/ab/c/d"}, {"/system/**"}, {"/user/b/**", "/user/?b"}}
	for _, allowed := range caps {
		a := l.table.Get(l.spawn("", puppet(t).WithCapabilities(Capabilities{Send: allowed})).UID())
		for _, path := range patterns {
			p, ok := a.parsePath(path)
			if !ok {
				t.Fatal(path)
			}
			var want, got []string
			for _, t := range l.nodes.Match(p.Elements) {
				if (watching{a, nil}).may(t.elements) {
					want = append(want, t.path)
				}
			}
			visits := 0
			found, f := a.sys.nodes.Reachable(p, a.rules.Load().compiled.send, paths.Toll{Visit: func(n int, _ string) *abi.Failure { visits += n; return nil }})
			for _, t := range found {
				got = append(got, t.path)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) || f != nil {
				t.Errorf("%s of %q: %q, want %q", path, allowed, got, want)
			}
			if len(got) > 0 && visits < len(got) {
				t.Errorf("%s of %q: %d found by %d visits", path, allowed, len(got), visits)
			}
		}
	}
}

// grower has children a, ab and b, down to a depth.
type grower int

func (g grower) Started(ctx *Context) error {
	if g == 0 {
		return nil
	}
	for _, name := range []string{"a", "ab", "b"} {
		if _, err := ctx.Spawn(name, Native(func() Actor { return g - 1 })); err != nil {
			return err
		}
	}
	return nil
}

func (g grower) Receive(*Context, Message) error { return nil }

// An answer has bounds: of actors, of bytes, of the asker's inbox and mailbox. How many there are is told
// whatever fits.
func TestAnswersOfIdentifyAreBounded(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		const n = 1500
		var refs []Ref
		for i := range n {
			refs = append(refs, must(l.Spawn(fmt.Sprintf("%04d", i), newCounter()))(t))
		}
		l.run()
		g := l.spawn("g", puppet(t))
		var listed []abi.Identity
		var total, size int
		stop := must(l.View().Tap(g, 1<<20, func(m *Tapped) {
			if !m.Out && m.Kind == abi.KindReply {
				size = m.Size
				listed, total, _ = abi.DecodeIdentities(m.Payload)
			}
		}, nil))(t)
		defer stop()
		a := l.table.Get(g.UID())
		l.say(g, script(now(who(1, "/user/????"))))
		if room := min(mostIdentities, int(a.rules.Load().limits.Message)); total != n || size > room || size < room*8/10 && len(listed) != abi.MaxIdentities {
			t.Errorf("%d of %d, %d bytes of %d", len(listed), total, size, room)
		}
		for i, one := range listed {
			if one.Ref != refs[i].UID() {
				t.Fatalf("%d: %v", i, one)
			}
		}
		found := l.nodes.Match([]string{"user", "*"})
		if got := l.identities(found, 1<<30); len(got) != abi.MaxIdentities {
			t.Errorf("%d are listed", len(got))
		}
		if got := l.identities(found, abi.IdentitiesHead+abi.IdentitySize(len("/user/0000"))-1); len(got) != 0 {
			t.Errorf("%d are listed where there is room for none", len(got))
		}
		// A mailbox without room for it.
		s := l.spawn("small", puppet(t).WithLimits(Limits{MailboxBytes: 200}))
		heard := l.heard(s)
		l.say(s, script(now(who(1, "/user/0*"), who(2, "/user/000?"))))
		if len(*heard) != 2 || !strings.HasPrefix((*heard)[0], "reply_error 1 : the answer was not delivered: ") || !strings.HasPrefix((*heard)[1], "reply_error 2 ") {
			t.Errorf("%q", *heard)
		}
	})
}

// A flood of asks for who is there, given up at once, is bounded by the mailboxes, and a guest that goes
// on is ended; asks beyond Limits.Asks are refused; the fuel of a turn bounds the searches.
func TestFloodOfIdentify(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		for i := range 200 {
			l.spawn(fmt.Sprint("a", i), newCounter())
		}
		for _, path := range []string{"/user/none", "/user/a1", "/user/a*", "/denied/a", "/user/none*"} {
			g := l.spawn("", puppet(t).WithLimits(Limits{Asks: 3, Mailbox: 50}).WithCapabilities(Capabilities{Send: []string{"/user/**"}}))
			for range 3 { // more commands than one script has room for
				l.post(g, script(now(slices.Repeat(slices.Concat(who(1, path), abi.AppendCancelAsk(nil, 1)), 400))))
			}
			before := l.View().Stats().Crashes
			l.run()
			if crashed := l.View().Stats().Crashes > before; crashed != (path != "/user/a1") { // that one answers by itself
				t.Errorf("%s: crashed %v", path, crashed)
			}
			if held := must(l.View().Held(g))(t); held.Asks != 0 || held.Mailbox > 64<<10 {
				t.Errorf("%s: %+v", path, held)
			}
			l.Stop(g)
			l.run()
		}
		g := l.spawn("few", puppet(t).WithLimits(Limits{Asks: 2}))
		heard := l.heard(g)
		l.say(g, script(now(who(1, "/user/a1"), who(2, "/user/a*1"), who(3, "/user/a1"))))
		if len(*heard) != 3 || !slices.ContainsFunc(*heard, func(s string) bool { return strings.HasPrefix(s, "reply_error 3 : ask refused") }) {
			t.Errorf("%q", *heard)
		}
	})
}

// A search is paid for before the turn takes effect, as other commands with patterns are.
func TestIdentifyIsPaid(t *testing.T) {
	fuel := func(path string, n int) (uint64, int) {
		l := newStage(t, nil)
		for i := range n {
			l.spawn(fmt.Sprintf("a%d", i), newCounter())
		}
		g := l.spawn("guest", puppet(t).WithLimits(Limits{Fuel: 1_000_000}))
		before, _ := l.View().Info(g)
		l.say(g, script(now(toProbe("done"), who(1, path))))
		after, _ := l.View().Info(g)
		return after.Fuel - before.Fuel, len(l.got)
	}
	one, _ := fuel("/user/a1", 500)
	if again, _ := fuel("/user/a1", 5); again != one {
		t.Errorf("one of 500 costs %d, one of 5 %d", one, again)
	}
	all, done := fuel("/user/a*", 500)
	if all < one+500*300 || done != 1 {
		t.Errorf("500 cost %d, one %d", all, one)
	}
	if _, done := fuel("/user/a*", 3000); done != 0 {
		t.Error("a search that cannot be paid for is made")
	}
}
