//go:build linux && (amd64 || arm64) && !portable

package slots

import (
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	defaultReserve = 256 << 30
	leastReserve   = 1 << 30
	// defaultMapCount is the kernel's default of vm.max_map_count.
	defaultMapCount = 65530
	noReserve       = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
)

// native allocates blocks in reserved address space.
type native struct {
	mapped    atomic.Int64 // blocks with an image mapped over them
	maxMapped int64
	share     int      // memories that may share an image's file; 0: as the machine says, negative: all
	pages     *pageMap // nil: not available
	reserve   uint64   // what the next region asks for

	mu      sync.Mutex
	regions []region
	spare   [classes]freeList
}

// region is a reservation: readable, writable, backed by nothing.
type region struct {
	base unsafe.Pointer
	size uint64
	used uint64
}

type freeList struct {
	mu     sync.Mutex
	blocks []*block
}

func newNative(o Options) backing {
	n := &native{maxMapped: int64(o.MaxMapped), reserve: o.Reserve, share: o.Share}
	if n.reserve == 0 {
		n.reserve = defaultReserve
	}
	n.reserve = max(n.reserve, WasmPage)
	if o.MaxMapped == 0 {
		n.maxMapped = int64(mapCount() / 4)
	}
	if WasmPage%grain != 0 || !n.grow(WasmPage) {
		return nil
	}
	if fd, err := unix.MemfdCreate("wasmactors", unix.MFD_CLOEXEC); err != nil {
		n.maxMapped = -1 // no memfd here: copy
	} else {
		_ = unix.Close(fd)
	}
	if !o.NoPageMap {
		n.pages = openPageMap(!o.NoPageScan)
	}
	return n
}

// mapCount is vm.max_map_count.
func mapCount() int {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return defaultMapCount
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || v < 0 {
		return defaultMapCount
	}
	return v
}

func (n *native) portable() bool { return false }

// grow adds a region with room for need bytes; n.mu is held, or n is new.
func (n *native) grow(need uint64) bool {
	for size := max(n.reserve, need); ; size /= 2 {
		p, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, noReserve)
		if err == nil {
			// A slot of 64 KiB must not become a page of 2 MiB. The advice may be
			// unknown to a kernel without huge pages, and then is not needed.
			_ = unix.Madvise(span(p, 0, size), unix.MADV_NOHUGEPAGE)
			n.regions = append(n.regions, region{base: p, size: size})
			n.reserve = size
			return true
		}
		if size/2 < max(need, min(leastReserve, n.reserve)) {
			return false
		}
	}
}

func span(base unsafe.Pointer, at, size uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(base, at)), size)
}

func (n *native) alloc(size uint64) (*block, error) {
	if size > MaxMemory {
		return nil, ErrFull
	}
	c := classOf(size)
	f := &n.spare[c]
	f.mu.Lock()
	if k := len(f.blocks); k > 0 {
		b := f.blocks[k-1]
		f.blocks[k-1] = nil
		f.blocks = f.blocks[:k-1]
		f.mu.Unlock()
		return b, nil
	}
	f.mu.Unlock()
	return n.carve(c)
}

// carve cuts a block that was never used.
func (n *native) carve(c int) (*block, error) {
	size := uint64(1) << (c + minShift)
	n.mu.Lock()
	defer n.mu.Unlock()
	r := &n.regions[len(n.regions)-1]
	if r.size-r.used < size {
		// What is left of the old region is lost: address space, nothing else.
		if !n.grow(size) {
			return nil, ErrFull
		}
		r = &n.regions[len(n.regions)-1]
	}
	b := &block{mem: span(r.base, r.used, size), class: c}
	r.used += size
	return b, nil
}

func (n *native) free(b *block) {
	if b.from != nil {
		if !n.unmap(b) {
			return // the block is lost; its next user would see another's memory
		}
	} else if unix.Madvise(b.mem, unix.MADV_DONTNEED) != nil {
		return
	}
	f := &n.spare[b.class]
	f.mu.Lock()
	f.blocks = append(f.blocks, b)
	f.mu.Unlock()
}

