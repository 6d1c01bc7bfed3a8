package slots

// Memory is one instance's linear memory. It is what wazero calls a
// LinearMemory. It is not safe for concurrent use.
type Memory struct {
	space   *Space
	image   *Image // nil: the memory starts as zeros
	block   *block
	view    []byte // what the guest sees of the block
	start   uint64 // the size of a fresh memory
	limit   uint64
	refused bool
	moved   bool // into a larger block than a fresh memory takes
	rebase  bool // the next Reallocate is the one of Rebase
}

// NewMemory makes a memory that starts as the image, or, without one, as zero
// bytes of the given size. It can grow to limit bytes.
func (s *Space) NewMemory(im *Image, size, limit uint64) (*Memory, error) {
	if im != nil {
		size = im.size
	}
	if size%WasmPage != 0 || size > MaxMemory {
		return nil, ErrSize
	}
	if err := s.hold(); err != nil {
		return nil, err
	}
	m := &Memory{space: s, image: im, start: size}
	m.SetLimit(limit)
	b, err := m.fresh()
	if err != nil {
		s.drop()
		return nil, err
	}
	m.show(b, size)
	if im != nil {
		im.refs.Add(1)
	}
	return m, nil
}

// Copies reports whether a new memory of im would be a copy of all that is not zero in it, and
// not a mapping that shares it, because as many are mapped as may be. A memory that is freed
// makes room.
func (s *Space) Copies(im *Image) bool { return im != nil && s.back.copies(im) }

// fresh takes a block and loads the image into it.
func (m *Memory) fresh() (*block, error) {
	b, err := m.space.back.alloc(roomFor(m.start, m.limit))
	if err != nil {
		return nil, err
	}
	if m.image != nil {
		if err := m.space.back.load(b, m.image); err != nil {
			m.space.back.free(b)
			return nil, err
		}
	}
	return b, nil
}

// roomFor is how large a slot to take for a memory that starts with size bytes.
// A guest of a few pages gets what it has: it is one of very many and rarely
// grows. Others get room to grow four times without being moved.
func roomFor(size, limit uint64) uint64 {
	const small = 256 << 10
	if size <= small {
		return size
	}
	return max(size, min(4*size, limit))
}

// SetLimit sets how large the memory may grow from now on, in bytes. It never
// shrinks a memory.
func (m *Memory) SetLimit(limit uint64) { m.limit = min(limit, MaxMemory) }

// show makes the first size bytes of a block visible to the guest.
func (m *Memory) show(b *block, size uint64) { m.block, m.view = b, b.mem[:size:size] }

// Size is what the guest sees, in bytes.
func (m *Memory) Size() uint64 { return uint64(len(m.view)) }

// Bytes is the memory, up to the next growth, Reset or Free.
func (m *Memory) Bytes() []byte { return m.view }

// Resident is how many bytes of pages the memory has of its own: those that were written to since it was made or last
// Reset; ok is false where that is not known. It takes half a microsecond a MiB, up to 1.6 where
// every second page is such a one, and some twelve where an image is mapped.
func (m *Memory) Resident() (n uint64, ok bool) {
	if m.block == nil {
		return 0, false
	}
	return m.space.back.resident(m.block, m.Size())
}

// Discarded is how many bytes of the block the last Reset has given back to the system: the next touch of
// each page of them takes long.
func (m *Memory) Discarded() uint64 {
	if m.block == nil {
		return 0
	}
	return uint64(m.block.gone)
}

// Refused reports whether growth has been refused since the last ClearRefused.
func (m *Memory) Refused() bool { return m.refused }

// ClearRefused forgets refusals.
func (m *Memory) ClearRefused() { m.refused = false }

// Reallocate makes the memory size bytes large. It is called by wazero: when
// the instance is made, and when the guest grows its memory. It returns nil if
// the limit or the system forbids it.
func (m *Memory) Reallocate(size uint64) []byte {
	if m.block == nil {
		return nil
	}
	if m.rebase {
		m.rebase = false
		return m.view
	}
	if old := m.Size(); size < old || size > m.limit && size > old {
		m.refused = true
		return nil
	}
	if size > uint64(len(m.block.mem)) && !m.move(size) {
		m.refused = true
		return nil
	}
	m.show(m.block, size)
	return m.view
}

// move takes a larger block.
func (m *Memory) move(size uint64) bool {
	b, err := m.space.back.alloc(max(size, min(2*m.Size(), m.limit)))
	if err != nil {
		return false
	}
	copyPages(b.mem, m.view)
	m.space.back.free(m.block)
	m.show(b, m.Size())
	m.moved = true
	return true
}

// Reset restores the contents of a fresh memory. If stale is true the size or the place has
// changed, and [Memory.Rebase] must follow before the guest runs again. After an error the memory
// must be freed.
func (m *Memory) Reset() (stale bool, err error) {
	m.refused = false
	if m.block == nil {
		return false, ErrClosed
	}
	if m.moved {
		b, err := m.fresh()
		if err != nil {
			return false, err
		}
		m.space.back.free(m.block)
		m.show(b, m.start)
		m.moved = false
		return true, nil
	}
	used := m.Size()
	m.show(m.block, m.start)
	return used != m.start, m.space.back.restore(m.block, m.image, used)
}

// Rebase makes wazero use the size and the address of a memory that was reset. wazero can grow a
// memory but not shrink it; but it uses whatever the allocator returns when it asks for more. So
// grow, the Grow of wazero's api.Memory, is called for one page, and the answer is the fresh
// memory. It returns false if wazero does not ask, because the memory has reached the maximum
// that the module declares; then the instance must be discarded.
func (m *Memory) Rebase(grow func(pages uint32) (uint32, bool)) bool {
	m.rebase = true
	_, ok := grow(1)
	asked := !m.rebase
	m.rebase = false
	return ok && asked
}

// Free releases the memory. It is idempotent; wazero calls it when an instance is closed.
func (m *Memory) Free() {
	if m.block == nil {
		return
	}
	m.space.back.free(m.block)
	m.block, m.view = nil, nil
	if m.image != nil {
		m.image.unref()
	}
	m.space.drop()
}

// copyPages copies src to dst, which is all zero, without touching the pages
// of dst that stay zero.
func copyPages(dst, src []byte) {
	for at := 0; at < len(src); at += grain {
		page := src[at : at+grain]
		if !allZero(page) {
			copy(dst[at:], page)
		}
	}
}
