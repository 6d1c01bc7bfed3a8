package mailbox

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/wasmactors/wasmactors/internal/race"
)

func TestFreeKeepsSmallBuffersOnly(t *testing.T) {
	tests := []struct {
		payload, headers         int
		keepPayload, keepHeaders bool
	}{
		{100, 10, true, true},
		{maxKeptPayload, maxKeptHeaders, true, true},
		{maxKeptPayload * 2, 10, false, true},
		{100, maxKeptHeaders * 2, true, false},
	}
	for _, test := range tests {
		e := &Envelope{Sender: 7, Correlation: 8, Flags: 9, Due: 10, Kind: 1, Value: "x"}
		e.Payload = make([]byte, test.payload)
		e.Headers = make([]byte, test.headers)
		e.clear()
		if e.Sender != 0 || e.Correlation != 0 || e.Flags != 0 || e.Due != 0 || e.Kind != 0 || e.Value != nil {
			t.Errorf("not cleared: %+v", e)
		}
		if len(e.Payload) != 0 || len(e.Headers) != 0 {
			t.Errorf("payload of %d, headers of %d bytes after Free", len(e.Payload), len(e.Headers))
		}
		if cap(e.Payload) > 0 != test.keepPayload || cap(e.Headers) > 0 != test.keepHeaders {
			t.Errorf("%+v: kept %d and %d bytes", test, cap(e.Payload), cap(e.Headers))
		}
	}
}

func TestFreeTwicePanics(t *testing.T) {
	for _, cache := range []*Cache{nil, new(Cache)} {
		func() {
			e := &Envelope{}
			cache.Free(e)
			defer func() {
				if recover() == nil {
					t.Error("the second Free did not panic")
				}
			}()
			cache.Free(e)
		}()
	}
}

func TestSetCopies(t *testing.T) {
	e := New()
	p, h := []byte("payload"), []byte("headers")
	e.SetPayload(p)
	e.SetHeaders(h)
	p[0], h[0] = 'X', 'X'
	if string(e.Payload) != "payload" || string(e.Headers) != "headers" || e.Size() != 14 {
		t.Fatalf("%q %q %d", e.Payload, e.Headers, e.Size())
	}
}

// TestCacheNeverHandsOutTwice moves envelopes between caches and the plain pool
// and checks that each is in one hand only.
func TestCacheNeverHandsOutTwice(t *testing.T) {
	caches := []*Cache{nil, new(Cache), new(Cache)}
	held := map[*Envelope]bool{}
	for round := range 50 {
		var mine []*Envelope
		for i := range 200 {
			e := caches[(round+i)%3].New()
			if held[e] {
				t.Fatal("handed out twice")
			}
			if e.freed || e.next != nil || len(e.Payload) != 0 {
				t.Fatalf("not fresh: %+v", e)
			}
			held[e] = true
			e.SetPayload([]byte{1, 2, 3})
			mine = append(mine, e)
		}
		for i, e := range mine {
			delete(held, e)
			caches[(round+i/90)%3].Free(e)
		}
		for _, c := range caches[1:] {
			if c.n > 2*cacheBatch {
				t.Fatalf("cache of %d", c.n)
			}
		}
	}
}

// TestFullCacheGivesHalfAway: a cache at its bound gives half of what it has to the pool,
// for whichever other cache is empty, and keeps the other half.
func TestFullCacheGivesHalfAway(t *testing.T) {
	var c Cache
	for i := range 2 * cacheBatch {
		if c.n != i {
			t.Fatalf("%d kept of %d", c.n, i)
		}
		c.Free(new(Envelope))
	}
	given := c.first
	c.Free(new(Envelope))
	if c.n != cacheBatch+1 {
		t.Errorf("%d kept at the bound, want %d", c.n, cacheBatch+1)
	}
	kept := 0
	for e := c.first; e != nil; e = e.next {
		if kept++; e == given {
			t.Error("one that was given away is kept, too")
		}
	}
	if kept != c.n {
		t.Errorf("%d kept, %d counted", kept, c.n)
	}
}

// TestNoAllocation pins the steady state: a message costs no allocation.
func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	m := boxOf(Limits{Messages: 100})
	var cache Cache
	payload := make([]byte, 64)
	for name, c := range map[string]*Cache{"pool": nil, "cache": &cache} {
		allocs := testing.AllocsPerRun(1000, func() {
			for range 10 {
				e := c.New()
				e.SetPayload(payload)
				if err := m.Push(e); err != nil {
					t.Fatal(err)
				}
			}
			first := m.Pop()
			m.PushFront(first)
			for e := m.Pop(); e != nil; e = m.Pop() {
				c.Free(e)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations in 10 messages", name, allocs)
		}
	}
}

// TestMailboxIsSmall: a million idle actors have one each.
func TestMailboxIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Mailbox{}); size > 48 {
		t.Errorf("a mailbox takes %d bytes", size)
	}
}

// What waits holds no buffer of an earlier life that is much larger than its message; the first envelope in a mailbox,
// which is about to be taken out, keeps its own.
func TestWhatWaitsFits(t *testing.T) {
	var m Mailbox
	m.Init(Limits{})
	worn := func() *Envelope {
		return &Envelope{Payload: append(make([]byte, 0, maxKeptPayload), 1, 2, 3), Headers: make([]byte, 0, maxKeptHeaders)}
	}
	first, second := worn(), worn()
	for _, e := range []*Envelope{first, second} {
		if err := m.Push(e); err != nil {
			t.Fatal(err)
		}
	}
	if n := cap(second.Payload) + cap(second.Headers); cap(first.Payload) != maxKeptPayload || n > 100 || len(second.Payload) != 3 || second.Payload[2] != 3 {
		t.Errorf("the first holds %d bytes, the one behind it %d: %v", cap(first.Payload), n, second.Payload)
	}
	if e := (&Envelope{Payload: make([]byte, 1000, 1024)}); testing.AllocsPerRun(10, e.Fit) != 0 {
		t.Error("a buffer that fits is copied")
	}
}

// A large payload is lent: the next large message has the same buffer, and a payload that was put in its place is never
// handed to anybody.
func TestLargePayloadIsLent(t *testing.T) {
	large := bytes.Repeat([]byte{7}, 100_000)
	e := New()
	e.SetPayload(large)
	if e.SetPayload(e.Payload[50_000:]); len(e.Payload) != 50_000 || e.Payload[0] != 7 || e.Payload[49_999] != 7 {
		t.Error("a part of the payload cannot become the payload")
	}
	e.SetPayload(large[:3])
	if cap(e.Payload) < 50_000 {
		t.Error("a buffer that is there is not used")
	}
	own := make([]byte, 1<<14)
	e.Payload = own
	e.Free()
	for range 100 {
		x := New()
		if x.SetPayload(large[:1<<14]); unsafe.SliceData(x.Payload) == unsafe.SliceData(own) {
			t.Fatal("somebody's own buffer is lent")
		}
		defer x.Free()
	}
	var m Mailbox
	m.Init(Limits{})
	for range 2 {
		x := New()
		if x.SetPayload(large); m.Push(x) != nil || mark(x.Payload) != x.lent {
			t.Error("what waits is copied")
		}
	}
	if race.Enabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	if n := testing.AllocsPerRun(100, func() {
		x := New()
		x.SetPayload(large)
		x.Free()
	}); n > 0.1 {
		t.Errorf("%v allocations in a large message", n)
	}
}
