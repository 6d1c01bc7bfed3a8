package mailbox

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func envelope(n int, payload int) *Envelope {
	e := New()
	e.Correlation = uint64(n)
	e.SetPayload(make([]byte, payload))
	return e
}

func boxOf(l Limits) *Mailbox {
	m := new(Mailbox)
	m.Init(l)
	return m
}

func TestPushPopKeepsOrder(t *testing.T) {
	m := boxOf(Limits{})
	for i := range 10 {
		if err := m.Push(envelope(i, 3)); err != nil {
			t.Fatal(err)
		}
	}
	if m.Len() != 10 || m.Bytes() != 30 {
		t.Fatalf("len %d, bytes %d; want 10, 30", m.Len(), m.Bytes())
	}
	for i := range 10 {
		if peek := m.Peek(); peek == nil || peek.Correlation != uint64(i) {
			t.Fatalf("peek %d: %v", i, peek)
		}
		e := m.Pop()
		if e.Correlation != uint64(i) {
			t.Fatalf("popped %d, want %d", e.Correlation, i)
		}
		e.Free()
	}
	if m.Pop() != nil || m.Peek() != nil || !m.Empty() || m.Len() != 0 || m.Bytes() != 0 {
		t.Fatal("not empty at the end")
	}
}

func TestBounds(t *testing.T) {
	tests := []struct {
		limits Limits
		sizes  []int
		full   []bool
	}{
		{Limits{Messages: 2}, []int{1, 1, 1}, []bool{false, false, true}},
		{Limits{Bytes: 10}, []int{4, 6, 0, 1}, []bool{false, false, false, true}},
		{Limits{Bytes: 10}, []int{11, 10}, []bool{true, false}},
		{Limits{Messages: -1, Bytes: -1}, []int{1, 1}, []bool{false, false}},
		{Limits{Messages: 1 << 40, Bytes: 1 << 60}, []int{1, 1}, []bool{false, false}},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.limits), func(t *testing.T) {
			m := boxOf(test.limits)
			for i, size := range test.sizes {
				err := m.Push(envelope(i, size))
				if full := errors.Is(err, ErrFull); full != test.full[i] || err != nil && !full {
					t.Errorf("push %d of %d bytes: %v, want full %v", i, size, err, test.full[i])
				}
			}
		})
	}
}

func TestHeadersCountAsBytes(t *testing.T) {
	m := boxOf(Limits{Bytes: 8})
	e := New()
	e.SetHeaders([]byte("head"))
	e.SetPayload([]byte("body."))
	if err := m.Push(e); !errors.Is(err, ErrFull) {
		t.Fatalf("9 bytes into 8: %v", err)
	}
	e.SetPayload([]byte("body"))
	if err := m.Push(e); err != nil {
		t.Fatal(err)
	}
	if m.Bytes() != 8 {
		t.Fatalf("bytes %d, want 8", m.Bytes())
	}
}

// TestPushFrontExceedsBounds shows that what the consumer gives back is never
// refused, and that senders then wait until there is room again.
func TestPushFrontExceedsBounds(t *testing.T) {
	m := boxOf(Limits{Messages: 2})
	a, b := envelope(1, 1), envelope(2, 1)
	_ = m.Push(a)
	_ = m.Push(b)
	m.Pop()
	m.Pop()
	_ = m.Push(envelope(3, 1))
	_ = m.Push(envelope(4, 1))
	m.PushFront(a, b)
	if m.Len() != 4 {
		t.Fatalf("len %d, want 4", m.Len())
	}
	for want := uint64(1); want <= 2; want++ {
		if err := m.Push(envelope(9, 1)); !errors.Is(err, ErrFull) {
			t.Fatalf("push into an overfull mailbox: %v", err)
		}
		if e := m.Pop(); e.Correlation != want {
			t.Fatalf("popped %d, want %d", e.Correlation, want)
		}
	}
}

