package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
)

// bench is a directory and links of one process, on the machine's clock.
type bench struct {
	mu       sync.Mutex
	entries  map[string]cluster.Entry
	revision uint64
	watches  []chan cluster.Entry
	wires    map[uint16]*wire
	wait     sync.WaitGroup
}

// wire is one node's end of the links.
type wire struct {
	*bench
	number  uint16
	in      chan func(func(uint16, []byte))
	receive func(uint16, []byte)
}

func (b *bench) Put(key string, value []byte, revision uint64, done func(uint64, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries[key].Revision != revision {
		b.wait.Go(func() { done(0, cluster.ErrConflict) })
		return
	}
	b.revision++
	e := cluster.Entry{Key: key, Value: slices.Clone(value), Revision: b.revision}
	b.entries[key] = e
	for _, w := range b.watches {
		w <- e
	}
	b.wait.Go(func() { done(e.Revision, nil) })
}

func (b *bench) Watch(each func(cluster.Entry)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := make(chan cluster.Entry, 1000)
	for _, e := range b.entries {
		c <- e
	}
	b.watches = append(b.watches, c)
	over := make(chan struct{})
	b.wait.Go(func() {
		for {
			select {
			case e := <-c:
				each(e)
			case <-over:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(over) })
}

func (w *wire) Send(to uint16, packet []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := w.number
	if x := w.wires[to]; x != nil {
		select {
		case x.in <- func(f func(uint16, []byte)) { f(from, packet) }:
		default: // lost
		}
	}
}

func (w *wire) Receive(f func(uint16, []byte)) { w.receive = f }

func (w *wire) MaxPacket() int { return 1 << 20 }

// On the machine's clock, with workers and senders at once, messages of all sizes arrive in order and asks are answered;
// nothing is left when the nodes have left.
func TestManyAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	b := &bench{entries: map[string]cluster.Entry{}, wires: map[uint16]*wire{}}
	var nodes []*cluster.Node
	var systems []*host.System
	over := make(chan struct{})
	for i := range 2 {
		w := &wire{bench: b, in: make(chan func(func(uint16, []byte)), 100_000)}
		n, err := cluster.New(cluster.Config{Name: fmt.Sprint("n", i), ID: uint64(i + 1), Lease: cluster.MinLease, Directory: b, Links: w})
		if err != nil {
			t.Fatal(err)
		}
		joined := make(chan *host.System, 1)
		n.Join(func(m cluster.Member, err error) {
			if err != nil {
				t.Error(err)
			}
			s, err := host.New(host.NewConfig("real").WithNode(m.Number))
			if err != nil {
				t.Error(err)
			}
			b.mu.Lock()
			w.number, b.wires[m.Number] = m.Number, w
			b.mu.Unlock()
			if err := n.Attach(s); err != nil {
				t.Error(err)
			}
			joined <- s
		})
		nodes, systems = append(nodes, n), append(systems, <-joined)
		b.wait.Go(func() {
			for {
				select {
				case f := <-w.in:
					f(w.receive)
				case <-over:
					return
				}
			}
		})
	}
	for deadline := time.Now().Add(10 * time.Second); len(nodes[0].Members()) < 2 || len(nodes[1].Members()) < 2; {
		if time.Now().After(deadline) {
			t.Fatal("they do not see each other")
		}
		time.Sleep(time.Millisecond)
	}
	const senders, each = 4, 200
	var to []host.Ref
	for i := range senders {
		next := 0
		ref, err := systems[1].Spawn(fmt.Sprint("y", i), host.Func(func(ctx *host.Context, m host.Message) error {
			var x struct {
				N    int
				Load []byte
			}
			if err := m.Decode(&x); err != nil {
				return err
			}
			if x.N != next {
				return fmt.Errorf("%d in place of %d", x.N, next)
			}
			next++
			return ctx.Reply(x.N)
		}))
		if err != nil {
			t.Fatal(err)
		}
		to = append(to, ref)
	}
	var wait sync.WaitGroup
	for i := range senders {
		wait.Go(func() {
			for k := range each {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				got, err := host.AskAs[int](ctx, systems[0], to[i], map[string]any{"N": k, "Load": make([]byte, k*k)})
				cancel()
				if err != nil || got != k {
					t.Errorf("%d: %d, %v", k, got, err)
					return
				}
			}
		})
	}
	wait.Wait()
	for i, s := range systems {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		left := make(chan error, 1)
		nodes[i].Leave(func(err error) { left <- err })
		if err := <-left; err != nil {
			t.Error(err)
		}
	}
	close(over)
	b.wait.Wait()
}
