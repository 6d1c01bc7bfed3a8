package cluster

import "sync"

// Blocks and packets of the usual size are used again: memory that was never touched costs more than what is written into it.
// What nothing uses for a while goes to the garbage collector.

// The sizes of blocks' memory, in bytes; larger ones have what they need.
const (
	smallBlock = 512
	someBlock  = 4 << 10
	largeBlock = full + 4<<10
)

var largeBlocks = sync.Pool{New: func() any { return new([largeBlock]byte) }}

// memory has room for so many bytes.
func memory(need int) []byte {
	switch {
	case need <= smallBlock:
		need = smallBlock
	case need <= someBlock:
		need = someBlock
	case need <= largeBlock:
		return largeBlocks.Get().(*[largeBlock]byte)[:0]
	}
	return make([]byte, 0, need)
}

// Free gives back the memory of a packet that Links.Send was given. The links may call it once, from any goroutine, and must not use
// the packet after that.
func Free(packet []byte) { free(packet) }

func free(b []byte) {
	if cap(b) == largeBlock {
		largeBlocks.Put((*[largeBlock]byte)(b[:largeBlock]))
	}
}
