package host

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/supervision"
)

// ledger is a manual system whose guests do random things, within small bounds.
type ledger struct {
	*System
	clock  *VirtualClock
	actors map[abi.Ref]*actor
	order  []abi.Ref
}

func newLedger(t *rapid.T, draw func(string, int) int) *ledger {
	clock := NewVirtualClock(time.Unix(1_700_000_000, 0))
	cfg := NewConfig("ledger").WithManual().WithClock(clock).WithSeed(1).WithIdleAfter(time.Second).WithMemory(int64(1+draw("memory", 6)) << 20)
	sys, err := New(cfg.WithGuardian(ledgerStrategy(draw)))
	if err != nil {
		t.Fatal(err)
	}
	return &ledger{System: sys, clock: clock, actors: map[abi.Ref]*actor{}}
}

func ledgerStrategy(draw func(string, int) int) supervision.Strategy {
	d := []supervision.Directive{supervision.Restart, supervision.Resume, supervision.Stop, supervision.Restart}[draw("directive", 3)]
	return supervision.Default().WithOtherwise(d).WithRules(
		supervision.Rule{Kinds: []abi.FailureKind{abi.FailureKilled}, Directive: supervision.Stop},
		supervision.Rule{Kinds: []abi.FailureKind{abi.FailureDeathPact}, Directive: d})
}

// look lists all actors, those that are about to go included.
func (l *ledger) look() {
	l.order = l.order[:0]
	var walk func(a *actor)
	walk = func(a *actor) {
		l.actors[a.uid] = a
		for _, k := range a.kids() {
			l.order = append(l.order, k.uid)
			walk(k)
		}
	}
	walk(l.user)
}

// expected is what an actor holds, from what there is.
func (a *actor) expected() Held {
	h := Held{
		Base:    actorBytes + int64(len(a.args)) + pathBytes*int64(len(a.path)) + box.BoxBytes(box.FreeBox) + a.failed.Load().Weight(),
		Timers:  int64(a.work.Timers.Len())*work.TimerBytes + 2*int64(a.work.Timers.Bytes()),
		Asks:    int64(a.work.Asks.Len()) * work.AskBytes,
		Watches: int64(a.work.Watch.Len())*work.WatchBytes + int64(a.work.Watch.Bytes()),
		Stash:   int64(a.work.Stash.Bytes()) + int64(a.work.Stash.Len())*box.EnvelopeBytes,
	}
	g := guestOf(a)
	if g == nil {
		return h
	}
	if x := g.inst.Load(); x != nil {
		h.Memory = x.Weight()
	}
	if g.inst.States != nil && g.inst.States.Why == "" {
		h.Snapshot = g.inst.States.Held()
	}
	if g.inst.Snapshot != nil {
		h.Snapshot += int64(g.inst.Snapshot.Bytes())
	}
	return h
}

// check compares the accounts with what there is.
func (l *ledger) check() error {
	var all int64
	pools := map[*account.Pool]int64{}
	n := map[*account.Pool]int64{}
	add := func(a *actor) error {
		got, want := a.account.Held(), a.expected()
		waiting := a.box.Bytes() + int64(a.box.Len())*box.EnvelopeBytes - box.BoxBytes(box.FreeBox)
		if got.Mailbox < waiting || got.Mailbox < 0 {
			return fmt.Errorf("%s: the mailbox's account is %d, there are %d", a.path, got.Mailbox, waiting)
		}
		want.Mailbox = got.Mailbox
		if got != want {
			return fmt.Errorf("%s (%v): %+v, there is %+v", a.path, a.life.State(), got, want)
		}
		for p := a.pool; p != nil; p = p.Above() {
			pools[p] += got.Total()
			n[p]++
		}
		return nil
	}
	for _, a := range []*actor{l.user, l.services} {
		if err := add(a); err != nil {
			return err
		}
		all++
	}
	for _, uid := range l.order {
		if err := add(l.actors[uid]); err != nil {
			return err
		}
	}
	for p, sum := range pools {
		if p.Held() < sum || p.Held() > sum+n[p]*2*account.Step {
			return fmt.Errorf("a pool holds %d, its %d actors %d", p.Held(), n[p], sum)
		}
	}
	if got := l.pool.Actors(); got != int64(len(l.order)) {
		return fmt.Errorf("%d actors are counted, there are %d", got, len(l.order))
	}
	return nil
}

