package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/stray"
	"github.com/wasmactors/wasmactors/supervision"
)

// spend leaves a tree so many guesses.
func (l *stage) spend(of Ref, left int) {
	l.table.Get(of.UID()).tree.guesses.Leave(left, l.time.Now())
}

// Within one turn, guesses and refs of living actors take turns. When the guesses are used up nothing more takes
// effect, whichever command names the ref, and the guest fails.
func TestGuessesAreRefusedBeforeTheyAreTried(t *testing.T) {
	ops := map[string]func(uid abi.Ref, n int) []byte{
		"send": func(uid abi.Ref, n int) []byte { return abi.AppendSend(nil, uid, "", 0, 0, nil, encoded("hit")) },
		"reply": func(uid abi.Ref, n int) []byte {
			return abi.AppendSend(nil, uid, "", 0, abi.FlagReply, nil, encoded("hit"))
		},
		"forward": func(uid abi.Ref, n int) []byte { return abi.AppendForward(nil, uid, "") },
		"ask": func(uid abi.Ref, n int) []byte {
			return abi.AppendAsk(nil, uid, "", uint64(n+1), uint64(time.Hour), nil, encoded("hit"))
		},
	}
	const left = 3
	everyManner(t, func(t *testing.T) {
		for name, op := range ops {
			l := newStage(t, nil)
			hits := 0
			g := l.spawn("g", puppet(t))
			l.spend(g, left)
			var turn [][]byte
			for i := range 20 {
				victim := l.spawn("", Func(func(*Context, Message) error { hits++; return nil }))
				turn = append(turn, op(abi.Ref(1000+i), 2*i), op(victim.UID(), 2*i+1))
			}
			l.say(g, script(now(turn...)))
			if hits != left-1 {
				t.Errorf("%s: %d hits of a turn take effect, want %d", name, hits, left-1)
			}
			if f := l.raw(EventFailed); len(f) != 1 || f[0].Ref.Name() != "g" || !strings.Contains(f[0].Failure.Reason, "refs that name no actor") {
				t.Errorf("%s: %v", name, f)
			}
		}
	})
}

// Watches and stops of refs are refused like messages.
func TestGuessesByWatchAndStop(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		for name, op := range map[string]func(abi.Ref) []byte{
			"watch": func(uid abi.Ref) []byte { return abi.AppendWatch(nil, uid, "") },
			"stop":  func(uid abi.Ref) []byte { return abi.AppendStop(nil, uid, "") },
		} {
			l := newStage(t, nil)
			victims := make([]Ref, 5)
			for i := range victims {
				victims[i] = l.spawn(fmt.Sprintf("victim%d", i), newCounter())
			}
			g := l.spawn("g", puppet(t))
			l.spend(g, 3)
			var turn [][]byte
			for i, v := range victims {
				turn = append(turn, op(abi.Ref(1000+i)), op(v.UID()))
			}
			l.say(g, script(now(turn...)))
			var tried []bool
			for _, v := range victims {
				a := l.table.Get(v.UID())
				tried = append(tried, a == nil || len(a.work.Watch.Watchers()) > 0)
			}
			if want := []bool{true, true, false, false, false}; !slices.Equal(tried, want) {
				t.Errorf("%s: %v have taken effect, want %v", name, tried, want)
			}
			if n := len(l.raw(EventFailed)); n != 1 {
				t.Errorf("%s: %d failures", name, n)
			}
		}
	})
}

// However many actors of a tree guess, also such as it starts for that, no more takes effect than the page says.
func TestATreeOfGuessers(t *testing.T) {
	l := newStage(t, nil)
	hits := map[abi.Ref]bool{}
	top := l.spawn("top", puppet(t).WithSupervision(otherwise(supervision.Stop)))
	l.spend(top, 0)
	key := childKeyOf(l.table.Get(top.UID()).behaviour.(*guest))
	const rounds, kids, each = 20, 10, 16
	begun := 0
	for range rounds {
		l.clock.Advance(100 * time.Millisecond)
		var spawns [][]byte
		for range kids {
			var guesses [][]byte
			for i := range each {
				victim := l.spawn("", Func(func(ctx *Context, _ Message) error { hits[ctx.Self().UID()] = true; return nil }))
				guesses = append(guesses, abi.AppendSend(nil, abi.Ref(1000+i), "", 0, 0, nil, nil), abi.AppendSend(nil, victim.UID(), "", 0, 0, nil, encoded("hit")))
			}
			spawns = append(spawns, abi.AppendSpawn(nil, abi.ChildRef(key, 0, uint64(begun)), "puppet", "", script(on(abi.KindStart, guesses...)), nil))
			begun++
		}
		l.say(top, script(now(spawns...)))
	}
	most := int(rounds * stray.Rate / 10)
	if len(hits) > most || len(hits) < most/2 {
		t.Errorf("%d hits of %d take effect in %d s, want %d at most", len(hits), rounds*kids*each, rounds/10, most)
	}
	if !l.alive(top) {
		t.Error("the top has stopped")
	}
}