func TestCloseDrainsInOrder(t *testing.T) {
	m := boxOf(Limits{Bytes: 100})
	for i := 2; i < 6; i++ {
		_ = m.Push(envelope(i, 1))
	}
	first := m.Pop() // the rest moves to the front
	_ = m.Push(envelope(6, 1))
	m.PushFront(envelope(1, 1), first)
	var got []uint64
	drain := func(e *Envelope) {
		got = append(got, e.Correlation)
		e.Free()
	}
	m.Close(drain)
	if fmt.Sprint(got) != "[1 2 3 4 5 6]" {
		t.Fatalf("drained %v", got)
	}
	for _, size := range []int{1, 101} {
		if err := m.Push(envelope(7, size)); !errors.Is(err, ErrClosed) {
			t.Fatalf("push of %d bytes after close: %v", size, err)
		}
	}
	if m.Len() != 0 || m.Bytes() != 0 || !m.Closed() || !m.Empty() || m.Pop() != nil {
		t.Fatal("a closed mailbox is empty")
	}
	m.PushFront(envelope(8, 1))
	m.Close(drain)
	m.Close(drain)
	if len(got) != 7 {
		t.Fatalf("drained %v", got)
	}
}

func TestFullMailboxSaysClosed(t *testing.T) {
	m := boxOf(Limits{Messages: 1})
	_ = m.Push(envelope(1, 0))
	m.Close(func(e *Envelope) { m.PushFront(e); m.Pop() })
	m.PushFront(envelope(1, 0)) // full again
	if err := m.Push(envelope(2, 0)); !errors.Is(err, ErrClosed) {
		t.Fatalf("full and closed: %v, want closed", err)
	}
}

// TestAgainstModel drives a mailbox and a plain slice with the same calls.
func TestAgainstModel(t *testing.T) {
	type model struct {
		n, size int
	}
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			Messages: rapid.IntRange(1, 8).Draw(t, "messages"),
			Bytes:    int64(rapid.IntRange(1, 40).Draw(t, "bytes")),
		}
		m := boxOf(limits)
		var want []model
		var out []*Envelope // popped and kept by the consumer
		closed := false
		made := 0
		bytes := func() (sum int) {
			for _, e := range want {
				sum += e.size
			}
			return sum
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				made++
				e := envelope(made, rapid.IntRange(0, 12).Draw(t, "size"))
				var expect error
				switch {
				case closed:
					expect = ErrClosed
				case len(want) >= limits.Messages, int64(bytes()+e.Size()) > limits.Bytes:
					expect = ErrFull
				}
				if err := m.Push(e); !errors.Is(err, expect) {
					t.Fatalf("push: %v, want %v", err, expect)
				}
				if expect == nil {
					want = append(want, model{made, e.Size()})
				} else {
					e.Free()
				}
			},
			"pop": func(t *rapid.T) {
				e := m.Pop()
				if len(want) == 0 {
					if e != nil {
						t.Fatalf("popped %d from an empty mailbox", e.Correlation)
					}
					return
				}
				if e == nil || int(e.Correlation) != want[0].n {
					t.Fatalf("popped %v, want %d", e, want[0].n)
				}
				want = want[1:]
				if rapid.Bool().Draw(t, "keep") {
					out = append(out, e)
				} else {
					e.Free()
				}
			},
			"peek": func(t *rapid.T) {
				e := m.Peek()
				if (e == nil) != (len(want) == 0) || e != nil && int(e.Correlation) != want[0].n {
					t.Fatalf("peek %v, want %v", e, want)
				}
			},
			"pushFront": func(t *rapid.T) {
				back := make([]model, 0, len(out))
				for _, e := range out {
					back = append(back, model{int(e.Correlation), e.Size()})
				}
				m.PushFront(out...)
				want = append(back, want...)
				out = nil
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
					return
				}
				m.Close(func(e *Envelope) {
					if len(want) == 0 || int(e.Correlation) != want[0].n {
						t.Fatalf("drained %d, want %v", e.Correlation, want)
					}
					want = want[1:]
					e.Free()
				})
				if len(want) != 0 {
					t.Fatalf("not drained: %v", want)
				}
				closed = true
			},
			"": func(t *rapid.T) {
				if m.Len() != len(want) || m.Bytes() != int64(bytes()) || m.Empty() != (len(want) == 0) || m.Closed() != closed {
					t.Fatalf("len %d bytes %d empty %v closed %v; want %d, %d, closed %v",
						m.Len(), m.Bytes(), m.Empty(), m.Closed(), len(want), bytes(), closed)
				}
			},
		})
	})
}
