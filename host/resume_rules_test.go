package host

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/supervision"
)

// A snapshot is taken after so many turns that it costs about as much as they do: 16, or one for each KiB of it, up to
// 1024; and earlier if what they have handled takes more than 64 KiB and a quarter of it. Until then the turns are
// remembered; with it they are forgotten.
func TestWhenASnapshotIsDue(t *testing.T) {
	image := load(t, newEngine(t), "testdata/brute.wasm")
	for _, c := range []struct {
		pages, payload int // that the guest has grown by, and bytes of each message
	}{{0, 0}, {0, 5_000}, {1, 0}, {1, 3_000}, {30, 0}, {30, 40_000}, {30, 2_000}} {
		l := newLab(t, otherwise(supervision.Resume))
		ref := l.spawn("g", Guest(image, "brute"))
		g := guestOf(l.table.Get(ref.UID()))
		l.tell(ref, order(verbGrow, uint32(c.pages), nil))
		for range 2000 { // until the next one, which is as large as those to come
			if len(g.inst.States.Log) == 0 {
				break
			}
			l.tell(ref, order(verbSpin, 1, nil))
		}
		n, message := g.inst.States.Snap.Bytes(), order(verbSpin, 1, make([]byte, c.payload))
		turns := max(16, min(n>>10, 1024))
		l.tell(ref, message)
		if size := g.inst.States.Bytes(); size < len(message) {
			t.Fatalf("a message of %d bytes counts as %d", len(message), size)
		} else if early := (64<<10 + n/4 + size - 1) / size; early < turns {
			turns = early
		}
		for k := 2; k < turns; k++ {
			if l.tell(ref, message); len(g.inst.States.Log) != k {
				t.Fatalf("%+v: after %d turns of %d it remembers %d", c, k, turns, len(g.inst.States.Log))
			}
		}
		if l.tell(ref, message); len(g.inst.States.Log) != 0 || g.inst.States.Bytes() != 0 {
			t.Errorf("%+v: after %d turns it remembers %d, of %d bytes", c, turns, len(g.inst.States.Log), g.inst.States.Bytes())
		}
		if got, want := l.table.Get(ref.UID()).account.Held(), int64(2*g.inst.States.Snap.Bytes()+64<<10); got.Snapshot != want {
			t.Errorf("%+v: %d bytes are on its account, not %d", c, got.Snapshot, want)
		}
	}
}

// A snapshot that does not fit into the account is none: nothing more is remembered, nor on the account, and the
// supervisor is told why the guest cannot be resumed. The next incarnation tries again.
func TestSnapshotBeyondTheLimit(t *testing.T) {
	l := newLab(t, otherwise(supervision.Resume))
	image := load(t, newEngine(t), "testdata/brute.wasm")
	ref := l.spawn("g", Guest(image, "brute").WithLimits(Limits{Held: 8 << 20}))
	a := l.table.Get(ref.UID())
	g := guestOf(a)
	l.tell(ref, order(verbGrow, 60, nil)) // 4 MB: with two copies of them it is too much
	for range 20 {
		l.tell(ref, order(verbSpin, 1, nil))
	}
	if g.inst.States.Why == "" || len(g.inst.States.Log) != 0 || g.inst.States.Snap.Bytes() != 0 || a.account.Held().Snapshot != 0 {
		t.Fatalf("%q; %d turns are remembered, %d bytes are held", g.inst.States.Why, len(g.inst.States.Log), a.account.Held().Snapshot)
	}
	l.seen()
	l.tell(ref, Raw{0x41})
	l.tell(ref, order(verbDeep, 1<<30, nil))
	if e := l.next(EventFailed); e.Directive != supervision.Restart || !strings.Contains(e.Note, "resume is not possible") || !strings.Contains(e.Note, "limit") {
		t.Errorf("%v, %q", e.Directive, e.Note)
	}
	if g.inst.States.Why != "" || a.account.Held().Snapshot == 0 {
		t.Errorf("the next incarnation has no snapshot: %q", g.inst.States.Why)
	}
}

