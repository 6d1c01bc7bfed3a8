package wasi

import (
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
)

// memory is the guest's, read and written with every offset checked.
type memory struct{ api.Memory }

// bytes is a view of n bytes at offset; false if they are not all there.
func (m memory) bytes(offset, n uint64) ([]byte, bool) {
	offset, n = offset&0xffffffff, n&0xffffffff
	return m.Read(uint32(offset), uint32(n))
}

// at is the n-th of several things of the given size from base on; false if they
// would not be in a memory of 32 bits. base, like all arguments from a stack, may
// have garbage in its upper half.
func at(base uint64, n, size uint64) (uint64, bool) {
	offset := base&0xffffffff + n*size
	return offset, offset <= 0xffffffff
}

func (m memory) put32(offset uint64, v uint32) errno {
	if !m.WriteUint32Le(uint32(offset), v) {
		return errnoFault
	}
	return errnoSuccess
}

func (m memory) put64(offset uint64, v uint64) errno {
	if !m.WriteUint64Le(uint32(offset), v) {
		return errnoFault
	}
	return errnoSuccess
}

// Bounds of scattered reads and writes.
const (
	maxVectors  = 1024
	maxTransfer = 1 << 20 // bytes of one call; what is beyond is left to the next
)

// vectors is a checked list of buffers in the guest's memory.
type vectors struct {
	m     memory
	table []byte
	total int // bytes of all, not more than maxTransfer
}

// vectors checks n buffers whose addresses and lengths stand at offset. Buffers
// beyond maxTransfer bytes are cut off: reads and writes may be short.
func (m memory) vectors(offset, n uint64) (vectors, errno) {
	n &= 0xffffffff
	if n > maxVectors {
		return vectors{}, errnoInval
	}
	table, ok := m.bytes(offset, n*8)
	if !ok {
		return vectors{}, errnoFault
	}
	total := 0
	for i := 0; i < len(table); i += 8 {
		size := binary.LittleEndian.Uint32(table[i+4:])
		if _, ok := m.Read(binary.LittleEndian.Uint32(table[i:]), size); !ok {
			return vectors{}, errnoFault
		}
		if total += int(min(size, maxTransfer)); total >= maxTransfer {
			return vectors{m, table[:i+8], maxTransfer}, errnoSuccess
		}
	}
	return vectors{m, table, total}, errnoSuccess
}

// next takes the next buffer that is not empty; nil at the end. The list itself
// may lie in a buffer that has just been filled, so it is checked again.
func (v *vectors) next() []byte {
	for len(v.table) > 0 && v.total > 0 {
		p, _ := v.m.Read(binary.LittleEndian.Uint32(v.table), binary.LittleEndian.Uint32(v.table[4:]))
		v.table = v.table[8:]
		p = p[:min(len(p), v.total)]
		v.total -= len(p)
		if len(p) > 0 {
			return p
		}
	}
	return nil
}
