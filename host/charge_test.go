package host

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
)

// What a command makes the host do is paid for before any of the turn takes effect.
func TestCostlyCommandsPayAhead(t *testing.T) {
	forward := func(to Ref) []byte { return abi.AppendForward(nil, to.UID(), "") }
	var child abi.Ref // of the guest of a case
	spawn := func(options []byte) []byte {
		return abi.AppendSpawn(nil, child, "puppet", "child", nullPayload, options)
	}
	pattern := func(path string) []byte { return abi.AppendSend(nil, 0, path, 0, 0, nil, nullPayload) }
	for _, c := range []struct {
		name   string
		fuel   uint64
		caps   []string
		cmds   func(probe Ref) []byte
		failed bool
	}{
		{"few forwards", 100_000, nil, func(p Ref) []byte { return forward(p) }, false},
		{"forwards of 8 KB", 100_000, nil, func(p Ref) []byte { return bytes.Repeat(forward(p), 150) }, true},
		{"few forwards to nobody", 100_000, []string{"/user/**"}, func(Ref) []byte { return abi.AppendForward(nil, 0, "/user/none*") }, false},
		{"forwards of 8 KB to nobody", 300_000, nil, func(Ref) []byte { return bytes.Repeat(abi.AppendForward(nil, 0, "/user/none*"), 150) }, true},
		{"a pattern", 200_000, []string{"/user/**"}, func(Ref) []byte { return pattern("/user/x*") }, false},
		{"patterns over 200 actors", 200_000, []string{"/user/**"}, func(Ref) []byte { return bytes.Repeat(pattern("/user/x*"), 6) }, true},
		{"a long path", 80_000, []string{"/user/**"}, func(Ref) []byte { return pattern("/user/" + strings.Repeat("x", 200)) }, false},
		{"long paths", 80_000, []string{"/user/**"}, func(Ref) []byte { return bytes.Repeat(pattern("/user/"+strings.Repeat("x", 200)), 30) }, true},
		{"patterns without a capability", 200_000, nil, func(Ref) []byte { return bytes.Repeat(pattern("/user/x*"), 6) }, false},
		{"a spawn", 100_000, nil, func(Ref) []byte { return spawn(nil) }, false},
		{"a spawn with options", 100_000, nil, func(Ref) []byte { return spawn([]byte{0xa0}) }, false},
		{"a spawn with many options", 100_000, nil, func(Ref) []byte { return spawn(append([]byte{0xa1, 0x60, 0x58, 40}, make([]byte, 40)...)) }, true},
		{"patterns with many stars", 200_000, []string{"/user/**"}, func(Ref) []byte { return pattern("/user/" + strings.Repeat("*a", 20)) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newStage(t, nil)
			for i := range 200 {
				l.spawn(fmt.Sprint("a", i), newCounter())
			}
			g := l.spawn("guest", puppet(t).WithCapabilities(Capabilities{Send: c.caps}).WithLimits(Limits{Fuel: c.fuel}))
			child = abi.ChildRef(childKeyOf(guestOf(l.table.Get(g.UID()))), 0, 0)
			l.raw()
			// The first command shows whether the turn has taken effect.
			r := now(append(abi.AppendSend(nil, l.probe.UID(), "", 0, 0, nil, encoded("done")), c.cmds(l.probe)...))
			l.say(g, script(append(r, make([]byte, 4)...), rec(recAdd, 0, make([]byte, 8000))))
			failed := false
			for _, e := range l.raw(EventFailed) {
				failed = e.Failure.Kind == abi.FailureFuel && strings.Contains(e.Failure.Reason, "spent on the turn's commands")
				if !failed {
					t.Error(e.Failure)
				}
			}
			if failed != c.failed {
				t.Errorf("it has failed: %v", failed)
			}
			if done := len(l.got) > 0; done == c.failed {
				t.Errorf("the probe was told %q", l.got)
			}
			if g := guestOf(l.table.Get(g.UID())); !c.failed && g.fuelSpent < c.fuel/100 {
				t.Errorf("%d fuel is in the statistics", g.fuelSpent)
			}
		})
	}
}

