package flow

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi/throttle"
)

// N07.
func TestN07_OverflowStrategies(t *testing.T) {
	for _, c := range []struct {
		o    Overflow
		want []int
		err  error
	}{
		{DropNewest, []int{1, 2, 3}, nil},
		{DropOldest, []int{3, 4, 5}, nil},
		{DropLast, []int{1, 2, 5}, nil},
		{DropAll, []int{4, 5}, nil},
		{Overrun, nil, ErrFull},
	} {
		h, k, b := between(t, func(s Source[int]) Source[int] { return Buffer(s, 3, c.o) })
		for n := 1; n <= 5 && !h.gone; n++ {
			h.send(n)
		}
		if c.err == nil {
			h.end()
		}
		for range 4 {
			k.ask()
		}
		k.has(c.want...)
		k.ends(c.err)
		b.over()
	}
	h, k, b := between(t, func(s Source[int]) Source[int] { return Buffer(s, 3, Block) })
	h.send(1, 2, 3)
	h.wants(0) // it is full
	k.ask().has(1)
	h.wants(1)
	h.send(4)
	h.end()
	k.ask().ask().has(2, 3)
	if k.over {
		t.Error("the end has overtaken an element")
	}
	k.ask().has(4)
	k.ends(nil)
	b.over()
	h, k, _ = between(t, func(s Source[int]) Source[int] { return Detach(s) })
	h.wants(1)
	h.send(1)
	h.wants(0)
	k.ask().has(1)
	h.wants(1)
}

// N12.
func TestN12_ConflateAndBatch(t *testing.T) {
	sum := func(a, b int) int { return a + b }
	h, k, b := between(t, func(s Source[int]) Source[int] { return Conflate(s, sum) })
	h.send(1, 2, 3)
	k.ask().has(6)
	k.ask().has()
	h.send(4)
	k.has(4)
	h.send(5, 6)
	h.end()
	k.ask().has(11)
	k.ends(nil)
	b.over()

	h, j, b := between(t, func(s Source[int]) Source[string] {
		return Batch(s, 2, nil, func(n int) string { return fmt.Sprint(n) }, func(s string, n int) string { return fmt.Sprint(s, "+", n) })
	})
	h.send(1, 2, 3)
	h.wants(0) // the third does not fit
	j.ask().has("1+2")
	h.send(4)
	h.end()
	j.ask().has("3+4")
	j.ends(nil)
	b.over()

	h, j, _ = between(t, func(s Source[int]) Source[string] {
		return Batch(s, 10, func(n int) int { return n }, func(n int) string { return fmt.Sprint(n) }, func(s string, n int) string { return fmt.Sprint(s, "+", n) })
	})
	h.send(50, 5)
	h.wants(0)
	j.ask().has("50") // larger than a batch may be: alone
	h.send(5, 1)
	h.end()
	j.ask().has("5+5")
	if j.over {
		t.Error("over")
	}
	j.ask().has("1")
	j.ends(nil)
}

// N12.
func TestN12_Expand(t *testing.T) {
	h, k, b := between(t, func(s Source[int]) Source[int] {
		return Expand(s, func(n int) func() (int, bool) { return func() (int, bool) { n++; return n - 1, true } })
	})
	h.send(10)
	h.wants(0) // not used yet
	k.ask().ask().ask().has(10, 11, 12)
	h.wants(1)
	h.send(20)
	h.end()
	k.ask().has(20)
	k.ends(nil)
	b.over()
	h, k, _ = between(t, func(s Source[int]) Source[int] {
		return Expand(s, func(n int) func() (int, bool) { left := 1; return func() (int, bool) { left--; return n, left >= 0 } })
	})
	k.ask()
	h.send(1)
	k.ask().has(1) // there is no more of it
	h.send(2)
	k.has(2)
}

// N10, by the throttler's rule: an interval begins with the first element, and has N vouchers.
func TestN10_Throttle(t *testing.T) {
	var at []time.Duration
	b := &bench{t: t, now: epoch}
	src := Throttle(Range(1, 7), throttle.Rate{N: 3, Per: time.Second})
	b.g = To(src, ForEach(func(int) error { at = append(at, b.g.Now().Sub(epoch)); return nil })).Start(nil, epoch)
	b.run()
	b.pass(time.Minute)
	if fmt.Sprint(at) != "[0s 0s 0s 1s 1s 1s 2s]" {
		t.Error(at)
	}
	b.over()
	if _, err := all(t, Throttle(Range(1, 2), throttle.Rate{})); err == nil {
		t.Error("a rate of 0")
	}
}
