package host

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Lifetimes and significant children, as in OTP, carried out.

// Every lifetime with every way to end.
func TestLifetimesCarriedOut(t *testing.T) {
	const again, gone = "again", "gone"
	for _, c := range []struct {
		end                             string
		transient, permanent, temporary string
	}{
		{"fails", again, again, gone},
		{"panics", again, again, gone},
		{"stops itself", gone, again, gone},
		{"swallows a poison pill", gone, again, gone},
		{"is stopped", gone, gone, gone},
		{"is killed", gone, gone, gone}, // the default decider stops
	} {
		for life, want := range map[supervision.Lifetime]string{
			supervision.Transient: c.transient, supervision.Permanent: c.permanent, supervision.Temporary: c.temporary,
		} {
			var got []string
			l := newLab(t, supervision.Default())
			ref := l.spawn("a", Native(func() Actor { return &mortal{lister{got: &got}} }).WithLifetime(life))
			switch c.end {
			case "fails":
				l.Tell(ref, "crash")
			case "panics":
				l.Tell(ref, "panic")
			case "stops itself":
				l.Tell(ref, "quit")
			case "swallows a poison pill":
				l.PoisonPill(ref)
			case "is stopped":
				l.Stop(ref)
			case "is killed":
				l.Operate().Kill(ref)
			}
			l.run()
			state := gone
			if cell := l.table.Get(ref.UID()); cell != nil && cell.Incarnation() == 1 {
				state = again
			}
			if state != want {
				t.Errorf("%v %s: %s, want %s", life, c.end, state, want)
			}
			if state == again {
				l.tell(ref, "x")
				if !slices.Equal(got, []string{"x"}) {
					t.Errorf("%v %s: %v", life, c.end, got)
				}
			}
		}
	}
}

type mortal struct{ lister }

func (m *mortal) Receive(ctx *Context, msg Message) error {
	var text string
	if msg.Decode(&text) == nil && text == "panic" {
		panic("oh")
	}
	return m.lister.Receive(ctx, msg)
}

// A permanent child's own stop concerns its siblings as a failure does, and uses the
// budget; a temporary child's failure concerns nobody.
func TestLifetimesInGroups(t *testing.T) {
	var got []string
	l := newLab(t, supervision.Default().WithKind(supervision.AllForOne).WithMaxRestarts(1, 0))
	l.spawn("a", newLister(&got, nil).WithLifetime(supervision.Permanent))
	l.spawn("b", newLister(&got, nil))
	l.spawn("c", newLister(&got, nil).WithLifetime(supervision.Temporary))
	lives := func() (n []int) {
		for _, name := range []string{"a", "b", "c"} {
			if ref, err := l.Lookup("/user/" + name); err == nil {
				n = append(n, int(l.table.Get(ref.UID()).Incarnation()))
			} else {
				n = append(n, -1)
			}
		}
		return n
	}
	l.spawn("d", newLister(&got, nil).WithLifetime(supervision.Temporary))
	l.tell(l.at("d"), "crash")
	if got := lives(); !slices.Equal(got, []int{0, 0, 0}) || l.state("d") != "gone" {
		t.Errorf("a temporary one has failed: %v", got)
	}
	l.tell(l.at("a"), "quit")
	if got := lives(); !slices.Equal(got, []int{1, 1, -1}) { // a temporary sibling is not restarted
		t.Errorf("a permanent one has ended: %v", got)
	}
	l.seen()
	l.tell(l.at("a"), "quit")
	if got := lives(); !slices.Equal(got, []int{-1, -1, -1}) {
		t.Errorf("the second time: %v", got)
	}
	if e := l.next(EventFailed); e.Directive != supervision.Stop || e.Note == "" || e.Failure.Kind != abi.FailureExit {
		t.Errorf("%+v", e)
	}
}

// What is restarted has not ended: a watcher is told of nothing when a guest exits, when an
// actor fails, or when a permanent actor stops itself, and of the end when an order stops it.
func TestWatchersOfWhatIsRestarted(t *testing.T) {
	var got []string
	exits := Guest(load(t, newEngine(t), "testdata/hostile/exit.wasm"), "hostile").WithLimits(Limits{Memory: 4 << 20})
	for _, c := range []struct {
		name  string
		props Props
		say   any
	}{
		{"a guest that exits", exits, 1},
		{"a failure", newLister(&got, nil), "crash"},
		{"a permanent actor that stops itself", newLister(&got, nil).WithLifetime(supervision.Permanent), "quit"},
	} {
		l := newLab(t, supervision.Default())
		a := l.spawn("a", c.props)
		in := l.Inbox(0)
		in.Watch(a)
		l.tell(a, c.say)
		if m, told := in.TryReceive(); told || l.table.Get(a.UID()).Incarnation() != 1 || l.at("a") != a {
			t.Errorf("%s: the watcher is told %+v, incarnation %d", c.name, m, l.table.Get(a.UID()).Incarnation())
		}
		l.Stop(a)
		l.run()
		if m, told := in.TryReceive(); !told || m.Kind != abi.KindTerminated || m.Sender != a {
			t.Errorf("%s, then stopped: told %v, %+v", c.name, told, m)
		}
		in.Close()
	}
	if r := abi.ExitReason(0); !strings.Contains(r, "an actor ends itself with the command stop") {
		t.Errorf("exit code 0: %q", r)
	}
}