// Refs that the host itself has given to an actor work although its tree has no guesses left: its own, its parent's,
// its children's, the sender's, those of its services.
func TestVouchedRefs(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		asked := 0
		service := must(l.SpawnService("db", Func(func(*Context, Message) error { asked++; return nil })))(t)
		heard := 0
		parent := l.spawn("parent", Func(func(ctx *Context, m Message) error {
			heard++
			return nil
		}).WithChildren(Child{"g", puppet(t).WithGrant("db", true)}))
		g := lookup(t, l.System, "/user/parent/g")
		key := childKeyOf(l.table.Get(g.UID()).behaviour.(*guest))
		child := abi.ChildRef(key, 0, 0)
		l.say(g, script(now(abi.AppendSpawn(nil, child, "puppet", "kid", script(), nil))))
		l.spend(g, 0)
		to := func(uid abi.Ref, v any) []byte { return abi.AppendSend(nil, uid, "", 0, 0, nil, encoded(v)) }
		l.say(g, script(now(to(l.probe.UID(), "sender"), to(parent.UID(), "parent"), to(service.UID(), "service"),
			to(child, script(now(toProbe("child")))), to(g.UID(), script(now(toProbe("self")))))))
		slices.Sort(l.got)
		if f := l.raw(EventFailed); len(f) != 0 || heard != 1 || asked != 1 || len(l.got) != 3 {
			t.Errorf("failures %v, the parent got %d, the service %d, the probe %q", f, heard, asked, l.got)
		}
	})
}

// A guest that forwards another's message to refs that it has guessed fails itself, not the one who has sent it.
func TestForwardsAreGuessesOfWhoForwards(t *testing.T) {
	l := newStage(t, nil)
	g := l.spawn("g", puppet(t))
	l.spend(g, 1)
	probe := l.table.Get(l.probe.UID()).tree.guesses
	l.say(g, script(now(abi.AppendForward(nil, 1000, ""), abi.AppendForward(nil, 1001, ""))))
	if f := l.raw(EventFailed); len(f) != 1 || f[0].Ref.Name() != "g" || probe.N != 0 {
		t.Errorf("%v, %v guesses of the sender", f, probe.N)
	}
}

// Numbers that Go code takes for refs in an actor's name count as that actor's guesses.
func TestRefsByNumberAreGuesses(t *testing.T) {
	l := newStage(t, nil)
	victim := l.spawn("victim", newCounter())
	g := l.spawn("g", puppet(t))
	l.spend(g, 1)
	for i, c := range []struct {
		uid     abi.Ref
		by      Ref
		refused bool
	}{{victim.UID(), g, false}, {1000, Ref{}, false}, {1001, g, false}, {victim.UID(), g, true}, {g.UID(), g, false}, {victim.UID(), Ref{}, false}} {
		if _, err := l.RefOf(c.uid, c.by); (err != nil) != c.refused {
			t.Errorf("%d: %v", i, err)
		}
	}
	l.run()
	if n := len(l.raw(EventFailed)); n != 1 {
		t.Errorf("%d failures", n)
	}
}

// Actors without a name of their own share their guesses: there may be a new one for each question.
func TestStrangersShareTheirGuesses(t *testing.T) {
	l := newStage(t, nil)
	a, b, named := l.spawn("", newCounter()), l.spawn("", newCounter()), l.spawn("named", newCounter())
	of := func(r Ref) *stray.Guesses { return l.table.Get(r.UID()).tree.guesses }
	if of(a) != of(b) || of(a) == of(named) {
		t.Error("whose guesses?")
	}
}
