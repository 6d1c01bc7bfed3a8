// Package likeness shares what is the same for several that are made in a row.
package likeness

import (
	"hash/maphash"
	"weak"
)

// Last knows what was made last. It keeps nothing alive. The zero value has made nothing. Not for concurrent use.
type Last[T any] struct {
	sum  uint64 // of the key; equal sums are a hint
	made weak.Pointer[T]
}

// seed decides nothing but which sums are equal by chance.
var seed = maphash.MakeSeed()

// Share returns what was made for the same key in the call before, if it is in use still and same says that it is what is
// wanted. Otherwise it makes it. Sharing begins with the second in a row: what is made for one only costs no weak pointer.
func (l *Last[T]) Share(key []byte, same func(*T) bool, make func() *T) *T {
	sum := maphash.Bytes(seed, key)
	again := sum == l.sum
	if last := l.made.Value(); again && last != nil && same(last) {
		return last
	}
	made := make()
	if l.sum = sum; again {
		l.made = weak.Make(made)
	}
	return made
}
