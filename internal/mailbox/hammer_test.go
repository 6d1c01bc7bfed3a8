package mailbox

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/internal/race"
)

// TestHammer has many senders push while one consumer pops, gives back, and
// closes in the middle: per sender the order must hold, the bounds must never be
// exceeded, and what was accepted must come out exactly once.
func TestHammer(t *testing.T) {
	const senders = 6
	perSender := 20000
	if testing.Short() || race.Enabled {
		perSender = 4000
	}
	m := boxOf(Limits{Messages: 50, Bytes: 400})
	accepted := make([]int, senders) // by sender: pushed with success
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			var cache Cache
			for n := 0; n < perSender; {
				e := cache.New()
				e.Flags = uint16(s)
				e.Correlation = uint64(n)
				e.SetPayload(make([]byte, n%16))
				switch err := m.Push(e); {
				case err == nil:
					n++
				case errors.Is(err, ErrClosed):
					cache.Free(e)
					accepted[s] = n
					return
				default:
					cache.Free(e)
					runtime.Gosched()
				}
			}
			accepted[s] = perSender
		})
	}

	next := make([]int, senders)
	got := 0
	take := func(e *Envelope) {
		s := e.Flags
		if int(e.Correlation) != next[s] || len(e.Payload) != next[s]%16 {
			t.Errorf("sender %d: got %d (%d bytes), want %d", s, e.Correlation, len(e.Payload), next[s])
		}
		next[s]++
		got++
		e.Free()
	}
	for got < senders*perSender/2 && !t.Failed() {
		if n := m.Len(); n > 50 {
			t.Errorf("%d envelopes in a mailbox of 50", n)
		}
		if n := m.Bytes(); n > 400 {
			t.Errorf("%d bytes in a mailbox of 400", n)
		}
		e := m.Pop()
		if e == nil {
			runtime.Gosched()
			continue
		}
		if got%7 == 0 {
			if second := m.Pop(); second != nil {
				// Both go back. The bounds may be exceeded by these two from
				// here on, which the checks above would call an error: take them
				// out before looking again.
				m.PushFront(e, second)
				take(m.Pop())
				take(m.Pop())
				continue
			}
		}
		take(e)
	}
	m.Close(take)
	wg.Wait()
	m.Close(func(e *Envelope) { t.Errorf("envelope %d of sender %d appeared after close", e.Correlation, e.Flags) })
	for s := range senders {
		if next[s] != accepted[s] {
			t.Errorf("sender %d: %d accepted, %d came out", s, accepted[s], next[s])
		}
	}
	if m.Len() != 0 || m.Bytes() != 0 {
		t.Errorf("left: %d envelopes, %d bytes", m.Len(), m.Bytes())
	}
}

// TestHammerClose closes under full fire, again and again: the moment of closing
// is where an envelope could be lost or refused and delivered.
func TestHammerClose(t *testing.T) {
	rounds := 2000
	if testing.Short() || race.Enabled {
		rounds = 300
	}
	for range rounds {
		m := boxOf(Limits{Messages: 64})
		var wg sync.WaitGroup
		pushed := make([]int, 3)
		for s := range pushed {
			wg.Go(func() {
				for {
					e := New()
					err := m.Push(e)
					if err == nil {
						pushed[s]++
						continue
					}
					e.Free()
					if errors.Is(err, ErrClosed) {
						return
					}
					runtime.Gosched() // full: who empties it may need this processor
				}
			})
		}
		out := 0
		for range 10 {
			if e := m.Pop(); e != nil {
				out++
				e.Free()
			}
			runtime.Gosched()
		}
		m.Close(func(e *Envelope) { out++; e.Free() })
		wg.Wait()
		if want := pushed[0] + pushed[1] + pushed[2]; out != want {
			t.Fatalf("%d came out of %d", out, want)
		}
	}
}
