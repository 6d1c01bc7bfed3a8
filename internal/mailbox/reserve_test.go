package mailbox

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/internal/race"
	"pgregory.net/rapid"
)

// TestReserveIsPush: in two halves a mailbox refuses and takes in what it does in one.
func TestReserveIsPush(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{Messages: rapid.IntRange(1, 5).Draw(t, "messages"), Bytes: int64(rapid.IntRange(1, 60).Draw(t, "bytes"))}
		one, two := boxOf(l), boxOf(l)
		for i := range 30 {
			switch rapid.IntRange(0, 9).Draw(t, "do") {
			case 0, 1, 2:
				a, b := one.Pop(), two.Pop()
				if (a == nil) != (b == nil) || a != nil && a.Correlation != b.Correlation {
					t.Fatalf("popped %v and %v", a, b)
				}
			case 3:
				if a, b := one.Pop(), two.Pop(); a != nil {
					one.PushFront(a)
					two.PushFront(b)
				}
			case 4:
				if i > 20 {
					one.Close(func(e *Envelope) { e.Free() })
					two.Close(func(e *Envelope) { e.Free() })
				}
			default:
				size := rapid.IntRange(0, 30).Draw(t, "size")
				a, b := envelope(i, size), envelope(i, size)
				x, y := one.Push(a), two.Reserve(b)
				if !errors.Is(y, x) {
					t.Fatalf("Push: %v, Reserve: %v", x, y)
				}
				if y == nil {
					if two.Len() != one.Len() {
						t.Fatalf("%d are there, %d with the reserved one", one.Len(), two.Len())
					}
					if err := two.Enter(b); err != nil {
						t.Fatal(err)
					}
				}
			}
			if one.Len() != two.Len() || one.Bytes() != two.Bytes() {
				t.Fatalf("%d of %d bytes, and %d of %d", one.Len(), one.Bytes(), two.Len(), two.Bytes())
			}
		}
	})
}

// TestHammerReserve: producers that take turns tell of an envelope between the two halves, and the consumer, which takes no lock, never has
// one that was not told of; all come out, in order.
func TestHammerReserve(t *testing.T) {
	const senders = 4
	each := 20_000
	if testing.Short() || race.Enabled {
		each = 3000
	}
	m := boxOf(Limits{Messages: 20, Bytes: 200})
	var (
		turns sync.Mutex
		told  [senders*20_000 + 1]bool
		n     uint64
		wg    sync.WaitGroup
	)
	for range senders {
		wg.Go(func() {
			var cache Cache
			for i := 0; i < each; {
				e := cache.New()
				e.SetPayload(make([]byte, i%16))
				turns.Lock()
				err := m.Reserve(e)
				if err == nil {
					n++
					e.Position, told[n] = n, true
					err = m.Enter(e)
					i++
				}
				turns.Unlock()
				if err != nil {
					cache.Free(e)
					runtime.Gosched()
				}
			}
		})
	}
	for want := uint64(1); want <= uint64(senders*each); {
		e := m.Pop()
		if e == nil {
			runtime.Gosched()
			continue
		}
		if e.Position != want || !told[e.Position] {
			t.Fatalf("%d came out instead of %d, told %v", e.Position, want, told[e.Position])
		}
		if want%5 == 0 {
			m.PushFront(e)
			e = m.Pop()
		}
		e.Free()
		want++
	}
	wg.Wait()
	if m.Len() != 0 || m.Bytes() != 0 {
		t.Errorf("%d of %d bytes are left", m.Len(), m.Bytes())
	}
}
