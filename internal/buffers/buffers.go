// Package buffers lends buffers for large messages. A message of 64 KiB takes longer to make room for than to copy: the
// room is cleared, its pages are touched for the first time, and the garbage collector runs for it.
package buffers

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Least is the size of the smallest buffer that is kept, in bytes; Most is that of the largest.
const (
	Least = 4 << 10
	Most  = 64 << 20
)

// There are four sizes for each power of two, so that a buffer is at most a quarter larger than what it was asked for.
const (
	leastBits = 12 // of Least
	mostBits  = 26 // of Most
	steps     = 4
)

// pools keep what was given back, until two garbage collections have passed without a use. They hold pointers to first
// bytes: a slice in an interface would be an allocation.
var pools [(mostBits-leastBits)*steps + 1]sync.Pool

// class is the number of the smallest size that has room for n bytes, which is above 0 and at most Most.
func class(n int) int {
	if n <= Least {
		return 0
	}
	top := bits.Len(uint(n-1)) - 1 // n-1 has its highest bit there
	return (top-leastBits)*steps + (n-1)>>(top-2) - steps + 1
}

// size is the number of bytes of a class.
func size(class int) int { return (steps + class%steps) << (leastBits - 2 + class/steps) }

// Get lends a buffer of n bytes, with whatever was in it. Any goroutine may call it.
func Get(n int) []byte {
	if n <= 0 || n > Most {
		return make([]byte, max(n, 0))
	}
	c := class(n)
	if p, _ := pools[c].Get().(*byte); p != nil {
		return unsafe.Slice(p, size(c))[:n]
	}
	return make([]byte, size(c))[:n]
}

// Put takes a buffer back that Get has lent, whole: nobody may use it any more. Any goroutine may call it.
func Put(b []byte) {
	n := cap(b)
	if n < Least || n > Most {
		return
	}
	if c := class(n); size(c) == n {
		pools[c].Put(unsafe.SliceData(b))
	}
}
