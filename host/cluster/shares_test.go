package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
)

// flooder has children that ask as often as it says, and a payload of so many bytes.
func (w *net) flooder(m *member, to host.Ref, children, each, bytes int) (top host.Ref, refused *int) {
	w.t.Helper()
	refused = new(int)
	asks := host.Func(func(ctx *host.Context, x host.Message) error {
		if x.Kind == abi.KindReplyError {
			*refused++
			return nil
		}
		if x.Kind != abi.KindMessage {
			return nil
		}
		for i := range each {
			if err := ctx.Ask(to, strings.Repeat("x", bytes), uint64(i+1), time.Hour); err != nil {
				return err
			}
		}
		return nil
	}).WithLimits(host.Limits{Asks: each, Mailbox: 1 << 20, MailboxBytes: 1 << 30})
	top = w.spawn(m, "flooder", func(ctx *host.Context, x host.Message) error {
		for i := range children {
			child, err := ctx.Spawn(fmt.Sprint("c", i), asks)
			if err != nil {
				return err
			}
			if err := ctx.Tell(child, "go"); err != nil {
				return err
			}
		}
		return nil
	})
	if err := m.system.Tell(top, "go"); err != nil {
		w.t.Fatal(err)
	}
	return top, refused
}

// An actor whose tree has 10^5 asks under way on another node has a share of what nodes have for them: others still ask, and all is given back
// when it ends, or a node is lost.
func TestAsksWithoutNumberOfAnotherNode(t *testing.T) {
	const children, each = 100, 1000
	for name, over := range map[string]func(*net, host.Ref){
		"the asker is stopped": func(w *net, top host.Ref) { w.members[0].system.Stop(top) },
		"the asker is killed":  func(w *net, top host.Ref) { w.members[0].system.StopNow(top) },
		"the node is lost":     func(w *net, _ host.Ref) { w.members[1].machine.Crash(); w.pass(10 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			w := join(t, 2, nil)
			a, b := w.members[0], w.members[1]
			mute, err := b.system.Spawn("mute", host.Func(quiet).WithLimits(host.Limits{Mailbox: 1 << 20, MailboxBytes: 1 << 30}))
			if err != nil {
				t.Fatal(err)
			}
			top, refused := w.flooder(a, mute, children, each, 10)
			w.pass(5 * time.Second)
			asks, _ := a.Owed()
			if asks > cluster.MaxAsks*7/8 || asks < cluster.MaxAsks*3/4 || asks+*refused != children*each {
				t.Fatalf("%d asks are under way, %d were refused", asks, *refused)
			}
			y := w.spawn(b, "y", echo)
			for i := range 10 { // by an actor of another tree, and by nobody
				got := ""
				x := w.spawn(a, fmt.Sprint("x", i), func(ctx *host.Context, m host.Message) error {
					if m.Kind == abi.KindMessage {
						return ctx.Ask(y, "hi", 1, time.Minute)
					}
					got = fmt.Sprint(m.Kind, text(m))
					return nil
				})
				if err := a.system.Tell(x, "go"); err != nil {
					t.Fatal(err)
				}
				if m, _ := w.ended(w.ask(a, y, "hi"), time.Second); m.Err() != nil {
					t.Fatal(m.Err())
				}
				if want := fmt.Sprint(abi.KindReply, "hi from y"); got != want {
					t.Fatalf("another one's ask: %q", got)
				}
			}
			over(w, top)
			w.pass(2 * time.Second)
			if asks, _ := a.Owed(); asks != 0 || a.Shares() != 0 || a.Waiting(b.self.Number) != 0 {
				t.Errorf("left: %d asks, %d shares, %d bytes", asks, a.Shares(), a.Waiting(b.self.Number))
			}
		})
	}
}

