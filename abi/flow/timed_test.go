package flow

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

const sec = time.Second

// N14.
func TestN14_Timeouts(t *testing.T) {
	type flow = func(Source[int]) Source[int]
	initial := flow(func(s Source[int]) Source[int] { return InitialTimeout(s, sec) })
	complete := flow(func(s Source[int]) Source[int] { return CompletionTimeout(s, sec) })
	idle := flow(func(s Source[int]) Source[int] { return IdleTimeout(s, sec) })
	demand := flow(func(s Source[int]) Source[int] { return DemandTimeout(s, sec) })
	late := func(f flow, do func(h *hand[int], k *cup[int], b *bench)) {
		t.Helper()
		h, k, b := between(t, f)
		do(h, k, b)
		if k.over {
			t.Error("too early")
		}
		b.pass(time.Millisecond)
		k.ends(ErrTimeout)
		if !h.gone {
			t.Error("the source was not cancelled")
		}
		b.over()
	}
	const almost = sec - time.Millisecond
	late(initial, func(_ *hand[int], k *cup[int], b *bench) { k.ask(); b.pass(almost) })
	late(complete, func(h *hand[int], k *cup[int], b *bench) { k.ask(); h.send(1); b.pass(almost) })
	late(idle, func(h *hand[int], k *cup[int], b *bench) { k.ask(); b.pass(almost); h.send(1); k.ask(); b.pass(almost) })
	late(demand, func(h *hand[int], k *cup[int], b *bench) {
		b.pass(almost)
		k.ask()
		b.pass(time.Hour)
		h.send(1)
		b.pass(almost)
	})
	for _, f := range []flow{initial, complete, idle, demand} {
		h, k, b := between(t, f)
		k.ask()
		h.send(1)
		k.ask()
		h.end()
		k.ends(nil)
		b.over()
	}
	h, k, b := between(t, initial)
	k.ask()
	h.send(1)
	b.pass(time.Hour)
	if k.over {
		t.Error("the first element has come in time")
	}
	h, k, b = between(t, demand)
	for range 3 {
		k.ask()
		b.pass(time.Hour) // the source takes its time
		h.send(1)
	}
	if k.over {
		t.Error("the demand was in time")
	}
}

// N14.
func TestN14_KeepAlive(t *testing.T) {
	h, k, b := between(t, func(s Source[int]) Source[int] { return KeepAlive(s, sec, -1) })
	b.pass(5 * sec)
	k.has()
	k.ask()
	b.pass(sec)
	k.has(-1)
	h.send(1) // was asked for already: it waits
	k.has()
	k.ask().has(1)
	k.ask()
	b.pass(500 * time.Millisecond)
	h.send(2)
	k.ask()
	b.pass(900 * time.Millisecond)
	k.has(2)
	b.pass(100 * time.Millisecond)
	k.has(-1)
	h.end()
	k.ends(nil)
	b.over()
}

// N11.
func TestN11_TimeLimits(t *testing.T) {
	h, k, b := between(t, func(s Source[int]) Source[int] { return TakeWithin(s, sec) })
	k.ask()
	h.send(1)
	k.ask()
	b.pass(sec)
	k.has(1)
	k.ends(nil)
	if !h.gone {
		t.Error("not cancelled")
	}
	b.over()
	h, k, b = between(t, func(s Source[int]) Source[int] { return DropWithin(s, sec) })
	k.ask()
	h.send(1, 2)
	b.pass(sec)
	h.send(3)
	k.has(3)
	h, k, b = between(t, func(s Source[int]) Source[int] { return InitialDelay(s, sec) })
	k.ask()
	b.pass(sec - 1)
	h.wants(0)
	b.pass(1)
	h.wants(1)
	h.send(1)
	k.ask()
	h.send(2)
	k.has(1, 2)
	_ = b
}

// N11.
func TestN11_Delay(t *testing.T) {
	h, k, b := between(t, func(s Source[int]) Source[int] { return Delay(s, sec, 2) })
	k.ask()
	h.send(1)
	b.pass(300 * time.Millisecond)
	h.send(2)
	h.wants(0)
	b.pass(700 * time.Millisecond)
	k.has(1)
	h.wants(1)
	k.ask()
	b.pass(299 * time.Millisecond)
	k.has()
	b.pass(time.Millisecond)
	k.has(2)
	h.send(3)
	h.end()
	k.ask()
	b.pass(sec)
	k.has(3)
	k.ends(nil)
	b.over()
}