// Significant children: never, any, all. An end that was ordered is none.
func TestSignificantChildren(t *testing.T) {
	for _, c := range []struct {
		shutdown supervision.Shutdown
		ends     []string // in this order
		want     []bool   // whether the supervisor has gone after each
	}{
		{supervision.ShutdownNever, []string{"quit a", "quit b"}, []bool{false, false}},
		{supervision.ShutdownAny, []string{"quit other", "quit b"}, []bool{false, true}},
		{supervision.ShutdownAll, []string{"quit a", "quit other", "quit b"}, []bool{false, false, true}},
		{supervision.ShutdownAny, []string{"stop a", "crash b"}, []bool{false, false}}, // ordered; restarted
		{supervision.ShutdownAny, []string{"crash temporary"}, []bool{true}},           // it has ended by itself, badly
		{supervision.ShutdownAll, []string{"stop a", "quit temporary", "quit b"}, []bool{false, false, true}},
	} {
		var got []string
		l := newLab(t, supervision.Default())
		significant := newLister(&got, nil).WithSignificant(true)
		l.spawn("top", parentOf(supervision.Default().WithShutdown(c.shutdown),
			Child{"a", significant}, Child{"b", significant}, Child{"other", newLister(&got, nil)},
			Child{"temporary", significant.WithLifetime(supervision.Temporary)}))
		if c.shutdown == supervision.ShutdownAll && c.ends[0] == "quit a" {
			l.Stop(l.at("top/temporary"))
			l.run()
		}
		for i, end := range c.ends {
			what, who, _ := strings.Cut(end, " ")
			if what == "stop" {
				l.Stop(l.at("top/" + who))
				l.run()
			} else {
				l.tell(l.at("top/"+who), what)
			}
			if gone := l.state("top") == "gone"; gone != c.want[i] {
				t.Errorf("%v, after %q of %q: gone: %v", c.shutdown, end, c.ends, gone)
			}
		}
	}
}

// A supervisor that shuts down so ends by its own wish: its own supervisor sees that.
func TestShutdownIsTheSupervisorsOwnEnd(t *testing.T) {
	var got []string
	l := newLab(t, supervision.Default())
	l.spawn("top", parentOf(supervision.Default().WithShutdown(supervision.ShutdownAny), Child{"a", newLister(&got, nil).WithSignificant(true)}).WithLifetime(supervision.Permanent))
	l.tell(l.at("top/a"), "quit")
	if top := l.table.Get(l.at("top").UID()); top.Incarnation() != 1 || l.state("top/a") != "running" {
		t.Error(l.View().Tree())
	}
}

// A shared window: the supervisor gives up, and its own supervisor decides; restarted,
// it begins to count anew.
func TestSharedWindowCarriedOut(t *testing.T) {
	l := newLab(t, supervision.Default())
	s := supervision.Default().WithMaxRestarts(2, 0).WithShared(true)
	l.spawn("top", parentOf(s, Child{"a", newCounter()}, Child{"b", newCounter()}))
	top := l.table.Get(l.at("top").UID())
	for round := range uint64(3) {
		l.tell(l.at("top/a"), "crash")
		l.tell(l.at("top/b"), "crash")
		if top.Incarnation() != round {
			t.Fatalf("round %d: incarnation %d", round, top.Incarnation())
		}
		l.tell(l.at("top/a"), "crash")
		if top.Incarnation() != round+1 {
			t.Fatalf("round %d: not escalated", round)
		}
	}
	l = newLab(t, supervision.Default())
	l.spawn("top", parentOf(s.WithExceeded(supervision.Stop), Child{"a", newCounter()}, Child{"b", newCounter()}))
	l.tell(l.at("top/a"), "crash", "crash", "crash")
	if l.state("top/a") != "gone" || l.state("top/b") != "running" {
		t.Error(l.View().Tree())
	}
}

var errNot = errors.New("not")

// A stop hook that makes a child, of an actor that restarts: it neither hangs nor
// leaves the child suspended.
func TestChildrenOfTheLastTurn(t *testing.T) {
	for _, keep := range []bool{false, true} {
		l := newLab(t, supervision.Default().WithKeepChildren(keep))
		ref := l.spawn("a", Native(func() Actor { return &lastMinute{} }))
		l.tell(ref, "crash")
		if l.state("a") != "running" {
			t.Fatal(l.View().Tree())
		}
		if !keep {
			if l.state("a/late") != "gone" {
				t.Error(l.View().Tree())
			}
			continue
		}
		l.tell(l.at("a/late"), 3)
		if l.get(l.at("a/late")) != 3 {
			t.Error("it is suspended")
		}
	}
}

type lastMinute struct{}

func (*lastMinute) Receive(*Context, Message) error { return errNot }
func (*lastMinute) Stopped(ctx *Context) {
	if ctx.Head().Incarnation() == 0 {
		ctx.Spawn("late", newCounter())
	}
}
