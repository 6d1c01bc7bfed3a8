package abi

import "unsafe"

// Eight bytes at once, the lowest first, as WebAssembly has them. The caller has checked that
// they lie within the capacity of b.

func loadWord(b []byte, at int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at))
}

func storeWord(b []byte, at int, v uint64) {
	*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), at)) = v
}
