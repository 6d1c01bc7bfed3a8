package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
)

// Whose failure it is when a question to another node is not answered: that of nobody, or of the actor there. It is never one of the asker's
// node, and what an actor causes is none of the host's.
func TestWhoFailsWhenAnotherNodeDoesNotAnswer(t *testing.T) {
	limits := host.Limits{Mailbox: 1}
	for name, c := range map[string]struct {
		act   func(*host.Context, host.Message) error
		block func(*net)
		is    error
		kind  abi.FailureKind // of the actor there; 0: it does not fail
	}{
		"its mailbox is full": {quiet, func(w *net) {
			y, _ := w.members[1].system.Lookup("/user/y")
			for range 3 {
				_ = w.members[0].system.Tell(y, "first")
			}
		}, host.ErrMailboxFull, 0},
		"its node is lost": {quiet, func(w *net) { w.members[1].machine.Crash() }, host.ErrNodeLost, 0},
		"it has ended": {quiet, func(w *net) {
			y, _ := w.members[1].system.Lookup("/user/y")
			w.members[1].system.StopNow(y)
			w.pass(time.Second)
		}, host.ErrUnknown, 0},
		"it fails":  {func(*host.Context, host.Message) error { return errors.New("no") }, nil, nil, abi.FailureGuestError},
		"it panics": {func(*host.Context, host.Message) error { panic("no") }, nil, nil, abi.FailureNativePanic},
		"the credit is used up": {quiet, func(w *net) {
			w.Cut(w.members[0].machine, w.members[1].machine, true)
			y, _ := w.members[1].system.Lookup("/user/y")
			for w.members[0].system.Tell(y, strings.Repeat("x", 900)) == nil {
			}
		}, errors.New("too much waits for the node"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := join(t, 2, func(c *cluster.Config) { c.Credit = 20_000 })
			a, b := w.members[0], w.members[1]
			y, err := b.system.Spawn("y", host.Func(c.act).WithLimits(limits))
			if err != nil {
				t.Fatal(err)
			}
			w.pass(time.Second)
			failed := map[*member][]abi.FailureKind{}
			for _, m := range w.members {
				sub := m.system.Subscribe(10, func(e *host.Event) bool {
					if e.Kind == host.EventFailed {
						failed[m] = append(failed[m], e.Failure.Kind)
					}
					return false
				})
				defer sub.Close()
			}
			var got error
			x := w.spawn(a, "x", func(ctx *host.Context, m host.Message) error {
				if m.Kind == abi.KindMessage {
					return ctx.Ask(y, strings.Repeat("x", 6000), 1, 10*time.Second)
				}
				got = m.Err()
				return nil
			})
			if c.block != nil {
				c.block(w)
			}
			if err := a.system.Tell(x, "go"); err != nil {
				t.Fatal(err)
			}
			w.pass(3 * time.Second)
			says := c.kind.String() // an actor is told by text
			if c.is != nil {
				says = c.is.Error()
			}
			if got == nil || !strings.Contains(got.Error(), says) {
				t.Errorf("the asker is told %v", got)
			}
			if len(failed[a]) != 0 || (len(failed[b]) == 1) != (c.kind != 0) || c.kind != 0 && failed[b][0] != c.kind {
				t.Errorf("there were failures: %v, %v", failed[a], failed[b])
			}
			if a.system.Cause() != nil || b.system.Cause() != nil {
				t.Error("a failure was the host's")
			}
		})
	}
}
