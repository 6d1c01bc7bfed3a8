package cluster_test

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
)

// What passes between two nodes is counted at both, and what is lost with one of them.
func TestCounts(t *testing.T) {
	w := join(t, 2, nil)
	a, b := w.members[0], w.members[1]
	got := 0
	far := w.spawn(b, "far", func(*host.Context, host.Message) error { got++; return nil })
	for range 10 {
		if err := a.system.Tell(far, "hello"); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(5 * time.Second)
	out, in := a.Links()[0], b.Links()[0]
	if got != 10 || out.Sent != 10 || out.Node.Number != b.self.Number || out.Queue != 0 || in.Received < out.Sent || in.ReceivedBytes < out.SentBytes {
		t.Errorf("%d have come; sent %+v, received %+v", got, out, in)
	}
	c := a.Counts()
	if c.Renewed < 4 || c.Unrenewed != 0 || c.Lost != 0 || c.Events[cluster.EventJoined] != 2 {
		t.Errorf("%+v", c)
	}
	b.machine.Crash()
	for range 3 {
		_ = a.system.Tell(far, "hello")
	}
	w.pass(2 * time.Second)
	if again := a.Links()[0]; again.Again == 0 || again.Queue == 0 {
		t.Errorf("%+v", again)
	}
	w.pass(2 * cluster.DefaultLease)
	if c := a.Counts(); c.Lost != 3 || c.Events[cluster.EventEvicted] == 0 || c.Events[cluster.EventGone] != 1 || len(a.Links()) != 0 {
		t.Errorf("%+v, %+v", c, a.Links())
	}
}
