//go:build linux && (amd64 || arm64) && !portable

package slots

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// scratch is what a reset needs to look at pages.
type scratch struct {
	entries [512]uint64
	ranges  [64]pageRange
	changed []uint32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// pageMap is /proc/self/pagemap: one word for each page of our address space. Linux
// 6.7 and later also list the pages that have some properties, in four fifths of
// the time.
type pageMap struct {
	fd    int
	scans bool
}

// pageScan and pageRange are pm_scan_arg and page_region of linux/fs.h.
type pageScan struct {
	size, flags, start, end, walkEnd uint64
	vec, vecLen, maxPages            uint64
	inverted, mask, anyOf, result    uint64
}

type pageRange struct{ start, end, _ uint64 }

const (
	scanRequest  = 0xc0606610 // PAGEMAP_SCAN
	scanFile     = 1 << 2
	scanPresent  = 1 << 3
	scanSwapped  = 1 << 4
	scanZeroPage = 1 << 5 // only read: the zeros that all share
)

const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageFile    = 1 << 61 // belongs to a file: not yet copied on write
)

// openPageMap opens the page map and checks that its contents are as expected; nil if not.
func openPageMap(scans bool) *pageMap {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	m := &pageMap{fd: fd, scans: scans}
	if m.works() {
		return m
	}
	m.scans = false
	if m.works() {
		return m
	}
	m.close()
	return nil
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

// changed lists in s the private pages of mem: those written since they were mapped or discarded,
// and some that were only read. It returns false if the map cannot be read.
func (m *pageMap) changed(s *scratch, mem []byte) bool {
	s.changed = s.changed[:0]
	if m.scans {
		return m.scan(s, mem)
	}
	return m.read(s, mem)
}

// scan asks for the ranges of pages that do not belong to a file.
func (m *pageMap) scan(s *scratch, mem []byte) bool {
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	end := base + uint64(len(mem))
	for at := base; at < end; {
		q := pageScan{
			size: uint64(unsafe.Sizeof(pageScan{})), start: at, end: end,
			vec: uint64(uintptr(unsafe.Pointer(&s.ranges))), vecLen: uint64(len(s.ranges)),
			inverted: scanFile | scanZeroPage, mask: scanFile | scanZeroPage,
			anyOf: scanPresent | scanSwapped, result: scanPresent,
		}
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(m.fd), scanRequest, uintptr(unsafe.Pointer(&q)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 || n > uintptr(len(s.ranges)) || q.walkEnd <= at {
			return false
		}
		for _, r := range s.ranges[:n] {
			for p := r.start; p < r.end; p += uint64(grain) {
				s.changed = append(s.changed, uint32((p-base)/uint64(grain)))
			}
		}
		at = q.walkEnd
	}
	return true
}

// read looks at the word of every page.
func (m *pageMap) read(s *scratch, mem []byte) bool {
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