// Who watches and gives up without end, while another node does not confirm, has a share like others, and the nodes are not lost to each other.
func TestWatchesWithoutEndOfAnotherNode(t *testing.T) {
	w := join(t, 2, func(c *cluster.Config) { c.Credit = 1 << 18 })
	a, b := w.members[0], w.members[1]
	y := w.spawn(b, "y", echo)
	refused := 0
	top := w.spawn(a, "flooder", func(ctx *host.Context, m host.Message) error {
		switch m.Kind {
		case abi.KindTerminated:
			refused++
		case abi.KindMessage:
			for range 20_000 {
				if err := ctx.Watch(y); err != nil {
					return err
				}
				ctx.Unwatch(y)
			}
			return ctx.Watch(y)
		}
		return nil
	})
	ended := 0
	other := w.spawn(a, "other", func(ctx *host.Context, m host.Message) error {
		switch m.Kind {
		case abi.KindTerminated:
			ended++
		case abi.KindMessage:
			return ctx.Watch(y)
		}
		return nil
	})
	w.Cut(a.machine, b.machine, true)
	kinds := len(a.kinds)
	if err := a.system.Tell(top, "go"); err != nil {
		t.Fatal(err)
	}
	w.pass(10 * time.Millisecond)
	waits := a.Waiting(b.self.Number)
	if waits > 1<<18*7/8+1000 || waits < 1<<18*3/4 || refused == 0 {
		t.Errorf("%d bytes wait, %d watches were refused", waits, refused)
	}
	if err := a.system.Tell(other, "go"); err != nil {
		t.Fatal(err)
	}
	a.system.StopNow(top)
	p := w.ask(a, y, "hi")
	w.pass(100 * time.Millisecond)
	w.Cut(a.machine, b.machine, false)
	if m, _ := w.ended(p, time.Second); m.Err() != nil {
		t.Error(m.Err())
	}
	w.pass(2 * time.Second)
	if ended != 0 || len(a.kinds) != kinds {
		t.Errorf("the other one has heard %d times of an end, and there were %v", ended, a.kinds[kinds:])
	}
	b.system.Stop(y)
	w.pass(time.Second)
	if ended != 1 {
		t.Errorf("the other one has heard %d times of the end", ended)
	}
	if _, watches := a.Owed(); watches != 0 || a.Shares() != 0 || a.Waiting(b.self.Number) != 0 {
		t.Errorf("left: %d watches, %d shares, %d bytes", watches, a.Shares(), a.Waiting(b.self.Number))
	}
}

// What is given up while nothing else is left of a share still counts for it, and nothing that the tree has since is forgotten with that.
func TestAShareOutlivesItsLastWatch(t *testing.T) {
	w := join(t, 2, nil)
	a, b := w.members[0], w.members[1]
	mute := w.spawn(b, "mute", quiet)
	x := w.spawn(a, "x", func(ctx *host.Context, m host.Message) error {
		switch {
		case m.Kind != abi.KindMessage:
			return nil
		case text(m) == "watch":
			return ctx.Watch(mute)
		}
		ctx.Unwatch(mute)
		return ctx.Ask(mute, "?", 1, time.Minute)
	})
	for _, s := range []string{"watch", "ask"} {
		if err := a.system.Tell(x, s); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second)
	}
	if asks, watches := a.Owed(); asks != 1 || watches != 0 || a.Shares() != 1 {
		t.Errorf("%d asks, %d watches, %d shares", asks, watches, a.Shares())
	}
}

// What waits for a node that does not confirm is never all of one tree.
func TestAFloodForANodeThatDoesNotAnswer(t *testing.T) {
	w := join(t, 2, func(c *cluster.Config) { c.Credit = 1 << 20 })
	a, b := w.members[0], w.members[1]
	y := w.spawn(b, "y", func(ctx *host.Context, _ host.Message) error { return ctx.Reply("ok") })
	w.Cut(a.machine, b.machine, true)
	_, refused := w.flooder(a, y, 20, 1000, 1000)
	w.pass(100 * time.Millisecond)
	waits := a.Waiting(b.self.Number)
	if waits > 1<<20*7/8 || waits < 1<<20*3/4 || *refused < 10_000 {
		t.Fatalf("%d bytes wait, %d were refused", waits, *refused)
	}
	p := w.ask(a, y, strings.Repeat("y", 100<<10))
	if _, err := a.system.Request(y, strings.Repeat("y", 200<<10)); !errors.Is(err, host.ErrMailboxFull) {
		t.Errorf("there is no bound: %v", err)
	}
	w.Cut(a.machine, b.machine, false)
	if m, _ := w.ended(p, time.Second); m.Err() != nil {
		t.Error(m.Err())
	}
	w.pass(2 * time.Second)
	if asks, _ := a.Owed(); asks != 0 || a.Shares() != 0 || a.Waiting(b.self.Number) != 0 {
		t.Errorf("left: %d asks, %d shares, %d bytes", asks, a.Shares(), a.Waiting(b.self.Number))
	}
}
