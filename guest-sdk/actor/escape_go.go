//go:build !tinygo

package actor

import "unsafe"

// unescaped hides v from the compiler's analysis of what escapes, which has to assume that a method
// behind an interface keeps its receiver. So a value can be sent without being allocated first.
func unescaped(v Encoder) Encoder {
	words := *(*[2]uintptr)(unsafe.Pointer(&v))
	return *(*Encoder)(unsafe.Pointer(&words))
}

// unescapedDecoder does the same for what is read into.
func unescapedDecoder(d Decoder) Decoder {
	words := *(*[2]uintptr)(unsafe.Pointer(&d))
	return *(*Decoder)(unsafe.Pointer(&words))
}
