package cache

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// largePages asks the system to back memory that is about to be written with large pages: machine code of some
// megabytes is then a few exceptions instead of thousands, and takes fewer entries of the processor's tables when it
// runs. A system that has none leaves everything as it is.
func largePages(b []byte) {
	page := uintptr(unix.Getpagesize())
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := (page - from%page) % page
	if n := (uintptr(len(b)) - skip) / page * page; uintptr(len(b)) > skip && n > 0 {
		_ = unix.Madvise(b[skip:skip+n], unix.MADV_HUGEPAGE)
	}
}
