package sandbox

import "encoding/binary"

// canUnwind reports whether stacks can be had on this machine.
const canUnwind = true

// unwind appends the return addresses of the frames of a stack, innermost first. On arm64
// each frame begins with its size; behind it are the return address and the size of the
// arguments. What does not lie within the stack ends it.
func unwind(stack []byte, low, sp, _ uintptr, addrs []uintptr) []uintptr {
	at := uint64(sp - low)
	size := uint64(len(stack))
	word := func() (w uint64, ok bool) {
		if at > size || size-at < 8 {
			return 0, false
		}
		w = binary.LittleEndian.Uint64(stack[at:])
		at += 8
		return w, true
	}
	for len(addrs) < cap(addrs) {
		frame, ok := word()
		if !ok || frame > size {
			break
		}
		at += 8 + frame
		ret, ok := word()
		if !ok {
			break
		}
		args, ok := word()
		if !ok || args > size {
			break
		}
		at += args
		addrs = append(addrs, uintptr(ret))
	}
	return addrs
}