// command is a random command of an actor.
func (l *ledger) command(a *actor, spawned *uint64, draw func(string, int) int) []byte {
	payload := encoded(make([]byte, draw("size", 3)*draw("size", 300)))
	to := a.uid
	if len(l.order) > 0 {
		to = l.order[draw("to", len(l.order)-1)]
	}
	switch draw("op", 13) {
	case 0, 1:
		return abi.AppendSend(nil, to, "", 0, 0, nil, payload)
	case 2:
		return abi.AppendForward(nil, to, "")
	case 3:
		return abi.AppendAsk(nil, to, "", uint64(1+draw("correlation", 4)), uint64(1+draw("timeout", 3))*1e9, nil, payload)
	case 4, 5:
		return abi.AppendTimer(nil, uint64(draw("key", 4)), uint64(draw("delay", 2))*1e9, uint64(draw("period", 1))*3e9, payload)
	case 6:
		return abi.AppendCancel(nil, uint64(draw("key", 4)))
	case 7:
		return abi.AppendWatch(nil, to, "")
	case 8:
		return abi.AppendUnwatch(nil, to, "")
	case 9:
		return abi.AppendStash(nil)
	case 10:
		return abi.AppendUnstash(nil)
	case 11:
		*spawned++
		return abi.AppendSpawn(nil, abi.ChildRef(childKeyOf(guestOf(a)), 0, *spawned-1), "puppet", "", nil, nil)
	case 12:
		return abi.AppendStop(nil, to, "")
	}
	return abi.AppendSend(nil, 0, "/user/*", 0, 0, nil, payload)
}

// step does one thing.
func (l *ledger) step(t testing.TB, draw func(string, int) int) {
	l.look()
	if len(l.order) < 2 {
		p := puppet(t).WithSupervision(ledgerStrategy(draw)).WithCrashedMessage(RedeliverCrashed(2))
		lim := Limits{Mailbox: 40, MailboxBytes: 1 << 14, Timers: 4, Asks: 3, Watches: 3, Stash: 5, Children: 3, Held: int64(8+draw("held", 40)) << 10}
		if draw("tree", 1) == 1 {
			lim.Tree = TreeLimits{Actors: 1 + draw("actors", 5), Memory: int64(1+draw("treememory", 20)) << 16}
		}
		_, _ = l.Spawn("", p.WithLimits(lim))
		return
	}
	uid := l.order[draw("actor", len(l.order)-1)]
	a := l.actors[uid]
	switch draw("step", 19) {
	case 0:
		l.clock.Advance(time.Duration(draw("pass", 4)) * time.Second)
	case 1:
		l.Stop(a.ref())
	case 2:
		_ = l.Operate().Kill(a.ref())
	case 3:
		_ = l.PoisonPill(a.ref())
	case 4:
		_ = l.Tell(a.ref(), script(trap()))
	case 5, 6:
		for range draw("steps", 30) {
			l.Step()
		}
	default:
		var cmds [][]byte
		spawned := guestOf(a).spawned
		for range 1 + draw("commands", 5) {
			cmds = append(cmds, l.command(a, &spawned, draw))
		}
		r := now(cmds...)
		if draw("trap", 9) == 0 {
			r = trap(cmds...)
		}
		if draw("hook", 9) == 0 {
			r = on([]abi.Kind{abi.KindStop, abi.KindPreRestart, abi.KindTimer, abi.KindReply}[draw("kind", 3)], cmds...)
		}
		_ = l.Tell(a.ref(), script(r))
	}
}

func (l *ledger) settle() error {
	l.RunUntilIdle(500) // some never come to rest; then it is looked at where they stand
	l.look()
	return l.check()
}

// end stops everything: then nobody holds anything.
func (l *ledger) end() error {
	if err := l.Close(context.Background()); err != nil {
		return err
	}
	if l.pool.Held() != 0 || l.pool.Actors() != 0 {
		return fmt.Errorf("%d bytes and %d actors are left", l.pool.Held(), l.pool.Actors())
	}
	return nil
}

// Whatever guests ask for, whatever fails, sleeps, is restarted or resumed: the accounts
// are what is there, and nothing is left in the end.
func TestAccountsAreWhatIsHeld(t *testing.T) {
	puppetImage(t)
	thorough.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		play(rt, t, func(what string, most int) int { return rapid.IntRange(0, most).Draw(rt, what) }, rapid.IntRange(10, 120).Draw(rt, "steps"))
	})
}

func play(rt *rapid.T, t testing.TB, draw func(string, int) int, steps int) {
	l := newLedger(rt, draw)
	defer func() {
		if err := l.end(); err != nil {
			rt.Fatal(err)
		}
	}()
	for range steps {
		l.step(t, draw)
		if draw("settle", 2) == 0 {
			if err := l.settle(); err != nil {
				rt.Fatal(err)
			}
		}
	}
	if err := l.settle(); err != nil {
		rt.Fatal(err)
	}
}

// FuzzAccounts is the same for the fuzzer.
func FuzzAccounts(f *testing.F) {
	puppetImage(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) {
			play(rt, t, func(what string, most int) int { return rapid.IntRange(0, most).Draw(rt, what) }, 60)
		})(t, data)
	})
}
