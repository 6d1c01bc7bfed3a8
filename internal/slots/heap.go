package slots

import (
	"bytes"
	"math/bits"
	"sync"
)

// heap allocates blocks in Go's heap: the portable way. Freed blocks go back to the garbage
// collector, except a few of each size.
type heap struct {
	mu    sync.Mutex
	spare [classes][]*block
}

// Sizes of blocks are powers of two from 64 KiB to 4 GiB.
const (
	minShift = 16
	maxShift = 32
	classes  = maxShift - minShift + 1
)

// classOf is the smallest class of at least size bytes.
func classOf(size uint64) int {
	if size <= 1<<minShift {
		return 0
	}
	return bits.Len64(size-1) - minShift
}

// spareBytes bounds what a class of the heap keeps for reuse.
const spareBytes = 4 << 20

func (h *heap) portable() bool { return true }

func (h *heap) alloc(size uint64) (*block, error) {
	if size > MaxMemory {
		return nil, ErrFull
	}
	c := classOf(size)
	h.mu.Lock()
	if n := len(h.spare[c]); n > 0 {
		b := h.spare[c][n-1]
		h.spare[c] = h.spare[c][:n-1]
		h.mu.Unlock()
		clear(b.mem)
		return b, nil
	}
	h.mu.Unlock()
	return &block{mem: make([]byte, 1<<(c+minShift)), class: c}, nil
}

func (h *heap) free(b *block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if (len(h.spare[b.class])+1)<<(b.class+minShift) <= spareBytes {
		h.spare[b.class] = append(h.spare[b.class], b)
	}
}

func (h *heap) seal(im *Image, data []byte) error { im.compact(data); return nil }

func (h *heap) unseal(im *Image) { im.data = nil }

func (h *heap) copies(*Image) bool { return false }

func (h *heap) load(b *block, im *Image) error { im.copyInto(b.mem); return nil }

func (h *heap) restore(b *block, im *Image, used uint64) error {
	for at := 0; at < int(used); at += grain {
		restorePage(b.mem[at:at+grain], im, at/grain)
	}
	return nil
}

func (h *heap) changed(dst []uint32, mem []byte) []uint32 { return everyPage(dst, mem) }

func (h *heap) resident(*block, uint64) (uint64, bool) { return 0, false }

func (h *heap) discard(*block, *Image, []uint32) error { return nil }

func everyPage(dst []uint32, mem []byte) []uint32 {
	for i := range len(mem) / grain {
		dst = append(dst, uint32(i))
	}
	return dst
}

func (h *heap) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spare = [classes][]*block{}
	return nil
}

// restorePage restores page i, and does not write to it if it is unchanged: a page that was only
// read may be shared.
func restorePage(mem []byte, im *Image, i int) {
	if im != nil && i < len(im.index) {
		if want := im.page(i); want != nil {
			if !bytes.Equal(mem, want) {
				copy(mem, want)
			}
			return
		}
	}
	if !allZero(mem) {
		clear(mem)
	}
}

var zeros [64 << 10]byte

func allZero(p []byte) bool { return bytes.Equal(p, zeros[:len(p)]) }