// unmap makes a mapped block anonymous and zero again.
func (n *native) unmap(b *block) bool {
	p := unsafe.Pointer(unsafe.SliceData(b.mem))
	_, err := unix.MmapPtr(-1, 0, p, uintptr(len(b.mem)), unix.PROT_READ|unix.PROT_WRITE, noReserve|unix.MAP_FIXED)
	n.mapped.Add(-1)
	b.from.give()
	if b.from = nil; err != nil {
		return false
	}
	_ = unix.Madvise(b.mem, unix.MADV_NOHUGEPAGE)
	return true
}

// resident asks which pages are in memory, and the page map where those of an image's file would be among them, which it
// takes some ten times longer to read. It is 16 MiB at a time, so that lists of pages stay small.
func (n *native) resident(b *block, used uint64) (total uint64, ok bool) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for mem := b.mem[:used]; len(mem) > 0; {
		part := mem[:min(len(mem), 16<<20)]
		mem = mem[len(part):]
		if b.from == nil {
			pages := unsafe.Slice((*byte)(unsafe.Pointer(&s.entries)), unsafe.Sizeof(s.entries))[:len(part)/grain]
			_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(part))), uintptr(len(part)), uintptr(unsafe.Pointer(unsafe.SliceData(pages))))
			if errno != 0 {
				return 0, false
			}
			for _, p := range pages {
				total += uint64(p&1) * uint64(grain)
			}
			continue
		}
		if n.pages == nil || !n.pages.changed(s, part) {
			return 0, false
		}
		total += uint64(len(s.changed) * grain)
	}
	return total, true
}

func (n *native) seal(im *Image, data []byte) error {
	if im.NonZero() > CopyLimit && n.maxMapped > 0 {
		if err := n.sealFile(im, data); err == nil {
			return nil
		}
		// No file (a limit on descriptors, a full tmpfs): copy.
	}
	im.compact(data)
	return nil
}

// sealFile puts the image into a file in memory that can no longer change.
func (n *native) sealFile(im *Image, data []byte) error {
	fd, err := im.sealed(data)
	if err != nil {
		return err
	}
	if im.data, err = unix.Mmap(fd, 0, int(im.size), unix.PROT_READ, unix.MAP_PRIVATE); err != nil {
		_ = unix.Close(fd)
		return err
	}
	im.files, im.mapped = newFiles(fd), true
	return nil
}

// sealed makes a file in memory with the image's pages. data is the whole memory.
func (im *Image) sealed(data []byte) (int, error) {
	fd, err := unix.MemfdCreate("wasmactors-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	err = unix.Ftruncate(fd, int64(im.size))
	for i := 0; i < len(im.index) && err == nil; i++ {
		from := i
		for i < len(im.index) && im.index[i] != 0 {
			i++
		}
		if i > from {
			err = writeAll(fd, data[from*grain:i*grain], int64(from*grain))
		}
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func writeAll(fd int, p []byte, at int64) error {
	for len(p) > 0 {
		n, err := unix.Pwrite(fd, p, at)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}

func (n *native) unseal(im *Image) {
	if im.mapped {
		_ = unix.Munmap(im.data)
		im.files.close()
	}
	im.data = nil
}

// most is how many memories may share a file of an image.
func (n *native) most() int {
	switch {
	case n.share > 0:
		return n.share
	case n.share == 0 && sharing.slow.Load():
		return mostShare
	}
	return math.MaxInt
}

func (n *native) copies(im *Image) bool { return im.mapped && n.mapped.Load() >= n.maxMapped }

func (n *native) load(b *block, im *Image) error {
	if im.mapped {
		if n.mapped.Add(1) <= n.maxMapped {
			f, ask := im.files.take(n.most(), func() (int, error) { return im.sealed(im.data) })
			if ask && n.share == 0 {
				askMachine()
			}
			p := unsafe.Pointer(unsafe.SliceData(b.mem))
			_, err := unix.MmapPtr(f.fd, 0, p, uintptr(im.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
			if err == nil {
				b.from = f
				return nil
			}
			f.give()
		}
		n.mapped.Add(-1)
	}
	im.copyInto(b.mem)
	return nil
}

func (n *native) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var first error
	for _, r := range n.regions {
		if err := unix.MunmapPtr(r.base, uintptr(r.size)); err != nil && first == nil {
			first = err
		}
	}
	n.regions = nil
	for c := range n.spare {
		n.spare[c].blocks = nil
	}
	if n.pages != nil {
		n.pages.close()
	}
	return first
}
