//go:build linux && (amd64 || arm64)

package slots

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// keepPages is how many changed pages a reset puts back by copying. A copied
	// page stays resident and does not fault again: 0.1 us against 1.5 to 3 us
	// for a discarded page that the next life touches. Beyond it the life was
	// unusual, and the pages that are not usually touched are discarded.
	keepPages = 64
	// hotPages bounds the pages that count as usually touched.
	hotPages = 96
	// lookBytes is the largest image whose page map is worth reading: 8 bytes a
	// page, about 1.4 us a MiB.
	lookBytes = 32 << 20
)

func (n *native) restore(b *block, im *Image, used uint64) error {
	var size uint64
	if im != nil {
		size = im.size
	}
	if used > size {
		if err := unix.Madvise(b.mem[size:used], unix.MADV_DONTNEED); err != nil {
			return err
		}
		used = size
	}
	if used == 0 {
		return nil
	}
	if n.pages != nil && size <= lookBytes {
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		if n.pages.changed(s, b.mem[:used]) {
			return putBack(b, im, s.changed)
		}
	}
	if err := unix.Madvise(b.mem[:used], unix.MADV_DONTNEED); err != nil {
		return err
	}
	if !b.mapped {
		im.copyInto(b.mem)
	}
	return nil
}

// putBack restores the changed pages.
func putBack(b *block, im *Image, changed []uint32) error {
	if len(changed) <= keepPages {
		for _, i := range changed {
			at := int(i) * grain
			restorePage(b.mem[at:at+grain], im, int(i))
			im.heat(i)
		}
		return nil
	}
	// A discarded page takes its neighbours along as long as they are to be
	// discarded, or unchanged, too.
	from := -1
	flush := func(to int) error {
		if from < 0 {
			return nil
		}
		p := b.mem[from:to]
		from = -1
		return unix.Madvise(p, unix.MADV_DONTNEED)
	}
	end := 0
	for _, i := range changed {
		at := int(i) * grain
		if im.isHot(i) || !b.mapped && im.index[i] != 0 {
			if err := flush(end); err != nil {
				return err
			}
			restorePage(b.mem[at:at+grain], im, int(i))
			continue
		}
		if from >= 0 && !b.mapped && !im.zeroBetween(end/grain, int(i)) {
			if err := flush(end); err != nil {
				return err
			}
		}
		if from < 0 {
			from = at
		}
		end = at + grain
	}
	return flush(end)
}

// zeroBetween reports whether the pages from i to j are zero in the image. In a
// copied block only such pages may be discarded.
func (im *Image) zeroBetween(i, j int) bool {
	for ; i < j; i++ {
		if im.index[i] != 0 {
			return false
		}
	}
	return true
}

// heat counts page i among those that are usually touched.
func (im *Image) heat(i uint32) {
	word, bit := &im.hot[i/32], uint32(1)<<(i%32)
	if word.Load()&bit != 0 || im.heated.Load() >= hotPages {
		return
	}
	if word.Or(bit)&bit == 0 {
		im.heated.Add(1)
	}
}

func (im *Image) isHot(i uint32) bool { return im.hot[i/32].Load()&(1<<(i%32)) != 0 }

// scratch is what a reset needs to look at pages.
type scratch struct {
	entries [512]uint64
	changed []uint32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// pageMap is /proc/self/pagemap: one word for each page of our address space.
type pageMap struct{ fd int }

const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageFile    = 1 << 61 // belongs to a file: not yet copied on write
)

// openPageMap opens the page map and makes sure that it tells what we read from
// it; nil if not.
func openPageMap() *pageMap {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	m := &pageMap{fd: fd}
	if !m.works() {
		m.close()
		return nil
	}
	return m
}

func (m *pageMap) close() { _ = unix.Close(m.fd) }

// works tries the map on a private mapping of a file: page 0 untouched, 1 read,
// 2 written.
func (m *pageMap) works() bool {
	fd, err := unix.MemfdCreate("wasmactors-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if unix.Ftruncate(fd, int64(3*grain)) != nil || writeAll(fd, []byte{1}, int64(grain)) != nil {
		return false
	}
	p, err := unix.Mmap(fd, 0, 3*grain, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return false
	}
	defer unix.Munmap(p)
	if p[grain] != 1 {
		return false
	}
	p[2*grain] = 1
	s := new(scratch)
	return m.changed(s, p) && len(s.changed) == 1 && s.changed[0] == 2
}

// changed lists in s the pages of mem that the process has of its own: what was
// written since they were mapped or discarded, and some that were only read. It
// returns false if the map cannot be read.
func (m *pageMap) changed(s *scratch, mem []byte) bool {
	s.changed = s.changed[:0]
	first := uintptr(unsafe.Pointer(unsafe.SliceData(mem))) / uintptr(grain)
	for done, pages := 0, len(mem)/grain; done < pages; {
		want := min(pages-done, len(s.entries))
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&s.entries)), want*8)
		n, err := unix.Pread(m.fd, raw, int64(first+uintptr(done))*8)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n != len(raw) {
			return false
		}
		for i, e := range s.entries[:want] {
			if e&pageSwapped != 0 || e&(pagePresent|pageFile) == pagePresent {
				s.changed = append(s.changed, uint32(done+i))
			}
		}
		done += want
	}
	return true
}
