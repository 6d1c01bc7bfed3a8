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

// Find returns what was made for the same key in the call before, if it is in use still and same says that it is what is
// wanted. If it returns nil, again says whether the key was that of the call before: then what is made now is worth a call
// of [Last.Keep]. So sharing begins with the second in a row, and what is made for one only costs no weak pointer.
func (l *Last[T]) Find(key []byte, same func(*T) bool) (found *T, again bool) {
	sum := maphash.Bytes(seed, key)
	again = sum == l.sum
	l.sum = sum
	if last := l.made.Value(); again && last != nil && same(last) {
		return last, true
	}
	return nil, again
}

// Keep has the next calls of Find look at what was made.
func (l *Last[T]) Keep(made *T) { l.made = weak.Make(made) }
