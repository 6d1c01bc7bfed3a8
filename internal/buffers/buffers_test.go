package buffers

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/internal/race"
)

// A buffer has room for what was asked for, and at most a quarter more.
func TestSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, Most).Draw(t, "n")
		c := class(n)
		if s := size(c); s < n || n > Least && s > n+n/4+1 {
			t.Fatalf("%d bytes are given %d", n, s)
		}
		if c > 0 && size(c-1) >= n {
			t.Fatalf("%d bytes would fit %d", n, size(c-1))
		}
	})
	for c := range pools {
		if class(size(c)) != c {
			t.Errorf("%d bytes are of class %d, not of %d", size(c), class(size(c)), c)
		}
	}
	if size(len(pools)-1) != Most {
		t.Errorf("the largest has %d bytes", size(len(pools)-1))
	}
}

func TestLend(t *testing.T) {
	for _, n := range []int{-1, 0, 1, Least, Least + 1, 1 << 20, Most + 1} {
		b := Get(n)
		if len(b) != max(n, 0) {
			t.Errorf("%d bytes, want %d", len(b), n)
		}
		Put(b)
	}
	Put(nil)
	foreign := make([]byte, 5000, 5001) // not of our sizes
	Put(foreign)
	if b := Get(5000); unsafe.SliceData(b) == unsafe.SliceData(foreign) {
		t.Error("a buffer that was never lent is lent")
	}
	if race.Enabled {
		t.Skip("the pool forgets at random then")
	}
	if n := testing.AllocsPerRun(100, func() { Put(Get(100_000)) }); n > 0.1 {
		t.Errorf("%v allocations", n)
	}
}
