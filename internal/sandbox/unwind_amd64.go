package sandbox

import "encoding/binary"

// canUnwind reports whether stacks can be had on this machine.
const canUnwind = true

// unwind appends the return addresses of the frames of a stack, innermost first. On amd64
// each frame begins with the frame pointer of its caller, and the return address behind it;
// the last one is wazero's own. What does not point upwards within the stack ends it.
func unwind(stack []byte, low, _, fp uintptr, addrs []uintptr) []uintptr {
	for len(addrs) < cap(addrs) && fp >= low && fp-low+16 <= uintptr(len(stack)) {
		at := fp - low
		next := uintptr(binary.LittleEndian.Uint64(stack[at:]))
		addrs = append(addrs, uintptr(binary.LittleEndian.Uint64(stack[at+8:])))
		if next <= fp {
			break
		}
		fp = next
	}
	return addrs
}
