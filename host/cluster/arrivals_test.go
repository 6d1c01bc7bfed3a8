package cluster_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// heldPort takes nothing before it is free.
type heldPort struct {
	network.Port
	free  chan struct{}
	taken []uint64
}

func (p *heldPort) Take(all []network.Arrival, _ *mailbox.Cache) {
	<-p.free
	for i := range all {
		p.taken = append(p.taken, all[i].Message.Left)
	}
}

// What arrives faster than the engine takes it is bounded, in number and in bytes, with the memory that small messages keep;
// then packets wait, and nothing is lost.
func TestArrivalsAreBounded(t *testing.T) {
	const packets = 40
	for name, x := range map[string]struct {
		units, bytes int // of a packet
		parts        int // that a frame has
		junk         int // bytes beside the messages
		pass         int // packets after the first one
	}{
		"many":               {1000, 1, 1, 0, cluster.MostArrivals/1000 + 1},
		"large":              {1, 1 << 20, 1, 0, cluster.MostArrived >> 20},
		"in parts":           {1, 1 << 20, 8, 0, 16},
		"small, beside junk": {1, 1, 1, 1 << 20, cluster.MostArrived >> 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := join(t, 2, nil)
			a, b := w.members[0], w.members[1]
			port := &heldPort{free: make(chan struct{})}
			a.SwapPort(func(p network.Port) network.Port { port.Port = p; return port })
			to, first, frames := abi.Ref(a.self.Number)<<54|5, uint64(1), uint64(0)
			frame := func(bytes int) []byte {
				frames++
				payload, err := host.Encode(make([]byte, bytes))
				if err != nil {
					t.Fatal(err)
				}
				return network.AppendMessage(nil, &network.Message{Left: frames, Sender: abi.Ref(b.self.Number)<<54 | 5, Payload: payload})
			}
			var all [][]byte
			add := func(more bool, units ...[]byte) {
				all = append(all, cluster.Packet(b.self, a.self, 1, first, to, more, units[0]))
				for _, u := range units[1:] {
					all[len(all)-1] = cluster.AppendUnit(all[len(all)-1], to, more, u)
				}
				first += uint64(len(units))
			}
			add(false, frame(1))
			for len(all) <= packets {
				if x.parts > 1 {
					whole := frame(x.parts * x.bytes)
					for i := range x.parts {
						end := (i + 1) * x.bytes
						if i == x.parts-1 {
							end = len(whole)
						}
						add(i < x.parts-1, whole[i*x.bytes:end])
					}
					continue
				}
				var units [][]byte
				for range x.units {
					units = append(units, frame(x.bytes))
				}
				if x.junk > 0 {
					units = append(units, make([]byte, x.junk))
				}
				add(false, units...)
			}
			var wait sync.WaitGroup
			wait.Go(func() { a.Receive(b.self.Number, all[0]) })
			for !a.Handing() {
				time.Sleep(time.Millisecond)
			}
			var passed atomic.Int64
			over := make(chan struct{})
			wait.Go(func() {
				defer close(over)
				for _, packet := range all[1:] {
					a.Receive(b.self.Number, packet)
					passed.Add(1)
				}
			})
			for passed.Load() < int64(x.pass) {
				time.Sleep(time.Millisecond)
			}
			select {
			case <-over:
				t.Error("nothing waits")
			case <-time.After(50 * time.Millisecond):
				if n := passed.Load(); n != int64(x.pass) {
					t.Errorf("%d packets are taken, want %d", n, x.pass)
				}
			}
			close(port.free)
			wait.Wait()
			if uint64(len(port.taken)) != frames {
				t.Fatalf("%d of %d messages have come", len(port.taken), frames)
			}
			for i, n := range port.taken {
				if n != uint64(i+1) {
					t.Fatalf("message %d is number %d", i+1, n)
				}
			}
		})
	}
}
