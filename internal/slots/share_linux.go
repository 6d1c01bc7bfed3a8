//go:build linux && (amd64 || arm64) && !portable

package slots

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Some hypervisors keep the tables of addresses themselves, without help of the processor. KVM then forgets all places of a page
// that is mapped in more than 1000 (RMAP_RECYCLE_THRESHOLD of its shadow MMU), so that each read of a page that all guests share
// goes to the hypervisor: 20 to 30 us instead of 0.1. There an image gets a further file for each so many memories.
const (
	mostShare = 900
	// askAt is how many memories share an image when the machine is asked: early enough for the answer.
	askAt = 100
)

// file is one copy of an image's pages in a file in memory.
type file struct {
	of   *files
	fd   int
	used int // memories that are mapped from it
}

// files are the copies of an image. The first is what the image itself reads. Of the others one may be without memories: it is
// kept for those that come.
type files struct {
	mu  sync.Mutex
	all []*file
}

func newFiles(fd int) *files {
	f := &files{}
	f.all = []*file{{of: f, fd: fd}}
	return f
}

// take is the file for one more memory, with most that may share one. ask says that so many share the first one that it is time
// to ask the machine.
func (f *files) take(most int, more func() (int, error)) (x *file, ask bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.all, func(x *file) bool { return x.used < most })
	if i < 0 {
		if fd, err := more(); err == nil {
			f.all = append(f.all, &file{of: f, fd: fd})
			i = len(f.all) - 1
		} else { // a limit on descriptors, or a full tmpfs: slow is better than none
			i = 0
		}
	}
	x = f.all[i]
	x.used++
	return x, i == 0 && x.used == askAt
}

// give is the end of a memory that was mapped from f.
func (f *file) give() {
	all := f.of
	all.mu.Lock()
	defer all.mu.Unlock()
	f.used--
	unused := func(x *file) bool { return x.used == 0 && x != all.all[0] }
	if unused(f) && slices.ContainsFunc(all.all, func(x *file) bool { return x != f && unused(x) }) {
		_ = unix.Close(f.fd)
		all.all = slices.DeleteFunc(all.all, func(x *file) bool { return x == f })
	}
}

func (f *files) close() {
	for _, x := range f.all {
		_ = unix.Close(x.fd)
	}
	f.all = nil
}

// sharing is what is known of the machine.
var sharing struct {
	once sync.Once
	slow atomic.Bool
}

// askMachine finds out, beside what runs, how long reads of pages take that are mapped very often. It takes 10 to 100 ms.
func askMachine() {
	sharing.once.Do(func() {
		go func() { sharing.slow.Store(manyMappingsAreSlow()) }()
	})
}

// manyMappingsAreSlow maps a page more often than such a hypervisor remembers, and reads it everywhere. The best of three
// rounds counts: a moment in which the process does not run is no sign.
func manyMappingsAreSlow() bool {
	const times, apart, slow = 1200, 2 << 20, 2 * time.Microsecond
	fd, err := unix.MemfdCreate("wasmactors-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	if writeAll(fd, make([]byte, grain), 0) != nil {
		return false
	}
	// As far apart as guests are, each in a table of addresses of its own.
	space, err := unix.Mmap(-1, 0, times*apart, unix.PROT_NONE, noReserve)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Munmap(space) }()
	for i := range times {
		at := unsafe.Pointer(&space[i*apart])
		if _, err := unix.MmapPtr(fd, 0, at, uintptr(grain), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_FIXED); err != nil {
			return false
		}
	}
	var sum byte
	best := time.Hour
	for range 4 { // the first makes the entries
		began := time.Now()
		for i := range times {
			sum += space[i*apart]
		}
		best = min(best, time.Since(began))
	}
	return sum == 0 && best/times > slow
}