// Reading the options of a spawn takes long: others get their turn before each that are long, and from time
// to time between short ones.
func TestOthersRunBetweenSpawnsWithOptions(t *testing.T) {
	for _, c := range []struct{ options, spawns, least, most int }{
		{5_000, 3, 3, 3},
		{300, 10, 2, 3},
	} {
		t.Run(fmt.Sprint(c.options), func(t *testing.T) {
			var g *guest
			reads, rests := 0, 0
			l := newStage(t, func(cfg Config) Config {
				return cfg.WithSpawnOptions(func([]byte) (SpawnOptions, error) {
					if reads++; g.pace.Carried == 0 {
						rests++
					}
					return SpawnOptions{}, nil
				})
			})
			ref := l.spawn("guest", puppet(t))
			g = guestOf(l.table.Get(ref.UID()))
			options := append([]byte{0xa1, 0x60, 0x59, byte(c.options >> 8), byte(c.options)}, make([]byte, c.options)...)
			var orders [][]byte
			for i := range c.spawns {
				orders = append(orders, abi.AppendSpawn(nil, abi.ChildRef(childKeyOf(g), 0, uint64(i)), "puppet", fmt.Sprint("c", i), nullPayload, options))
			}
			l.say(ref, script(now(orders...)))
			if reads != c.spawns || rests < c.least || rests > c.most {
				t.Errorf("options of %d bytes were read %d times, %d times after others could run, not %d to %d", c.options, reads, rests, c.least, c.most)
			}
		})
	}
}

// However often an actor that is busy is watched, stopped and asked about, its queue stays
// short, and the last watch counts.
func TestSystemQueuesAreThinnedOut(t *testing.T) {
	var q sysmail.Queue
	for i := range 100_000 {
		q.Push(&sysmail.Msg{Kind: sysmail.Signal, Signal: &signal.Signal{Kind: signal.Watch, From: 7}})
		q.Push(&sysmail.Msg{Kind: sysmail.Signal, Signal: &signal.Signal{Kind: signal.Unwatch, From: 7}})
		q.Push(&sysmail.Msg{Kind: sysmail.Signal, Signal: &signal.Signal{Kind: signal.Watch, From: 8}})
		q.Push(&sysmail.Msg{Kind: sysmail.Stop})
		q.Push(&sysmail.Msg{Kind: sysmail.Signal, Signal: &signal.Signal{Kind: signal.Delegate, From: 9, Other: abi.Ref(i)}})
		if n := len(q.Items); n > 2*(sysmail.MostAsked+sysmail.FirstThin)+10 {
			t.Fatalf("%d wait", n)
		}
	}
	watches, stops := map[abi.Ref]signal.Kind{}, 0
	for _, m := range q.Take() {
		switch m.Kind {
		case sysmail.Signal:
			watches[m.Signal.From] = m.Signal.Kind
		case sysmail.Stop:
			stops++
		}
	}
	if watches[7] != signal.Unwatch || watches[8] != signal.Watch || stops == 0 {
		t.Errorf("%v, %d stops", watches, stops)
	}
}

// toldOf is a mailbox that says when something has come.
type toldOf struct {
	holding
	came func(n int)
}

func (b *toldOf) Push(e *Envelope) error { _ = b.holding.Push(e); b.came(len(b.es)); return nil }

// A kill ends a turn that runs, or pays, and then nothing of it has happened. A turn that has ended is done: what it
// asked for is carried out to the end, and what it was killed for comes next; so no part of a turn is ever missing.
func TestAKillBehindATurnTakesNothingBack(t *testing.T) {
	const sends = 1000 // so that others have run in between
	for _, when := range []int{1, sends / 2, sends} {
		l := newStage(t, nil)
		var g *guest
		var left int
		killed := false
		sink := l.spawn("sink", Func(func(*Context, Message) error { return nil }).WithMailbox(func(MailboxLimits) Mailbox {
			return &toldOf{came: func(n int) {
				if n == when && !killed {
					killed = true
					l.Stop(g.actor.ref())
					g.inst.Kill("stopped") // as when it has not come to that in time
				}
				left = max(left, n)
			}}
		}))
		ref := l.spawn("guest", puppet(t))
		g = guestOf(l.table.Get(ref.UID()))
		_ = l.Operate().Pause(sink, false)
		l.run()
		one := abi.AppendSend(nil, sink.UID(), "", 0, 0, nil, nullPayload)
		l.post(ref, script(now(bytes.Repeat(one, sends))))
		l.post(ref, script(now(one)))
		l.run()
		if !killed || left != sends {
			t.Errorf("killed at %d: %d of %d have left", when, left, sends)
		}
		if l.alive(ref) || len(l.failures()) > 0 {
			t.Errorf("killed at %d: it has not stopped", when)
		}
	}
}
