package cluster_test

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// Another node has as many packets refused as it likes, and the events say how many there were, ten times a second at most.
func TestFloodedEvents(t *testing.T) {
	w := join(t, 2, nil)
	a, b := w.members[0], w.members[1]
	before, told := len(b.refused), b.told
	const packets = 5000
	for range packets / 100 {
		for range 100 {
			a.machine.Send(b.self.Number, []byte{1, 2, 3})
		}
		w.pass(20 * time.Millisecond)
	}
	w.pass(time.Second)
	if n := b.told - told; n != packets {
		t.Errorf("%d of %d packets were told of", n, packets)
	}
	if n := len(b.refused) - before; n < 3 || n > 12 {
		t.Errorf("%d events in a second", n)
	}
	// Gaps, and new beginnings.
	kinds := len(b.kinds)
	for i := range uint64(2000) {
		a.machine.Send(b.self.Number, cluster.Packet(a.self, b.self, 2+i, 9, 0, false, []byte("x")))
		if i%100 == 0 {
			w.pass(20 * time.Millisecond)
		}
	}
	w.pass(time.Second)
	if n := len(b.kinds) - kinds; n > 40 {
		t.Errorf("%d events", n)
	}
}

// What one node causes is not told under the number of another that floods, and what is held back is told before the node ends.
func TestFloodedEventsOfEach(t *testing.T) {
	w := join(t, 3, nil)
	hostile, honest, b := w.members[0], w.members[1], w.members[2]
	clear(b.toldOf)
	for i := range 1000 {
		hostile.machine.Send(b.self.Number, []byte{1, 2, 3})
		if i%100 == 0 {
			honest.machine.Send(b.self.Number, []byte{1, 2, 3})
			w.pass(20 * time.Millisecond)
		}
	}
	w.pass(time.Second)
	for range 5 {
		hostile.machine.Send(b.self.Number, []byte{1, 2, 3})
		honest.machine.Send(b.self.Number, []byte{1, 2, 3})
	}
	w.pass(10 * time.Millisecond)
	before := b.toldOf[honest.self.Number] + b.toldOf[hostile.self.Number]
	b.Leave(func(error) {})
	if m := b.toldOf[hostile.self.Number]; m != 1005 {
		t.Errorf("%d packets of 1005 were told of", m)
	}
	if m := b.toldOf[honest.self.Number]; m != 15 || before == 1020 {
		t.Errorf("%d packets of 15 were told of, and %d of all before the end", m, before)
	}
	if last := b.kinds[len(b.kinds)-1]; last != cluster.EventLeft {
		t.Errorf("the last event is %v", last)
	}
}