// The memory that a failing turn has grown is not on the account after the turn has been undone.
func TestResumeGivesMemoryBack(t *testing.T) {
	l := newLab(t, otherwise(supervision.Resume))
	ref := l.spawn("g", Guest(load(t, newEngine(t), "testdata/brute.wasm"), "brute").WithLimits(Limits{Fuel: 1 << 20}))
	a := l.table.Get(ref.UID())
	before := a.account.Held().Memory
	l.tell(ref, order(verbGrow, 200, nil)) // it has fuel to grow, and not to fill what it has got
	if es := l.seen(EventFailed); len(es) != 1 || a.Incarnation() != 0 {
		t.Fatalf("%d failures, incarnation %d", len(es), a.Incarnation())
	}
	if got := a.account.Held().Memory; got != before || got != a.expected().Memory {
		t.Errorf("%d bytes are on its account, %d before, there are %d", got, before, a.expected().Memory)
	}
}

// Whatever a guest that can be resumed does, its account is what is there: awake and asleep, with a failure, in a delay.
func TestAccountOfASleeperWithStates(t *testing.T) {
	l := newCrowdedLab(t, 0, delayed(t, supervision.Backoff{}).WithRules(
		supervision.Rule{Kinds: []abi.FailureKind{abi.FailureGuestError}, Directive: supervision.Suspend},
		supervision.Rule{Kinds: []abi.FailureKind{abi.FailureExit}, Directive: supervision.Resume},
	).WithOtherwise(supervision.Restart), halfAMinute)
	ref := l.spawn("g", puppet(t))
	a := l.table.Get(ref.UID())
	g := guestOf(a)
	check := func(state string, asleep, states bool) {
		t.Helper()
		got, want := a.account.Held(), a.expected()
		if got.Snapshot != want.Snapshot || got.Memory != want.Memory {
			t.Errorf("%s: %+v, there is %+v", state, got, want)
		}
		sleepers := 0
		if asleep {
			sleepers = 1
		}
		if (g.inst.Snapshot != nil) != asleep || a.asleep.Load() != asleep || (g.inst.States != nil) != states || l.View().Stats().Asleep != sleepers {
			t.Errorf("%s: asleep %v, states %v, %d sleep", state, g.inst.Snapshot != nil, g.inst.States != nil, l.View().Stats().Asleep)
		}
	}
	check("fresh", false, true)
	l.tell(ref, script(rec(recAdd, 3, nil)))
	check("awake", false, true)
	l.pass(time.Minute)
	check("asleep", true, true)
	l.tell(ref, script(rec(recAdd, 3, nil)))
	check("awake again", false, true)
	l.tell(ref, script(now(abi.AppendFail(nil, "told to"))))
	check("failed", false, true)
	if !l.awake.MakeRoom(nil, instance.Any) {
		t.Fatal("it keeps its instance")
	}
	check("failed and asleep", true, true)
	must(0, l.Operate().Decide(ref, supervision.Resume))(t)
	l.run()
	check("resumed", false, true)
	l.tell(ref, script(trap()))
	if s := l.state("g"); s != "restarting" {
		t.Fatal(s)
	}
	check("in its delay", false, false)
	l.pass(time.Minute)
	check("restarted", g.inst.Snapshot != nil, true)
	l.tell(ref, script(rec(recAdd, 3, nil)))
	l.pass(time.Minute)
	check("asleep once more", true, true)
	must(0, l.Operate().Restart(ref))(t)
	l.run()
	check("restarted from its sleep", false, true)
	if got := answer(t, l.System, ref, script(rec(recReport, 0, nil))); fmt.Sprint(got) != "0" {
		t.Errorf("a new incarnation has counted to %v", got)
	}
}

// A turn that is handled again sees the clock and draws the dice of then, also by WASI.
func TestRepeatedTurnsSeeTheSame(t *testing.T) {
	l := newLab(t, otherwise(supervision.Resume))
	ref := l.spawn("g", Guest(load(t, newEngine(t), "testdata/dice.wasm"), "dice"))
	state := func() []byte {
		t.Helper()
		m := l.ask(ref, 1)
		if m.Err() != nil || len(m.Payload) != 16 {
			t.Fatalf("% x, %v", m.Payload, m.Err())
		}
		return bytes.Clone(m.Payload)
	}
	for range 20 {
		l.tell(ref, 0)
		l.pass(3*time.Second + 7)
	}
	before := state()
	l.pass(time.Hour)
	l.tell(ref, 2)
	if es := l.seen(EventResumed); len(es) != 1 {
		t.Fatal("it was not resumed")
	}
	if after := state(); !bytes.Equal(before, after) || bytes.Equal(before[:8], make([]byte, 8)) || bytes.Equal(before[8:], make([]byte, 8)) {
		t.Errorf("% x before, % x after", before, after)
	}
}
