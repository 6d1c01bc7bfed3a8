//go:build linux && (amd64 || arm64) && !portable

package slots

import (
	"slices"

	"golang.org/x/sys/unix"
)

const (
	// keepPages is how many changed pages a reset restores by copying. A copied page stays
	// resident and does not fault again: 0.1 us against 1.5 to 3 us for a discarded page that the
	// next life touches. Beyond that, pages that are not usually touched are discarded.
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
	b.gone = 0
	if used > size {
		b.gone += int(used - size)
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
	b.gone += int(used)
	if err := unix.Madvise(b.mem[:used], unix.MADV_DONTNEED); err != nil {
		return err
	}
	if b.from == nil {
		im.copyInto(b.mem)
	}
	return nil
}

func (n *native) changed(dst []uint32, mem []byte) []uint32 {
	if n.pages != nil {
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		if n.pages.changed(s, mem) {
			return append(dst, s.changed...)
		}
	}
	return everyPage(dst, mem)
}

func (n *native) discard(b *block, im *Image, pages []uint32) error {
	if im != nil {
		// Grown pages are not part of the image.
		known, _ := slices.BinarySearch(pages, uint32(len(im.index)))
		if err := putBack(b, im, pages[:known]); err != nil {
			return err
		}
		pages = pages[known:]
	}
	if len(pages) == 0 {
		return nil
	}
	from, to := int(pages[0])*grain, int(pages[len(pages)-1]+1)*grain
	return unix.Madvise(b.mem[from:to], unix.MADV_DONTNEED)
}

// putBack restores changed pages.
func putBack(b *block, im *Image, changed []uint32) error {
	if len(changed) <= keepPages {
		for _, i := range changed {
			at := int(i) * grain
			renewPage(b.mem[at:at+grain], im, int(i))
			im.heat(i)
		}
		return nil
	}
	// Neighbours of a discarded page are discarded with it as long as they are unchanged, or to
	// be discarded, too.
	from := -1
	flush := func(to int) error {
		if from < 0 {
			return nil
		}
		p := b.mem[from:to]
		from = -1
		b.gone += len(p)
		return unix.Madvise(p, unix.MADV_DONTNEED)
	}
	end := 0
	for _, i := range changed {
		at := int(i) * grain
		if im.isHot(i) || b.from == nil && im.index[i] != 0 {
			if err := flush(end); err != nil {
				return err
			}
			renewPage(b.mem[at:at+grain], im, int(i))
			continue
		}
		if from >= 0 && b.from == nil && !im.zeroBetween(end/grain, int(i)) {
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

// renewPage puts page i back, which the process has of its own. A page with contents is copied without a
// look: it is nearly always changed, and to compare it takes as long. One that is to be zero may have been read
// only, and still be the zeros that all share.
func renewPage(mem []byte, im *Image, i int) {
	if im != nil && i < len(im.index) {
		if want := im.page(i); want != nil {
			copy(mem, want)
			return
		}
	}
	if !allZero(mem) {
		clear(mem)
	}
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
