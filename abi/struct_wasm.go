//go:build gc && !tinygo

package abi

import "unsafe"

// ReadStruct reads the struct at m, which has these places: a map with just their keys, in their order. Nothing but m and r is
// written to. It reports ReadAll if r stands behind the map now. Otherwise r is where it was, and m may hold anything.
//
//go:noescape
func ReadStruct(r *Reader, m unsafe.Pointer, places *Place) (how Reading)

// WriteStruct appends the struct at m, which has these places, as a map. It reports false, and has written nothing, if
// there may not be room for it.
//
//go:noescape
func WriteStruct(w *Writer, m unsafe.Pointer, places *Place) (ok bool)

// What the assembly has in numbers. Each line is a constant out of range if that number is another one.
const (
	_ = -(unsafe.Offsetof(Reader{}.buf))
	_ = -(unsafe.Offsetof(Reader{}.at) ^ 24)
	_ = -(unsafe.Offsetof(Reader{}.err) ^ 32)
	_ = -(unsafe.Offsetof(Reader{}.chunk) ^ 88)
	_ = -(unsafe.Offsetof(Reader{}.texts) ^ 112)
	_ = -(unsafe.Offsetof(Writer{}.buf))
	_ = -(unsafe.Sizeof(Place{}) ^ 16)
	_ = -(unsafe.Offsetof(Place{}.Offset) ^ 8)
	_ = -(unsafe.Offsetof(Place{}.Len) ^ 12)
	_ = -(unsafe.Offsetof(Place{}.Kind) ^ 13)
	_ = -(unsafe.Offsetof(Place{}.Bits) ^ 14)
	_ = -(unsafe.Offsetof(Place{}.Shift) ^ 15)
	_ = -(ahead ^ 8)
	_ = -(smallInput ^ 256)
)
