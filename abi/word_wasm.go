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

func loadAt(p unsafe.Pointer, at int) uint64 { return *(*uint64)(unsafe.Add(p, at)) }

func storeAt(p unsafe.Pointer, at int, v uint64) { *(*uint64)(unsafe.Add(p, at)) = v }

// copyText copies s to where there is room, in words. A call of memory.copy costs more than some words do.
func copyText(p unsafe.Pointer, at int, s string) {
	n := len(s)
	to, from := unsafe.Add(p, at), unsafe.Pointer(unsafe.StringData(s))
	if n < 8 {
		copyShort(to, from, n)
		return
	}
	if n > 64 {
		copy(unsafe.Slice((*byte)(to), n), s)
		return
	}
	last := loadAt(from, n-8)
	for i := 0; i < n-8; i += 8 {
		storeAt(to, i, loadAt(from, i))
	}
	storeAt(to, n-8, last) // it may lie over the one before
}

// copyShort copies less than eight bytes.
func copyShort(to, from unsafe.Pointer, n int) {
	if n >= 4 {
		*(*uint32)(to) = *(*uint32)(from)
		*(*uint32)(unsafe.Add(to, n-4)) = *(*uint32)(unsafe.Add(from, n-4))
		return
	}
	if n >= 2 {
		*(*uint16)(to) = *(*uint16)(from)
	}
	if n&1 != 0 {
		*(*byte)(unsafe.Add(to, n-1)) = *(*byte)(unsafe.Add(from, n-1))
	}
}
