package slots

import (
	"bytes"
	"sync/atomic"
)

// Image is the memory that instances start with. It is immutable and safe for
// concurrent use.
type Image struct {
	space *Space
	size  uint64
	index []uint32 // per page of grain bytes: 0 if all zero, else 1 + its place in data
	data  []byte   // the pages that are not zero, or all pages if mapped
	count int      // pages that are not zero
	files *files   // what is mapped, if mapped
	refs  atomic.Int64

	mapped bool

	hot    []atomic.Uint32 // bitmap: pages that lives usually touch
	heated atomic.Int32    // bits set in hot

	usuals usuals
}

// NewImage makes an image of a memory's contents, which must be a multiple of
// 64 KiB long and are copied.
func (s *Space) NewImage(data []byte) (*Image, error) {
	if len(data)%WasmPage != 0 || uint64(len(data)) > MaxMemory {
		return nil, ErrSize
	}
	im := &Image{space: s, size: uint64(len(data)), index: make([]uint32, len(data)/grain)}
	im.hot = make([]atomic.Uint32, (len(im.index)+31)/32)
	im.refs.Store(1)
	zero := make([]byte, grain)
	for i := range im.index {
		if !bytes.Equal(data[i*grain:(i+1)*grain], zero) {
			im.count++
			im.index[i] = uint32(im.count)
		}
	}
	if err := s.hold(); err != nil {
		return nil, err
	}
	if err := s.back.seal(im, data); err != nil {
		s.drop()
		return nil, err
	}
	return im, nil
}

// compact keeps the pages that are not zero in Go's heap.
func (im *Image) compact(data []byte) {
	im.data = make([]byte, 0, im.count*grain)
	for i, k := range im.index {
		if k != 0 {
			im.data = append(im.data, data[i*grain:(i+1)*grain]...)
		}
	}
}

// page is the i-th page of grain bytes, nil if it is all zero.
func (im *Image) page(i int) []byte {
	k := im.index[i]
	if k == 0 {
		return nil
	}
	if im.mapped {
		return im.data[i*grain : (i+1)*grain]
	}
	return im.data[int(k-1)*grain : int(k)*grain]
}

// copyInto writes the pages that are not zero into mem, which is all zero.
func (im *Image) copyInto(mem []byte) {
	for i, k := range im.index {
		if k != 0 {
			copy(mem[i*grain:], im.page(i))
		}
	}
}

// Size is the size of a fresh memory in bytes.
func (im *Image) Size() uint64 { return im.size }

// NonZero is the number of bytes in pages that are not all zero.
func (im *Image) NonZero() int { return im.count * grain }

// Mapped reports whether the image is mapped copy-on-write (true) or copied.
func (im *Image) Mapped() bool { return im.mapped }

// Close releases the image once the last memory made from it is freed. No
// memory may be made from it afterwards.
func (im *Image) Close() { im.unref() }

func (im *Image) unref() {
	if im.refs.Add(-1) == 0 {
		im.space.back.unseal(im)
		im.space.drop()
	}
}