// N11.
func TestN11_GroupedWithin(t *testing.T) {
	h, k, b := between(t, func(s Source[int]) Source[[]int] { return GroupedWithin(s, 3, sec) })
	k.ask()
	h.send(1, 2, 3)
	k.has([]int{1, 2, 3})
	k.ask()
	h.send(4)
	b.pass(sec - 1)
	k.has()
	b.pass(1)
	k.has([]int{4})
	b.pass(time.Hour)
	k.ask().has() // an empty group is none
	h.send(5)
	h.end()
	k.has([]int{5})
	k.ends(nil)
	b.over()
	h, _, _ = between(t, func(s Source[int]) Source[[]int] { return GroupedWithin(s, 2, sec) })
	h.send(1, 2)
	h.wants(0) // full, and nobody takes it
}

// N08.
func TestN08_Tick(t *testing.T) {
	_, k, b := between(t, func(Source[int]) Source[string] { return Tick(sec, 2*sec, "x") })
	k.ask()
	b.pass(sec - 1)
	k.has()
	b.pass(1)
	k.has("x")
	b.pass(20 * sec) // ticks that nobody wants are left out
	k.ask().has()
	b.pass(2 * sec)
	k.has("x")
	k.cancel()
	b.over()
}

// later are calls whose results the test gives.
type laters struct {
	open    []func(int, error)
	given   []int
	dropped int
}

func (l *laters) call(_ *Graph, n int, done func(int, error)) func() {
	l.open, l.given = append(l.open, done), append(l.given, n)
	return func() { l.dropped++ }
}

// N11, N03: mapAsync keeps the order, mapAsyncUnordered does not.
func TestN11_MapAsync(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		l := &laters{}
		h, k, b := between(t, func(s Source[int]) Source[int] {
			if ordered {
				return MapAsync(s, 2, l.call)
			}
			return MapAsyncUnordered(s, 2, l.call)
		})
		k.ask()
		h.send(1, 2)
		h.wants(0) // two are under way
		l.open[1](20, nil)
		l.open[1](99, nil) // a second answer counts for nothing
		b.run()
		if ordered {
			k.has()
			h.wants(0)
		} else {
			k.has(20)
		}
		k.ask()
		l.open[0](10, nil)
		b.run()
		k.ask()
		if ordered {
			k.has(10, 20)
		} else {
			k.has(10)
		}
		h.send(3)
		h.end()
		k.ask()
		if k.over {
			t.Error("ended before its last call")
		}
		l.open[2](30, nil)
		b.run()
		k.has(30)
		k.ends(nil)
		b.over()

		// Errors.
		l = &laters{}
		h, k, b = between(t, func(s Source[int]) Source[int] {
			return Supervise(calling(s, 4, ordered, l.call), func(err error) Directive {
				if err == errBad {
					return Resume
				}
				return Stop
			})
		})
		k.ask()
		h.send(1, 2, 3)
		l.open[0](0, errBad)
		l.open[1](2, nil)
		b.run()
		k.has(2)
		l.open[2](0, errors.New("worse"))
		b.run()
		if !k.over || k.err == nil || !h.gone || l.dropped != 0 {
			t.Errorf("over: %v, %v, dropped %d", k.over, k.err, l.dropped)
		}
		b.over()

		// Nothing more is wanted: what is under way is given up.
		l = &laters{}
		h, k, b = between(t, func(s Source[int]) Source[int] { return calling(s, 4, ordered, l.call) })
		k.ask()
		h.send(1, 2)
		k.cancel()
		if l.dropped != 2 {
			t.Errorf("%d were given up", l.dropped)
		}
		l.open[0](1, nil)
		b.run()
		b.over()
	}
	gives(t, MapAsync(Range(1, 5), 3, func(_ *Graph, n int, done func(string, error)) func() { done(fmt.Sprint(n), nil); return nil }),
		"1", "2", "3", "4", "5")
}
