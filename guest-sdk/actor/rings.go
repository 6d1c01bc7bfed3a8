package actor

import (
	"math/bits"
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// Sizes of the rings, in bytes. Larger messages take another way, which is slower for small ones: see large.go.
const (
	InboxSize  = 64 << 10
	OutboxSize = 64 << 10
)

// The rings, of which makeMemory makes the memory. Behind each there are some bytes to spare, so that
// eight may be read or written at once up to its end.
var inbox, outbox []byte

const spare = 8

// Room that makeMemory makes, in bytes. What does not fit is allocated.
const (
	startRoom   = 256 // see Context.keep
	scratchRoom = 512 // see Context.encoded
)

// usualHead is how many bytes a command has in addition to its payload and strings, or a few more.
const usualHead = 64

// room makes sure that n bytes, of which the outbox can have so many, and an end-of-turn marker fit the outbox, and returns
// where they go.
func room(n int) unsafe.Pointer {
	if mem.ctx.written+n >= OutboxSize {
		flush()
	}
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(outbox)), mem.ctx.written)
}

func flush() {
	bridge.Flush(outbox[:mem.ctx.written])
	mem.ctx.written = 0
}

// appendix is where commands that are not on the usual path append themselves, at most
// n bytes; wrote takes over what they have appended. What the outbox has no room for is written from elsewhere.
func appendix(n int) []byte {
	if n >= OutboxSize {
		flush()
		mem.ctx.bulk = grown(mem.ctx.bulk, uint64(n))
		return mem.ctx.bulk
	}
	room(n)
	return outbox[:mem.ctx.written]
}

func wrote(b []byte) {
	if unsafe.SliceData(b) != unsafe.SliceData(outbox) {
		bridge.Write(b)
		return
	}
	mem.ctx.written = len(b)
}

// Loads and stores of numbers as they lie in CBOR, which has the highest byte first.
// WebAssembly allows any address and has the lowest byte first.

func load8(p unsafe.Pointer, at uintptr) uint64 {
	return bits.ReverseBytes64(*(*uint64)(unsafe.Add(p, at)))
}

func store8(p unsafe.Pointer, at uintptr, v uint64) {
	*(*uint64)(unsafe.Add(p, at)) = bits.ReverseBytes64(v)
}

func byteAt(p unsafe.Pointer, at uintptr) *byte { return (*byte)(unsafe.Add(p, at)) }

// bytesAt is unsafe.Slice without its checks; beyond n there are more bytes, which may be read.
func bytesAt(p unsafe.Pointer, n, more int) []byte {
	return *(*[]byte)(unsafe.Pointer(&struct {
		p        unsafe.Pointer
		len, cap int
	}{p, n, n + more}))
}

// putUint writes an unsigned integer and returns the offset behind it.
func putUint(p unsafe.Pointer, at uintptr, v uint64) uintptr {
	if v>>32 != 0 {
		*byteAt(p, at) = 0x1b
		store8(p, at+1, v)
		return at + 9
	}
	return at + uintptr(len(abi.AppendUint(bytesAt(unsafe.Add(p, at), 5, 0)[:0], v)))
}
