// Package slots allocates the linear memories of guests.
//
// A [Space] is address space, reserved once and cut into slots of a few sizes. A slot is backed
// by nothing until the guest touches it. An [Image] is the memory that an instance starts with; a
// [Memory] is one instance's memory: a slot with an image in it. A small image is copied into the
// slot, page by page and only the pages that are not zero; a large one is mapped copy-on-write
// from a sealed memfd that all its instances share. [Memory.Reset] restores what the guest has
// changed; its cost depends on what the guest has touched, not on the size of the image.
//
// Where the platform has no memfd, a Space keeps memories in Go's heap
// instead; so does Linux when asked ([Options.Portable]).
package slots

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
)

const (
	// WasmPage is the unit of a guest's memory, in bytes.
	WasmPage = 64 << 10
	// MaxMemory is the largest memory, in bytes.
	MaxMemory = 4 << 30
	// CopyLimit is how much of an image may be non-zero for it to be copied into
	// its slots rather than mapped. A mapping costs one or two of the kernel's
	// map entries (65530 a process by default) and a system call; copying costs
	// the memory.
	CopyLimit = 16 << 10
)

// Errors of this package.
var (
	ErrClosed = errors.New("slots: the space is closed")
	ErrFull   = errors.New("slots: no address space left")
	ErrSize   = errors.New("slots: the size is not a multiple of 64 KiB, or more than 4 GiB")
)

// Options says how a Space works. The zero value is for production.
type Options struct {
	// Portable keeps memories in Go's heap even where the platform could do
	// better.
	Portable bool
	// MaxMapped bounds the memories that are mapped at a time; beyond it images
	// of any size are copied. 0 means a quarter of what the kernel allows,
	// negative means none.
	MaxMapped int
	// Reserve is the address space to ask for at first, in bytes. 0 means
	// 256 GiB. The Space asks for less if the system refuses, and for more when
	// it is used up.
	Reserve uint64
	// Share bounds the memories that share the pages of an image; more get a further copy of them. 0 means as many as the
	// machine can have without becoming slow, negative means all. See share_linux.go.
	Share int
	// NoPageMap makes Reset discard pages without looking which were changed, as
	// systems without /proc/self/pagemap must. For tests.
	NoPageMap bool
	// NoPageScan reads the page map's words, as Linux before 6.7 must. For tests.
	NoPageScan bool
}

// Space hands out memories. It is safe for concurrent use.
type Space struct {
	back   backing
	live   atomic.Int64 // blocks in use
	mu     sync.Mutex
	closed bool
	gone   bool // the backing has been released
}

// backing is where blocks come from: address space of our own, or Go's heap.
type backing interface {
	// alloc gives a block of at least size bytes, all zero.
	alloc(size uint64) (*block, error)
	// free releases a block, whatever its contents.
	free(b *block)
	// seal prepares an image for load; data is its whole memory.
	seal(im *Image, data []byte) error
	// unseal releases what seal has taken.
	unseal(im *Image)
	// copies reports whether load would copy an image that is heavy enough to be mapped, because
	// as many blocks are mapped as may be.
	copies(im *Image) bool
	// load puts the image into a block that is all zero.
	load(b *block, im *Image) error
	// restore makes the first used bytes of b what load has made them, and
	// everything behind the image zero.
	restore(b *block, im *Image, used uint64) error
	// changed appends, in ascending order, the pages of a block's beginning that may
	// not be what load has made them.
	changed(dst []uint32, mem []byte) []uint32
	// resident is how many bytes of the first used ones of a block are in pages of its own; false if it is not known.
	resident(b *block, used uint64) (uint64, bool)
	// discard discards the contents of pages of b, which was loaded with im, or with nothing if
	// that is nil. Their contents are then undefined until restore.
	discard(b *block, im *Image, pages []uint32) error
	close() error
	portable() bool
}

// block is a piece of address space.
type block struct {
	mem   []byte // the whole of it
	class int
	from  *file // what is mapped over its beginning; nil: no image is
	gone  int   // bytes that the last restore has discarded
}

// New opens a space. Without [Options.Portable] it falls back to Go's heap if
// the platform lacks what it needs; [Space.Portable] tells.
func New(o Options) (*Space, error) {
	if !o.Portable {
		if b := newNative(o); b != nil {
			return &Space{back: b}, nil
		}
	}
	return &Space{back: &heap{}}, nil
}

// Portable reports whether memories are in Go's heap.
func (s *Space) Portable() bool { return s.back.portable() }

// Live is the number of memories that are not freed.
func (s *Space) Live() int { return int(s.live.Load()) }

// Close releases the address space, at once or as soon as the last memory is freed. No more
// memories can be made. It is idempotent.
func (s *Space) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.release()
}

// release releases the backing if it is not in use; mu is held.
func (s *Space) release() error {
	if !s.closed || s.gone || s.live.Load() > 0 {
		return nil
	}
	s.gone = true
	return s.back.close()
}

// hold counts a block before it is taken, so that Close cannot come between.
func (s *Space) hold() error {
	s.live.Add(1)
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		s.drop()
		return ErrClosed
	}
	return nil
}

func (s *Space) drop() {
	if s.live.Add(-1) == 0 {
		s.mu.Lock()
		_ = s.release() // munmap of our own range: nothing to be done about an error
		s.mu.Unlock()
	}
}

// grain is the page of the operating system: what is copied, mapped and
// restored as a whole.
var grain = os.Getpagesize()
